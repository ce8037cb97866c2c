//! Details of trial caveats: the effect of a fault, what is missing from samples or pages, where requests were counted.

use serde::{Deserialize, Serialize};

/// Effect of a fault on a replica.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultAction {
    /// It was killed.
    Killed,
    /// It was asked to end, to be started again.
    Restarted,
    /// It was down and was started.
    Started,
    /// It stood still for so long, nanoseconds.
    Paused(f64),
    /// Nothing: it was not running.
    NotRunning,
}

/// Reason for which sockets of services are missing from the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketGap {
    /// The kernel has no socket diagnostics, or refuses them.
    NoDiagnostics,
    /// Network namespaces that could not be entered, at least 1, or that are beyond the limit.
    Namespaces(u64),
    /// Most connections at once beyond the sampler's limit, at least 1.
    Connections(u64),
    /// Most connections at once over Unix sockets, which have no times, at least 1.
    UnixSockets(u64),
}

/// Fault of a page of metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndpointFault {
    /// Scrapes without metrics.
    Scrapes {
        /// How many, at least 1.
        failed: u64,
        /// All scrapes.
        scrapes: u64,
        /// Last failure.
        failure: String,
    },
    /// Lines that could not be parsed.
    Lines {
        /// How many, at least 1.
        malformed: u64,
        /// Complaint about the first.
        first: String,
    },
    /// Points that exceed the run file's limits.
    Points {
        /// How many, at least 1.
        refused: u64,
    },
}

/// Spans that requests of a load command are counted from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanSource {
    /// Service whose server spans they are; `None` for any.
    pub service: Option<String>,
    /// True if they continue traces of the load command's own.
    pub is_continued: bool,
}

/// Spans that are taken for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestBasis {
    /// Server spans that no other span caused.
    Roots,
    /// Server spans of a named service, which continue traces from elsewhere.
    Continued,
    /// Roots of traces, since no span says that it is a server's.
    AnyRoots,
}

/// Little's law in a window: throughput × latency = requests under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Law {
    /// Completed requests per second.
    pub rate: f64,
    /// Mean latency, nanoseconds.
    pub latency_ns: f64,
    /// Their product.
    pub under_way: f64,
    /// The window.
    pub window: String,
}
