//! Thins out stored traces while the file nears its limit: a little after each commit, the earliest first.
//!
//! A pass goes through the traces of the trial in the order in which they began to arrive, gathers a portion of them,
//! judges it (`verdicts.rs`) and carries the verdicts out. It waits where traces are so young that they may still grow,
//! and takes up again once they are not. When all that is old enough was judged and the file is still too full, another
//! pass begins, with four times fewer traces to stay. So the file stays as rich as it can.
//!
//! Old enough is a trace whose last span ended 15 seconds before the newest span that arrived: SDKs send what ended within
//! 5 seconds. What comes later of a trace that went is counted, not kept (`dropped_traces.rs`); a trace that is not in the file and
//! began before the time through which there was judging is let in with the chance of that time, so that telemetry may
//! come in any order.
//!
//! Everything happens in transactions of at most [`STEP_SPANS_MAX`] spans read and deleted, and one trace more: a trace
//! goes with all its spans, its counts and the weight of what stands for it, or not at all. A process that is killed
//! leaves some traces judged and others not, each with an honest weight. Pages that become free are used again.

use std::collections::{HashMap, VecDeque};

use rusqlite::{Connection, OptionalExtension, params};

use super::Context;
use super::digest::{Digest, DigestBatch, Shapes, read};
use super::dropped_traces::DroppedTraces;
use super::tally::{CountDelta, Tally};
use super::thinning::ONE_IN_MAX;
use super::traces::Traces;
use super::verdicts::{StoredTrace, Verdict, judge};

/// How long ago a trace must have ended.
const SETTLED_NS: i64 = 15_000_000_000;
/// Spans that are read and deleted at a time, for each that was written since.
const SPANS_PER_WRITTEN: u64 = 3;
/// The fewest and the most spans that are read and deleted at a time.
const STEP_SPANS_MIN: u64 = 1_000;
pub(super) const STEP_SPANS_MAX: u64 = 20_000;
/// The spans of a portion: this share of those in the file, within bounds.
const PORTIONS: u64 = 8;
const PORTION_SPANS_MIN: u64 = 500;
const PORTION_SPANS_MAX: u64 = 80_000;

/// Progress of the passes over a trial.
#[derive(Debug)]
pub(super) struct Passes {
    trial: i64,
    /// Of what has no place of its own, 1 trace in so many stays.
    one_in: u32,
    /// Traces that began earlier were judged.
    before_ns: Option<i64>,
    /// The last trace that was looked at.
    through: i64,
    portion: Vec<Digest>,
    portion_spans: u64,
    judged: VecDeque<(Digest, Verdict)>,
    /// Spans of what was looked at in this pass and stays.
    spans_left: u64,
    newest_ns: i64,
    /// Spans that were written since the last step.
    written: u64,
    shapes: Shapes,
}

impl Passes {
    /// Takes a trial up.
    pub(super) fn load(connection: &Connection, trial: i64) -> rusqlite::Result<Self> {
        let sql = "SELECT spans_thinned_one_in, spans_thinned_before_ns FROM trials WHERE id = ?1";
        let found = connection.query_row(sql, [trial], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (one_in, before_ns): (u32, Option<i64>) = found.unwrap_or((1, None));
        Ok(Self {
            trial,
            one_in: one_in.clamp(1, ONE_IN_MAX).next_power_of_two(),
            before_ns,
            through: i64::MIN,
            portion: Vec::new(),
            portion_spans: 0,
            judged: VecDeque::new(),
            spans_left: 0,
            newest_ns: i64::MIN,
            written: 0,
            shapes: Shapes::default(),
        })
    }

    /// Takes note of a span that was written.
    pub(super) fn see(&mut self, end_ns: i64) {
        self.newest_ns = self.newest_ns.max(end_ns);
        self.written += 1;
    }

    /// 1 trace in so many of those stays that are not in the file and begin at this time.
    pub(super) fn one_in_at(&self, start_ns: i64) -> u32 {
        if self.before_ns.is_some_and(|before| start_ns < before) { self.one_in } else { 1 }
    }

    /// Reads, judges and deletes a little. For use within a transaction.
    pub(super) fn step(
        &mut self,
        context: &mut Context<'_>,
        tally: &mut Tally,
        traces: &mut Traces,
        gone: &mut DroppedTraces,
    ) -> rusqlite::Result<()> {
        let written = std::mem::take(&mut self.written);
        let mut budget = written.saturating_mul(SPANS_PER_WRITTEN).clamp(STEP_SPANS_MIN, STEP_SPANS_MAX);
        let mut has_judged = !self.judged.is_empty();
        while budget > 0 {
            if let Some((digest, verdict)) = self.judged.pop_front() {
                let cost = carry_out(context, tally, &mut self.shapes, digest, verdict)?;
                if verdict == Verdict::Goes {
                    traces.remove(&digest.trace);
                    gone.add(digest.hash);
                } else {
                    self.spans_left += u64::from(digest.spans);
                }
                budget = budget.saturating_sub(cost);
                continue;
            }
            let is_end = self.gather(context, &mut budget)?;
            has_judged |= !self.judged.is_empty();
            if is_end && self.judged.is_empty() {
                if !has_judged {
                    self.begin_pass(context.counts.spans.stored);
                }
                break;
            }
        }
        Ok(())
    }

    /// Gathers the next portion and judges it once it is complete. Says whether there is nothing more to read now.
    fn gather(&mut self, context: &Context<'_>, budget: &mut u64) -> rusqlite::Result<bool> {
        if self.one_in == 1 {
            self.one_in = 4;
        }
        let stored = context.counts.spans.stored;
        let wanted = (stored / PORTIONS).clamp(PORTION_SPANS_MIN, PORTION_SPANS_MAX);
        let settled_ns = self.newest_ns.saturating_sub(SETTLED_NS);
        if self.through == i64::MIN {
            self.through = before_first(context.connection, self.trial)?;
        }
        let found = read(context.connection, &mut self.shapes, self.trial, self.through, settled_ns, *budget)?;
        let is_end = found.is_end;
        self.take_in(found, budget);
        if self.portion_spans >= wanted || is_end && self.portion_spans * 4 >= stored {
            self.judge(context.connection)?;
        }
        Ok(is_end)
    }

    fn take_in(&mut self, found: DigestBatch, budget: &mut u64) {
        *budget = budget.saturating_sub(found.spans_read.max(1));
        self.through = self.through.max(found.through);
        self.spans_left += found.spans_passed_by;
        self.portion_spans += found.settled.iter().map(|digest| u64::from(digest.spans)).sum::<u64>();
        self.portion.extend(found.settled);
    }

    /// Begins anew with fewer to stay, unless most of what is stored is too young: what is old does not make up for it.
    fn begin_pass(&mut self, stored: u64) {
        let is_mostly_young = 2 * (self.spans_left + self.portion_spans) < stored;
        if is_mostly_young || stored == 0 || self.one_in >= ONE_IN_MAX {
            return;
        }
        self.one_in *= 4;
        self.through = i64::MIN;
        self.spans_left = 0;
        self.portion_spans = 0;
        self.portion.clear();
    }

    fn judge(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let portion = std::mem::take(&mut self.portion);
        self.portion_spans = 0;
        let traces: Vec<StoredTrace> = portion.iter().map(Digest::stored_trace).collect();
        let mut starts: Vec<i64> = portion.iter().map(|digest| digest.start_ns).collect();
        // The middle one: a clock that runs ahead must not make all that is to come look late.
        let middle = starts.len() / 2;
        let middle_ns = (middle < starts.len()).then(|| *starts.select_nth_unstable(middle).1);
        self.before_ns = self.before_ns.max(middle_ns);
        self.judged = portion.into_iter().zip(judge(&traces, self.one_in)).collect();
        let sql = "UPDATE trials SET spans_thinned_one_in = ?2, spans_thinned_before_ns = ?3 WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![self.trial, self.one_in, self.before_ns])?;
        Ok(())
    }
}

/// A number below those of a trial's traces and above most of those of trials before it, of which there may be millions.
fn before_first(connection: &Connection, trial: i64) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce((SELECT id FROM trace_rows NOT INDEXED WHERE trial = ?1 ORDER BY id LIMIT 1), \
               (SELECT max(id) FROM trace_rows), 0) - 1";
    connection.prepare_cached(sql)?.query_row([trial], |row| row.get(0))
}

