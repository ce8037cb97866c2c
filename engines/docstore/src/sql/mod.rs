//! Cosmos DB's query language: from text to a checked query, from a query and documents to results.
//!
//! `lexer` and `parser` read a text into the tree of `ast`; `names` rejects queries that cannot be evaluated; `print`
//! writes a tree as text again. `evaluate` computes expressions, with the tables of `functions`; `rows` makes the rows
//! of FROM and JOIN; `run` filters and projects them, page by page, `result_collector` groups and sorts them, and `subquery`
//! has those of a query within another. `keys` derives from a filter which documents can
//! match at all, and `plan` contains the information that clients need to merge the results of several partitions.
//!
//! Deliberately absent: user-defined functions, full-text, vector and geospatial search. Each is rejected with its name
//! and place. The length and depth of a query are bounded, as are the `work` and memory for one page.

mod aggregates;
pub(crate) mod ast;
mod evaluate;
mod functions;
mod keys;
mod lexer;
mod like;
mod names;
mod parser;
mod pattern;
mod plan;
mod print;
mod result_collector;
mod rows;
mod run;
mod sort_position;
mod subquery;
mod value;
mod work;

use std::fmt;

pub(crate) use evaluate::Parameters;
pub(crate) use keys::{Equality, equalities};
pub(crate) use plan::{Features, Plan, is_merged};
pub(crate) use run::{Batch, MAX_PAGE_BYTES, Progress, Run, is_gathered, is_sorted};
pub(crate) use sort_position::SortPosition;
pub(crate) use value::Value;
pub(crate) use work::{Allowance, TooMuchWork, Watch};

/// Reads `query` and checks it, or says where it leaves the language.
pub(crate) fn parse(query: &str) -> Result<ast::Query, SyntaxError> {
    let parsed = parser::parse(query)?;
    names::check(query, &parsed)?;
    Ok(parsed)
}

/// Where a query stops being one the store understands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// The place, in characters from 1.
    pub(crate) character: usize,
    pub(crate) found: String,
    pub(crate) expected: String,
}

/// How much of an unexpected token an error repeats, in characters.
const MAX_FOUND: usize = 40;

impl SyntaxError {
    /// An error at the byte `at` of `query`, which names the text there.
    fn at(query: &str, at: usize, expected: impl Into<String>) -> Self {
        let rest = &query[at..];
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let found = match &rest[..end] {
            "" => "the end".to_owned(),
            word => format!("{:?}", word.chars().take(MAX_FOUND).collect::<String>()),
        };
        Self { character: query[..at].chars().count() + 1, found, expected: expected.into() }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { character, found, expected } = self;
        write!(out, "syntax error at character {character} of the query: found {found}, expected {expected}")
    }
}
