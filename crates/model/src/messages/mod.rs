//! How often services logged each kind of message, for which calls, and in which order services log within a trace.

mod tally;

use serde::{Deserialize, Serialize};

pub use self::tally::{LoggedLine, MessageTally, TracedCall};

/// Equal parts of the counted time, by which it is known whether messages came in a burst.
pub const PARTS: usize = 12;

/// The messages of a trial's counted windows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MessageEvidence {
    /// Kinds of messages by service, level, text and operation.
    pub counts: Vec<MessageCount>,
    /// Number of traces in which each service logs, by service.
    pub traces: Vec<(String, u64)>,
    /// Pairs of services that log within the same traces, by name.
    pub pairs: Vec<LoggingPair>,
    /// Lines of the trial that are not in the file because there were too many.
    pub lines_refused: u64,
}

/// How often a service logged one kind of message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageCount {
    /// The service.
    pub service: String,
    /// Operation of the service during which the lines were written; `None` if no span of the service says so.
    pub operation: Option<String>,
    /// The message with its variable parts masked, or [`MessageCount::OTHERS`].
    pub template: String,
    /// Whether the lines report an error.
    pub is_error: bool,
    /// Lines.
    pub lines: u64,
    /// Calls of the operation that wrote at least one of these lines, of those in the file. Without an operation: traces
    /// with such a line; 0 if the lines name no trace.
    pub calls: u64,
    /// Number of calls that these stand for.
    pub stands_for: f64,
    /// The calls in each part of the counted time, or lines if `calls` is 0.
    pub by_part: [u32; PARTS],
}

impl MessageCount {
    /// The template that counts all kinds beyond the limit of a service.
    pub const OTHERS: &str = "(other messages)";
    /// The template of records without a text.
    pub const EMPTY: &str = "(no text)";
}

/// Two services that log within the same traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggingPair {
    /// One service.
    pub one: String,
    /// The other.
    pub other: String,
    /// Traces in which both log.
    pub traces: u64,
    /// Traces in which all lines of `other` lie between two lines of `one`.
    pub around: u64,
    /// Traces in which all lines of `one` lie between two lines of `other`.
    pub within: u64,
    /// Traces in which the first line of `one` comes before the first of `other`.
    pub earlier: u64,
    /// Traces in which both log an error, and errors without a trace that both log within a tenth of a second.
    pub failed: u64,
    /// Of these, those in which the error of `one` comes before that of `other`.
    pub failed_earlier: u64,
}
