//! Differences between two variants: operations, their calls, and findings.

use serde::{Deserialize, Serialize};

use crate::caveat::ComparisonCaveat;
use crate::comparison::{Basis, Change};
use crate::finding::{Confidence, Finding};

/// Two variants beside each other, perhaps of two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// Reference, such as `drone-delivery-20260101-120000:test-1`.
    pub before: String,
    /// Subject of the comparison.
    pub after: String,
    /// The requests that begin traces, of operations on both sides; `None` where the traces of a side are too few.
    #[serde(default)]
    pub requests: Option<RequestsDiff>,
    /// The services that requests of both lead through, the likeliest cause of the change first; empty where the traces
    /// of a side are too few.
    pub services: Vec<ServiceDiff>,
    /// The operations of both, by service and name.
    pub operations: Vec<OperationDiff>,
    /// The findings of both, those of `after` first, in their order.
    pub findings: Vec<FindingDiff>,
    /// How often the two were measured.
    #[serde(default)]
    pub basis: Basis,
    /// Limits of the comparison.
    pub caveats: Vec<ComparisonCaveat>,
    /// Meaning in one sentence.
    pub sentence: String,
}

/// On which side something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// After only.
    Appeared,
    /// Before only.
    Vanished,
    /// On both sides, and different beyond noise.
    Changed,
    /// On both sides, and not shown to differ.
    Same,
}

/// The requests that begin traces, on both sides; each operation with the share that it has on the later side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequestsDiff {
    /// Traced requests that were compared, before and after; fewer than were read where they stand for unequal numbers.
    pub count: (f64, f64),
    /// Mean latency, nanoseconds, before and after.
    pub latency_ns: (f64, f64),
}

/// How much one service adds to the requests that begin traces, on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceDiff {
    /// The service, or what is called that sends no spans.
    pub service: String,
    /// Role in the change.
    pub role: ServiceRole,
    /// How sure the role is.
    pub confidence: Confidence,
    /// Its part of the critical path before, mean per request, nanoseconds.
    pub before_ns: f64,
    /// The same after.
    pub after_ns: f64,
    /// The change it caused: in its own time, and by calling others more or less often, with all that these calls cost. Mean
    /// per request, nanoseconds.
    pub change_ns: f64,
    /// `change_ns` ÷ the change of the requests' mean latency: above 1 or below 0 where services change it in opposite
    /// directions. `None` if the requests as a whole became neither notably slower nor faster.
    pub share: Option<f64>,
    /// `change_ns` ÷ the mean latency of the requests on the slower side, -1 to 1.
    pub latency_share: f64,
    /// Whom it calls more or less often, if that is more than noise: the callee, and calls for each of its requests
    /// before and after.
    pub calls: Option<(String, f64, f64)>,
    /// Errors that began in it ÷ requests, before and after.
    pub errors: (f64, f64),
    /// Requests per second, before and after; `None` unless it was compared by metrics.
    #[serde(default)]
    pub requests: Option<(f64, f64)>,
    /// CPU for each request of the load, or of the service's own where it was compared by metrics, nanoseconds, before and
    /// after; `None` where it was not measured on both sides.
    pub cpu: Option<(f64, f64)>,
    /// CPU limit of all its replicas together, in cores, before and after, where both are known and differ.
    #[serde(default)]
    pub cpu_limit: Option<(f64, f64)>,
    /// Memory of all its replicas together, bytes, before and after; `None` where it was not measured on both sides.
    #[serde(default)]
    pub memory: Option<(f64, f64)>,
    /// Share of the requests that reach it, before and after; `None` where no spans show it.
    #[serde(default)]
    pub reached: Option<(f64, f64)>,
    /// Its own time in each of its calls, mean, nanoseconds, before and after; `None` where no spans show it.
    #[serde(default)]
    pub call_ns: Option<(f64, f64)>,
    /// Wait of users in front of it, where it has no spans, mean per request, nanoseconds, before and after; `None`
    /// unless this is the change.
    #[serde(default)]
    pub outside_ns: Option<(f64, f64)>,
    /// Its kinds of internal spans that vanished or appeared.
    #[serde(default)]
    pub spans: Vec<SpanDiff>,
    /// Its kinds of messages that are new, gone, or more or less frequent, the most certain first.
    #[serde(default)]
    pub logs: Vec<LogDiff>,
    /// A trace of the later side that shows what the role says.
    #[serde(default)]
    pub example: Option<String>,
}

