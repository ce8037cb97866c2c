//! How many spans of each kind arrived: exact, also where not all of them are kept.
//!
//! A kind is a service, a name, OTLP's kind and a status. Beyond a number of kinds of a trial the name is no longer
//! distinguished: then names have ids in them, and counting each says nothing. What was counted is written with each
//! commit.

use std::collections::HashMap;

use narrows_model::trace::Span;
use rusqlite::{Connection, Row, params};

use super::key_hash::HashKeys;
use crate::run_file::intern::Strings;
use crate::run_file::words::{kind_number, signed, status_number};

/// Kinds of one trial that are counted by name. At most as many again are counted without one.
const KINDS_MAX: usize = 10_000;
/// The name of those that are not counted by theirs.
const OTHER_NAMES: &str = "(other names)";

/// A kind of spans. Texts are ids of `strings`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SpanClass {
    service: i64,
    name: i64,
    kind: u8,
    status: u8,
}

impl SpanClass {
    pub(super) fn new(service: i64, name: i64, span: &Span) -> Self {
        Self::of_numbers(service, name, kind_number(span.kind) as u8, status_number(span.status) as u8)
    }

    /// As the file has it.
    pub(super) fn of_numbers(service: i64, name: i64, kind: u8, status: u8) -> Self {
        Self { service, name, kind, status }
    }
}

/// Counts since the last commit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CountDelta {
    arrived: u64,
    kept: i64,
    weight: f64,
}

impl CountDelta {
    /// A span that is kept and stood for `weight` when it came.
    pub(super) fn kept(weight: f64) -> Self {
        Self { arrived: 1, kept: 1, weight }
    }

    /// A span that is not kept.
    pub(super) fn thinned(weight: f64) -> Self {
        Self { arrived: 1, kept: 0, weight }
    }

    /// Spans that were kept and are not any more.
    pub(super) fn removed(spans: u64) -> Self {
        Self { arrived: 0, kept: -signed(spans), weight: 0.0 }
    }
}

/// The counts of one trial.
#[derive(Debug)]
pub(super) struct Tally {
    trial: i64,
    added: HashMap<SpanClass, CountDelta, HashKeys>,
    dirty: Vec<SpanClass>,
}

impl Tally {
    /// Takes up counting a trial.
    pub(super) fn load(connection: &Connection, trial: i64) -> rusqlite::Result<Self> {
        let sql = "SELECT service, name, kind, status FROM span_count_rows WHERE trial = ?1 LIMIT ?2";
        let kind_of = |row: &Row<'_>| {
            let kind = SpanClass { service: row.get(0)?, name: row.get(1)?, kind: row.get(2)?, status: row.get(3)? };
            Ok((kind, CountDelta::default()))
        };
        let mut kinds = connection.prepare(sql)?;
        let added = kinds.query_map((trial, 2 * KINDS_MAX as i64), kind_of)?.collect::<rusqlite::Result<_>>()?;
        Ok(Self { trial, added, dirty: Vec::new() })
    }

    /// Under what a span is counted that is not kept. A text that would not be distinguished is not added to the file:
    /// of such spans there may come any number.
    pub(super) fn counted(
        &self,
        connection: &Connection,
        strings: &mut Strings,
        span: &Span,
    ) -> rusqlite::Result<SpanClass> {
        let mut id = |text: &str, kinds_max: usize| match self.added.len() < kinds_max {
            true => strings.id(connection, text),
            false => strings.known(connection, text)?.map_or_else(|| strings.id(connection, OTHER_NAMES), Ok),
        };
        Ok(SpanClass::new(id(&span.service, 2 * KINDS_MAX)?, id(&span.name, KINDS_MAX)?, span))
    }

    /// Counts what arrived.
    pub(super) fn count(
        &mut self,
        connection: &Connection,
        strings: &mut Strings,
        mut counted: SpanClass,
        more: CountDelta,
    ) -> rusqlite::Result<()> {
        if self.added.len() >= KINDS_MAX && !self.added.contains_key(&counted) {
            counted.name = strings.id(connection, OTHER_NAMES)?;
        }
        if self.added.len() >= 2 * KINDS_MAX && !self.added.contains_key(&counted) {
            counted.service = counted.name;
        }
        let added = self.added.entry(counted).or_default();
        if added.arrived == 0 && added.kept == 0 {
            self.dirty.push(counted);
        }
        added.arrived += more.arrived;
        added.kept += more.kept;
        added.weight += more.weight;
        Ok(())
    }

    /// Writes what was counted since the last time.
    pub(super) fn save(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "INSERT INTO span_count_rows (trial, service, name, kind, status, arrived, kept, weight) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO UPDATE SET \
                   arrived = arrived + excluded.arrived, kept = kept + excluded.kept, weight = weight + excluded.weight";
        let mut insert = connection.prepare_cached(sql)?;
        for counted in self.dirty.drain(..) {
            let Some(added) = self.added.get_mut(&counted) else { continue };
            let SpanClass { service, name, kind, status } = counted;
            let CountDelta { arrived, kept, weight } = std::mem::take(added);
            insert.execute(params![self.trial, service, name, kind, status, signed(arrived), kept, weight])?;
        }
        Ok(())
    }
}
