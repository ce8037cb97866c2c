//! Evidence of `pool-wait`.

use serde::{Deserialize, Serialize};

use super::sockets::SocketPool;

/// Requests of one operation, or all of a service without spans, that wait for a connection from a pool.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PoolWait {
    /// Sign that requests wait.
    pub sign: PoolSign,
    /// Wait for connections in each request, median, nanoseconds.
    pub wait_ns: f64,
    /// Time in queries in each request, median, nanoseconds.
    pub query_ns: f64,
    /// Time in which a request calls other services between its first and its last query, median, nanoseconds.
    pub other_calls_ns: f64,
    /// The pool's own figures.
    pub pool: PoolMetrics,
    /// The pool as its sockets show it; `None` if the wait is known otherwise.
    #[serde(default)]
    pub sockets: Option<SocketPool>,
}

impl PoolWait {
    /// True if each request makes several calls at once. Then fewer calls make the wait go away too, and connections are no
    /// measure of the requests that the pool lets through.
    pub fn is_of_calls_at_once(&self) -> bool {
        self.sockets.as_ref().is_some_and(|sockets| sockets.calls_at_once.is_some())
    }
}

/// Sign that requests wait for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolSign {
    /// Spans of the pool, and metrics that agree.
    SpansAndMetrics,
    /// Spans of the pool only.
    Spans,
    /// Times that the pool reports.
    ReportedTimes,
    /// Requests are reported to wait, or all connections to be in use; how long they wait is read from the gaps before
    /// queries.
    #[default]
    ReportedState,
    /// All connections are in use, and the service has taken on more requests.
    Sockets,
}

impl PoolSign {
    /// Whether spans show how long each request waits.
    pub fn has_spans(self) -> bool {
        matches!(self, PoolSign::SpansAndMetrics | PoolSign::Spans)
    }
}

/// Figures that the pools of a service report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PoolMetrics {
    /// Mean wait for a connection, nanoseconds; `None` if not reported.
    pub wait_ns: Option<f64>,
    /// Mean time that a connection is held, nanoseconds; `None` if not reported.
    pub use_ns: Option<f64>,
    /// The largest number of connections; `None` if not reported.
    pub size: Option<f64>,
    /// Connections taken; `None` if not reported.
    pub taken: Option<f64>,
    /// Readings in which requests wait; `None` if not reported.
    pub pending: Option<Readings>,
    /// Readings in which all connections are in use; `None` if not reported.
    pub full: Option<Readings>,
}

/// Readings that show a state.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Readings {
    /// All readings.
    pub count: usize,
    /// The share that shows it, 0 to 1.
    pub share: f64,
}
