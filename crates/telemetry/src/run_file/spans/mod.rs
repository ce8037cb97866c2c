//! Writes spans so that a million of them take little room and little time.
//!
//! A span is three things: its trace, a number instead of sixteen bytes ([`traces`]); its shape, everything it has in
//! common with others ([`shape`]); and its own row, with what is left. How attributes are divided between shape and row
//! is learned ([`layout`]), and plain SQLite puts them together again ([`template`]). Nothing here needs a look-up in the
//! file but for what a bounded cache has forgotten.
//!
//! Near the end of a trial's share of the file, whole traces are thinned out ([`thinning`]); every span is counted
//! ([`tally`]). Reading is not done here.

mod layout;
mod shape;
mod slot;
mod tally;
mod template;
mod thinning;
mod traces;

use narrows_model::trace::Span;
use rusqlite::{CachedStatement, Connection, params};

use self::shape::{Shape, Shapes};
use self::slot::{SLOTS, Slot};
use self::tally::{Added, Tally};
use self::thinning::Thinning;
use self::traces::{Known, Traces};
use super::counts::Counts;
use super::intern::Strings;
use super::words::{kind_number, signed};
use crate::Kept;

/// Spans between two looks at the size of the file.
const LOOK_EVERY: u64 = 1_000;

const INSERT_SPAN: &str = "INSERT INTO span_rows (trace, span_id, kind, start_ns, shape, parent_span_id, length_ns, \
     db_rows, db_charge, retry_after_ns, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19) \
     ON CONFLICT DO NOTHING";

/// How many spans, and how large a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ceiling {
    pub(super) spans: u64,
    /// Of the file.
    pub(super) bytes: u64,
}

/// What spans are written with.
pub(super) struct Desk<'a> {
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
    of_trial: Option<OfTrial>,
}

/// What is known of the trial that is written to.
#[derive(Debug)]
struct OfTrial {
    trial: i64,
    tally: Tally,
    thinning: Thinning,
    until_look: u64,
}

impl Spans {
    /// Writes spans of a trial and counts them. Those that are thinned out are said to be kept: others stand for them.
    pub(super) fn put(&mut self, desk: &mut Desk<'_>, trial: i64, spans: &[Span]) -> rusqlite::Result<Kept> {
        let connection = desk.connection;
        if self.of_trial.as_ref().is_none_or(|current| current.trial != trial) {
            self.save(connection)?;
            self.traces.forget();
            self.of_trial = Some(OfTrial::load(connection, desk.ceiling, trial)?);
        }
        let Self { shapes, traces, of_trial: Some(of_trial) } = self else { return Ok(Kept::default()) };
        let mut insert = connection.prepare_cached(INSERT_SPAN)?;
        let mut kept = Kept::default();
        for span in spans {
            let fate = of_trial.fate(desk, traces, span)?;
            of_trial.put_one(desk, shapes, &mut insert, fate, span)?;
            match fate {
                Fate::Kept(_) | Fate::Thinned => kept.kept += 1,
                Fate::Refused => kept.over_limit += 1,
            }
            of_trial.look_now_and_then(connection)?;
        }
        Ok(kept)
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
        self.of_trial = None;
    }
}

/// What becomes of a span.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Kept(Known),
    /// Its trace is stood for by another.
    Thinned,
    Refused,
}

impl OfTrial {
    fn load(connection: &Connection, ceiling: Ceiling, trial: i64) -> rusqlite::Result<Self> {
        let bytes = bytes_of(connection)?;
        let sql = "SELECT (SELECT spans_one_in FROM trials WHERE id = ?1), \
                   (SELECT count(*) FROM trials WHERE id <> ?1 AND state IN ('planned', 'interrupted'))";
        let (one_in, others): (u32, u32) = connection.query_row(sql, [trial], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let share = ceiling.bytes.saturating_sub(bytes) / (u64::from(others) + 1);
        let thinning = Thinning::new(one_in, bytes, share);
        Ok(Self { trial, tally: Tally::load(connection, trial)?, thinning, until_look: 0 })
    }

    /// Spans of a trace that has begun are kept with it, also when traces that begin now are not.
    fn fate(&self, desk: &Desk<'_>, traces: &mut Traces, span: &Span) -> rusqlite::Result<Fate> {
        if desk.counts.spans.stored >= desk.ceiling.spans || self.thinning.is_full() {
            return Ok(Fate::Refused);
        }
        if let Some(known) = traces.recall(&span.trace_id) {
            return Ok(Fate::Kept(known));
        }
        if !self.thinning.keeps(&span.trace_id) {
            let found = traces.find(desk.connection, self.trial, &span.trace_id)?;
            return Ok(found.map_or(Fate::Thinned, Fate::Kept));
        }
        let one_in = self.thinning.one_in();
        Ok(Fate::Kept(traces.find_or_add(desk.connection, self.trial, &span.trace_id, one_in)?))
    }

    fn put_one(
        &mut self,
        desk: &mut Desk<'_>,
        shapes: &mut Shapes,
        insert: &mut CachedStatement<'_>,
        fate: Fate,
        span: &Span,
    ) -> rusqlite::Result<()> {
        // A weight that is not a positive number says nothing: the span stands for itself.
        let weight = if span.weight.is_finite() && span.weight > 0.0 { span.weight } else { 1.0 };
        let Fate::Kept(trace) = fate else {
            match fate {
                Fate::Refused => desk.counts.spans.refused += 1,
                _ => desk.counts.thinned += 1,
            }
            let counted = self.tally.counted(desk.connection, desk.strings, span)?;
            return self.tally.count(desk.connection, desk.strings, counted, Added::thinned(weight));
        };
        let stands_for = weight * f64::from(trace.stands_for);
        let (shape, slots) = shapes.of(desk.connection, desk.strings, self.trial, span, stands_for)?;
        let added = insert_span(insert, trace, shape, &slots, span)?;
        desk.counts.spans.stored += added;
        match added {
            0 => Ok(()),
            _ => self.tally.count(desk.connection, desk.strings, shape.counted, Added::kept(weight)),
        }
    }

    fn look_now_and_then(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.until_look > 0 {
            self.until_look -= 1;
            return Ok(());
        }
        self.until_look = LOOK_EVERY;
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

/// Adds a span, and says how many rows that were: 0 when it was there already.
fn insert_span(
    insert: &mut CachedStatement<'_>,
    trace: Known,
    shape: Shape,
    slots: &[Slot<'_>; SLOTS],
    span: &Span,
) -> rusqlite::Result<u64> {
    let facts = &span.facts;
    let [a1, a2, a3, a4, a5, a6, a7, a8, a9] = slots;
    let added = insert.execute(params![
        trace.id,
        span.span_id,
        kind_number(span.kind),
        span.start_ns,
        shape.id,
        span.parent_id,
        span.end_ns.saturating_sub(span.start_ns),
        facts.db_rows.map(signed),
        facts.db_charge.filter(|charge| charge.is_finite()),
        facts.retry_after_ns.map(signed),
        a1,
        a2,
        a3,
        a4,
        a5,
        a6,
        a7,
        a8,
        a9,
    ])?;
    Ok(added as u64)
}
