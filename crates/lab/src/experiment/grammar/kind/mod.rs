//! The kinds of single values: how each is read, what it is called, and its schema.
//!
//! A kind reads a text into a Rust value by one function, which the check of a file and the reader of a section both
//! call: a value that passes the check is the value that is used.

use std::fmt;

use serde_json::Value as Json;

use crate::experiment::document::tree::{Form, Node, Origin, Scalar};
use crate::experiment::error::{Problem, shortened};

mod names;
mod numbers;
mod simple;
mod texts;
mod whole;
mod words;

pub(crate) use names::*;
pub(crate) use numbers::*;
pub(crate) use simple::{AS_TEXT, Simple, no_hint};
pub(crate) use texts::*;
pub(crate) use whole::Whole;
pub(crate) use words::{OneOf, Words};

/// Why a text is not of a kind: a message of its own, or `None` where "expected …" says enough.
pub(crate) type Refusal = Option<Problem>;

/// A kind of single value, whatever its values are.
pub(crate) trait AnyKind: fmt::Debug + Sync {
    /// Description of a value of this kind, to follow "expected".
    fn expected(&self) -> String;

    /// The kind as tables of the reference name it.
    fn name(&self) -> String;

    /// Whether values may be written as this YAML type.
    fn is_written_as(&self, origin: Origin) -> bool;

    /// Whether a text reads as this kind.
    ///
    /// # Errors
    /// When it does not.
    fn accepts(&self, text: &str) -> Result<(), Refusal>;

    /// The message with a hint for this text.
    fn with_hint(&self, problem: Problem, text: &str) -> Problem;

    /// The JSON Schema of this kind.
    fn schema(&self) -> Json;

    /// Whether a scalar of the file is of this kind, both its YAML type and its text.
    fn check(&self, scalar: &Scalar, described: &str) -> Result<(), Problem> {
        let expected = || Problem::new(format!("expected {}, found {described}", self.expected()));
        let accepted = self.accepts(&scalar.text);
        if !self.takes(scalar.origin) {
            return Err(match (accepted, scalar.origin) {
                (Err(_), _) | (_, Origin::Null) => expected(),
                (Ok(()), Origin::String) => expected().hint("write it without quotes"),
                (Ok(()), _) => expected().hint(format!("put it in quotes: `\"{}\"`", shortened(&scalar.text))),
            });
        }
        accepted.map_err(|refusal| refusal.unwrap_or_else(|| self.with_hint(expected(), &scalar.text)))
    }

    /// Whether a part of the file is a scalar of this kind.
    fn is_met_by(&self, node: &Node) -> bool {
        matches!(&node.form, Form::Scalar(scalar) if self.takes(scalar.origin) && self.accepts(&scalar.text).is_ok())
    }

    /// As [`AnyKind::is_written_as`], whatever was written for `${…}`.
    fn takes(&self, origin: Origin) -> bool {
        matches!(origin, Origin::Bound | Origin::Broken) || self.is_written_as(origin)
    }
}

/// A kind and what its texts stand for.
pub(crate) trait Kind: AnyKind {
    /// Meaning of a text of this kind.
    type Value;

    /// Reads a text.
    ///
    /// # Errors
    /// When it is not of this kind.
    fn read(&self, text: &str) -> Result<Self::Value, Refusal>;
}

#[cfg(test)]
mod tests;
