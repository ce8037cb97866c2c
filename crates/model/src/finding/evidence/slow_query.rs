//! Evidence of `slow-query`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// The queries of one shape that one operation waits for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SlowQuery {
    /// The service that waits for them.
    pub service: String,
    /// The query without its values; clipped where it is very long.
    pub shape: String,
    /// One query as it was sent; clipped where it is very long.
    pub query: String,
    /// How long one takes, median, nanoseconds.
    pub query_ns: f64,
    /// How often a request that sends one sends it, median, from 1.
    pub queries_per_request: f64,
    /// Rows that one returns, median; `None` if no span records it.
    pub rows: Option<f64>,
    /// The load under which it was read; `None` if it was read over the whole trial.
    pub load: Option<LoadLevel>,
    /// Whether the trial has other loads, all of them heavier.
    pub is_lightest_load: bool,
    /// Share of the database's CPU in use under that load, 0 to 1; `None` if it was not sampled.
    pub database_cpu_share: Option<f64>,
}
