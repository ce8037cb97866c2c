//! Results of a load: seconds, and a sample of its requests.

use serde::{Deserialize, Serialize};

use super::{ErrorCounts, ErrorKind};
use crate::histogram::Histogram;

const SECOND_NS: i64 = 1_000_000_000;

/// Counts of one request of one scenario in one second. The second is shorter if a window or the load begins or ends
/// within it, so no row lies in two windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSecond {
    /// The scenario.
    pub scenario: String,
    /// The step: its name, with `FLOW/` before it when the scenario has several flows; empty when it has one step only.
    pub request: String,
    /// The second's first instant.
    pub start_ns: i64,
    /// Its length, 0 or more; 0 if there are so few requests, or all at one moment, that they give no rate.
    #[serde(default = "one_second")]
    pub length_ns: i64,
    /// Virtual users at its end: those that may send or, in an open model, those at work. Given in the row of the
    /// scenario's first step only; 0 in its others.
    pub vus: u32,
    /// Iterations of an open model that were due. Given for the first step only, as are the next two.
    pub due: u64,
    /// Of the iterations due, those that found every user busy and had to wait for one.
    pub late: u64,
    /// Of the iterations due, those that were given up before they began: too many waited, or the load was over.
    pub dropped: u64,
    /// Number of requests sent; repetitions of a request do not count again.
    pub sent: u64,
    /// Number of requests that were repeated: a kept connection broke before any byte of the response, or the server
    /// reported that it had not processed the request. Counted in the second in which they were sent again.
    #[serde(default)]
    pub repeated: u64,
    /// Number of requests without a response when the load was stopped that had waited for less than the drain time.
    /// They are neither successes nor errors.
    #[serde(default)]
    pub cut: u64,
    /// Responses that counted as a success.
    pub succeeded: u64,
    /// Requests that failed, by kind.
    pub errors: ErrorCounts,
    /// Bytes of the responses, heads included.
    pub bytes: u64,
    /// From intended send to the response's last byte, successes only.
    pub latency: Histogram,
    /// From actual send to the response's last byte, successes only.
    pub service: Histogram,
    /// From intended to actual send, every request: the generator's own delay.
    pub lateness: Histogram,
}

fn one_second() -> i64 {
    SECOND_NS
}

impl Default for LoadSecond {
    /// A second without requests.
    fn default() -> Self {
        Self {
            scenario: String::new(),
            request: String::new(),
            start_ns: 0,
            length_ns: SECOND_NS,
            vus: 0,
            due: 0,
            late: 0,
            dropped: 0,
            sent: 0,
            repeated: 0,
            cut: 0,
            succeeded: 0,
            errors: ErrorCounts::default(),
            bytes: 0,
            latency: Histogram::default(),
            service: Histogram::default(),
            lateness: Histogram::default(),
        }
    }
}

/// Adds the counts that a row has in common with [`LoadTotals`](crate::evidence::LoadTotals).
macro_rules! add_counts {
    ($sum:expr, $other:expr) => {
        $sum.due += $other.due;
        $sum.late += $other.late;
        $sum.dropped += $other.dropped;
        $sum.sent += $other.sent;
        $sum.repeated += $other.repeated;
        $sum.cut += $other.cut;
        $sum.succeeded += $other.succeeded;
        $sum.errors.add($other.errors);
        $sum.bytes += $other.bytes;
        $sum.latency.merge(&$other.latency);
        $sum.service.merge(&$other.service);
        $sum.lateness.merge(&$other.lateness);
    };
}
pub(crate) use add_counts;

impl LoadSecond {
    /// Its end, exclusive.
    pub fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.length_ns)
    }

    /// The instant that decides which window it belongs to.
    pub fn middle_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.length_ns / 2)
    }

    /// Number of requests that ended, successful or not.
    pub fn ended(&self) -> u64 {
        self.succeeded + self.errors.total()
    }

    /// Users, iterations and requests, each with the name of its column. Errors by kind are in [`LoadSecond::errors`].
    pub fn counts(&self) -> [(&'static str, u64); 8] {
        [
            ("vus", u64::from(self.vus)),
            ("due", self.due),
            ("late", self.late),
            ("dropped", self.dropped),
            ("sent", self.sent),
            ("repeated", self.repeated),
            ("cut", self.cut),
            ("succeeded", self.succeeded),
        ]
    }

    /// Adds the counts of another part of the same second.
    pub fn merge(&mut self, other: &LoadSecond) {
        self.length_ns = self.length_ns.max(other.length_ns);
        self.vus += other.vus;
        add_counts!(self, other);
    }
}

/// Results that the engine hands over about once a second while the load lasts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadBatch {
    /// Seconds that are over, each once per scenario.
    pub seconds: Vec<LoadSecond>,
    /// The sampled requests of those seconds.
    pub samples: Vec<Sample>,
}

/// One request in full. A bounded, tail-biased sample of all: the slowest of each second are kept with weight 1,
/// the others stand for `weight` requests each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The scenario.
    pub scenario: String,
    /// The step, as in [`LoadSecond::request`].
    pub request: String,
    /// The virtual user, from 0.
    pub vu: u32,
    /// The agent that sent it, where agents sent the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// When it should have been sent.
    pub intended_ns: i64,
    /// When it was.
    pub sent_ns: i64,
    /// When its response was complete, or it failed.
    pub done_ns: i64,
    /// The HTTP status; 0 without a response.
    pub status: u16,
    /// Why it failed, if it did.
    pub error: Option<ErrorKind>,
    /// Bytes of the response, head included.
    pub bytes: u64,
    /// The trace it carried, when that trace was sampled.
    pub trace_id: Option<[u8; 16]>,
    /// How many requests of its second this one stands for, 1 or more.
    pub weight: f64,
}
