//! Writes spans so that a million of them take little room and little time.
//!
//! A span is three things: its trace, a number instead of sixteen bytes ([`traces`]); its shape, everything it has in
//! common with others ([`shape`]); and its own row, with what is left. How attributes are divided between shape and row
//! is learned ([`layout`]), and plain SQLite puts them together again ([`template`]). Nothing here needs a look-up in the
//! file but for what a bounded cache has forgotten.
//!
//! When half of a trial's share of the file is taken, stored traces are thinned out, slow and failed ones last
//! ([`passes`]); near its end not every trace that begins is kept ([`thinning`]). Every span is counted ([`tally`]).
//! Otherwise nothing is read here.

mod digest;
mod dropped_traces;
pub(super) mod key_hash;
mod layout;
mod passes;
mod request_name;
mod row;
mod shape;
mod slot;
mod tally;
mod template;
mod thinning;
mod traces;
mod verdicts;

use narrows_model::trace::Span;
use rusqlite::{Connection, params};

use self::dropped_traces::DroppedTraces;
use self::passes::Passes;
use self::row::Inserts;
use self::shape::Shapes;
use self::tally::{CountDelta, Tally};
use self::thinning::Thinning;
use self::traces::{KnownTrace, Traces};
use super::counts::Counts;
use super::intern::Strings;
use super::trace_choice::hash;
use crate::KeptCounts;

/// Spans between two looks at the size of the file.
const LOOK_EVERY: u64 = 1_000;

/// How many spans, and how large a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ceiling {
    pub(super) spans: u64,
    /// Of the file.
    pub(super) bytes: u64,
}

/// Means of writing spans.
pub(super) struct Context<'a> {
    pub(super) connection: &'a Connection,
    pub(super) strings: &'a mut Strings,
    pub(super) counts: &'a mut Counts,
    pub(super) ceiling: Ceiling,
}

/// Writes the spans of one trial after the other.
#[derive(Debug, Default)]
pub(super) struct Spans {
    shapes: Shapes,
    traces: Traces,
    gone: DroppedTraces,
    of_trial: Option<OfTrial>,
}

/// State of the trial that is written to.
#[derive(Debug)]
struct OfTrial {
    trial: i64,
    tally: Tally,
    thinning: Thinning,
    passes: Passes,
    until_look: u64,
}

impl Spans {
    /// Writes spans of a trial and counts them. Those that are thinned out are said to be kept: others stand for them.
    pub(super) fn put(
        &mut self,
        context: &mut Context<'_>,
        trial: i64,
        spans: &[Span],
    ) -> rusqlite::Result<KeptCounts> {
        let connection = context.connection;
        self.enter(connection, context.ceiling.bytes, trial)?;
        let Self { shapes, traces, gone, of_trial: Some(of_trial) } = self else { return Ok(KeptCounts::default()) };
        let mut inserts = Inserts::new(connection);
        let mut kept = KeptCounts::default();
        for span in spans {
            let fate = of_trial.fate(context, traces, gone, span)?;
            let is_new = of_trial.put_one(context, shapes, &mut inserts, fate, span)?;
            match fate {
                Fate::Kept(_) => (kept.kept, kept.repeated) = (kept.kept + 1, kept.repeated + u64::from(!is_new)),
                Fate::Thinned => kept.kept += 1,
                Fate::Refused => kept.over_limit += 1,
            }
            of_trial.look_now_and_then(connection, 1)?;
        }
        Ok(kept)
    }

    /// Makes a trial the one that is written to. The file may grow to so many bytes.
    pub(super) fn enter(&mut self, connection: &Connection, bytes_max: u64, trial: i64) -> rusqlite::Result<()> {
        if self.of_trial.as_ref().is_none_or(|current| current.trial != trial) {
            self.save(connection)?;
            self.traces.forget();
            self.gone = DroppedTraces::default();
            self.of_trial = Some(OfTrial::load(connection, bytes_max, trial)?);
        }
        Ok(())
    }

    /// Whether the trial that is written to has taken little of its share of the file, before so many spans are added.
    pub(super) fn has_much_room(&mut self, connection: &Connection, spans: u64) -> rusqlite::Result<bool> {
        let Some(of_trial) = &mut self.of_trial else { return Ok(false) };
        of_trial.look_now_and_then(connection, spans)?;
        Ok(of_trial.thinning.has_much_room())
    }

    /// The trial whose stored traces are to be thinned out now, if there is one.
    pub(super) fn wants_room(&self) -> Option<i64> {
        self.of_trial.as_ref().filter(|of_trial| of_trial.thinning.wants_room()).map(|of_trial| of_trial.trial)
    }

    /// Thins stored traces out a little. For use within a transaction of its own.
    pub(super) fn thin(&mut self, context: &mut Context<'_>) -> rusqlite::Result<()> {
        let Self { traces, gone, of_trial: Some(of_trial), .. } = self else { return Ok(()) };
        of_trial.passes.step(context, &mut of_trial.tally, traces, gone)?;
        of_trial.look(context.connection)
    }

    /// Writes what is not yet in the file. Belongs before each commit.
    pub(super) fn save(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(of_trial) = &mut self.of_trial else { return Ok(()) };
        of_trial.tally.save(connection)
    }

