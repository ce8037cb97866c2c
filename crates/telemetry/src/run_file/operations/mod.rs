//! What each operation of a trial did, and what the calls of its own code came to, over all spans of the trial.
//!
//! The decisions: all spans are read in one pass in the order they lie in the file, because looking up each trace by
//! its index reads the file at random and takes several times as long; of each span less than a hundred bytes are
//! kept, sorted into traces, and counted. A trial keeps no more spans than [`SPANS_MAX`], which bounds the memory.
//!
//! A call belongs to the nearest server span above it, of its own service. Which traces are shown as samples is decided
//! elsewhere, and nothing here depends on it.

mod ancestry;
mod smallest;
mod spans;
mod tally;

use narrows_model::evidence::TrialEvidence;
use narrows_model::operation::OperationEvidence;
use narrows_model::trace::SpanKind;
use rusqlite::Connection;

use self::ancestry::Ancestry;
use self::tally::Tally;
use super::schema::Schema;

/// Spans of one trial that are read: as many as a run file keeps of one. Of a file that holds more, made by another
/// program, the first ones are read.
const SPANS_MAX: usize = 2_000_000;
/// Spans of one trace that are looked at, earliest first; later ones count nowhere.
const TRACE_SPANS_MAX: usize = 10_000;

/// The operations of a trial by service and name. Of the trial's evidence only the trial and its windows are read.
pub(super) fn operations_of(
    connection: &Connection,
    schema: Schema,
    trial: &TrialEvidence,
) -> rusqlite::Result<Vec<OperationEvidence>> {
    if trial.counted_windows().next().is_none() {
        return Ok(Vec::new());
    }
    let mut spans = spans::read(connection, schema, trial.trial.id, SPANS_MAX)?;
    // No two spans of a trace have all of this in common: the sums are added up in the same order each time.
    spans.sort_unstable_by_key(|span| (span.trace, span.start_ns, span.span, span.kind as u8));
    let mut tally = Tally::new(connection, trial);
    let mut ancestry = Ancestry::default();
    for trace in spans.chunk_by(|one, next| one.trace == next.trace) {
        let trace = &trace[..trace.len().min(TRACE_SPANS_MAX)];
        ancestry.enter(trace);
        for span in trace {
            match span.kind {
                SpanKind::Server if trial.is_counted(span.start_ns) => tally.count_operation(span)?,
                SpanKind::Client => {
                    let server = ancestry.server_above(trace, span);
                    if let Some(server) = server.filter(|server| trial.is_counted(server.start_ns)) {
                        tally.count_call(server, span)?;
                    }
                }
                _ => {}
            }
        }
    }
    Ok(tally.into_operations())
}
