//! Names that stand apart from their values: `{"name":"password","value":"X"}` in HAR files, `- name: DB_PASSWORD` above
//! `value: X` in Kubernetes.

use std::ops::Range;

use serde_json::{Map, Value};

use super::keys::is_secret_key;

/// Keys whose values are names.
const NAME_KEYS: [&str; 4] = ["field", "header", "key", "name"];
/// Keys whose values have such a name.
const VALUE_KEYS: [&str; 2] = ["value", "values"];
/// Most bytes between a name and its value.
const BETWEEN_BYTES_MAX: usize = 512;

/// What stands after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Name,
    Value,
}

/// What stands after a key, if it is one of a name and its value.
pub(super) fn role(key: &str) -> Option<Role> {
    let is_in = |keys: &[&str]| keys.iter().any(|one| one.eq_ignore_ascii_case(key));
    match () {
        () if is_in(&NAME_KEYS) => Some(Role::Name),
        () if is_in(&VALUE_KEYS) => Some(Role::Value),
        () => None,
    }
}

/// The field that is a secret because another one has its name.
pub(crate) fn secret_field(fields: &Map<String, Value>) -> Option<String> {
    let of = |wanted: Role| fields.iter().filter(move |(key, _)| role(key) == Some(wanted));
    let is_secret = of(Role::Name).any(|(_, name)| name.as_str().is_some_and(is_secret_key));
    of(Role::Value).next().filter(|_| is_secret).map(|(key, _)| key.clone())
}

/// The last name or value in a text that waits for the other. Values may come first.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    half: Half,
    /// Where it ends in the text.
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

impl Waiting {
    /// Takes a name that stands at a place; gives the value before it if that is a secret.
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

    /// Whether the name before a value that begins here makes it a secret; `None` if no name waits for it.
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

    /// Whether a place is in the value that waits for its name.
    pub(super) fn is_within_value(&self, at: usize) -> bool {
        matches!(&self.half, Half::Value(value) if value.contains(&at))
    }

    /// Keeps a value for a name after it.
    pub(super) fn keep_value(&mut self, place: Range<usize>) {
        self.end = place.end;
        self.half = Half::Value(place);
    }

    /// An object ends: a value in it has no name.
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
