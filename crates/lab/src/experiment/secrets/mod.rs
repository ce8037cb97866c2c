//! The secrets in an experiment's text: which values are secrets, and the text without them.
//!
//! A run file keeps the experiment's text, and reports show it. A value is a secret when its key says so, wherever keys
//! are of the user's choice (`env`, `headers`, `parameters`, a body), when it follows a flag such as `--password`, and
//! when it stands in a text such as `password=X`. A parameter that is used in such a place is a secret too. Names of
//! services, scenarios and the like are names, whatever they are called.
//!
//! The text is changed at the places that the YAML parser tells, so comments, keys and lines stay as they are. It works
//! on texts with errors as far as the parser reads them, because messages about errors quote values.

use std::collections::{BTreeMap, BTreeSet};

use narrows_telemetry::otlp::Token;
use narrows_telemetry::secrets::{KnownSecrets, REDACTED, is_secret_key};

use super::system::service::SERVICE_TOKEN_VARIABLE;
use super::{Experiment, Variant};
use document::Document;

mod credentials;
mod document;
mod keys;
mod scalar;

/// The secrets of an experiment. Does not show them.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Secrets {
    /// Parameters whose values are secrets.
    parameters: BTreeSet<String>,
    values: BTreeSet<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({} values)", self.values.len())
    }
}

impl Secrets {
    /// The secrets in a text, as far as it is YAML.
    pub(super) fn of(source: &str) -> Self {
        Document::read(source).secrets()
    }

    /// The values, to be found wherever they stand.
    pub(super) fn known(&self) -> KnownSecrets {
        KnownSecrets::new(self.values.iter().cloned())
    }

    fn is_parameter(&self, name: &str) -> bool {
        is_secret_key(name) || self.parameters.contains(name)
    }
}

impl Experiment {
    /// The file's text with `REDACTED` for each secret: what a run file keeps.
    pub fn redacted_source(&self) -> String {
        redacted(&self.source)
    }

    /// The values of the experiment that are secrets, to be found wherever they stand.
    pub fn known_secrets(&self) -> KnownSecrets {
        let values = self.secrets.values.iter().cloned();
        // A token of the environment stands in no file, and shall not come into one.
        let of_services = Token::of_variable(SERVICE_TOKEN_VARIABLE).ok().flatten();
        let of_services = of_services.map(|token| token.secret().to_owned());
        KnownSecrets::new(values.chain(self.telemetry.secret()).chain(of_services))
    }

    /// A variant's parameters as they may be kept and shown.
    pub fn shown_parameters(&self, variant: &Variant) -> BTreeMap<String, String> {
        let known = self.known_secrets();
        let parameters = variant.parameters.iter().map(|(name, value)| {
            let is_secret = self.secrets.is_parameter(name);
            (name.clone(), if is_secret { REDACTED.to_owned() } else { known.hidden(value) })
        });
        parameters.collect()
    }
}

/// Passes of redaction at most.
const PASSES_MAX: usize = 8;

/// An experiment's text with `REDACTED` for each secret. What is no YAML is treated as free text.
///
/// Redacting a broken text can join its parts to other YAML than before, so it is read again until nothing changes.
pub fn redacted(source: &str) -> String {
    let mut text = redacted_once(source);
    for _ in 1..PASSES_MAX {
        let next = redacted_once(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn redacted_once(source: &str) -> String {
    let document = Document::read(source);
    let secrets = document.secrets();
    let mut edits = document.edits(&secrets);
    edits.sort_by_key(|(place, _)| place.start);
    let mut text = String::with_capacity(source.len());
    let mut from = 0;
    for (place, instead) in edits.into_iter().filter(|(place, _)| !place.is_empty()) {
        // An anchor may stand within the place of its node.
        if place.start >= from {
            text.push_str(&source[from..place.start]);
            text.push_str(&instead);
            from = place.end;
        }
    }
    text.push_str(&source[from..]);
    secrets.known().hide(&mut text);
    text
}

#[cfg(test)]
mod tests;
