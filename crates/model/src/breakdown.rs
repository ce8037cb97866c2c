//! Where the time of an operation's requests goes.

use serde::{Deserialize, Serialize};

/// Spending of an interval of a request's critical path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "name")]
pub enum TimeCategory {
    /// In the operation's own service, outside all calls; what its threads did meanwhile.
    Own(OwnTime),
    /// Waiting for a connection or a place in a pool.
    Pool,
    /// Waiting to call again after a refusal or a failure; the name of what refused.
    BackOff(String),
    /// Another service or a database: its name.
    Dependency(String),
    /// Time that the trace does not explain: gaps of spans that never arrived, clocks that disagree.
    Unknown,
}

/// Activity of a service in its own time, by its threads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OwnTime {
    /// It uses a processor.
    OnCpu,
    /// It is ready to run and waits for a processor, or is throttled.
    WaitingForCpu,
    /// It waits for a disk.
    Disk,
    /// It sleeps for a time.
    Sleep,
    /// It waits for a peer in a call that no span shows: a service of the run, else an address.
    Network(String),
    /// It waits for a free connection to this peer: all that the service keeps are in use.
    Connection(String),
    /// It waits for another thread, as for a lock.
    Lock,
    /// No thread is seen with it: asynchronous timers, event loops, queues.
    Unseen,
    /// Threads were not sampled.
    NotSampled,
}

/// Requests that are in a service's own time and do the same there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnPart {
    /// Their activity.
    pub what: OwnTime,
    /// How many at any moment, a mean.
    pub requests: f64,
}

/// Activity of the threads of a service under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceThreads {
    /// The service.
    pub service: String,
    /// Requests in its own time at any moment, a mean: rate × own time (Little's law). Of a service without spans, the
    /// calls to it that are under way. `None` if neither is known.
    pub requests: Option<f64>,
    /// Those requests by what they do, in the order of [`OwnTime`]; empty when their number is not known.
    pub own: Vec<OwnPart>,
    /// All its threads.
    pub threads: ThreadsBy,
}

/// Mean numbers of threads, by what they do. Idle ones wait for locks or events too.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ThreadsBy {
    /// On a processor: the cores in use.
    pub on_cpu: f64,
    /// Ready to run, waiting for a processor or throttled.
    pub waiting_for_cpu: f64,
    /// Waiting for a lock, or for work in a pool.
    pub lock: f64,
    /// Waiting for a disk.
    pub disk: f64,
    /// Sleeping for a time.
    pub sleep: f64,
    /// Waiting for a peer.
    pub network: f64,
    /// Waiting for events or requests, or something else.
    pub idle: f64,
}

/// One category's part of an operation's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimePart {
    /// Spending.
    pub category: TimeCategory,
    /// Mean per request, nanoseconds.
    pub mean_ns: f64,
    /// Of the mean latency, 0 to 1. The parts of an operation add up to 1.
    pub share: f64,
}

/// The critical paths of an operation's requests, added up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// The service that responds.
    pub service: String,
    /// The operation, such as `GET /orders`.
    pub operation: String,
    /// Requests it was read from, each as many times as it stands for.
    pub requests: f64,
    /// Mean latency of those requests, nanoseconds.
    pub mean_ns: f64,
    /// Most time first.
    pub parts: Vec<TimePart>,
}
