//! One value of an experiment's text: what of it is a secret, and which parameters are secrets for standing there.

use std::ops::Range;

use narrows_telemetry::secrets::{Argument, find_in_arguments, find_in_text, is_secret_key};

use super::Secrets;
use super::keys::is_secret_place;
use crate::experiment::document::scalars::{Role, Scalar};
use crate::experiment::placeholders::syntax::{self, TrialPiece};

/// Secret part of a value.
pub(super) enum SecretPart {
    Whole,
    /// At these places of the value's text. Those of the second kind may be something else.
    Parts(Vec<Range<usize>>, Vec<Range<usize>>),
}

impl Scalar {
    pub(super) fn found(&self, secrets: &Secrets) -> SecretPart {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        if is_secret_place(&path, |name| secrets.is_parameter(name)) {
            return SecretPart::Whole;
        }
        self.found_in(&self.text)
    }

    /// Secret part of a text in this place, whatever its key.
    fn found_in(&self, text: &str) -> SecretPart {
        let before = match &self.role {
            Role::Value(before) if !before.is_empty() => before.iter().map(String::as_str),
            _ => return SecretPart::Parts(find_in_text(text), Vec::new()),
        };
        let arguments: Vec<&str> = before.chain([text]).collect();
        match find_in_arguments(&arguments).pop() {
            Some(Argument::Secret) => SecretPart::Whole,
            Some(Argument::Parts(places)) => SecretPart::Parts(places, Vec::new()),
            Some(Argument::Perhaps(place)) => SecretPart::Parts(Vec::new(), vec![place]),
            None => SecretPart::Parts(Vec::new(), Vec::new()),
        }
    }

    /// The names between `${` and `}` that stand where a secret stands.
    pub(super) fn secret_names(&self) -> Vec<String> {
        let Ok(pieces) = syntax::trial_pieces(&self.text) else { return Vec::new() };
        let names = pieces.iter().filter_map(|piece| match piece {
            TrialPiece::Name(name) => Some(*name),
            TrialPiece::Text(_) => None,
        });
        let names: Vec<&str> = names.collect();
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        if names.is_empty() {
            return Vec::new();
        }
        if is_secret_place(&path, is_secret_key) {
            return names.into_iter().map(str::to_owned).collect();
        }
        // A value that a secret name marks, were it written here.
        let marker = |at: usize| format!("Zq9x{at}y");
        let mut count = 0;
        let marked: String = pieces
            .iter()
            .map(|piece| match piece {
                TrialPiece::Text(text) => text.to_string(),
                TrialPiece::Name(_) => {
                    count += 1;
                    marker(count - 1)
                }
            })
            .collect();
        let is_marked = |at: usize| match self.found_in(&marked) {
            SecretPart::Whole => true,
            SecretPart::Parts(places, _) => places.into_iter().any(|place| marked[place].contains(&marker(at))),
        };
        names.iter().enumerate().filter(|(at, _)| is_marked(*at)).map(|(_, name)| (*name).to_owned()).collect()
    }
}
