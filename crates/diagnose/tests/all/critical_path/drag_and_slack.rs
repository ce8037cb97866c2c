//! Drag and slack in the shapes that CRISP's tests of them are about, in cases of our own.
//!
//! Ours differ from CRISP's in two ways, on purpose. Drag is what the whole request would gain, so a span's is never
//! more than its parent's. Slack is how much longer a span could take; CRISP's is how far it could be moved, which also
//! counts room before it. And only a tick of overlap makes calls follow one another, where CRISP allows 1 %.

use super::told::{Case, Line, Told};

fn drags(lines: &[Line<'_>]) -> Vec<(String, i64)> {
    Told::of(lines).drag().into_iter().map(|(name, us)| (name.to_owned(), us)).collect()
}

#[test]
fn drag() {
    let cases: &[Case<'_, (&str, i64)>] = &[
        ("alone", &[("page", 0, 100, "")], &[("page", 100)]),
        (
            "a chain without branches",
            &[("page", 0, 900, ""), ("cart", 0, 500, "page"), ("store", 0, 200, "cart")],
            &[("cart", 500), ("page", 900), ("store", 200)],
        ),
        (
            "calls in turn gain all they take",
            &[("page", 0, 900, ""), ("a", 0, 150, "page"), ("b", 200, 400, "page"), ("c", 500, 900, "page")],
            &[("a", 150), ("b", 200), ("c", 400), ("page", 900)],
        ),
        (
            "beside another, its lead over it",
            &[("page", 0, 900, ""), ("quick", 0, 70, "page"), ("slow", 0, 700, "page")],
            &[("page", 900), ("slow", 630)],
        ),
        (
            "below one that leads little, no more than that",
            &[("page", 0, 900, ""), ("quick", 0, 600, "page"), ("slow", 0, 700, "page"), ("store", 100, 690, "slow")],
            &[("page", 900), ("slow", 100), ("store", 100)],
        ),
    ];
    for (name, lines, expected) in cases {
        let expected: Vec<(String, i64)> = expected.iter().map(|(name, us)| ((*name).to_owned(), *us)).collect();
        assert_eq!(drags(lines), expected, "{name}");
    }
}

#[test]
fn slack() {
    let cases: &[Case<'_, (&str, i64)>] = &[
        ("on the path there is none", &[("page", 0, 900, ""), ("a", 0, 150, "page"), ("b", 200, 400, "page")], &[]),
        (
            "up to the end of what is waited for",
            &[("page", 0, 900, ""), ("quick", 300, 420, "page"), ("slow", 400, 900, "page")],
            &[("quick", 480)],
        ),
        (
            "room before it does not count",
            &[("page", 0, 900, ""), ("a", 0, 100, "page"), ("b", 300, 650, "page"), ("c", 600, 900, "page")],
            &[("b", 250)],
        ),
        (
            "below it, with the room of its parent",
            &[
                ("page", 0, 900, ""),
                ("quick", 0, 300, "page"),
                ("x", 10, 50, "quick"),
                ("y", 20, 280, "quick"),
                ("slow", 0, 900, "page"),
            ],
            &[("quick", 600), ("x", 830), ("y", 600)],
        ),
    ];
    for (name, lines, expected) in cases {
        let told = Told::of(lines);
        assert_eq!(told.slack().into_iter().collect::<Vec<_>>(), *expected, "{name}");
        let below_the_first = |span: &str| lines.iter().any(|line| line.0 == span && line.3 == lines[0].0);
        for (span, us) in expected.iter().filter(|(span, _)| below_the_first(span)) {
            assert_longer_by(lines, span, *us, name);
        }
    }
}

/// That the request does not wait for a span that takes so much longer, and does for one that takes longer still.
fn assert_longer_by(lines: &[Line<'_>], span: &str, us: i64, name: &str) {
    let waits = |more: i64| {
        let mut grown: Vec<Line<'_>> = lines.to_vec();
        grown.iter_mut().filter(|line| line.0 == span).for_each(|line| line.2 += more);
        Told::of(&grown).own().contains_key(span)
    };
    assert!(!waits(us - 2), "{name}: {span} could take {us} µs longer");
    assert!(waits(us + 2), "{name}: {span} could take {us} µs longer");
}
