//! Evidence of `n-plus-one`.

use serde::{Deserialize, Serialize};

use super::Counts;

/// One statement that the requests of an operation repeat, a read after another query.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NPlusOne {
    /// Traces that show it.
    pub traces: usize,
    /// Of the operation's traces that query a database, the share that show it, 0 to 1.
    pub trace_share: f64,
    /// Of all queries in the traces of the trial, the share that are these, 0 to 1.
    pub query_share: f64,
    /// These queries in each request that shows it.
    pub queries: Counts,
    /// Latency of a request that shows it, median, nanoseconds.
    pub latency_ns: f64,
    /// Time of a request with at least one of these queries in progress, median, nanoseconds.
    pub busy_ns: f64,
    /// Time of a request in these queries, in waits for a connection between them and in short gaps after them, without that
    /// of other calls, median, nanoseconds.
    pub cost_ns: f64,
    /// Repeated statement.
    pub statement: Statement,
    /// The query before them, in the shape of its statement, clipped; none before writes that nothing comes before.
    pub after: Option<String>,
    /// Knowledge of the values of the queries.
    pub values: Values,
    /// Spans for each query, from 1; more than 1 where several libraries report it.
    pub spans_per_query: f64,
    /// The instrumentation scopes that reported the query.
    pub scopes: Vec<String>,
    /// Spans of connections, pools and transactions in these traces, which do not count as queries.
    pub housekeeping_spans: usize,
}

/// A statement, as it is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Statement {
    /// Its text without values, clipped.
    pub shape: String,
    /// Its text as one of the queries sent it, clipped; `None` if that reads as the shape does.
    pub sent: Option<String>,
    /// Effect on rows.
    pub access: Access,
    /// Destination, as its spans name it: `db.system.name`; `None` if they do not.
    #[serde(default)]
    pub system: Option<String>,
}

/// Effect of a statement on rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// It fetches them.
    #[default]
    Read,
    /// It changes them or adds some.
    Write,
}

/// Knowledge of the values of repeated queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Values {
    /// The traces do not record them.
    #[default]
    NotRecorded,
    /// They differ from query to query, in some of the requests at least.
    Different,
}
