//! The two kinds of places to fill in: `${name}`, once per trial, and `{{name.column}}`, once per request.
//!
//! This file only takes text apart. Which names exist is known where the text is used.

use std::borrow::Cow;

use super::names::Values;
use crate::experiment::error::{Problem, shortened};

/// A piece of a text with `${name}` in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TrialPiece<'a> {
    Text(Cow<'a, str>),
    /// The name between the braces.
    Name(&'a str),
}

/// The text of the pieces with the value of each name; `None` if a name has no value.
pub(crate) fn filled(pieces: Vec<TrialPiece<'_>>, values: &Values<'_>) -> Option<String> {
    let texts = pieces.into_iter().map(|piece| match piece {
        TrialPiece::Text(text) => Some(text.into_owned()),
        TrialPiece::Name(name) => values.get(name),
    });
    texts.collect()
}

/// A piece of a text with `{{name}}` in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestPiece<'a> {
    Text(Cow<'a, str>),
    /// The source and, after the first point, its column.
    Field(&'a str, Option<&'a str>),
}

/// Whether a text holds a `${`. A `$$` before it makes no difference here: such a text is bound too.
pub(crate) fn is_open(text: &str) -> bool {
    text.contains("${")
}

/// Takes `${name}` and `$$` (a literal `$`) apart. Any other `$` stands for itself.
pub(crate) fn trial_pieces(text: &str) -> Result<Vec<TrialPiece<'_>>, Problem> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        push(&mut pieces, TrialPiece::Text(Cow::Borrowed(&rest[..at])));
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('$') {
            push(&mut pieces, TrialPiece::Text(Cow::Borrowed("$")));
            rest = after;
        } else if let Some(inside) = after.strip_prefix('{') {
            let end = inside.find('}').ok_or_else(|| unclosed("${", "}", &rest[at..], "`$$` is a plain `$`"))?;
            push(&mut pieces, TrialPiece::Name(inside[..end].trim()));
            rest = &inside[end + 1..];
        } else {
            push(&mut pieces, TrialPiece::Text(Cow::Borrowed("$")));
            rest = after;
        }
    }
    push(&mut pieces, TrialPiece::Text(Cow::Borrowed(rest)));
    Ok(pieces)
}

fn push<'a>(pieces: &mut Vec<TrialPiece<'a>>, piece: TrialPiece<'a>) {
    if piece != TrialPiece::Text(Cow::Borrowed("")) {
        pieces.push(piece);
    }
}

/// Takes `{{name}}`, `{{name.column}}` and `{{{{` (a literal `{{`) apart. With a `{{` that is never closed, the pieces
/// are those before it.
pub(crate) fn request_pieces(text: &str) -> (Vec<RequestPiece<'_>>, Result<(), Problem>) {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        plain.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        if let Some(after) = inside.strip_prefix("{{") {
            plain.push_str("{{");
            rest = after;
            continue;
        }
        let Some(end) = inside.find("}}") else {
            return (pieces, Err(unclosed("{{", "}}", &rest[at..], "`{{{{` is a plain `{{`")));
        };
        if !plain.is_empty() {
            pieces.push(RequestPiece::Text(Cow::Owned(std::mem::take(&mut plain))));
        }
        let name = inside[..end].trim();
        pieces.push(match name.split_once('.') {
            Some((source, column)) => RequestPiece::Field(source, Some(column)),
            None => RequestPiece::Field(name, None),
        });
        rest = &inside[end + 2..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(RequestPiece::Text(Cow::Owned(plain)));
    }
    (pieces, Ok(()))
}

fn unclosed(opening: &str, closing: &str, text: &str, hint: &str) -> Problem {
    Problem::new(format!("`{opening}` without `{closing}` in \"{}\"", shortened(text))).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trial(text: &str) -> String {
        let pieces = trial_pieces(text).unwrap();
        let shown = pieces.iter().map(|piece| match piece {
            TrialPiece::Text(text) => text.to_string(),
            TrialPiece::Name(name) => format!("<{name}>"),
        });
        shown.collect()
    }

    fn request(text: &str) -> String {
        let (pieces, end) = request_pieces(text);
        assert_eq!(end, Ok(()), "{text}");
        let shown = pieces.iter().map(|piece| match piece {
            RequestPiece::Text(text) => text.to_string(),
            RequestPiece::Field(source, None) => format!("<{source}>"),
            RequestPiece::Field(source, Some(column)) => format!("<{source}:{column}>"),
        });
        shown.collect()
    }

    #[test]
    fn names_between_braces_and_escapes() {
        let cases = [
            ("", ""),
            ("plain", "plain"),
            ("${port}", "<port>"),
            ("http://${ a.host }:${a.port}/", "http://<a.host>:<a.port>/"),
            ("cost $5, $${port} and $$", "cost $5, ${port} and $"),
            ("a}b", "a}b"),
        ];
        for (text, expected) in cases {
            assert_eq!(trial(text), expected);
        }
        assert_eq!(trial_pieces("a ${port").unwrap_err().message, "`${` without `}` in \"${port\"");
    }

    #[test]
    fn fields_between_double_braces_and_escapes() {
        let cases = [
            ("/a?x={{x}}&y={{ user.first name }}", "/a?x=<x>&y=<user:first name>"),
            (r#"{"a":{"b":{{x}}}}"#, r#"{"a":{"b":<x>}}"#),
            ("{{{{x}}", "{{x}}"),
            ("}}", "}}"),
        ];
        for (text, expected) in cases {
            assert_eq!(request(text), expected);
        }
        let (pieces, end) = request_pieces("/{{x}}/{{y}");
        assert_eq!(pieces[1..], [RequestPiece::Field("x", None)]);
        assert_eq!(end.unwrap_err().hint.as_deref(), Some("`{{{{` is a plain `{{`"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[${}a.é]{0,20}") {
            let _ = (trial_pieces(&text), request_pieces(&text));
        }
    }
}
