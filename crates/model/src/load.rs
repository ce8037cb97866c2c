//! What load to send (a plan) and what came of it (per-second rows and samples).
//!
//! The plan is what the lab hands to the load engine after it has bound `${…}`; `{{…}}` is still open in it, as
//! [`Segment::Field`], and is bound once per request.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Everything the load engine needs for one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPlan {
    /// Where to connect, one or more; virtual user `i` uses `targets[i % targets.len()]`.
    pub targets: Vec<SocketAddr>,
    /// What runs, all at the same time.
    pub scenarios: Vec<Scenario>,
    /// The named data that `{{name}}` and `{{name.column}}` in templates draw from.
    pub data: Vec<DataSource>,
    /// Whether requests carry a W3C `traceparent`.
    pub tracing: Option<Tracing>,
    /// The longest wait for an answer, connecting included.
    pub timeout: Duration,
    /// How long after the load's end outstanding answers are waited for.
    pub drain: Duration,
    /// The seed of everything random in the load.
    pub seed: u64,
    /// Threads to use at most; the engine uses fewer when there are fewer users.
    pub threads: usize,
    /// `Connection: keep-alive` or one connection per request.
    pub connections: Connections,
}

/// What becomes of a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// It carries the user's next request.
    #[default]
    KeepAlive,
    /// It is closed.
    PerRequest,
}

/// A population of virtual users that all do the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The scenario's name in the experiment file.
    pub name: String,
    /// How many users, when.
    pub model: LoadModel,
    /// How long the first load level is held before anything counts.
    pub warmup: Duration,
    /// What each iteration sends.
    pub request: RequestTemplate,
    /// The pause between a user's answer and its next request.
    pub think_time: Duration,
    /// The least time between two sends of one user, from send to send; none for no limit.
    pub pace: Option<Duration>,
}

/// How many virtual users, when. k6's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadModel {
    /// A fixed number of users for a fixed time.
    ConstantVus {
        /// Users, at least 1.
        vus: u32,
        /// For how long.
        duration: Duration,
    },
    /// A number of users that follows stages.
    RampingVus {
        /// Users at the beginning.
        start_vus: u32,
        /// The stages, in order.
        stages: Vec<Stage>,
    },
    /// An exact number of requests shared by a fixed number of users.
    SharedIterations {
        /// Users, at least 1.
        vus: u32,
        /// Requests in total.
        iterations: u64,
        /// When to stop even if requests are left.
        max_duration: Option<Duration>,
    },
}

/// A part of a `ramping-vus` load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// How long it takes.
    pub duration: Duration,
    /// Users at its end.
    pub target: u32,
    /// How the number of users gets there.
    pub shape: StageShape,
}

/// How the number of users moves to a stage's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageShape {
    /// Evenly over the stage.
    Linear,
    /// At once, then it stays: a step.
    Step,
}

/// An HTTP request with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTemplate {
    /// The method, upper case.
    pub method: String,
    /// Path and query.
    pub path: Template,
    /// Header names and values; `Host` is added from `host` unless it is here.
    pub headers: Vec<(String, Template)>,
    /// The body, if any.
    pub body: Option<Template>,
    /// The `Host` header's value.
    pub host: String,
}

/// Text with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// In order.
    pub segments: Vec<Segment>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Sent as it is.
    Text(String),
    /// The value drawn from a data source for this request.
    Field {
        /// Index into [`LoadPlan::data`].
        source: usize,
        /// Column of that source, 0 when it has one only.
        column: usize,
    },
}

impl Template {
    /// A template without places.
    pub fn text(text: impl Into<String>) -> Self {
        Self { segments: vec![Segment::Text(text.into())] }
    }
}

/// Where the values of `{{name}}` come from. One row is drawn per source and request, so that two columns of one
/// source in one request belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSource {
    /// The name in `{{name}}`.
    pub name: String,
    /// The values.
    pub values: DataValues,
}

/// The values of a data source.
#[derive(Debug, Clone, PartialEq)]
pub enum DataValues {
    /// A whole number drawn evenly from `from..=to`.
    Integers {
        /// Smallest.
        from: i64,
        /// Largest.
        to: i64,
    },
    /// Rows given in place or read from a file; each has the same number of columns.
    Rows {
        /// Column names; empty when there is one unnamed column.
        columns: Vec<String>,
        /// The rows, at least one.
        rows: Vec<Vec<String>>,
        /// Which row comes next.
        pick: Pick,
    },
}

/// Which row of a data source comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pick {
    /// Any, each as likely.
    #[default]
    Random,
    /// The next in order over all users, from the start again after the last.
    Sequential,
}

/// How requests are traced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tracing {
    /// The share of requests whose `traceparent` says "sampled", 0 to 1.
    pub sample: f64,
    /// The first four bytes of every trace id of this trial, by which its traces are told from others.
    pub tag: [u8; 4],
}

