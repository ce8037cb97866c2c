//! Evidence of `dns`.

use serde::{Deserialize, Serialize};

use super::sockets::SocketReading;

/// Requests of which a good part of the time passes while a service looks names up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Dns {
    /// Sign of it.
    pub sign: DnsSign,
    /// The names that are looked up, the most frequent first, a few; empty if they are not recorded.
    pub names: Vec<String>,
    /// Look-ups per request, mean; 0 if sockets do not show their number.
    pub per_request: f64,
    /// Time that a request waits for them, mean over all requests, nanoseconds.
    pub request_ns: f64,
    /// One look-up: the median of the spans or the mean of the metric, nanoseconds; 0 if it is not known.
    pub lookup_ns: f64,
    /// Share of the look-ups that fail, 0 to 1; `None` if that is not recorded.
    pub failed_share: Option<f64>,
    /// Requests that show one.
    pub requests: usize,
    /// Requests that wait for a look-up, as sockets show it; `None` with another sign.
    #[serde(default)]
    pub sockets: Option<SocketReading>,
}

/// Source of the length of look-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DnsSign {
    /// Spans, on the critical path of requests.
    #[default]
    Spans,
    /// The metric `dns.lookup.duration`, which does not show what waits for it.
    Metric,
    /// Sockets connected to a name server that wait for its response.
    Sockets,
}