    /// Forgets everything; needed after a rollback, which takes ids and counts back.
    pub(super) fn forget(&mut self) {
        self.shapes.forget();
        self.traces.forget();
        self.gone = DroppedTraces::default();
        self.of_trial = None;
    }
}

/// Fate of a span.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Kept(KnownTrace),
    /// Its trace is stood for by another.
    Thinned,
    Refused,
}

impl OfTrial {
    fn load(connection: &Connection, bytes_max: u64, trial: i64) -> rusqlite::Result<Self> {
        let sql = "SELECT (SELECT spans_one_in FROM trials WHERE id = ?1), \
                   (SELECT count(*) FROM trials WHERE id <> ?1 AND state IN ('planned', 'interrupted')), \
                   (SELECT coalesce(sum(spans_stored) * 1.0 / (SELECT sum(spans_stored) FROM trials), 0) FROM trials \
                    WHERE id = ?1)";
        let found = connection.query_row(sql, [trial], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let (one_in, others, own): (u32, u32, f64) = found;
        // Rows that the trial has in the file already are part of its share.
        let bytes_before = (bytes_of(connection)? as f64 * (1.0 - own.clamp(0.0, 1.0))) as u64;
        let share = bytes_max.saturating_sub(bytes_before) / (u64::from(others) + 1);
        let thinning = Thinning::new(one_in, bytes_before, share);
        let (tally, passes) = (Tally::load(connection, trial)?, Passes::load(connection, trial)?);
        Ok(Self { trial, tally, thinning, passes, until_look: 0 })
    }

    /// Spans of a trace that has begun are kept with it, also when traces that begin now are not.
    fn fate(
        &self,
        context: &Context<'_>,
        traces: &mut Traces,
        gone: &mut DroppedTraces,
        span: &Span,
    ) -> rusqlite::Result<Fate> {
        if context.counts.spans.stored >= context.ceiling.spans || self.thinning.is_full() {
            return Ok(Fate::Refused);
        }
        if let Some(known) = traces.recall(&span.trace_id) {
            return Ok(Fate::Kept(known));
        }
        let one_in = self.thinning.one_in().max(self.passes.one_in_at(span.start_ns));
        if one_in > 1 || !gone.is_empty() {
            let hash = hash(&span.trace_id);
            if gone.has(hash) {
                return Ok(Fate::Thinned);
            }
            // The low bits: the choice of traces to read goes by the whole hash, which the high bits decide.
            if hash & u64::from(one_in - 1) != 0 {
                let found = traces.find(context.connection, self.trial, &span.trace_id)?;
                if found.is_none() {
                    gone.add(hash);
                }
                return Ok(found.map_or(Fate::Thinned, Fate::Kept));
            }
        }
        Ok(Fate::Kept(traces.find_or_add(context.connection, self.trial, &span.trace_id, one_in)?))
    }

    /// Writes and counts a span. Returns whether it is new.
    fn put_one(
        &mut self,
        context: &mut Context<'_>,
        shapes: &mut Shapes,
        inserts: &mut Inserts<'_>,
        fate: Fate,
        span: &Span,
    ) -> rusqlite::Result<bool> {
        // A weight that is not a positive number says nothing: the span stands for itself.
        let weight = if span.weight.is_finite() && span.weight > 0.0 { span.weight } else { 1.0 };
        let Fate::Kept(trace) = fate else {
            match fate {
                Fate::Refused => context.counts.spans.refused += 1,
                _ => context.counts.thinned += 1,
            }
            let counted = self.tally.counted(context.connection, context.strings, span)?;
            self.tally.count(context.connection, context.strings, counted, CountDelta::thinned(weight))?;
            return Ok(true);
        };
        let (shape, slots) = shapes.get_or_add(context.connection, context.strings, self.trial, span, weight)?;
        let added = inserts.insert(trace, shape, &slots, span)?;
        context.counts.spans.stored += added;
        if added > 0 {
            self.passes.see(span.end_ns);
            self.tally.count(context.connection, context.strings, shape.counted, CountDelta::kept(weight))?;
        }
        Ok(added > 0)
    }

    /// Looks at the size of the file when enough spans were added.
    fn look_now_and_then(&mut self, connection: &Connection, spans: u64) -> rusqlite::Result<()> {
        if self.until_look >= spans {
            self.until_look -= spans;
            return Ok(());
        }
        self.until_look = LOOK_EVERY;
        self.look(connection)
    }

    fn look(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let before = self.thinning.one_in();
        self.thinning.look(bytes_of(connection)?);
        if self.thinning.one_in() != before {
            let sql = "UPDATE trials SET spans_one_in = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![self.trial, self.thinning.one_in()])?;
        }
        Ok(())
    }
}

/// Bytes of the file that hold something, those included that are not committed yet.
fn bytes_of(connection: &Connection) -> rusqlite::Result<u64> {
    let pragma = |sql| connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0));
    let pages = pragma("PRAGMA page_count")? - pragma("PRAGMA freelist_count")?;
    Ok(pages.unsigned_abs() * pragma("PRAGMA page_size")?.unsigned_abs())
}
