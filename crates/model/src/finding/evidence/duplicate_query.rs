//! Evidence of `duplicate-query`.

use serde::{Deserialize, Serialize};

use super::Counts;

/// Queries that the requests of an operation send again with the same values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DuplicateQuery {
    /// Traces that show it.
    pub traces: usize,
    /// Of the operation's requests that query a database, the share that show it, 0 to 1.
    pub request_share: f64,
    /// Repeats in each request that shows it: queries beyond the first of each.
    pub repeats: Counts,
    /// Time of a request in its repeats, median of the requests that show it, nanoseconds.
    pub repeats_ns: f64,
    /// Latency of a request that shows it, median, nanoseconds.
    pub latency_ns: f64,
    /// Of all queries in the traces of the trial, the share that are these repeats, 0 to 1.
    pub query_share: f64,
    /// Different statements that are repeated, from 1.
    pub statements: usize,
    /// The one whose repeats take most time, without its values, clipped.
    pub shape: String,
    /// The same as one of the queries sent it, clipped.
    pub sent: String,
    /// How often a request sends it with the same values, median, from 2.
    pub sends: usize,
    /// The database that it goes to.
    pub database: String,
    /// Sign that its values are the same.
    pub sameness: Sameness,
}

/// Sign that queries of one text have the same values, in order of certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sameness {
    /// The text has no values.
    #[default]
    NoValues,
    /// The values are in the text or recorded beside it.
    Values,
    /// Each response has as many rows as the first one, in every request, and from request to request the number
    /// differs. The values are not recorded.
    Rows,
}
