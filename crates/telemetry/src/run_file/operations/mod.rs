//! Figures of each operation of a trial and of the calls of its own code, over all spans of the trial.
//!
//! The decisions: all spans are read in one pass in the order they lie in the file, which is that of their traces, and
//! counted trace by trace, so that no more than one trace is in memory. Of each span about a hundred bytes are looked at;
//! what its shape says is read once.
//!
//! A call belongs to the nearest server span above it, of its own service, and counts once, however many libraries
//! report it. Which traces are shown as samples is decided elsewhere, and nothing here depends on it.

mod ancestry;
mod bounded_map;
mod repeated_spans;
mod spans;
mod tally;

use narrows_model::evidence::TrialEvidence;
use narrows_model::messages::{MessageTally, TracedCall};
use narrows_model::operation::OperationEvidence;
use narrows_model::trace::SpanKind;

use self::ancestry::Ancestry;
use self::repeated_spans::Calls;
use self::spans::SpanRow;
pub(super) use self::spans::TraceSummary;
use self::tally::Tally;
use super::bounds::BoundedConnection;

/// Maximum number of spans of one trace that are examined, earliest first. Later ones are only counted.
const TRACE_SPANS_MAX: usize = 100_000;

/// The operations of a trial by service and name. Of the trial's evidence only the trial and its windows are read. Lines
/// of logs are assigned to their calls on the way, and `see` is called with each trace.
pub(super) fn operations_of(
    connection: &BoundedConnection,
    trial: &TrialEvidence,
    lines: &mut MessageTally,
    see: impl FnMut(&TraceSummary),
) -> rusqlite::Result<Vec<OperationEvidence>> {
    operations_within(connection, trial, lines, TRACE_SPANS_MAX, see)
}

/// The same, with at most this many spans of each trace.
pub(super) fn operations_within(
    connection: &BoundedConnection,
    trial: &TrialEvidence,
    lines: &mut MessageTally,
    trace_spans_max: usize,
    mut see: impl FnMut(&TraceSummary),
) -> rusqlite::Result<Vec<OperationEvidence>> {
    if trial.counted_windows().next().is_none() {
        return Ok(Vec::new());
    }
    let mut tally = Tally::new(connection, trial);
    let (mut ancestry, mut calls) = (Ancestry::default(), Calls::default());
    spans::each_trace(connection, trial.trial.id, trace_spans_max, |summary, trace, left_out| {
        see(summary);
        ancestry.enter(trace);
        calls.enter(trace, &ancestry);
        lines.add_calls(u128::from_be_bytes(summary.id), || traced_calls(trial, trace));
        if left_out > 0 {
            tally.leave_out(trace, left_out)?;
        }
        for (at, span) in trace.iter().enumerate() {
            match span.kind {
                SpanKind::Server if trial.is_counted(span.start_ns) => tally.count_operation(span)?,
                SpanKind::Client if calls.counts(trace, at) => {
                    let server = ancestry.server_above(trace, span);
                    if let Some(server) = server.filter(|server| trial.is_counted(server.start_ns)) {
                        tally.count_call(server, &SpanRow { target: ancestry.target(trace, span), ..*span })?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    })?;
    Ok(tally.into_operations())
}

/// The calls of a trace that count as operations.
fn traced_calls(trial: &TrialEvidence, trace: &[SpanRow]) -> Vec<TracedCall> {
    let counted = trace.iter().filter(|span| span.kind == SpanKind::Server && trial.is_counted(span.start_ns));
    let call = |span: &SpanRow| TracedCall {
        service: span.service,
        operation: span.name,
        start_ns: span.start_ns,
        end_ns: span.end_ns,
        weight: span.weight,
    };
    counted.map(call).collect()
}
