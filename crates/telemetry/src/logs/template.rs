//! The kind of a message: its text with `*` for what is filled in.

use narrows_model::messages::MessageCount;
use serde_json::Value;

use super::{looked_at, member, pair};

/// Characters of a template at most.
const TEMPLATE_CHARS_MAX: usize = 160;
/// Members of a line of JSON that hold its message.
const MEMBERS: [&str; 7] = ["message", "msg", "error", "err", "exception", "event", "body"];
/// Keys of a line of logfmt that hold its message; what else such a line has may stand in any text.
const KEYS: [&str; 2] = ["msg", "message"];
/// How the lines begin in which the exception of a record is kept, see `otlp/convert/logs.rs`.
const EXCEPTION: [&str; 2] = ["exception.type=", "exception.message="];
const MASK: char = '*';

/// The kind of message that a text is: `cannot reach * after * ms` of `cannot reach 10.0.0.7:5432 after 3000 ms`. Bounded by
/// [`TEMPLATE_CHARS_MAX`]; [`MessageCount::EMPTY`] for a text without words.
pub(crate) fn template(text: &str) -> String {
    let text = looked_at(text);
    let message = match member(text, &MEMBERS) {
        Some(Value::String(message)) => message,
        Some(other) => other.to_string(),
        None => pair(text, &KEYS).unwrap_or(text).to_owned(),
    };
    let first = message.trim().lines().next().unwrap_or_default();
    let mut masked = masked(first);
    for line in text.lines().skip(1) {
        let stated = EXCEPTION.iter().find_map(|start| line.strip_prefix(start));
        if let Some(stated) = stated.filter(|stated| !stated.is_empty() && !first.contains(stated)) {
            masked = format!("{masked}: {}", self::masked(stated));
        }
    }
    match masked.is_empty() {
        true => MessageCount::EMPTY.to_owned(),
        false => masked.chars().take(TEMPLATE_CHARS_MAX).collect(),
    }
}

/// A line with its values masked and its spaces single.
fn masked(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length = quoted(rest, out.chars().next_back()).or_else(|| value(rest));
        if let Some(length) = length {
            // Several values beside each other, such as a date and a time, are one.
            let kept = out.trim_end_matches([' ', ',', ':']);
            match kept.ends_with(MASK) {
                true => out.truncate(kept.len()),
                false => out.push(MASK),
            }
            rest = &rest[length..];
            continue;
        }
        let word: usize = match is_of_word(first) {
            true => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        match first.is_whitespace() {
            true if out.ends_with(' ') => {}
            true => out.push(' '),
            false => out.push_str(&rest[..word]),
        }
        rest = &rest[word..];
    }
    out.trim().to_owned()
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '%' | '#' | '+')
}

/// The length of the word that this text begins with, when it is a value: it holds a digit.
fn value(text: &str) -> Option<usize> {
    let end = text.find(|c| !is_of_word(c)).unwrap_or(text.len());
    let word = text[..end].trim_end_matches(['.', '-']);
    (word.contains(|c: char| c.is_ascii_digit())).then_some(word.len())
}

/// The length of the quoted part that this text begins with. An apostrophe within a word is no quote.
fn quoted(text: &str, before: Option<char>) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    if quote == '\'' && before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let close = text[1..].find(quote)?;
    Some(close + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_masked() {
        for (text, expected) in [
            ("cannot reach 10.0.0.7:5432 after 3000 ms", "cannot reach * after * ms"),
            ("2026-11-24 10:00:00,123 ERROR [worker-7] pool is empty", "* ERROR [*] pool is empty"),
            ("order 3f2b8c1e-77aa-4e0f-9d0b-1c2d3e4f5a6b not found", "order * not found"),
            ("KeyError: 'user:17'", "KeyError: *"),
            ("can't open \"/srv/a b\"", "can't open *"),
            ("retry   later.", "retry later."),
            (r#"{"level":"error","msg":"no stock of part 9"}"#, "no stock of part *"),
            (r#"level=error msg="no stock of part 9" order=4"#, "no stock of part *"),
            (
                "exception\nexception.type=java.io.IOException\nexception.message=disk 3 is full\nexception.stacktrace=at a",
                "exception: java.io.IOException: disk * is full",
            ),
            ("", MessageCount::EMPTY),
            ("\n\n", MessageCount::EMPTY),
        ] {
            assert_eq!(template(text), expected, "{text}");
        }
    }

    #[test]
    fn whatever_comes_is_bounded() {
        for text in ["ä".repeat(100_000), "'".repeat(100_000), "{".repeat(100_000), "9 ".repeat(100_000)] {
            assert!(template(&text).chars().count() <= TEMPLATE_CHARS_MAX);
        }
    }
}
