//! What load to send (a plan) and what came of it (per-second rows and samples).
//!
//! The plan is what the lab hands to the load engine after it has bound `${…}`; `{{…}}` is still open in it, as
//! [`Segment::Field`], and is bound once per request.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Everything the load engine needs for one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPlan {
    /// Where to connect, one or more; virtual user `i` uses `targets[i % targets.len()]`.
    pub targets: Vec<SocketAddr>,
    /// The addresses to connect from; virtual user `i` uses `client_addresses[i % len]`. Empty: the kernel chooses.
    pub client_addresses: Vec<IpAddr>,
    /// What is spoken.
    pub protocol: Protocol,
    /// How the connection is encrypted; none for plain text.
    pub tls: Option<Tls>,
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

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by ALPN with TLS, by prior knowledge (h2c) without.
    Http2,
}

/// How connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The name asked for and verified: a DNS name or an address.
    pub server_name: String,
    /// Which certificates are trusted.
    pub trust: Trust,
}

/// Which certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those of the system's certificate authorities.
    System,
    /// Those of the authorities in these PEM bytes.
    Authorities(Vec<u8>),
    /// Any: nothing is verified.
    Anything,
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

/// A population of virtual users that draw from the same flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The scenario's name in the experiment file.
    pub name: String,
    /// How many users, when.
    pub model: LoadModel,
    /// How long the first load level is held before anything counts.
    pub warmup: Duration,
    /// What iterations do, one or more; each iteration draws one by weight.
    pub flows: Vec<Flow>,
    /// What becomes of the cookies that answers set.
    pub cookies: Cookies,
    /// The pause between a user's answer and its next request. Of no effect between the iterations of an arrival-rate
    /// model.
    pub think_time: Duration,
    /// The least time between the beginnings of two iterations of one user; none for no limit.
    pub pace: Option<Duration>,
}

/// The requests of an iteration, one after the other on one user's connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Its name; empty when the scenario has one flow only.
    pub name: String,
    /// How often it is drawn, against the weights of the scenario's other flows; above 0.
    pub weight: f64,
    /// Its steps in order, one or more. An iteration ends early with a step that fails.
    pub steps: Vec<Step>,
}

/// A request with what is expected of its answer and taken from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its name, unlike any other of the scenario's; empty when the scenario has one step only.
    pub name: String,
    /// What is sent.
    pub request: RequestTemplate,
    /// What the answer must be like to count as a success. Without any check, its status must be below 400.
    pub checks: Vec<Check>,
    /// What is kept of the answer for later steps of the iteration. What cannot be found fails the step.
    pub extract: Vec<Extract>,
    /// The pause after it, in place of the scenario's.
    pub think_time: Option<Duration>,
    /// How many redirects are followed at most, within the same target; 0 follows none. The whole chain is one
    /// request.
    pub redirects_max: u8,
}

impl Step {
    /// A step that only sends a request.
    pub fn new(request: RequestTemplate) -> Self {
        Self {
            name: String::new(),
            request,
            checks: Vec::new(),
            extract: Vec::new(),
            think_time: None,
            redirects_max: 0,
        }
    }
}

impl Flow {
    /// The only flow of a scenario that sends one request again and again.
    pub fn single(request: RequestTemplate) -> Self {
        Self { name: String::new(), weight: 1.0, steps: vec![Step::new(request)] }
    }
}

/// What becomes of the cookies that answers set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cookies {
    /// They are ignored.
    #[default]
    Ignored,
    /// They are sent back by later steps of the iteration.
    PerIteration,
    /// They are sent back as long as the user lives.
    PerUser,
}

/// What an answer must be like.
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// Its status is one of these ranges, both ends included.
    Status(Vec<(u16, u16)>),
    /// Its body holds this text.
    BodyContains(String),
    /// It has this header, with this value unless there is none to compare; names without regard to case.
    Header {
        /// The header's name.
        name: String,
        /// The whole value.
        value: Option<String>,
    },
    /// Its body is JSON and holds this value at this place.
    Json {
        /// An RFC 6901 JSON pointer.
        pointer: String,
        /// The value; none for any.
        value: Option<serde_json::Value>,
    },
}

/// What is kept of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extract {
    /// The variable it becomes: an index that [`Segment::Variable`] names.
    pub variable: usize,
    /// The variable's name, for people.
    pub name: String,
    /// Where it is found.
    pub from: Place,
}

