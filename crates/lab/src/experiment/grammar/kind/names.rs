//! Kinds that are names.

use serde_json::{Value as Json, json};

use super::Refusal;
use super::simple::{AS_TEXT, Simple, no_hint};

/// Longer names are refused: they end up in tables and file names.
const NAME_LENGTH_MAX: usize = 64;

/// An experiment's name: `[a-z0-9-]+`.
pub(crate) static EXPERIMENT_NAME: Simple<String> = Simple {
    expected: "a name of lower-case letters, digits and hyphens",
    name: "lower-case letters, digits and hyphens",
    written: AS_TEXT,
    read: |text| owned(text, has_only(text, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')),
    hint: no_hint,
    schema: || name("^[a-z0-9-]+$"),
};

/// A name that `${…}` or `{{…}}` can hold.
pub(crate) static NAME: Simple<String> = Simple {
    expected: "a name of letters, digits, `_` and `-`",
    name: "name",
    written: AS_TEXT,
    read: |text| owned(text, is_name(text)),
    hint: no_hint,
    schema: || name("^[A-Za-z0-9_][A-Za-z0-9_-]*$"),
};

/// A variant's name: as [`NAME`], with dots and pluses.
pub(crate) static VARIANT_NAME: Simple<String> = Simple {
    expected: "a name of letters, digits, `_`, `-`, `.` and `+`",
    name: "variant name",
    written: AS_TEXT,
    read: |text| {
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        owned(text, begins_well && has_only(text, |b| is_name_byte(b) || b == b'.' || b == b'+'))
    },
    hint: no_hint,
    schema: || name("^[A-Za-z0-9_][A-Za-z0-9_.+-]*$"),
};

/// The name of an environment variable.
pub(crate) static ENVIRONMENT_NAME: Simple<String> = Simple {
    expected: "the name of an environment variable",
    name: "environment variable",
    written: AS_TEXT,
    read: |text| owned(text, !text.is_empty() && !text.contains(['=', '\0'])),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^[^=]+$" }),
};

/// The name of a setting in a server's own configuration.
pub(crate) static SETTING: Simple<String> = Simple {
    expected: "the name of a setting: letters, digits, `_`, `-` and `.`",
    name: "setting",
    written: AS_TEXT,
    read: |text| {
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        owned(text, begins_well && has_only(text, |b| is_name_byte(b) || b == b'.'))
    },
    hint: no_hint,
    schema: || name("^[A-Za-z_][A-Za-z0-9_.-]*$"),
};

/// A step's name, perhaps with its flow's and a slash before it.
pub(crate) static REQUEST_NAME: Simple<String> = Simple {
    expected: "the name of a step, or `flow/step`",
    name: "`STEP` or `FLOW/STEP`",
    written: AS_TEXT,
    read: |text| owned(text, is_request_name(text)),
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]*(/[A-Za-z0-9_][A-Za-z0-9_-]*)?$" }),
};

/// Whether a text can be a service's name, or any other that `${…}` can hold.
pub(crate) fn is_name(text: &str) -> bool {
    has_only(text, is_name_byte) && !text.starts_with('-')
}

/// Whether a text can be the name of a request in results.
pub(crate) fn is_request_name(text: &str) -> bool {
    let (flow, step) = text.split_once('/').unwrap_or(("flow", text));
    is_name(flow) && is_name(step)
}

pub(crate) fn owned(text: &str, is_fine: bool) -> Result<String, Refusal> {
    if is_fine { Ok(text.to_owned()) } else { Err(None) }
}

fn has_only(text: &str, is_allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.len() <= NAME_LENGTH_MAX && text.bytes().all(is_allowed)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn name(pattern: &str) -> Json {
    json!({ "type": "string", "pattern": pattern, "maxLength": NAME_LENGTH_MAX })
}
