//! Texts that are no queries, or hardly: each one compiles or fails, and an error's place lies within the text.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::common::Bench;
use narrows_query::{QUERY_BYTES_MAX, compile};
use proptest::prelude::*;

static CORPUS: LazyLock<Vec<String>> = LazyLock::new(corpus);

fn corpus() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut paths = Vec::new();
    for kind in ["accepted", "refused"] {
        paths.extend(fs::read_dir(folder.join(kind)).unwrap().map(|entry| entry.unwrap().path()));
    }
    paths.sort();
    paths.into_iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Errors that a query of the limits' size may meet: SQLite's own limits, which its runner reports.
const SQLITE_LIMITS: [&str; 3] = ["too many", "Expression tree is too large", "parser stack overflow"];

/// A text is refused with a place in it, or gives SQL that SQLite understands.
fn check_with(bench: &Bench, text: &str) {
    check(text);
    if let Ok(compiled) = compile(text, &[])
        && let Err(error) = bench.prepare(&compiled)
    {
        let said = error.to_string();
        assert!(SQLITE_LIMITS.iter().any(|limit| said.contains(limit)), "{said}: {text:?}\n{}", compiled.sql);
    }
}

fn check(text: &str) {
    if let Err(mistake) = compile(text, &[]) {
        let lines: Vec<&str> = text.split('\n').collect();
        assert!((1..=lines.len()).contains(&mistake.line), "line {} of {}: {text:?}", mistake.line, lines.len());
        let columns = lines[mistake.line - 1].chars().count() + 1;
        assert!((1..=columns).contains(&mistake.column), "column {} of {columns}: {text:?}", mistake.column);
        assert!(!mistake.message.is_empty());
    }
}

/// Pieces that mean something at some place.
const PIECES: [&str; 40] = [
    "|",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ".",
    "..",
    "=",
    "==",
    "=~",
    "!",
    "-",
    "*",
    "/",
    "%",
    "\"",
    "'",
    "@\"",
    "```",
    "//",
    "$left",
    "$",
    "let x = ",
    "by",
    "in (",
    "between (",
    "datetime(",
    "dynamic(",
    "toscalar(",
    "join (",
    "union",
    "1h",
    "99999999999999999999",
    "1e999",
    "\u{0}",
    "é\u{301}",
];

/// A change to a text: at a place, so much is cut out and a piece put in.
fn changed(text: &str, at: usize, cut: usize, piece: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    let at = at % (characters.len() + 1);
    let end = (at + cut).min(characters.len());
    let before: String = characters[..at].iter().collect();
    let after: String = characters[end..].iter().collect();
    format!("{before}{}{after}", PIECES.get(piece).unwrap_or(&""))
}

thread_local! {
    static BENCH: Bench = Bench::new();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn a_query_with_changes_never_panics(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<u16>(), 0_usize..12, 0_usize..50), 1..6),
    ) {
        let mut text = which.get(CORPUS.as_slice()).clone();
        for (at, cut, piece) in changes {
            text = changed(&text, usize::from(at), cut, piece);
        }
        BENCH.with(|bench| check_with(bench, &text));
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,80}") {
        check(&text);
    }

    #[test]
    fn any_words_never_panic(words in prop::collection::vec("[a-z]{1,9}|[0-9]{1,4}|[(),|=.<>\\[\\]\"']", 0..40)) {
        check(&format!("requests | {}", words.join(" ")));
    }
}

#[test]
fn every_beginning_of_every_query_is_handled() {
    for text in CORPUS.iter() {
        for (at, _) in text.char_indices() {
            check(&text[..at]);
        }
    }
}

