//! Adds up operations and their calls.
//!
//! Beyond the limits, the operations and kinds of calls whose names sort last are left out, whole. So many of them come
//! from names with ids in them, of which none says more than another.

use std::collections::BTreeMap;
use std::ops::Range;

use narrows_model::evidence::TrialEvidence;
use narrows_model::histogram::Histogram;
use narrows_model::operation::{CallEvidence, CallSecond, OperationEvidence, OperationSecond};
use narrows_model::trace::SpanKind;

use super::super::bounds::BoundedConnection;
use super::bounded_map::Smallest;
use super::spans::{Outcome, SpanRow, Target};

/// Operations of one trial.
pub(super) const OPERATIONS_MAX: usize = 500;
/// Kinds of calls of one operation.
pub(super) const CALLS_MAX: usize = 50;

const SECOND_NS: i64 = 1_000_000_000;

/// Service and name of an operation, target and name of a call: ids while counting, texts when shown.
type OperationKey = (u32, u32);
type CallKey = (Target, u32);
type Names = (String, String);

/// Counts so far.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    texts: Texts<'a>,
    operations: Smallest<OperationKey, Names, Operation>,
    /// From the first to the last instant of the trial. Seconds outside are no seconds of the trial: the clock that
    /// says so is wrong.
    extent: Range<i64>,
}

#[derive(Debug)]
struct Operation {
    completed: f64,
    failed: f64,
    duration: Histogram,
    seconds: BTreeMap<i64, OperationSecond>,
    calls: Smallest<CallKey, Names, Call>,
    spans_left_out: u64,
}

impl Default for Operation {
    fn default() -> Self {
        let calls = Smallest::new(CALLS_MAX);
        let (duration, seconds) = (Histogram::new(), BTreeMap::new());
        Self { completed: 0.0, failed: 0.0, duration, seconds, calls, spans_left_out: 0 }
    }
}

#[derive(Debug, Default)]
struct Call {
    sums: CallSecond,
    has_charge: bool,
    seconds: BTreeMap<i64, CallSecond>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(connection: &'a BoundedConnection, trial: &TrialEvidence) -> Self {
        Self { texts: Texts(connection), operations: Smallest::new(OPERATIONS_MAX), extent: extent_of(trial) }
    }

    /// Counts a server span.
    pub(super) fn count_operation(&mut self, span: &SpanRow) -> rusqlite::Result<()> {
        let second = self.second_of(span.start_ns);
        if let Some(operation) = self.operation_of(span)? {
            operation.count(span, second);
        }
        Ok(())
    }

    /// Records, for every operation of a trace, that this many of its spans were skipped.
    pub(super) fn leave_out(&mut self, trace: &[SpanRow], spans: u64) -> rusqlite::Result<()> {
        let mut noted: Vec<OperationKey> = Vec::new();
        for server in trace.iter().filter(|span| span.kind == SpanKind::Server) {
            let key = (server.service, server.name);
            if !noted.contains(&key) && noted.len() < OPERATIONS_MAX {
                noted.push(key);
                if let Some(operation) = self.operation_of(server)? {
                    operation.spans_left_out = operation.spans_left_out.saturating_add(spans);
                }
            }
        }
        Ok(())
    }

    /// Counts a client span under the server span whose code made the call.
    pub(super) fn count_call(&mut self, server: &SpanRow, span: &SpanRow) -> rusqlite::Result<()> {
        let (second, texts) = (self.second_of(span.end_ns), self.texts);
        let Some(operation) = self.operation_of(server)? else { return Ok(()) };
        let names = || Ok::<_, rusqlite::Error>((texts.target(span.target)?, texts.get(span.name)?));
        if let Some(call) = operation.calls.entry((span.target, span.name), names)? {
            call.count(span, second);
        }
        Ok(())
    }

    fn operation_of(&mut self, server: &SpanRow) -> rusqlite::Result<Option<&mut Operation>> {
        let texts = self.texts;
        let names = || Ok((texts.get(server.service)?, texts.get(server.name)?));
        self.operations.entry((server.service, server.name), names)
    }

