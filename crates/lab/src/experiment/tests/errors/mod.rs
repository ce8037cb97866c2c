//! Messages about files that are wrong, by section.

use proptest::prelude::*;

use super::*;

mod data;
mod document;
mod load;
mod objectives;
mod parameters;
mod published;
mod requests;
mod scenarios;
mod services;
mod steps;
mod variants;

/// The scenario's model in [`with`]'s file.
const MODEL: &str = "model: constant-vus\n      vus: 1\n      duration: 1s";

/// The scenario's request in [`with`]'s file.
const REQUEST: &str = "request: GET /";

/// The errors of each file with one line changed, below what stands there instead.
fn errors_of_all(cases: &[(&str, &str)]) -> String {
    cases.iter().map(|(line, other)| format!("--- {other}\n{}", errors(&with(line, other)))).collect()
}

proptest! {
    #[test]
    fn no_text_panics(source in "\\PC{0,200}") {
        let _ = parsed(&source);
    }

    /// Lines of a good file lost, doubled, indented or swapped for each other's.
    #[test]
    fn no_mangled_file_panics_or_repeats_itself(edits in prop::collection::vec((0..110usize, 0..110usize, 0..5u8), 1..6)) {
        let mut lines: Vec<String> = WHOLE.lines().map(str::to_owned).collect();
        for (at, other, how) in edits {
            let (at, other) = (at % lines.len(), other % lines.len());
            match how {
                0 => { lines.remove(at); }
                1 => lines.insert(at, lines[other].clone()),
                2 => lines[at].insert_str(0, "  "),
                3 => lines[at] = lines[at].replacen(char::is_alphanumeric, "", 1),
                _ => lines.swap(at, other),
            }
        }
        if let Err(errors) = parsed(&lines.join("\n")) {
            prop_assert!(!errors.is_empty());
            let mut seen: Vec<_> = errors.iter().map(|m| (m.line, m.column, &m.message)).collect();
            seen.sort();
            seen.dedup();
            prop_assert_eq!(seen.len(), errors.len());
        }
    }
}
