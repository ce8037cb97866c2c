//! Values that may be kept as they came: nothing in it is to be blanked.
//!
//! For spans that are kept before they are taken apart. It says of a text what the door does to it (`door.rs`, whose
//! lists these are) and does nothing itself; what the door would only cut is public too.

#[cfg(test)]
use narrows_model::trace::Span;

#[cfg(test)]
use super::door::Record;
use super::door::{QUERY_TEXT_KEYS, URL_KEYS};
use crate::secrets::{is_plain_statement, is_plain_text, is_secret_key, redact_query, redact_url};

/// Content of an attribute's values, by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Address,
    Query,
    Statement,
    FreeText,
}

impl Holds {
    /// `None` if the values are secrets, or the key contains one.
    pub(crate) fn for_key(key: &str) -> Option<Self> {
        match key {
            key if is_secret_key(key) || !is_plain_text(key) => None,
            key if URL_KEYS.contains(&key) => Some(Self::Address),
            "url.query" => Some(Self::Query),
            key if QUERY_TEXT_KEYS.contains(&key) => Some(Self::Statement),
            _ => Some(Self::FreeText),
        }
    }

    /// Whether nothing of a value is to be blanked.
    pub(crate) fn is_public(self, text: &str) -> bool {
        match self {
            Self::Address => !text.bytes().any(|byte| matches!(byte, b'?' | b'#' | b'@')) || stays(text, redact_url),
            Self::Query => !text.contains('=') || stays(text, redact_query),
            Self::Statement => is_plain_statement(text),
            Self::FreeText => is_plain_text(text),
        }
    }
}

/// Whether nothing of the name of a span and the message of its status is to be blanked.
#[inline]
pub(crate) fn are_public(name: &str, message: &str) -> bool {
    // A name without a blank is not a statement.
    is_plain_text(name) && is_plain_text(message) && (!name.contains(' ') || is_plain_statement(name))
}

/// Whether the name of a service or a scope needs no redaction.
pub(crate) fn is_public_name(name: &str) -> bool {
    is_plain_text(name)
}

fn stays(text: &str, redact: impl FnOnce(&mut String)) -> bool {
    let mut redacted = text.to_owned();
    redact(&mut redacted);
    redacted == text
}

/// A span as it is kept.
#[cfg(test)]
pub(crate) fn cleaned(mut span: Span) -> Span {
    span.clean(&crate::secrets::Known::default());
    span
}
