//! Evidence of `chatty-http`.

use serde::{Deserialize, Serialize};

use super::Counts;

/// One endpoint that the requests of an operation call again and again, one call after another or few at a time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChattyHttp {
    /// Traces that show it.
    pub traces: usize,
    /// Of the operation's traces, the share that show it, 0 to 1.
    pub trace_share: f64,
    /// Callee: a service of the run, or a host and port; `None` if the spans do not name it.
    pub callee: Option<String>,
    /// Of all calls to the callee in the traces of the trial, the share that are these, 0 to 1.
    pub callee_share: f64,
    /// The endpoint: method, address and path without ids, clipped.
    pub endpoint: String,
    /// The address of one of the calls with its ids, clipped; `None` if it is not recorded.
    pub address: Option<String>,
    /// These calls in each request that shows it.
    pub calls: Counts,
    /// Latency of the operation, median of all its requests, nanoseconds.
    pub latency_ns: f64,
    /// Time of a request with at least one of these calls in progress, median, nanoseconds.
    pub busy_ns: f64,
    /// Time of a request in these calls and in short gaps between them, without that of other calls, median, nanoseconds.
    pub cost_ns: f64,
    /// Subject of the calls.
    pub items: Items,
    /// Whether in most of these requests a call to another endpoint ends before the first of these calls.
    pub is_after_another: bool,
    /// The most of these calls of a request that run at a time, median, from 1; 0 when it is not known.
    #[serde(default)]
    pub at_once: usize,
    /// Whether in most of these requests the spans of all calls begin before the first ends, though not all run at once.
    #[serde(default)]
    pub begin_together: bool,
}

/// Subject of the calls of one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Items {
    /// Each another item.
    Different,
    /// All the same.
    Same,
    /// It is not recorded.
    #[default]
    Unknown,
}
