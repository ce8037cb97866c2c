//! Facts about a stored trace when it is judged: read from the file, span by span, in the order of traces.
//!
//! Only columns that are short are read, and what a shape says is remembered. The root is the earliest of the spans
//! without a parent, else the earliest of all: what sent the request may have a span that is not in the file.

use std::collections::HashMap;

use narrows_model::trace::TraceId;
use rusqlite::{Connection, OptionalExtension, Row};

use super::tally::SpanClass;
use super::verdicts::{Course, StoredTrace};
use crate::run_file::trace_choice::hash;
use crate::run_file::words::{http_status_of, kind_of, status_of};

/// Spans of a trace that may go; a longer one always stays.
const TRACE_SPANS_MAX: u32 = 5_000;
/// Traces too young in a row after which none that is old enough is expected.
const YOUNG_MAX: u32 = 32;
/// Shapes that are remembered.
const SHAPES_MAX: usize = 65_536;

/// A trace in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digest {
    pub(super) id: i64,
    pub(super) trace: TraceId,
    pub(super) hash: u64,
    pub(super) spans: u32,
    /// When its first span began.
    pub(super) start_ns: i64,
    /// When its last span ended.
    end_ns: i64,
    weight: f64,
    root: Root,
    is_troubled: bool,
}

#[derive(Debug, Clone, Copy)]
struct Root {
    has_parent: bool,
    start_ns: i64,
    length_ns: i64,
    operation: (i64, i64),
    has_failed: bool,
}

/// The parts that were read.
#[derive(Debug, Default)]
pub(super) struct DigestBatch {
    pub(super) settled: Vec<Digest>,
    /// The last trace that needs not be read again.
    pub(super) through: i64,
    pub(super) spans_read: u64,
    /// Those of traces that stay whatever they are.
    pub(super) spans_passed_by: u64,
    /// Whether there is no further trace that is old enough.
    pub(super) is_end: bool,
}

/// Facts of a shape about its spans.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShapeNote {
    pub(super) counted: SpanClass,
    operation: (i64, i64),
    has_failed: bool,
}

/// Notes of shapes.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    known: HashMap<i64, Option<ShapeNote>>,
}

impl Shapes {
    /// Facts of a shape; `None` if it is not in the file.
    pub(super) fn get(&mut self, connection: &Connection, id: i64) -> rusqlite::Result<Option<ShapeNote>> {
        if let Some(note) = self.known.get(&id) {
            return Ok(*note);
        }
        let sql = "SELECT service, name, kind, status, http_status FROM span_shape_rows WHERE id = ?1";
        let note = connection.prepare_cached(sql)?.query_row([id], note_of).optional()?;
        if self.known.len() >= SHAPES_MAX {
            self.known.clear();
        }
        self.known.insert(id, note);
        Ok(note)
    }
}

fn note_of(row: &Row<'_>) -> rusqlite::Result<ShapeNote> {
    let (service, name, kind, status) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    let http_status = http_status_of(row.get(4)?);
    let has_failed = match (kind_of(i64::from(kind)), status_of(i64::from(status))) {
        (Some(kind), Some(status)) => kind.has_failed(status, http_status),
        _ => false,
    };
    Ok(ShapeNote {
        counted: SpanClass::of_numbers(service, name, kind, status),
        operation: (service, name),
        has_failed,
    })
}

/// Reads the traces of a trial after `through` that ended by `settled_ns`, about so many spans.
pub(super) fn read(
    connection: &Connection,
    shapes: &mut Shapes,
    trial: i64,
    through: i64,
    settled_ns: i64,
    spans_max: u64,
) -> rusqlite::Result<DigestBatch> {
    let sql = "SELECT t.id, t.trace_id, t.weight, s.shape, s.parent_span_id IS NOT NULL, s.start_ns, s.length_ns \
               FROM trace_rows AS t CROSS JOIN span_rows AS s ON s.trace = t.id \
               WHERE t.id > ?1 AND t.trial = ?2 ORDER BY t.id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((through, trial))?;
    let mut reading =
        Reading { found: DigestBatch { through, ..DigestBatch::default() }, settled_ns, young: 0, young_spans: 0 };
    let mut trace: Option<Digest> = None;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        if let Some(ended) = trace.take_if(|trace| trace.id != id) {
            reading.take_in(ended);
            if reading.young >= YOUNG_MAX || reading.found.spans_read >= spans_max {
                reading.found.is_end = reading.young >= YOUNG_MAX;
                return Ok(reading.found);
            }
        }
        let Some(note) = shapes.get(connection, row.get(3)?)? else { continue };
        let span = digest_of(row, note)?;
        reading.found.spans_read += 1;
        trace = Some(trace.map_or(span, |trace| trace.with(span)));
        if trace.is_some_and(|trace| trace.spans >= TRACE_SPANS_MAX) {
            // Its other spans are not read: the next reading begins behind it.
            let young = reading.young_spans;
            trace.take().into_iter().for_each(|trace| reading.pass_by(trace.id, young.saturating_add(trace.spans)));
            return Ok(reading.found);
        }
    }
    trace.into_iter().for_each(|trace| reading.take_in(trace));
    reading.found.is_end = true;
    Ok(reading.found)
}

struct Reading {
    found: DigestBatch,
    settled_ns: i64,
    /// Traces in a row that are too young, and their spans.
    young: u32,
    young_spans: u32,
}

impl Reading {
    fn take_in(&mut self, trace: Digest) {
        if trace.end_ns > self.settled_ns {
            // One that began long ago is passed by, as are a few young ones with older ones behind them.
            self.young += 1;
            self.young_spans = self.young_spans.saturating_add(trace.spans);
            return;
        }
        self.pass_by(trace.id, self.young_spans);
        self.found.settled.push(trace);
    }

    fn pass_by(&mut self, through: i64, spans: u32) {
        self.found.through = through;
        self.found.spans_passed_by += u64::from(spans);
        (self.young, self.young_spans) = (0, 0);
    }
}

/// A trace of one span.
fn digest_of(row: &Row<'_>, note: ShapeNote) -> rusqlite::Result<Digest> {
    let (trace, start_ns, length_ns): (TraceId, i64, i64) = (row.get(1)?, row.get(5)?, row.get(6)?);
    let root =
        Root { has_parent: row.get(4)?, start_ns, length_ns, operation: note.operation, has_failed: note.has_failed };
    Ok(Digest {
        id: row.get(0)?,
        trace,
        hash: hash(&trace),
        spans: 1,
        start_ns,
        end_ns: start_ns.saturating_add(length_ns),
        weight: row.get(2)?,
        root,
        is_troubled: note.has_failed,
    })
}

impl Digest {
    fn with(self, span: Self) -> Self {
        let order = |root: &Root| (root.has_parent, root.start_ns);
        Self {
            spans: self.spans + span.spans,
            start_ns: self.start_ns.min(span.start_ns),
            end_ns: self.end_ns.max(span.end_ns),
            root: if order(&span.root) < order(&self.root) { span.root } else { self.root },
            is_troubled: self.is_troubled || span.is_troubled,
            ..self
        }
    }

    /// The figures by which it is judged.
    pub(super) fn stored_trace(&self) -> StoredTrace {
        let course = match (self.root.has_failed, self.is_troubled) {
            (true, _) => Course::Failed,
            (false, true) => Course::Troubled,
            (false, false) => Course::Fine,
        };
        let Root { operation, length_ns, .. } = self.root;
        StoredTrace { id: self.id, hash: self.hash, weight: self.weight, operation, length_ns, course }
    }
}
