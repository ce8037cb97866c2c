//! Names that are separate from their values: `{"name":"password","value":"X"}` in HAR files, `- name: DB_PASSWORD`
//! above `value: X` in Kubernetes.

use std::ops::Range;

use serde_json::{Map, Value};

use super::keys::is_secret_key;

/// Keys whose value is the name.
const NAME_KEYS: [&str; 4] = ["field", "header", "key", "name"];
/// Keys whose value belongs to such a name.
const VALUE_KEYS: [&str; 2] = ["value", "values"];
/// Maximum number of bytes between a name and its value.
const BETWEEN_BYTES_MAX: usize = 512;

/// Role of the value after a key: the name or the value of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Name,
    Value,
}

/// The role of a key's value; `None` for any other key.
pub(super) fn role(key: &str) -> Option<Role> {
    let is_in = |keys: &[&str]| keys.iter().any(|one| one.eq_ignore_ascii_case(key));
    match () {
        () if is_in(&NAME_KEYS) => Some(Role::Name),
        () if is_in(&VALUE_KEYS) => Some(Role::Value),
        () => None,
    }
}

/// The field whose value is secret because another field contains a secret name.
pub(crate) fn secret_field(fields: &Map<String, Value>) -> Option<String> {
    let of = |wanted: Role| fields.iter().filter(move |(key, _)| role(key) == Some(wanted));
    let is_secret = of(Role::Name).any(|(_, name)| name.as_str().is_some_and(is_secret_key));
    of(Role::Value).next().filter(|_| is_secret).map(|(key, _)| key.clone())
}

/// The last name or value in a text that has no counterpart yet. Values may come first.
#[derive(Debug, Default)]
pub(super) struct PendingHalf {
    half: Half,
    /// End of the name or value in the text.
    end: usize,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum Half {
    #[default]
    Nothing,
    SecretName,
    PlainName,
    Value(Range<usize>),
}

impl PendingHalf {
    /// Adds a name at a place. Returns the pending value if this name makes it a secret.
    pub(super) fn name(&mut self, name: &str, place: Range<usize>) -> Option<Range<usize>> {
        let is_secret = is_secret_key(name);
        match self.take(place.start) {
            Half::Value(value) => Some(value).filter(|_| is_secret),
            _ => {
                self.half = if is_secret { Half::SecretName } else { Half::PlainName };
                self.end = place.end;
                None
            }
        }
    }

    /// Whether the pending name makes a value that begins here a secret; `None` if no name is pending.
    pub(super) fn is_secret(&mut self, start: usize) -> Option<bool> {
        match self.take(start) {
            Half::SecretName => Some(true),
            Half::PlainName => Some(false),
            Half::Nothing => None,
            value @ Half::Value(_) => {
                self.half = value;
                None
            }
        }
    }

    /// Whether a position is inside the pending value.
    pub(super) fn is_within_value(&self, at: usize) -> bool {
        matches!(&self.half, Half::Value(value) if value.contains(&at))
    }

    /// Keeps a value until its name follows.
    pub(super) fn keep_value(&mut self, place: Range<usize>) {
        self.end = place.end;
        self.half = Half::Value(place);
    }

    /// Ends an object: a value in it stays without a name.
    pub(super) fn end_object(&mut self) {
        if matches!(self.half, Half::Value(_)) {
            self.half = Half::Nothing;
        }
    }

    fn take(&mut self, start: usize) -> Half {
        let half = std::mem::take(&mut self.half);
        if start.saturating_sub(self.end) > BETWEEN_BYTES_MAX { Half::Nothing } else { half }
    }
}
