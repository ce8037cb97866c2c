//! Error that a failed span reports, and where in a trace an error began.
//!
//! Exceptions are attributes: a list that comes from events (`narrows.exceptions`), or one exception under the names of
//! the semantic conventions. Callers pass errors on, so of the spans that report one, the deepest is where it began.

use std::borrow::Cow;
use std::collections::HashSet;

use narrows_model::trace::{Forest, Span, Trace};

/// Of a text that is searched, bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// An exception of a span; texts that were not recorded are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exception<'a> {
    pub(crate) kind: &'a str,
    pub(crate) message: &'a str,
}

/// The exceptions that a span recorded.
pub(crate) fn exceptions(span: &Span) -> impl Iterator<Item = Exception<'_>> {
    let listed = span.attributes.get("narrows.exceptions").and_then(|listed| listed.as_array());
    let listed = listed.into_iter().flatten().map(|exception| {
        let part = |key: &str| exception.get(key).and_then(|value| value.as_str()).unwrap_or("");
        Exception { kind: part("type"), message: part("message") }
    });
    let own = |key: &str| span.attributes.get(key).and_then(|value| value.as_str()).unwrap_or("");
    let own = Exception { kind: own("exception.type"), message: own("exception.message") };
    listed.chain(std::iter::once(own)).filter(|one| !one.kind.is_empty() || !one.message.is_empty())
}

/// A code or a type of error without its package: `DeadlockDetected` of `psycopg.errors.DeadlockDetected`.
pub(crate) fn bare_name(text: &str) -> &str {
    text.rsplit(['.', ':']).next().unwrap_or(text)
}

/// The part of a text that is searched.
pub(crate) fn searched(text: &str) -> &str {
    let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// Texts of a span about its error.
pub(crate) fn texts(span: &Span) -> impl Iterator<Item = &str> {
    let messages = exceptions(span).map(|one| one.message);
    messages.chain(std::iter::once(span.status_message.as_str())).filter(|text| !text.is_empty())
}

/// True if a text has these words, apart from others.
pub(crate) fn says(text: &str, words: &str) -> bool {
    let is_apart = |beside: Option<char>| beside.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(words).any(|(at, found)| {
        is_apart(text[..at].chars().next_back()) && is_apart(text[at + found.len()..].chars().next())
    })
}

/// An error's text in lower case without the statement that it is about, what it quotes, paths and URLs.
pub(crate) fn own_words(text: &str) -> String {
    let text = searched(text).to_lowercase();
    let text = text.split("[sql:").next().unwrap_or_default();
    let text = without_quoted(text);
    let is_place = |word: &&str| word.contains("://") || word.trim_start_matches(['(', '"', '[']).starts_with('/');
    let words: Vec<&str> = text.split_whitespace().filter(|word| !is_place(word)).collect();
    words.join(" ")
}

/// A text with nothing left between its single quotes. An apostrophe within a word is no quote.
fn without_quoted(text: &str) -> Cow<'_, str> {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((from, to)) = quoted(rest) {
        kept.push_str(&rest[..from]);
        kept.push_str("''");
        rest = &rest[to + 1..];
    }
    if kept.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(kept + rest) }
}

/// Start and end of the first quoted part.
fn quoted(text: &str) -> Option<(usize, usize)> {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut quotes = text.match_indices('\'').map(|(at, _)| at);
    let from = quotes.find(|at| !is_part(text[..*at].chars().next_back()))?;
    let to = quotes.find(|at| !is_part(text[at + 1..].chars().next()))?;
    Some((from, to))
}

/// The spans of a trace that are so, without those above another one that is.
pub(crate) fn deepest(trace: &Trace, is_so: impl Fn(&Span) -> bool) -> Vec<&Span> {
    let found: Vec<usize> = (0..trace.spans.len()).filter(|at| is_so(&trace.spans[*at])).collect();
    let mut around: HashSet<usize> = HashSet::new();
    if found.len() > 1 {
        let forest = Forest::new(trace);
        for at in &found {
            for above in forest.upwards(*at).skip(1) {
                // Spans above a known span are known too.
                if !around.insert(above) {
                    break;
                }
            }
        }
    }
    found.into_iter().filter(|at| !around.contains(at)).map(|at| &trace.spans[at]).collect()
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{client, internal, server};
    use serde_json::json;

    use super::*;

    #[test]
    fn exceptions_are_read_from_events_and_attributes() {
        let listed = json!([{ "type": "java.io.IOException", "message": "disk" }, { "type": "" }]);
        let span = internal("write").attribute("narrows.exceptions", listed).attribute("exception.message", "own");
        let trace = span.trace(1);
        let found: Vec<(&str, &str)> = exceptions(&trace.spans[0]).map(|one| (one.kind, one.message)).collect();
        assert_eq!(found, [("java.io.IOException", "disk"), ("", "own")]);
        assert_eq!(bare_name("java.io.IOException"), "IOException");
    }

    #[test]
    fn an_error_begins_in_the_deepest_spans() {
        let is_failed = |span: &Span| span.status == narrows_model::trace::SpanStatus::Error;
        let root = server("shop", "GET /").failed().children([
            client("a").failed().child(internal("fine").child(internal("b").failed())),
            client("c").failed(),
        ]);
        let trace = root.trace(1);
        let mut names: Vec<&str> = deepest(&trace, is_failed).into_iter().map(|span| span.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["b", "c"]);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = "ä".repeat(TEXT_BYTES_MAX);
        assert_eq!(searched(&text).len(), TEXT_BYTES_MAX);
        assert_eq!(searched(&format!("a{text}")).len(), TEXT_BYTES_MAX - 1);
    }
}
