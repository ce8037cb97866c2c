//! Telemetry of a run: OTLP in, and the run file that keeps it all.
//!
//! Everything that arrives goes through one door, [`Store`], so that receivers and samplers do not know how a run is
//! kept and can be tested without a file.

pub mod exchange;
pub mod http;
mod logs;
pub mod normalise;
pub mod otlp;
mod ranges;
mod records;
pub mod run_file;
pub mod scrape;
pub mod secrets;
#[cfg(test)]
mod testing;
mod unicode;

pub use records::Records;

use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::Span;

use crate::otlp::convert::PackedSpans;

/// Where telemetry is kept. Calls never block for long: they queue, and the receipt resolves once the records are
/// committed, so that a sender gets "accepted" only for what survives a crash.
pub trait Store: Send + Sync + 'static {
    /// Keeps spans, in the trial that is under way.
    fn spans(&self, spans: Vec<Span>) -> Receipt;
    /// Keeps packed spans and others with them, in the trial that is under way. A store that has no better way keeps
    /// them as it keeps others.
    fn packed(&self, packed: PackedSpans, mut others: Vec<Span>) -> Receipt {
        match packed.unpack() {
            Ok(mut spans) => {
                spans.append(&mut others);
                self.spans(spans)
            }
            Err(error) => {
                let (tell, receipt) = tokio::sync::oneshot::channel();
                // The receipt's receiver is right here.
                let _ = tell.send(Err(StoreError::Broken(error.to_string())));
                receipt
            }
        }
    }
    /// Redacts a text as the store will. Call it before splitting a text: a secret that is cut in two would not be
    /// found.
    fn redact(&self, text: &mut String) {
        secrets::redact_text(text);
    }
    /// Keeps points of series, in the trial that is under way.
    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt;
    /// Keeps log lines, in the trial that is under way.
    fn logs(&self, lines: Vec<LogLine>) -> Receipt;
}

/// Resolves when the records are committed or refused. Dropping it does not undo anything.
pub type Receipt = tokio::sync::oneshot::Receiver<Result<KeptCounts, StoreError>>;

/// How many records of a call were kept, and how many were refused because a limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeptCounts {
    /// Committed; or, of a span, counted and stood for by others.
    pub kept: u64,
    /// Number of spans that were already stored, as far as is known immediately.
    pub repeated: u64,
    /// Not kept: the trial's ceiling is reached, or no trial is under way.
    pub over_limit: u64,
}

impl std::ops::Add for KeptCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            kept: self.kept + other.kept,
            repeated: self.repeated + other.repeated,
            over_limit: self.over_limit + other.over_limit,
        }
    }
}

/// Nanoseconds since the Unix epoch.
pub(crate) fn now_ns() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Why records were not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The queue is full: who can should try again later, for nobody else will.
    #[error("the run file's queue is full")]
    Busy,
    /// The run file is closed or could not be written.
    #[error("the run file cannot be written: {0}")]
    Broken(String),
}