/// Where in an answer a value is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a JSON body, by an RFC 6901 JSON pointer. Texts as they are, numbers and the rest as JSON.
    Json(String),
    /// In the first header of this name.
    Header(String),
    /// In the body, by a regular expression's first group, or all of its match when it has none.
    Regex(String),
}

/// How many virtual users, when. k6's words.
#[derive(Debug, Clone, PartialEq)]
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
    /// An exact number of iterations for each of a fixed number of users.
    PerVuIterations {
        /// Users, at least 1.
        vus: u32,
        /// Iterations of each user.
        iterations: u64,
        /// When to stop even if iterations are left.
        max_duration: Option<Duration>,
    },
    /// Iterations that begin at a fixed rate, however many are under way: an open model.
    ConstantArrivalRate {
        /// Iterations to begin each second, above 0.
        rate: f64,
        /// For how long.
        duration: Duration,
        /// The most users (and so connections) at a time. An arrival that finds all busy waits for one and counts as
        /// late.
        vus_max: u32,
        /// How arrivals are spaced.
        arrivals: Arrivals,
    },
    /// Iterations that begin at a rate that follows stages: an open model.
    RampingArrivalRate {
        /// The rate at the beginning, per second.
        start_rate: f64,
        /// The stages, in order.
        stages: Vec<RateStage>,
        /// See [`LoadModel::ConstantArrivalRate`].
        vus_max: u32,
        /// How arrivals are spaced.
        arrivals: Arrivals,
    },
    /// An exact number of iterations shared by a fixed number of users.
    SharedIterations {
        /// Users, at least 1.
        vus: u32,
        /// Iterations in total.
        iterations: u64,
        /// When to stop even if iterations are left.
        max_duration: Option<Duration>,
    },
}

/// How the arrivals of an open model are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Evenly.
    #[default]
    Uniform,
    /// At random, as those of many independent clients: a Poisson process.
    Poisson,
}

/// A part of a `ramping-arrival-rate` load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateStage {
    /// How long it takes.
    pub duration: Duration,
    /// Arrivals per second at its end.
    pub target: f64,
    /// How the rate gets there.
    pub shape: StageShape,
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
    /// What an earlier step of the iteration extracted; empty before.
    Variable(usize),
}

impl Template {
    /// A template without places.
    pub fn text(text: impl Into<String>) -> Self {
        Self { segments: vec![Segment::Text(text.into())] }
    }
}

/// Where the values of `{{name}}` come from. One row is drawn per source and iteration, so that two columns of one
/// source belong together, in all steps.
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
    /// The next in order over all users, each once: when none is left, the scenarios that draw from it end.
    Once,
}

/// How requests are traced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tracing {
    /// The share of requests whose `traceparent` says "sampled", 0 to 1.
    pub sample: f64,
    /// The first four bytes of every trace id of this trial, by which its traces are told from others.
    pub tag: [u8; 4],
}

/// What one second of one request of one scenario came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadSecond {
    /// The scenario.
    pub scenario: String,
    /// The step: its name, with `FLOW/` before it when the scenario has several flows; empty when it has one step only.
    pub request: String,
    /// The second's first instant.
    pub start_ns: i64,
    /// Virtual users at its end: those that may send or, in an open model, those at work. Said by the row of the
    /// scenario's first step only; 0 in its others.
    pub vus: u32,
    /// Iterations of an open model that were due. Said by the first step only, as are the next two.
    pub due: u64,
    /// Of the iterations due, those that found every user busy and had to wait for one.
    pub late: u64,
    /// Of the iterations due, those that were given up before they began: too many waited, or the load was over.
    pub dropped: u64,
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
    /// A whole answer with a status of 400 or above, or one that the checks do not allow.
    Status,
    /// A whole answer that failed another check, or held no value that a later step needs.
    Check,
}

impl ErrorKind {
    /// All kinds, in the order they are printed.
    pub const ALL: [ErrorKind; 6] = [
        ErrorKind::Connect,
        ErrorKind::Reset,
        ErrorKind::Timeout,
        ErrorKind::Protocol,
        ErrorKind::Status,
        ErrorKind::Check,
    ];

    /// The word used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Connect => "connect",
            ErrorKind::Reset => "reset",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Status => "status",
            ErrorKind::Check => "check",
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
    /// See [`ErrorKind::Check`].
    pub check: u64,
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
            ErrorKind::Check => &mut self.check,
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
    /// The step, as in [`LoadSecond::request`].
    pub request: String,
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
