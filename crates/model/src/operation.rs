//! Figures of the operations of a trial's services, counted over all their spans, not over a sample of traces.
//!
//! An *operation* is a server span's service and name. The calls counted under it are the client spans whose nearest
//! server span above is one of its spans: the calls that its own code made. So `attempts ÷ completed` is a join over
//! traces, never a ratio of two totals that have nothing to do with each other.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// One operation over the counted windows of a trial. Counts are weighted with the spans' sampling weights.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OperationEvidence {
    /// The service that responds.
    pub service: String,
    /// The name of its server spans, such as `GET /orders/{id}`.
    pub name: String,
    /// Spans that did not fail; see [`SpanKind::has_failed`](crate::trace::SpanKind::has_failed).
    pub completed: f64,
    /// All others.
    pub failed: f64,
    /// Durations of the completed ones.
    pub duration: Histogram,
    /// The same, second by second in order of time, seconds without any left out.
    pub seconds: Vec<OperationSecond>,
    /// The calls that completed and failed ones made, by target and name, most attempts first.
    pub calls: Vec<CallEvidence>,
    /// Number of spans in its traces that are skipped because a trace has too many. Their calls are not counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spans_left_out: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Figures of one second of an operation, by the start of its spans.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct OperationSecond {
    /// The second's first instant.
    pub start_ns: i64,
    /// Spans that completed.
    pub completed: f64,
    /// Their durations together, nanoseconds.
    pub duration_sum_ns: f64,
}

/// The calls of one kind under one operation. Every attempt counts, repeated ones too.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallEvidence {
    /// Callee: the database's system, else the server's address and port, else empty.
    pub target: String,
    /// The name of the client spans.
    pub name: String,
    /// Whether the target is a database.
    pub is_database: bool,
    /// Attempts that ended well.
    pub succeeded: f64,
    /// Attempts that were refused because the caller sends too much: status 429.
    pub throttled: f64,
    /// Attempts that failed in any other way.
    pub failed: f64,
    /// Request units charged for all of them together; `None` if no span records a charge.
    pub charge: Option<f64>,
    /// The same, second by second in order of time, seconds without any left out.
    pub seconds: Vec<CallSecond>,
}

impl CallEvidence {
    /// All attempts.
    pub fn attempts(&self) -> f64 {
        self.succeeded + self.throttled + self.failed
    }
}

/// Figures of one second of calls, by the end of their spans.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CallSecond {
    /// The second's first instant.
    pub start_ns: i64,
    /// See [`CallEvidence::succeeded`].
    pub succeeded: f64,
    /// See [`CallEvidence::throttled`].
    pub throttled: f64,
    /// See [`CallEvidence::failed`].
    pub failed: f64,
    /// Request units charged.
    pub charge: f64,
}

/// One operation of one variant in a table; medians over repetitions, counts added up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OperationSummary {
    /// The service that responds.
    pub service: String,
    /// The name of its server spans.
    pub name: String,
    /// Completed.
    pub completed: f64,
    /// Failed.
    pub failed: f64,
    /// Mean duration of the completed, nanoseconds.
    pub mean_ns: f64,
    /// Median, nanoseconds.
    pub p50_ns: f64,
    /// 95 %, nanoseconds.
    pub p95_ns: f64,
    /// 99 %, nanoseconds.
    pub p99_ns: f64,
    /// The calls its own code made.
    pub calls: Vec<CallSummary>,
}

impl OperationSummary {
    /// A duration of the operation; `None` if no call of it completed.
    pub fn if_completed(&self, duration_ns: f64) -> Option<f64> {
        (self.completed > 0.0).then_some(duration_ns)
    }
}

/// The calls of one kind under one operation in a table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallSummary {
    /// See [`CallEvidence::target`].
    pub target: String,
    /// See [`CallEvidence::name`].
    pub name: String,
    /// See [`CallEvidence::is_database`].
    pub is_database: bool,
    /// Successful attempts ÷ completed operations.
    pub succeeded_per_operation: f64,
    /// All attempts ÷ completed operations.
    pub attempts_per_operation: f64,
    /// Successful attempts.
    pub succeeded: f64,
    /// Throttled attempts.
    pub throttled: f64,
    /// Attempts that failed otherwise.
    pub failed: f64,
    /// Request units ÷ completed operations; `None` if no span records a charge.
    pub charge_per_operation: Option<f64>,
}
