//! The evidence of a run in one file: all that its findings are made from, without the run file.
//!
//! One object of JSON, compressed with gzip: a [`RunEvidence`]. It holds few of the traces, so that it is small enough
//! to attach to a report of a wrong finding, and to keep as a case of the corpus. What is read may be a stranger's:
//! instants, counts and weights beyond what can be computed with are refused, as they are in run files.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::json::Stored;
use narrows_model::load::{ErrorKind, LoadProgram, LoadSecond};
use narrows_model::messages::MessageCount;

use super::out::{Error, ExportCounts};
use crate::ranges::{ADDEND_MAX, INSTANT_NS_MAX, WEIGHT_MAX};
use crate::run_file::TraceLimit;

/// The traces of each trial that such a file should hold.
pub const EVIDENCE_TRACES: TraceLimit = TraceLimit { traces: 60, spans: 3_000 };
/// Maximum size of such a file uncompressed, in bytes.
const BYTES_MAX: u64 = 256 << 20;
/// How a file that is compressed with gzip begins (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Why evidence cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The file cannot be read, or is damaged.
    #[error("cannot read the evidence")]
    Read(#[from] io::Error),
    /// It holds something else.
    #[error("it holds no evidence of a run")]
    Json(#[from] serde_json::Error),
    /// It is larger than `BYTES_MAX`.
    #[error("it holds more than {} MiB, expected less", BYTES_MAX >> 20)]
    TooLarge,
    /// A number is beyond what can be computed with.
    #[error("trial {trial} holds {what} out of range")]
    OutOfRange {
        /// The trial's label.
        trial: String,
        /// Subject.
        what: &'static str,
    },
}

/// Writes the evidence. Points that are no numbers, which JSON does not have, are left out.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_evidence(mut evidence: RunEvidence, out: &mut dyn Write) -> Result<ExportCounts, Error> {
    let mut written = ExportCounts::default();
    for trial in &mut evidence.trials {
        trial.series.iter_mut().for_each(|series| series.points.retain(|point| point.value.is_finite()));
        let points = trial.series.iter().map(|series| series.points.len()).sum::<usize>();
        let spans = trial.traces.iter().map(|trace| trace.spans.len()).sum::<usize>();
        written.records += (points + spans + trial.seconds.len()) as u64;
    }
    let mut compressed = GzEncoder::new(out, Compression::best());
    compressed.write_all(evidence.to_json().map_err(io::Error::from)?.as_bytes())?;
    compressed.finish()?;
    Ok(written)
}

/// Whether a file may be such evidence: it is compressed, which no run file is.
pub fn is_evidence(path: &Path) -> bool {
    let mut first = [0; 2];
    narrows_files::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == GZIP
}

/// Reads what [`write_evidence`] wrote.
///
/// # Errors
/// When the file cannot be read, holds something else, or holds numbers that cannot be computed with.
pub fn read_evidence(path: &Path) -> Result<RunEvidence, EvidenceError> {
    let mut json = String::new();
    let compressed = MultiGzDecoder::new(BufReader::new(narrows_files::open(path)?));
    compressed.take(BYTES_MAX + 1).read_to_string(&mut json)?;
    if json.len() as u64 > BYTES_MAX {
        return Err(EvidenceError::TooLarge);
    }
    let evidence = RunEvidence::from_json(&json)?;
    for trial in &evidence.trials {
        let out_of_range = |what| EvidenceError::OutOfRange { trial: trial.trial.label(), what };
        what_is_out_of_range(trial).map_or(Ok(()), |what| Err(out_of_range(what)))?;
    }
    Ok(evidence)
}

/// Part of a trial that cannot be computed with; `None` if all can.
fn what_is_out_of_range(trial: &TrialEvidence) -> Option<&'static str> {
    let is_instant = |ns: i64| (0..=INSTANT_NS_MAX).contains(&ns);
    let is_weight = |weight: f64| weight > 0.0 && weight <= WEIGHT_MAX;
    let spans = || trial.traces.iter().flat_map(|trace| &trace.spans);
    let operations = || trial.operations.iter();
    let reported = || trial.trial.load_program.iter().flat_map(LoadProgram::counts);
    let instants = [
        trial.windows.iter().all(|window| is_instant(window.start_ns) && is_instant(window.end_ns)),
        trial.windows.iter().all(|window| window.drained_ns.is_none_or(is_instant)),
        trial.seconds.iter().all(|second| is_instant(second.start_ns) && is_instant(second.length_ns)),
        trial.series.iter().flat_map(|series| &series.points).all(|point| is_instant(point.time_ns)),
        operations().flat_map(|one| &one.seconds).all(|second| is_instant(second.start_ns)),
        operations()
            .flat_map(|one| &one.calls)
            .flat_map(|call| &call.seconds)
            .all(|second| is_instant(second.start_ns)),
        spans().all(|span| is_instant(span.start_ns) && is_instant(span.end_ns)),
    ];
    let weights =
        spans().all(|span| is_weight(span.weight)) && trial.traces.iter().all(|trace| is_weight(trace.weight));
    match () {
        () if instants.contains(&false) => Some("an instant"),
        () if !weights => Some("the weight of a trace"),
        () if !trial.seconds.iter().all(can_be_added_up) || !reported().all(|count| count <= ADDEND_MAX) => {
            Some("a count of requests")
        }
        () if !trial.messages.counts.iter().all(is_count) => Some("a count of messages"),
        () if trial.traces.iter().any(|trace| trace.spans.is_empty()) => Some("an empty trace"),
        () => None,
    }
}

fn is_count(kind: &MessageCount) -> bool {
    kind.lines <= ADDEND_MAX && kind.calls <= ADDEND_MAX && (0.0..=ADDEND_MAX as f64).contains(&kind.stands_for)
}

fn can_be_added_up(second: &LoadSecond) -> bool {
    let counts = second.counts().map(|(_, count)| count);
    let errors = ErrorKind::ALL.map(|kind| second.errors.of(kind));
    counts.iter().chain(&errors).chain([&second.bytes]).all(|count| *count <= ADDEND_MAX)
}