/// Does what was judged, and says how many spans that cost.
fn carry_out(
    context: &mut Context<'_>,
    tally: &mut Tally,
    shapes: &mut Shapes,
    digest: Digest,
    verdict: Verdict,
) -> rusqlite::Result<u64> {
    let connection = context.connection;
    match verdict {
        Verdict::Stays => Ok(0),
        Verdict::StaysFor(weight) => {
            let sql = "UPDATE trace_rows SET weight = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![digest.id, weight])?;
            Ok(1)
        }
        Verdict::Goes => {
            let mut deleted = 0;
            for (shape, spans) in delete(connection, digest.id)? {
                deleted += spans;
                if let Some(shape) = shapes.get(connection, shape)? {
                    tally.count(connection, context.strings, shape.counted, CountDelta::removed(spans))?;
                }
            }
            context.counts.spans.stored = context.counts.spans.stored.saturating_sub(deleted);
            context.counts.thinned += deleted;
            Ok(deleted + 1)
        }
    }
}

/// Deletes a trace, and says how many spans of each shape it had.
fn delete(connection: &Connection, trace: i64) -> rusqlite::Result<HashMap<i64, u64>> {
    let mut spans = connection.prepare_cached("DELETE FROM span_rows WHERE trace = ?1 RETURNING shape")?;
    let mut deleted = HashMap::new();
    let mut rows = spans.query([trace])?;
    while let Some(row) = rows.next()? {
        *deleted.entry(row.get(0)?).or_default() += 1;
    }
    connection.prepare_cached("DELETE FROM trace_rows WHERE id = ?1")?.execute([trace])?;
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_file::counts::Counts;
    use crate::run_file::intern::Strings;
    use crate::run_file::schema;
    use crate::run_file::spans::Ceiling;

    #[test]
    fn traces_of_earlier_trials_are_not_gone_through_with_each_step() {
        let connection = Connection::open_in_memory().unwrap();
        schema::create(&connection).unwrap();
        let rows = "PRAGMA foreign_keys = OFF; WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 300) \
                    INSERT INTO trace_rows (trial, trace_id) SELECT 1 + (n > 200), randomblob(16) FROM n";
        connection.execute_batch(rows).unwrap();
        let ceiling = Ceiling { spans: u64::MAX, bytes: u64::MAX };
        let (mut strings, mut counts) = (Strings::default(), Counts::default());
        let mut context = Context { connection: &connection, strings: &mut strings, counts: &mut counts, ceiling };
        for (trial, first) in [(1, 1), (2, 201), (3, 300)] {
            let mut passes = Passes::load(&connection, trial).unwrap();
            let mut tally = Tally::load(&connection, trial).unwrap();
            passes.step(&mut context, &mut tally, &mut Traces::default(), &mut DroppedTraces::default()).unwrap();
            assert_eq!((passes.through, passes.one_in), (first - 1, 4), "nothing to thin out");
        }
    }
}
