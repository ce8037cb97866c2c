//! Evidence of `instrumentation-gap`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// An operation's time that no span explains.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InstrumentationGap {
    /// The service of the operation.
    pub service: String,
    /// The service that it calls and that has no span; `None` if the time passes in the operation itself.
    pub callee: Option<String>,
    /// Sign that there is something to see.
    pub sign: GapSign,
    /// Requests looked at.
    pub requests: usize,
    /// Time of a request that no span explains, median, nanoseconds.
    pub time_ns: f64,
    /// Latency, median, nanoseconds.
    pub latency_ns: f64,
    /// Processor time for each request, of the callee where there is one, nanoseconds.
    pub cpu_ns: f64,
}

impl InstrumentationGap {
    /// Whether it names this service as one that ran and that no span shows.
    pub fn names_unseen(&self, service: &str) -> bool {
        match &self.sign {
            GapSign::Database { service: unseen } | GapSign::BusyService { service: unseen, .. } => unseen == service,
            _ => false,
        }
    }
}

/// Sign that there is something to see.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum GapSign {
    /// The service reports a metric of a database client.
    ClientMetric {
        /// The metric.
        name: String,
    },
    /// Another operation of the service has database spans.
    OtherOperation {
        /// The operation.
        name: String,
    },
    /// A database ran, and no service shows a call to one.
    Database {
        /// The database's service.
        service: String,
    },
    /// A service used processor time while requests were served, and no span shows a call to it.
    BusyService {
        /// The service.
        service: String,
        /// Its processor time for each request, nanoseconds.
        cpu_ns: f64,
    },
    /// Sockets of the service show that its requests wait for a peer, and no span does.
    Sockets {
        /// A service of the trial, or an address.
        peer: String,
        /// Requests that wait without a span under the heaviest load, at any moment.
        unseen: f64,
        /// All that wait for the peer, as sockets show them.
        waiting: f64,
    },
    /// The callee sends no span.
    #[default]
    SilentCallee,
    /// The spans of the callee start traces of their own.
    SeparateTraces,
    /// The time grows with the load.
    Grown {
        /// The time under the lightest load, median, nanoseconds.
        from_ns: f64,
        /// The lightest load.
        light: LoadLevel,
        /// The heaviest load, under which the requests are looked at.
        heavy: LoadLevel,
    },
}
