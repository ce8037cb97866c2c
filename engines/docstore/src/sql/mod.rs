//! The part of the query language the store understands: every document of a container that meets a conjunction of
//! equalities.
//!
//! ```text
//! SELECT (* | VALUE alias) FROM name [[AS] alias] [WHERE path = value {AND path = value}]
//! path  = alias { .name | ["name"] }        value = @parameter | number | 'text' | "text" | true | false | null
//! ```
//!
//! Everything else (projections, aggregates, OR, ordering) is refused with the place where it begins.

mod lexer;
mod parser;

use std::fmt;

use crate::scalar::Scalar;

pub(crate) use parser::parse;

/// A query as written: parameters are not yet values.
#[derive(Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) conditions: Vec<Condition>,
}

/// `path = operand`; the path is without the alias.
#[derive(Debug, PartialEq)]
pub(crate) struct Condition {
    pub(crate) path: Vec<String>,
    pub(crate) operand: Operand,
}

/// The right side of an equality.
#[derive(Debug, PartialEq)]
pub(crate) enum Operand {
    Literal(Scalar),
    /// Named with its `@`.
    Parameter(String),
}

/// Where a query stops being one the store understands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// The place, in characters from 1.
    pub(crate) character: usize,
    pub(crate) found: String,
    pub(crate) expected: &'static str,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { character, found, expected } = self;
        write!(out, "syntax error at character {character} of the query: found {found}, expected {expected}")
    }
}