    /// The first instant of the second that an instant lies in; none outside the trial.
    fn second_of(&self, instant_ns: i64) -> Option<i64> {
        self.extent.contains(&instant_ns).then(|| floor_to_second(instant_ns))
    }

    /// The operations by service and name.
    pub(super) fn into_operations(self) -> Vec<OperationEvidence> {
        self.operations.into_entries().map(|(_, names, operation)| operation.into_evidence(names)).collect()
    }
}

impl Operation {
    fn count(&mut self, span: &SpanRow, second: Option<i64>) {
        if span.outcome != Outcome::Succeeded {
            self.failed += span.weight;
            return;
        }
        let duration_ns = span.end_ns.saturating_sub(span.start_ns).max(0);
        self.completed += span.weight;
        self.duration.record_n(duration_ns.unsigned_abs(), (span.weight.round() as u64).max(1));
        if let Some(start_ns) = second {
            let second = self.seconds.entry(start_ns).or_insert(OperationSecond { start_ns, ..Default::default() });
            second.completed += span.weight;
            second.duration_sum_ns += span.weight * duration_ns as f64;
        }
    }

    fn into_evidence(self, (service, name): Names) -> OperationEvidence {
        let calls = self.calls.into_entries().map(|((target, _), names, call)| call.into_evidence(target, names));
        let mut calls: Vec<CallEvidence> = calls.collect();
        calls.sort_by(|one, other| other.attempts().total_cmp(&one.attempts()));
        OperationEvidence {
            service,
            name,
            completed: self.completed,
            failed: self.failed,
            duration: self.duration,
            seconds: self.seconds.into_values().collect(),
            calls,
            spans_left_out: self.spans_left_out,
        }
    }
}

impl Call {
    fn count(&mut self, span: &SpanRow, second: Option<i64>) {
        self.has_charge |= !span.charge.is_nan();
        add(&mut self.sums, span);
        if let Some(start_ns) = second {
            add(self.seconds.entry(start_ns).or_insert(CallSecond { start_ns, ..Default::default() }), span);
        }
    }

    fn into_evidence(self, target: Target, (target_text, name): Names) -> CallEvidence {
        CallEvidence {
            target: target_text,
            name,
            is_database: matches!(target, Target::System(_)),
            succeeded: self.sums.succeeded,
            throttled: self.sums.throttled,
            failed: self.sums.failed,
            charge: self.has_charge.then_some(self.sums.charge),
            seconds: self.seconds.into_values().collect(),
        }
    }
}

fn add(sums: &mut CallSecond, span: &SpanRow) {
    let attempts = match span.outcome {
        Outcome::Succeeded => &mut sums.succeeded,
        Outcome::Throttled => &mut sums.throttled,
        Outcome::Failed => &mut sums.failed,
    };
    *attempts += span.weight;
    if !span.charge.is_nan() {
        sums.charge += span.weight * span.charge;
    }
}

/// From the start of the trial or its first window to the end of the trial or its last window, whichever is further.
fn extent_of(trial: &TrialEvidence) -> Range<i64> {
    let starts = trial.windows.iter().map(|window| window.start_ns).chain(trial.trial.started_ns);
    let ends = trial.windows.iter().map(|window| window.end_ns).chain(trial.trial.ended_ns);
    starts.min().unwrap_or(0)..ends.max().unwrap_or(0)
}

fn floor_to_second(instant_ns: i64) -> i64 {
    instant_ns.saturating_sub(instant_ns.rem_euclid(SECOND_NS))
}

/// The `strings` table.
#[derive(Debug, Clone, Copy)]
struct Texts<'a>(&'a BoundedConnection);

impl Texts<'_> {
    fn get(self, id: u32) -> rusqlite::Result<String> {
        let mut find = self.0.prepare_cached("SELECT text FROM strings WHERE id = ?1")?;
        let text: String = find.query_row([id], |row| row.get(0))?;
        self.0.collect(text.len())?;
        Ok(text)
    }

    fn target(self, target: Target) -> rusqlite::Result<String> {
        match target {
            Target::Unknown => Ok(String::new()),
            Target::System(system) => self.get(system),
            Target::Address(address, None) => self.get(address),
            Target::Address(address, Some(port)) => Ok(format!("{}:{port}", self.get(address)?)),
        }
    }
}
