//! A run on disk: one SQLite file, from the first trial to the last conclusion.
//!
//! [`RunFile`] creates or resumes a file and ends it. [`Recorder`] is the handle for all writes; one thread behind it
//! owns the connection. [`Reader`] reads a file, while it is written and afterwards.
//!
//! The decisions: one writer and group commit, so that a receipt does not cost a separate commit; a write-ahead log
//! during the run, so that acknowledged data survives the process and others can read meanwhile; a plain single file at
//! the end. Tables are for writing, views are for people (`docs/reference/run-file.md`). A reader writes only the rows
//! that a killed process had left unwritten.
//!
//! An existing file is not trusted: it must declare exactly the tables and views that Narrows creates (`verify.rs`)
//! before anything in it is read, and reading is bounded (`bounds.rs`).
//!
//! During a load, spans are not unpacked: they wait in the file in packed form (`packed_requests.rs`), acknowledged, and become
//! rows when the trial ends.
//!
//! Data older than ten minutes is folded (`folding.rs`), so that a long run takes little more space than a short one.
//!
//! Everything is kept up to a trial's limits and only counted beyond them. Spans are thinned out by whole traces; the
//! remaining traces represent the deleted ones (`spans/`).

mod bounds;
mod calls;
mod counts;
mod each;
mod error;
mod evidence;
mod file;
mod folding;
mod intern;
mod messages;
mod open;
mod operations;
mod owner;
mod packed_requests;
mod query;
mod queue;
mod reader;
mod recorder;
mod redaction;
mod rows;
mod samples;
mod schema;
mod settle;
mod shared_ids;
mod spans;
#[cfg(test)]
mod tests;
mod trace_choice;
mod verify;
mod words;
mod writer;

pub use counts::{Count, Counts};
pub use each::{EXPORTED_VIEWS, SpanOrder};
pub use error::{Error, Result};
pub use evidence::TraceLimit;
pub use file::RunFile;
pub use query::{QueryError, QueryLimits};
pub use reader::Reader;
pub use recorder::Recorder;
pub(crate) use redaction::clean;

/// The version of run files that this program writes and reads: `PRAGMA user_version`.
pub const SCHEMA_VERSION: i64 = 6;

/// `PRAGMA application_id` of every run file: "NRRW".
pub const APPLICATION_ID: i64 = 0x4e52_5257;

/// How many records of each kind a trial may keep, and how many may wait. Past a ceiling records are counted as refused.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Spans of one trial.
    spans: u64,
    /// Bytes of the file. A trial has an equal share of what is left, beside those that are still to come; once half of
    /// it is taken, traces are thinned out.
    bytes: u64,
    /// Points of all series of one trial.
    points: u64,
    /// Series of one trial; points of further ones are refused.
    series: u64,
    /// Log lines of one trial.
    logs: u64,
    /// Sampled requests of one trial.
    samples: u64,
    /// Records that may wait to be written, all kinds together.
    queued: queue::Size,
    /// Spans that may wait in the file for their rows, and their bytes.
    waiting: packed_requests::Size,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            spans: 50_000_000,
            bytes: 8 << 30,
            points: 2_000_000,
            series: 10_000,
            logs: 100_000,
            samples: 1_000_000,
            queued: queue::Size { records: 65_536, bytes: 256 << 20 },
            waiting: packed_requests::Size { spans: 1_000_000, bytes: 256 << 20 },
        }
    }
}