/// What one second of one scenario came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadSecond {
    /// The scenario.
    pub scenario: String,
    /// The second's first instant.
    pub start_ns: i64,
    /// Virtual users at its end.
    pub vus: u32,
    /// Requests sent.
    pub sent: u64,
    /// Answers that counted as a success.
    pub succeeded: u64,
    /// Requests that failed, by kind.
    pub errors: ErrorCounts,
    /// Bytes of the answers, heads included.
    pub bytes: u64,
    /// From intended send to the answer's last byte, successes only.
    pub latency: Histogram,
    /// From actual send to the answer's last byte, successes only.
    pub service: Histogram,
    /// From intended to actual send, every request: the generator's own delay.
    pub lateness: Histogram,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorKind {
    /// No connection could be opened.
    Connect,
    /// The connection broke before the answer was whole.
    Reset,
    /// No whole answer in time.
    Timeout,
    /// What came was not HTTP.
    Protocol,
    /// A whole answer with a status of 400 or above.
    Status,
}

impl ErrorKind {
    /// All kinds, in the order they are printed.
    pub const ALL: [ErrorKind; 5] =
        [ErrorKind::Connect, ErrorKind::Reset, ErrorKind::Timeout, ErrorKind::Protocol, ErrorKind::Status];

    /// The word used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Connect => "connect",
            ErrorKind::Reset => "reset",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Status => "status",
        }
    }
}

/// Failed requests by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ErrorCounts {
    /// See [`ErrorKind::Connect`].
    pub connect: u64,
    /// See [`ErrorKind::Reset`].
    pub reset: u64,
    /// See [`ErrorKind::Timeout`].
    pub timeout: u64,
    /// See [`ErrorKind::Protocol`].
    pub protocol: u64,
    /// See [`ErrorKind::Status`].
    pub status: u64,
}

impl ErrorCounts {
    /// The count of one kind, to change.
    pub fn of_mut(&mut self, kind: ErrorKind) -> &mut u64 {
        match kind {
            ErrorKind::Connect => &mut self.connect,
            ErrorKind::Reset => &mut self.reset,
            ErrorKind::Timeout => &mut self.timeout,
            ErrorKind::Protocol => &mut self.protocol,
            ErrorKind::Status => &mut self.status,
        }
    }

    /// The count of one kind.
    pub fn of(mut self, kind: ErrorKind) -> u64 {
        *self.of_mut(kind)
    }

    /// All kinds together.
    pub fn total(self) -> u64 {
        ErrorKind::ALL.iter().map(|kind| self.of(*kind)).sum()
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: ErrorCounts) {
        for kind in ErrorKind::ALL {
            *self.of_mut(kind) += other.of(kind);
        }
    }
}

/// One request in full. A bounded, tail-biased sample of all: the slowest of each second are kept with weight 1,
/// the others stand for `weight` requests each.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The scenario.
    pub scenario: String,
    /// The virtual user, from 0.
    pub vu: u32,
    /// When it should have been sent.
    pub intended_ns: i64,
    /// When it was.
    pub sent_ns: i64,
    /// When its answer was whole, or it failed.
    pub done_ns: i64,
    /// The HTTP status; 0 without an answer.
    pub status: u16,
    /// Why it failed, if it did.
    pub error: Option<ErrorKind>,
    /// Bytes of the answer, head included.
    pub bytes: u64,
    /// The trace it carried, when that trace was sampled.
    pub trace_id: Option<[u8; 16]>,
    /// How many requests of its second this one stands for, 1 or more.
    pub weight: f64,
}

/// What the engine hands over about once a second while the load lasts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadBatch {
    /// Seconds that are over, each once per scenario.
    pub seconds: Vec<LoadSecond>,
    /// The sampled requests of those seconds.
    pub samples: Vec<Sample>,
}

/// A reason for which requests failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorCause {
    /// How it is counted.
    pub kind: ErrorKind,
    /// What exactly happened, such as `Connection refused (os error 111)`.
    pub text: String,
    /// How many requests.
    pub count: u64,
}

/// Count, sum and ends of some lengths of time, in nanoseconds: what is kept of a length whose distribution is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// All together.
    pub sum_ns: u64,
    /// The shortest; 0 when there is none.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Spread {
    /// The mean; 0 when there is none.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Counts the time between two instants; 0 when the clock ran backwards.
    pub fn add(&mut self, from_ns: i64, to_ns: i64) {
        let length_ns = to_ns.saturating_sub(from_ns).max(0) as u64;
        self.merge(&Spread { count: 1, sum_ns: length_ns, min_ns: length_ns, max_ns: length_ns });
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.count += other.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_keep_their_ends_and_merge_with_nothing() {
        let mut spread = Spread::default();
        assert_eq!(spread.mean_ns(), 0.0);
        for (from, to) in [(10, 40), (0, 10), (5, 3)] {
            spread.add(from, to);
        }
        spread.merge(&Spread::default());
        assert_eq!(spread, Spread { count: 3, sum_ns: 40, min_ns: 0, max_ns: 30 });
    }
}
