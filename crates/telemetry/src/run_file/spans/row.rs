//! The row of one span: statements that name only the columns it fills.
//!
//! Most spans fill few of the columns. One that is not named is NULL, and costs much less than one that is bound to it.

use std::array;

use narrows_model::trace::{Span, SpanFacts};
use rusqlite::{CachedStatement, Connection};

use super::shape::Shape;
use super::slot::{ATTRIBUTE_SLOTS, SLOTS, Slot};
use super::traces::KnownTrace;
use crate::run_file::words::{kind_number, signed};

/// Columns that every span fills.
const ALWAYS: &str = "trace, span_id, kind, start_ns, shape, parent_span_id, length_ns";
const ALWAYS_COUNT: usize = 7;
/// Columns of facts, which few spans have.
const NUMBERS_COUNT: usize = SpanFacts::COUNTS.len() + SpanFacts::AMOUNTS.len();
/// As many numbers of slots that are named, each without and with the columns of numbers.
const VARIANTS: usize = 2 * (SLOTS + 1);

/// Adds rows of spans.
pub(super) struct Inserts<'c> {
    connection: &'c Connection,
    prepared: [Option<CachedStatement<'c>>; VARIANTS],
}

impl<'c> Inserts<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection, prepared: array::from_fn(|_| None) }
    }

    /// Adds a span, and says how many rows that were: 0 when it was there already.
    pub(super) fn insert(
        &mut self,
        trace: KnownTrace,
        shape: Shape,
        slots: &[Slot<'_>; SLOTS],
        span: &Span,
    ) -> rusqlite::Result<u64> {
        let facts = &span.facts;
        let counts = facts.counts().map(|count| count.map(signed));
        let amounts = facts.amounts().map(|amount| amount.filter(|amount| amount.is_finite()));
        let has_numbers = counts.iter().any(Option::is_some) || amounts.iter().any(Option::is_some);
        let slots = &slots[..named(slots)];
        let insert = self.prepared(has_numbers, slots.len())?;
        insert.raw_bind_parameter(1, trace.id)?;
        insert.raw_bind_parameter(2, span.span_id)?;
        insert.raw_bind_parameter(3, kind_number(span.kind))?;
        insert.raw_bind_parameter(4, span.start_ns)?;
        insert.raw_bind_parameter(5, shape.id)?;
        insert.raw_bind_parameter(6, span.parent_id)?;
        insert.raw_bind_parameter(7, span.end_ns.saturating_sub(span.start_ns))?;
        let mut next = ALWAYS_COUNT + 1;
        if has_numbers {
            for (at, count) in counts.iter().enumerate() {
                insert.raw_bind_parameter(next + at, count)?;
            }
            for (at, amount) in amounts.iter().enumerate() {
                insert.raw_bind_parameter(next + counts.len() + at, amount)?;
            }
            next += NUMBERS_COUNT;
        }
        for (at, slot) in slots.iter().enumerate() {
            insert.raw_bind_parameter(next + at, slot)?;
        }
        Ok(insert.raw_execute()? as u64)
    }

    fn prepared(&mut self, has_numbers: bool, slots: usize) -> rusqlite::Result<&mut CachedStatement<'c>> {
        let prepared = &mut self.prepared[2 * slots + usize::from(has_numbers)];
        match prepared {
            Some(prepared) => Ok(prepared),
            None => Ok(prepared.insert(self.connection.prepare_cached(&statement(has_numbers, slots))?)),
        }
    }
}

/// How many slots are named: those up to the last that is filled; all, when it is none of an attribute.
fn named(slots: &[Slot<'_>; SLOTS]) -> usize {
    match slots.iter().rposition(|slot| *slot != Slot::Empty) {
        Some(last) if last >= ATTRIBUTE_SLOTS => SLOTS,
        last => last.map_or(0, |last| last + 1),
    }
}

fn statement(has_numbers: bool, slots: usize) -> String {
    let names = SpanFacts::COUNTS.iter().chain(&SpanFacts::AMOUNTS);
    let (numbers, count) = match has_numbers {
        true => (names.map(|name| format!(", {name}")).collect(), NUMBERS_COUNT),
        false => (String::new(), 0),
    };
    let names: String = (1..=slots).map(|slot| format!(", a{slot}")).collect();
    let values = vec!["?"; ALWAYS_COUNT + count + slots].join(", ");
    format!("INSERT INTO span_rows ({ALWAYS}{numbers}{names}) VALUES ({values}) ON CONFLICT DO NOTHING")
}
