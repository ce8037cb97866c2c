//! Texts of spans by what they hold, and which of them need no redaction.
//!
//! The key of an attribute says what its text is and so how it is redacted. A span in which nothing is to be redacted can
//! be kept before it is taken apart.

use super::{
    is_plain_statement, is_plain_text, is_secret_key, redact_query, redact_statement, redact_text, redact_url,
};

/// Attributes that hold an address, besides `url.query`.
const URL_KEYS: [&str; 7] = [
    "http.request.header.referer",
    "http.response.header.location",
    "http.target",
    "http.url",
    "url.full",
    "url.original",
    "url.template",
];

/// Attributes that hold the text of a database query.
const QUERY_TEXT_KEYS: [&str; 2] = ["db.query.text", "db.statement"];

/// Kind of text that an attribute holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Address,
    Query,
    Statement,
    FreeText,
}

impl TextKind {
    /// The kind of text under a key.
    pub(crate) fn of(key: &str) -> Self {
        match key {
            key if URL_KEYS.contains(&key) => Self::Address,
            "url.query" => Self::Query,
            key if QUERY_TEXT_KEYS.contains(&key) => Self::Statement,
            _ => Self::FreeText,
        }
    }

    /// The kind of text under a key; `None` if the values are secrets, or the key contains one.
    pub(crate) fn of_public(key: &str) -> Option<Self> {
        (!is_secret_key(key) && is_plain_text(key)).then(|| Self::of(key))
    }

    /// Whether nothing of a value is to be redacted.
    pub(crate) fn is_public(self, text: &str) -> bool {
        match self {
            Self::Address => !text.bytes().any(|byte| matches!(byte, b'?' | b'#' | b'@')) || stays(text, redact_url),
            Self::Query => !text.contains('=') || stays(text, redact_query),
            Self::Statement => is_plain_statement(text),
            Self::FreeText => is_plain_text(text),
        }
    }

    /// Redacts the secrets of a value.
    pub(crate) fn redact(self, text: &mut String) {
        match self {
            Self::Address => redact_url(text),
            Self::Query => redact_query(text),
            Self::Statement => redact_statement(text),
            Self::FreeText => redact_text(text),
        }
    }
}

/// Whether nothing of the name of a span and the message of its status is to be redacted.
#[inline]
pub(crate) fn are_public(name: &str, message: &str) -> bool {
    // A name without a blank is not a statement.
    is_plain_text(name) && is_plain_text(message) && (!name.contains(' ') || is_plain_statement(name))
}

fn stays(text: &str, redact: impl FnOnce(&mut String)) -> bool {
    let mut redacted = text.to_owned();
    redact(&mut redacted);
    redacted == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_says_what_an_attribute_holds() {
        let cases = [
            ("url.full", Some(TextKind::Address)),
            ("url.query", Some(TextKind::Query)),
            ("db.statement", Some(TextKind::Statement)),
            ("note", Some(TextKind::FreeText)),
            ("app.password", None),
            ("/a?token=x", None),
        ];
        for (key, expected) in cases {
            assert_eq!(TextKind::of_public(key), expected, "{key}");
        }
        assert!(!TextKind::Address.is_public("/a?token=x") && TextKind::Address.is_public("/a?page=1"));
    }
}