/// Share of the requests below which few reach a service.
const FEW_MAX: f64 = 0.5;

impl ServiceDiff {
    /// Its own time in each call, before and after, and the share of the requests that reach it, if few do and each call
    /// takes longer.
    pub fn slower_rare_calls(&self) -> Option<((f64, f64), f64)> {
        let (_, reached) = self.reached.filter(|(_, after)| *after < FEW_MAX)?;
        Some((self.call_ns.filter(|(before, after)| after > before)?, reached))
    }

    /// A service of which nothing is known to have changed.
    pub fn unchanged(service: &str) -> Self {
        Self {
            service: service.to_owned(),
            role: ServiceRole::Unchanged,
            confidence: Confidence::Low,
            before_ns: 0.0,
            after_ns: 0.0,
            change_ns: 0.0,
            share: None,
            latency_share: 0.0,
            calls: None,
            errors: (0.0, 0.0),
            requests: None,
            cpu: None,
            cpu_limit: None,
            memory: None,
            reached: None,
            call_ns: None,
            outside_ns: None,
            spans: Vec::new(),
            logs: Vec::new(),
            example: None,
        }
    }
}

/// One kind of internal span of a service that vanished or appeared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpanDiff {
    /// Its name.
    pub name: String,
    /// How many there are for each request of the service, before.
    pub before: f64,
    /// The same after.
    pub after: f64,
}

/// One kind of message of a service that is new, gone, or more or less frequent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogDiff {
    /// The message with its variable parts masked.
    pub template: String,
    /// Whether it reports an error.
    #[serde(default = "yes")]
    pub is_error: bool,
    /// Whether it appeared, vanished or changed.
    pub fate: Fate,
    /// How many lines there were before.
    pub before: u64,
    /// How many there were after.
    pub after: u64,
    /// How many times as many there are as before for the same number of calls, requests of the load or seconds, the
    /// first of these that was counted; `None` for a new one.
    pub growth: Option<f64>,
    /// Calls that wrote it ÷ all calls of its operation, or of the service, before and after; `None` if its calls are
    /// unknown.
    #[serde(default)]
    pub calls: Option<(f64, f64)>,
    /// The operation of these calls; `None` if they are of any.
    #[serde(default)]
    pub operation: Option<String>,
}

fn yes() -> bool {
    true
}

/// Role of a service in a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceRole {
    /// Errors begin in it that did not before: a cause.
    Failing,
    /// Its own part of the requests grew: a cause.
    Slower,
    /// Its own part shrank.
    Faster,
    /// It makes other calls or other internal spans for each of its requests: calls that it omits, or that have no notable
    /// effect on the latency.
    Calling,
    /// It uses notably more CPU or memory, without a notable effect on the latency.
    Heavier,
    /// It receives more or fewer requests than those of its known callers explain.
    Called,
    /// Its responses take longer only because it waits for others.
    Waiting,
    /// Nothing is shown to have changed.
    Unchanged,
}

impl ServiceRole {
    /// Whether the change for the worse comes from it.
    pub fn is_cause(self) -> bool {
        matches!(self, ServiceRole::Failing | ServiceRole::Slower)
    }
}

/// One operation on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationDiff {
    /// The service that responds.
    pub service: String,
    /// Its name, such as `GET /orders`.
    pub name: String,
    /// Of the operation itself, whatever its calls do.
    pub fate: Fate,
    /// Mean duration before, nanoseconds; `None` if it was not there.
    pub before_ns: Option<f64>,
    /// Mean duration after, nanoseconds; `None` if it is not there.
    pub after_ns: Option<f64>,
    /// How the mean changed; `None` if it is on one side only or too little is known.
    pub mean: Option<Change>,
    /// Its calls, most attempts first.
    pub calls: Vec<CallDiff>,
}

/// One kind of call of an operation on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallDiff {
    /// Callee: a service, a database's system or an address.
    pub target: String,
    /// The name of the client spans.
    pub name: String,
    /// Of this kind of call.
    pub fate: Fate,
    /// Attempts for each completed operation before; `None` if there were none.
    pub before: Option<f64>,
    /// The same after.
    pub after: Option<f64>,
}

/// One finding on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindingDiff {
    /// Whether it came, went, or costs more or less than before.
    pub fate: Fate,
    /// As it was.
    pub before: Option<Finding>,
    /// As it is.
    pub after: Option<Finding>,
}
