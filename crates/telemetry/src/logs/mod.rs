//! Meaning of lines of logs, for counting: whether a line reports an error, and which kind of message it is.
//!
//! Two messages are of one kind when they differ only in what is filled in: numbers, identifiers, quoted values. Kinds
//! are compared between two times, so that what matters is that one statement of a program always gives one kind; that
//! two statements may give the same is a smaller loss. Only the first line of a message counts, which leaves out stack
//! traces. A line of JSON or logfmt is its message.
//!
//! Nothing is learnt from other lines, as Drain does (He et al., ICWS 2017), so that two files give the same kinds.

mod severity;
mod template;

pub(crate) use severity::is_error;
pub(crate) use template::template;

use serde_json::Value;

/// Bytes of a line that are looked at.
const LINE_BYTES_MAX: usize = 4096;

/// The part of a line that is looked at.
fn looked_at(text: &str) -> &str {
    let end = (0..=LINE_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// The first of these members of a line of JSON; `None` if the line is no object or has none of them.
fn member(text: &str, names: &[&str]) -> Option<Value> {
    let text = text.trim_start();
    if !text.starts_with('{') {
        return None;
    }
    let object: serde_json::Map<String, Value> = serde_json::from_str(text).ok()?;
    names.iter().find_map(|name| object.get(*name)).cloned()
}

/// The value of the first of these keys in a line of logfmt, such as `level=error msg="cannot connect"`.
fn pair<'t>(text: &'t str, keys: &[&str]) -> Option<&'t str> {
    keys.iter().find_map(|key| {
        let mut places = text.match_indices(key).map(|(at, _)| at);
        let is_key = |at: &usize| {
            text[at + key.len()..].starts_with('=') && (*at == 0 || text[..*at].ends_with(char::is_whitespace))
        };
        let value = &text[places.find(is_key)? + key.len() + 1..];
        Some(match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => value.split_whitespace().next().unwrap_or_default(),
        })
    })
}
