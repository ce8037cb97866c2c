//! Values that are known to be secrets, found wherever they stand.
//!
//! An experiment names its secrets (`env: { DB_PASSWORD: … }`), and the programs that get them print them where no name
//! marks them. So these values are looked for in everything that is kept or shown. A value that is short or a common
//! word would blank what is no secret and is not looked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::REDACTED;

/// So many values are looked for, the longest first; an experiment has few secrets.
const VALUES_MAX: usize = 1000;
/// Shorter values are not looked for.
const VALUE_BYTES_MIN: usize = 6;
/// Of a longer value the beginning is looked for.
const VALUE_BYTES_MAX: usize = 4 << 10;
/// Shorter numbers are not looked for: they stand for other things.
const NUMBER_BYTES_MIN: usize = 8;
/// A value of nothing but letters that is no longer than this is looked for as a whole word.
const WORD_BYTES_MAX: usize = 16;
/// A beginning of a value that is so long is blanked where a text was cut.
const CUT_BYTES_MIN: usize = 4;
/// Shorter texts are complete: names, messages and lines that were cut are at least this long, in bytes.
const CUT_TEXT_BYTES_MIN: usize = 500;
/// Mark where a text was cut.
const CUT: char = '…';
/// So many places where a message was cut are looked at.
const CUTS_MAX: usize = 16;

/// Words that are often secrets in experiments and often something else in telemetry, in lower case.
const COMMON_WORDS: [&str; 18] = [
    "bearer",
    "changeme",
    "default",
    "enabled",
    "disabled",
    "example",
    "localhost",
    "mariadb",
    "narrows",
    "password",
    "postgres",
    "postgresql",
    "private",
    "public",
    "rabbitmq",
    "required",
    "secret",
    "service",
];

/// Values that are blanked wherever they stand. Clones share them.
#[derive(Clone, Default)]
pub struct KnownSecrets {
    /// `None` if there are no values, so that nothing is searched for.
    inner: Option<Arc<Inner>>,
}

struct Inner {
    values: Vec<String>,
    matcher: AhoCorasick,
}

impl KnownSecrets {
    /// Of these values those that can be distinguished from other text: at least six bytes, and no short number nor
    /// common word.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let all: BTreeSet<String> =
            values.into_iter().filter(|value| is_telling(value)).flat_map(|value| spellings(&value)).collect();
        let mut values: Vec<String> = all.into_iter().collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.truncate(VALUES_MAX);
        if values.is_empty() {
            return Self::default();
        }
        let matcher = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&values);
        // It fails beyond 2³¹ bytes of patterns, which the bounds above exclude.
        Self { inner: matcher.ok().map(|matcher| Arc::new(Inner { values, matcher })) }
    }

    /// No values.
    pub const fn none() -> Self {
        Self { inner: None }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.inner.is_none()
    }

    /// Whether one of them stands in these bytes.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.next(bytes, 0).is_some())
    }

    /// Redacts these values in a text. At the end of a long text, which may have been cut, also redacts the beginning
    /// of a value.
    pub fn hide(&self, text: &mut String) {
        let Some(inner) = &self.inner else { return };
        let mut places = Vec::new();
        let mut at = 0;
        while let Some((start, end)) = inner.next(text.as_bytes(), at) {
            places.push(start..end);
            at = end;
        }
        if text.len() >= CUT_TEXT_BYTES_MIN && at < text.len() {
            places.extend(inner.cut_off(text, text.len()).filter(|place| place.start >= at));
        }
        super::blank(text, places);
    }

    /// Blanks them in a message, and the beginning of one where the message cut a text with `…`.
    pub fn hide_in_message(&self, message: &mut String) {
        self.hide(message);
        let Some(inner) = &self.inner else { return };
        let places =
            message.match_indices(CUT).take(CUTS_MAX).filter_map(|(end, _)| inner.cut_off(message, end)).collect();
        super::blank(message, places);
    }

    /// As [`KnownSecrets::hide`], for a text that is handed on.
    pub fn hidden(&self, text: impl Into<String>) -> String {
        let mut text = text.into();
        self.hide(&mut text);
        text
    }

    /// Blanks them in every text of a JSON value but its keys. Values nest as deep as their reader allowed.
    pub fn hide_in_json(&self, value: &mut Value) {
        match value {
            _ if self.is_empty() => {}
            Value::String(text) => self.hide(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in_json(item)),
            Value::Object(fields) => fields.iter_mut().for_each(|(_, field)| self.hide_in_json(field)),
            // A number that is a secret.
            Value::Number(number) if self.is_in(number.to_string().as_bytes()) => *value = REDACTED.into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl Inner {
    /// The first value that stands in these bytes from a place on.
    fn next(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let mut at = from;
        while at < bytes.len() {
            let found = self.matcher.find(Input::new(bytes).range(at..))?;
            let (start, end) = (found.start(), found.end());
            let is_letter = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
            let is_part = is_letter(start.checked_sub(1)) || is_letter(Some(end));
            if !(is_part && is_word(&self.values[found.pattern().as_usize()])) {
                return Some((start, end));
            }
            at = start + 1;
        }
        None
    }

    /// The longest beginning of a value that ends where the text was cut.
    fn cut_off(&self, text: &str, end: usize) -> Option<std::ops::Range<usize>> {
        let before = &text.as_bytes()[..end];
        let last = *before.last()?;
        let beginnings = self.values.iter().filter_map(|value| {
            let longest = value.len().min(before.len());
            let is_it = |length: &usize| {
                let beginning = &value.as_bytes()[..*length];
                beginning.last() == Some(&last) && before.ends_with(beginning)
            };
            (CUT_BYTES_MIN..=longest).rev().find(is_it)
        });
        let start = end - beginnings.max()?;
        text.is_char_boundary(start).then_some(start..end)
    }
}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Known({} values)", self.inner.as_ref().map_or(0, |inner| inner.values.len()))
    }
}

fn is_telling(value: &str) -> bool {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let bytes_min = if is_number { NUMBER_BYTES_MIN } else { VALUE_BYTES_MIN };
    let is_common = COMMON_WORDS.iter().any(|word| word.eq_ignore_ascii_case(value));
    let is_of_redaction = value.contains(REDACTED) || REDACTED.contains(value);
    value.len() >= bytes_min && !is_common && !is_of_redaction
}

/// Whether a value may be part of a longer word that is something else.
fn is_word(value: &str) -> bool {
    value.len() <= WORD_BYTES_MAX && value.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// A value as it may be written: as it is, in JSON, in an address, in Base64; each as far as it is looked for.
fn spellings(value: &str) -> Vec<String> {
    let end = (0..=value.len().min(VALUE_BYTES_MAX)).rev().find(|end| value.is_char_boundary(*end)).unwrap_or(0);
    let value = &value[..end];
    let json = Value::from(value).to_string();
    let in_address = value.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    let mut spellings = vec![value.to_owned(), json[1..json.len() - 1].to_owned(), in_address.collect()];
    spellings.push(BASE64_STANDARD.encode(value).trim_end_matches('=').to_owned());
    spellings
}
