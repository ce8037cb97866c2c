//! Evidence of `slow-query`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// The queries that one operation waits for: of one shape, or of several that together take as much.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SlowQuery {
    /// The service that waits for them.
    pub service: String,
    /// The query without its values; clipped where it is very long.
    pub shape: String,
    /// One query as it was sent; clipped where it is very long.
    pub query: String,
    /// Source of its time.
    #[serde(default)]
    pub source: QuerySource,
    /// Time of one, nanoseconds: median of spans, mean of counts, lower bound by samples.
    pub query_ns: f64,
    /// Queries of this shape in a request that sends one, median, from 1; without spans, mean over all requests.
    pub queries_per_request: f64,
    /// Rows that one returns, median; `None` if no span records it.
    pub rows: Option<f64>,
    /// The load under which it was read; `None` if it was read over the whole trial.
    pub load: Option<LoadLevel>,
    /// Whether the trial has other loads, all of them heavier.
    pub is_lightest_load: bool,
    /// Share of the database's CPU in use under that load, 0 to 1; `None` if it was not sampled.
    pub database_cpu_share: Option<f64>,
    /// Slow queries of other shapes of the same operation and database, which belong to the finding, by falling share;
    /// empty if those of one shape take long enough alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SlowStatement>,
}

/// Source of a query's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuerySource {
    /// Spans of its caller.
    #[default]
    Spans,
    /// The server's counts of executions and their time.
    Counts,
    /// Samples of the server's sessions.
    Samples,
}

/// The queries of another shape.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SlowStatement {
    /// The query without its values; clipped where it is very long.
    pub shape: String,
    /// Time of one, median, nanoseconds.
    pub query_ns: f64,
    /// Queries of this shape in a request that sends one, median, from 1.
    pub queries_per_request: f64,
}

impl SlowQuery {
    /// Time of a request in all of these queries, made one after another, nanoseconds.
    pub fn all_ns(&self) -> f64 {
        let others = self.others.iter().map(|other| other.query_ns * other.queries_per_request);
        self.query_ns * self.queries_per_request + others.sum::<f64>()
    }
}
