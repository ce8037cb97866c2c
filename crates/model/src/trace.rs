//! Spans as OpenTelemetry defines them, with the facts that detectors read already normalised.

mod forest;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use forest::Forest;

pub use crate::span_facts::SpanFacts;

/// Sixteen bytes; never all zero.
pub type TraceId = [u8; 16];
/// Eight bytes; never all zero.
pub type SpanId = [u8; 8];

/// The attribute of a span that named itself as its parent and is therefore treated as a root.
pub const OWN_PARENT: &str = "narrows.own_parent";

/// Lower-case hexadecimal, as trace and span ids are written.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a span's name says that it is one step of a call: taking or opening a connection, looking up a name, sending.
/// Libraries report such steps as calls, beside or below the call itself; among them are Go's `otelhttptrace`
/// (`http.getconn`, `http.headers`) and `otelsql` (`sql.conn.reset_session`), and the pools of Node (`pg-pool.connect`).
pub fn is_step_of_call(name: &str) -> bool {
    const NAMES: [&str; 7] =
        ["http.getconn", "http.dns", "http.tls", "http.headers", "http.send", "http.receive", "sql.rows"];
    const ENDS: [&str; 6] = ["connect", "dns.lookup", "http send", "http receive", "pool.acquire", "reset_session"];
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str()) || ENDS.iter().any(|end| name.ends_with(end))
}

/// Names that eBPF instrumentations give themselves: OpenTelemetry's, as `telemetry.distro.name` and `telemetry.sdk.name` of
/// resources, and Beyla, from which it comes. They are the scope of such spans, which have none of their own.
pub const EBPF_INSTRUMENTATIONS: [&str; 2] = ["opentelemetry-ebpf-instrumentation", "beyla"];

/// One span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The trace it belongs to.
    pub trace_id: TraceId,
    /// Its own id.
    pub span_id: SpanId,
    /// The span that caused it; `None` for a root.
    pub parent_id: Option<SpanId>,
    /// `service.name` of its resource.
    pub service: String,
    /// The instrumentation scope (library) that made it.
    pub scope: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: SpanKind,
    /// Start.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Its status.
    pub status: SpanStatus,
    /// The status's message, often empty.
    pub status_message: String,
    /// Meaning of the attributes, whichever generation of semantic conventions they follow.
    pub facts: SpanFacts,
    /// The attributes as they came.
    pub attributes: Map<String, Value>,
    /// How many traces this one stands for: 1 ÷ the sampling rate it was chosen with.
    pub weight: f64,
}

impl Span {
    /// Length in nanoseconds; 0 when the clock ran backwards.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns).max(0) as u64
    }

    /// True if an eBPF program made it: no span then shows the process's work between calls.
    pub fn is_from_outside(&self) -> bool {
        EBPF_INSTRUMENTATIONS.contains(&self.scope.as_str())
    }

    /// Whether it failed; see [`SpanKind::has_failed`].
    pub fn has_failed(&self) -> bool {
        self.kind.has_failed(self.status, self.facts.http_status)
    }
}

/// A span's kind. OpenTelemetry's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    /// Within one process.
    #[default]
    Internal,
    /// Serves a remote caller.
    Server,
    /// Calls a remote service.
    Client,
    /// Hands a message to a broker.
    Producer,
    /// Handles a message from a broker.
    Consumer,
}

impl SpanKind {
    /// The word used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            SpanKind::Internal => "internal",
            SpanKind::Server => "server",
            SpanKind::Client => "client",
            SpanKind::Producer => "producer",
            SpanKind::Consumer => "consumer",
        }
    }

    /// Lowest HTTP status that is a failure, by OpenTelemetry's semantic conventions for HTTP spans. A bad request is a
    /// failure of its sender (400), not of the server that rejects it (500).
    pub const fn failed_from(self) -> u16 {
        match self {
            SpanKind::Client | SpanKind::Producer => 400,
            SpanKind::Internal | SpanKind::Server | SpanKind::Consumer => 500,
        }
    }

    /// Whether a span of this kind failed: its status is `error`, or its HTTP status is a failure.
    pub fn has_failed(self, status: SpanStatus, http_status: Option<u16>) -> bool {
        status == SpanStatus::Error || http_status.is_some_and(|http_status| http_status >= self.failed_from())
    }
}

/// A span's status. OpenTelemetry's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum SpanStatus {
    /// Not reported.
    #[default]
    Unset,
    /// Reported as success.
    Ok,
    /// It went wrong.
    Error,
}

impl SpanStatus {
    /// The word used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            SpanStatus::Unset => "unset",
            SpanStatus::Ok => "ok",
            SpanStatus::Error => "error",
        }
    }
}

/// All spans of one trace that arrived, in order of start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Its id.
    pub id: TraceId,
    /// Its spans by start time, at least one.
    pub spans: Vec<Span>,
    /// How many traces it stands for.
    pub weight: f64,
}

impl Trace {
    /// The span without a parent among the trace's own spans; the earliest if there are several.
    pub fn root(&self) -> Option<&Span> {
        self.spans
            .iter()
            .find(|span| span.parent_id.is_none_or(|parent| !self.spans.iter().any(|s| s.span_id == parent)))
    }

    /// The children of a span, by start time.
    pub fn children(&self, parent: SpanId) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(move |span| span.parent_id == Some(parent))
    }
}

#[cfg(test)]
mod tests {
    use SpanKind::{Client, Consumer, Internal, Producer, Server};
    use SpanStatus::{Error, Ok, Unset};

    use super::*;

    #[test]
    fn a_bad_request_is_a_failure_of_its_sender() {
        let callers = [Client, Producer].map(|kind| (kind, true));
        let others = [Internal, Server, Consumer].map(|kind| (kind, false));
        for (kind, is_caller) in callers.into_iter().chain(others) {
            for (status, http_status, has_failed) in [
                (Unset, None, false),
                (Unset, Some(399), false),
                (Unset, Some(400), is_caller),
                (Ok, Some(404), is_caller),
                (Unset, Some(499), is_caller),
                (Unset, Some(500), true),
                (Ok, Some(503), true),
                (Error, None, true),
                (Error, Some(200), true),
            ] {
                assert_eq!(kind.has_failed(status, http_status), has_failed, "{kind:?} {status:?} {http_status:?}");
            }
        }
    }

    #[test]
    fn steps_of_calls_are_known_by_their_names() {
        for name in ["http.getconn", "pg-pool.connect", "sql.conn.reset_session", "sql.rows", "GET / http send"] {
            assert!(is_step_of_call(name), "{name}");
        }
        for name in ["GET", "sql.conn.query", "SELECT shop", "http.client", "reconnected"] {
            assert!(!is_step_of_call(name), "{name}");
        }
    }
}
