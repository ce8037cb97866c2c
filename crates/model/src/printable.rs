//! Untrusted texts made safe for a terminal, a spreadsheet or a reader.
//!
//! A terminal obeys control characters, bidirectional marks change the order in which a text is read, and a spreadsheet
//! evaluates cells that begin like a formula. All of these occur in names and messages of the system under test.

use std::borrow::Cow;
use std::fmt::Write;

/// The character that replaces one that must not be printed.
pub const REPLACEMENT: char = '\u{fffd}';

/// Whether a terminal obeys a character instead of printing it, or reorders the text after it: the control characters
/// C0 and C1, and the bidirectional marks of Unicode.
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text of several lines. Characters that a terminal obeys are replaced, except line feeds and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'))
}

/// As [`lines`], but keeps these control sequences, which the caller itself added.
pub fn painted(text: &str, sequences: &[&str]) -> String {
    const ESCAPE: char = '\u{1b}';
    let mut parts = text.split(ESCAPE);
    let mut printed = lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let kept = sequences.iter().find_map(|one| Some((one, part.strip_prefix(one.strip_prefix(ESCAPE)?)?)));
        match kept {
            Some((sequence, rest)) => printed.extend([*sequence, &*lines(rest)]),
            None => printed.extend([REPLACEMENT.encode_utf8(&mut [0; 4]), &*lines(part)]),
        }
    }
    printed
}

/// Text on one line. Line feeds and tabs become blanks; other characters that a terminal obeys are replaced.
pub fn line(text: &str) -> Cow<'_, str> {
    match lines(text) {
        text if text.contains(['\n', '\t']) => Cow::Owned(text.replace(['\n', '\t'], " ")),
        text => text,
    }
}

/// JSON in which characters that a terminal obeys are escaped; its meaning is unchanged.
pub fn json(text: &str) -> Cow<'_, str> {
    // Line feeds and tabs occur between values only; within texts they are already escaped.
    let is_escaped = |c: char| is_obeyed(c) && !matches!(c, '\n' | '\t' | '\r');
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            // All these characters are below U+10000. Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// The text of a CSV cell, without quotes, that a spreadsheet shows instead of evaluating. Text that begins like a
/// formula and is not a number gets a leading `'`.
pub fn cell(text: &str) -> Cow<'_, str> {
    let text = lines(text);
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t']) && text.trim_end().parse::<f64>().is_err();
    if is_formula { Cow::Owned(format!("'{text}")) } else { text }
}

fn replaced(text: &str, is_replaced: impl Fn(char) -> bool) -> Cow<'_, str> {
    match text.contains(&is_replaced) {
        true => Cow::Owned(text.chars().map(|c| if is_replaced(c) { REPLACEMENT } else { c }).collect()),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_replaced() {
        for (text, in_lines, in_line) in [
            ("a b\té\n", "a b\té\n", "a b é "),
            ("a\x1b[2Jb\r\x07\x7f", "a\u{fffd}[2Jb\u{fffd}\u{fffd}\u{fffd}", "a\u{fffd}[2Jb\u{fffd}\u{fffd}\u{fffd}"),
            ("a\u{9b}31mb", "a\u{fffd}31mb", "a\u{fffd}31mb"),
            (
                "a\u{202e}b\u{2066}c\u{200f}\u{61c}",
                "a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}",
                "a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}",
            ),
            ("日本 👩‍💻", "日本 👩‍💻", "日本 👩‍💻"),
        ] {
            assert_eq!((&*lines(text), &*line(text)), (in_lines, in_line));
        }
    }

    #[test]
    fn only_given_sequences_stay() {
        let text = "\u{1b}[1mbold\u{1b}[0m \u{1b}[2J \u{1b}[1;1H\u{9b}1m\u{1b}";
        assert_eq!(
            painted(text, &["\u{1b}[1m", "\u{1b}[0m"]),
            "\u{1b}[1mbold\u{1b}[0m \u{fffd}[2J \u{fffd}[1;1H\u{fffd}1m\u{fffd}"
        );
        assert_eq!(painted("plain\n", &[]), "plain\n");
    }

    #[test]
    fn json_means_the_same_without_what_is_obeyed() {
        let value = serde_json::json!({ "a\u{202e}": ["x\u{9b}y\u{7f}", "\n\u{1b}"], "b": 1 });
        for text in [value.to_string(), format!("{value:#}\n")] {
            let escaped = json(&text);
            assert!(!escaped.contains(|c| is_obeyed(c) && c != '\n'), "{escaped}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        }
    }

    #[test]
    fn a_cell_is_no_formula_and_a_number_stays_one() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+cmd|'/C calc'!A0", "'+cmd|'/C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\u{fffd}=1"),
            ("-1.5", "-1.5"),
            ("+7", "+7"),
            ("-2e9", "-2e9"),
            ("-", "'-"),
            ("a=1", "a=1"),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}