#[test]
fn what_grows_is_stopped() {
    let doubled = |count: usize| {
        let steps = (0..count).map(|at| format!("| extend x{} = x{at} * x{at}", at + 1));
        format!("requests | extend x0 = duration {}", steps.collect::<String>())
    };
    let nested = |count: usize| {
        let lets = (1..=count).map(|at| format!("let t{at} = union t{}, t{};\n", at - 1, at - 1));
        format!("let t0 = requests;\n{}t{count} | count", lets.collect::<String>())
    };
    for (open, close) in [("(", ")"), ("not(", ")"), ("-(", ")"), ("iff(true, true, ", ")")] {
        let deep = |levels: usize| format!("print {}true{}", open.repeat(levels), close.repeat(levels));
        assert!(compile(&deep(200), &[]).is_err(), "{open}");
        check(&deep(50));
        assert!(open == "-(" || compile(&deep(40), &[]).is_ok(), "{open}");
    }
    // Chains within parentheses within chains.
    let chains = |levels: usize, links: usize| {
        let (open, close) = ("(".repeat(levels), format!("{})", " + 1".repeat(links)).repeat(levels));
        format!("print {open}1{close}")
    };
    for (levels, links) in [(40, 50), (10, 90), (49, 1), (2, 5_000)] {
        check(&chains(levels, links));
    }
    assert!(compile(&chains(9, 9), &[]).is_ok());
    let joins = |levels: usize| {
        let open = "requests | join kind=inner (".repeat(levels);
        format!("{open}requests{} | count", ") on id".repeat(levels))
    };
    assert!(compile(&joins(10), &[]).is_ok());
    check(&joins(33));
    let bench = Bench::new();
    let windows = |levels: usize| {
        let (open, close) = ("prev(".repeat(levels), ")".repeat(levels));
        format!("requests | sort by timestamp asc | extend x = {open}itemCount{close} | where x > {open}1{close}")
    };
    let expanded = |columns: usize| {
        let names: Vec<_> = (0..columns).map(|at| format!("x{at} = customDimensions.a{at}")).collect();
        format!("requests | mv-expand {}", names.join(", "))
    };
    let series = |groups: usize| {
        let names: Vec<_> = (0..groups).map(|at| format!("x{at} = itemCount + {at}")).collect();
        format!("requests | make-series count() on timestamp step 1h by {}", names.join(", "))
    };
    let levels = |levels: usize| {
        let all: Vec<_> =
            (0..levels).map(|at| format!("top-nested 2 of x{at} = itemCount + {at} by count()")).collect();
        format!("requests | {}", all.join(", "))
    };
    let parsed = |columns: usize| {
        let columns: Vec<_> = (0..columns).map(|at| format!("'{at}=' x{at}")).collect();
        format!("requests | parse name with {}", columns.join(" "))
    };
    let arguments = (0..60).map(|at| format!("let f{} = (x: real) {{ f{at}(x + f{at}(x)) }};\n", at + 1));
    let calls = format!("let f0 = (x: real) {{ x }};\n{}print f60(1)", arguments.collect::<String>());
    for (few, many) in [
        (windows(3), windows(90)),
        (expanded(5), expanded(1_500)),
        (series(5), series(1_500)),
        (levels(3), levels(33)),
        (parsed(9), parsed(1_500)),
    ] {
        assert!(compile(&few, &[]).is_ok(), "{few}");
        check_with(&bench, &few);
        check_with(&bench, &many);
    }
    assert!(compile(&calls, &[]).is_err());
    let moduli = format!("print {}1{}", "(7 % ".repeat(50), ")".repeat(50));
    let picks = format!("requests | extend a = {}duration{}", "max_of(1.5, ".repeat(50), ")".repeat(50));
    for text in [doubled(60), nested(60), moduli, picks, " ".repeat(QUERY_BYTES_MAX + 1), "(".repeat(QUERY_BYTES_MAX)] {
        check(&text);
        if let Ok(compiled) = compile(&text, &[]) {
            assert!(compiled.sql.len() < 1_000_000, "{} bytes", compiled.sql.len());
        }
    }
    assert!(compile(&doubled(60), &[]).is_ok(), "long expressions are worked out once");
}
