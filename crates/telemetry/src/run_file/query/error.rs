//! Faults of a query, said so that whoever wrote it knows what to change.

use std::time::Duration;

use super::super::error::Error;

/// Why a query has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum QueryError {
    /// It does more than read.
    #[error("the query would {action}, expected one that only reads, such as a SELECT")]
    Writes {
        /// Its action, such as `insert into run`.
        action: String,
    },
    /// There is another statement after the first.
    #[error("the query has several statements, expected one")]
    ManyStatements,
    /// There is no statement in it.
    #[error("the query is empty, expected a SELECT")]
    Empty,
    /// It leaves values open, which nobody gives.
    #[error("the query has a parameter `{name}`, expected its value in its place")]
    Parameter {
        /// The parameter as it stands in the query.
        name: String,
    },
    /// SQLite does not understand it, or cannot go on.
    #[error("{message}")]
    Sql {
        /// SQLite's words, or those of a function.
        message: String,
        /// Where in the query, when SQLite says so: line and column in characters, from 1.
        place: Option<(usize, usize)>,
    },
    /// It took longer than it may.
    #[error("the query was stopped after {}", narrows_model::units::duration(.time.as_nanos() as f64))]
    TimedOut {
        /// How long it was let run.
        time: Duration,
    },
    /// The query compiled from KQL has unexpected columns.
    #[error("the compiled query returns {found} columns, expected {expected}")]
    Columns {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// The run file itself cannot be read.
    #[error(transparent)]
    File(#[from] Error),
}
