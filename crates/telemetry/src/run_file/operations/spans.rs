//! Facts of each span that operations and calls are counted from.
//!
//! Texts stay ids: names are looked up once they are shown. What a status means is decided here, by the ids of the few
//! texts that say so, which are looked up beforehand.

use std::collections::{HashMap, HashSet};

use narrows_model::trace::{SpanKind, SpanStatus, TraceId, is_step_of_call};
use rusqlite::types::FromSqlError;
use rusqlite::{OptionalExtension, Row, Rows};

use super::super::bounds::BoundedConnection;
use super::super::spans::key_hash::HashKeys;
use super::super::words::{http_status_of, kind_of, plausible, plausible_weight, status_of};

/// Shapes that are remembered at a time.
const KNOWN_SHAPES_MAX: usize = 262_144;
/// Texts of each kind of status; more are not in use.
const STATUSES_MAX: i64 = 1_000;

/// One span. Ids of texts are those of `strings`.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanRow {
    pub(super) span: u64,
    /// 0 for none.
    pub(super) parent: u64,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) weight: f64,
    /// Not a number when no charge was said.
    pub(super) charge: f64,
    pub(super) service: u32,
    pub(super) scope: u32,
    pub(super) name: u32,
    /// Whether it is one step of a call: `http.getconn`, `pg-pool.connect`.
    pub(super) is_step: bool,
    pub(super) target: Target,
    pub(super) kind: SpanKind,
    pub(super) outcome: Outcome,
    /// Whether its status says that it failed, whatever a database says.
    pub(super) has_failed: bool,
}

/// Callee of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Target {
    Unknown,
    /// The system of a database, or a service.
    System(u32),
    Address(u32, Option<u16>),
}

/// How a span ended. Only calls are throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Succeeded,
    Throttled,
    Failed,
}

/// Facts of a trace, by which it may be chosen as a sample. They are those of all its spans.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct TraceSummary {
    /// Its row in the file.
    row: i64,
    pub(in super::super) id: TraceId,
    /// Number of traces that it stands for.
    pub(in super::super) weight: f64,
    /// Start of its earliest span without a parent, else of its earliest span.
    pub(in super::super) start_ns: i64,
    /// Whether that is a span without a parent.
    has_root: bool,
    pub(in super::super) has_failed: bool,
}

impl TraceSummary {
    fn add(&mut self, span: &SpanRow) {
        self.has_failed |= span.has_failed;
        let is_root = span.parent == 0;
        if is_root && !self.has_root {
            (self.has_root, self.start_ns) = (true, span.start_ns);
        } else if is_root == self.has_root {
            self.start_ns = self.start_ns.min(span.start_ns);
        }
    }
}

/// The traces of a trial, read beside its spans, which are in the same order.
struct TraceRows<'s> {
    rows: Rows<'s>,
    last: Option<TraceSummary>,
}

impl TraceRows<'_> {
    /// The trace of a row; `None` if there is no such row. Rows are asked for in their order.
    fn find(&mut self, row: i64) -> rusqlite::Result<Option<TraceSummary>> {
        while self.last.is_none_or(|last| last.row < row) {
            let Some(found) = self.rows.next()? else { return Ok(None) };
            let (row, id, weight) = (found.get(0)?, found.get(1)?, found.get(2)?);
            self.last = Some(TraceSummary { row, id, weight, start_ns: i64::MAX, has_root: false, has_failed: false });
        }
        Ok(self.last.filter(|last| last.row == row))
    }
}

/// Calls `show` with the spans of each trace of a trial, and the number of spans beyond `spans_max`. Spans are stored
/// in the order of their traces, so at most one trace is in memory.
pub(super) fn each_trace(
    connection: &BoundedConnection,
    trial: i64,
    spans_max: usize,
    mut show: impl FnMut(&TraceSummary, &[SpanRow], u64) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let extent = "SELECT min(id), max(id) FROM trace_rows WHERE trial = ?1";
    let (first, last): (Option<i64>, Option<i64>) =
        connection.query_row(extent, [trial], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut shapes = Shapes::new(connection, trial)?;
    let sql = "SELECT trace, shape, span_id, parent_span_id, start_ns, length_ns, db_charge \
               FROM span_rows NOT INDEXED WHERE trace BETWEEN ?1 AND ?2 ORDER BY trace";
    let traces = "SELECT id, trace_id, weight FROM trace_rows NOT INDEXED WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
    let mut traces = connection.prepare(traces)?;
    let mut traces = TraceRows { rows: traces.query((first, last))?, last: None };
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query((first, last))?;
    let mut current: Option<TraceSummary> = None;
    let mut spans: Vec<SpanRow> = Vec::new();
    let mut left_out = 0;
    while let Some(row) = rows.next()? {
        let Some(shape) = shapes.get(row.get(1)?)? else { continue };
        let id: i64 = row.get(0)?;
        let trace = match &mut current {
            Some(trace) if trace.row == id => trace,
            ended => {
                let Some(begun) = traces.find(id)? else { continue };
                if let Some(ended) = ended {
                    left_out += keep_earliest(&mut spans, spans_max);
                    show(ended, &spans, std::mem::take(&mut left_out))?;
                    spans.clear();
                }
                ended.insert(begun)
            }
        };
        let span = shape.with_row(row)?.times(trace.weight);
        trace.add(&span);
        spans.push(span);
        if spans.len() >= 2 * spans_max {
            left_out += keep_earliest(&mut spans, spans_max);
        }
    }
    left_out += keep_earliest(&mut spans, spans_max);
    current.map_or(Ok(()), |trace| show(&trace, &spans, left_out))
}

/// Sorts the spans of a trace and drops the latest ones if there are too many. Returns the number of dropped spans.
fn keep_earliest(trace: &mut Vec<SpanRow>, spans_max: usize) -> u64 {
    // No two spans of a trace have all of this in common: the sums are added up in the same order each time.
    trace.sort_unstable_by_key(|span| (span.start_ns, span.span, span.kind as u8));
    let left_out = trace.len().saturating_sub(spans_max);
    trace.truncate(spans_max);
    left_out as u64
}

/// Common parts of the spans of each shape of a trial. The number of shapes that are kept is limited: where names have
/// ids in them, there is a shape for every span.
struct Shapes<'a> {
    connection: &'a BoundedConnection,
    trial: i64,
    statuses: Statuses,
    known: HashMap<i64, Option<SpanRow>, HashKeys>,
}

impl<'a> Shapes<'a> {
    fn new(connection: &'a BoundedConnection, trial: i64) -> rusqlite::Result<Self> {
        Ok(Self { connection, trial, statuses: Statuses::read(connection)?, known: HashMap::default() })
    }

    /// A shape; `None` if it is another trial's.
    fn get(&mut self, id: i64) -> rusqlite::Result<Option<SpanRow>> {
        if let Some(shape) = self.known.get(&id) {
            return Ok(*shape);
        }
        let sql = "SELECT NULL, zeroblob(8), NULL, service, name, kind, 0, 0, status, weight, http_status, \
                   db_system, db_status, server_address, server_port, error_type, NULL, scope, \
                   (SELECT text FROM strings WHERE strings.id = name) FROM span_shape_rows WHERE id = ?1 AND trial = ?2";
        let mut find = self.connection.prepare_cached(sql)?;
        let shape = find.query_row([id, self.trial], |row| self.statuses.seen(row)).optional()?;
        if self.known.len() >= KNOWN_SHAPES_MAX {
            self.known.clear();
        }
        self.known.insert(id, shape);
        Ok(shape)
    }
}

/// The ids of the texts that say how a call ended.
struct Statuses {
    /// As a database's status or as a type of error: the caller sends too much.
    throttled: HashSet<u32>,
    /// As a database's status: 400 to 599, of databases whose statuses are HTTP's.
    failed: HashSet<u32>,
}

impl Statuses {
    fn read(connection: &BoundedConnection) -> rusqlite::Result<Self> {
        let throttled = "SELECT id FROM strings WHERE text IN ('429', 'RESOURCE_EXHAUSTED') OR text GLOB 'Throttl*' \
                         OR text GLOB 'ProvisionedThroughputExceeded*' LIMIT ?1";
        let failed = "SELECT id FROM strings WHERE text >= '400' AND text < '600' AND text GLOB '[45][0-9][0-9]' \
                      LIMIT ?1";
        let ids = |sql| connection.rows(sql, [STATUSES_MAX], |row| row.get::<_, u32>(0));
        Ok(Self { throttled: ids(throttled)?.into_iter().collect(), failed: ids(failed)?.into_iter().collect() })
    }

    fn seen(&self, row: &Row<'_>) -> rusqlite::Result<SpanRow> {
        let unknown = |at: usize| rusqlite::Error::from(FromSqlError::OutOfRange(at as i64));
        let kind = kind_of(row.get(5)?).ok_or_else(|| unknown(5))?;
        let status = status_of(row.get(8)?).ok_or_else(|| unknown(8))?;
        let weight: f64 = row.get(9)?;
        let parent: Option<[u8; 8]> = row.get(2)?;
        let name: Option<String> = row.get(18)?;
        Ok(SpanRow {
            span: u64::from_be_bytes(row.get(1)?),
            parent: parent.map_or(0, u64::from_be_bytes),
            start_ns: row.get(6)?,
            end_ns: row.get(7)?,
            weight: plausible_weight(weight),
            charge: charge_of(row, 16)?,
            service: row.get(3)?,
            scope: row.get(17)?,
            name: row.get(4)?,
            is_step: name.is_some_and(|name| is_step_of_call(&name)),
            target: target_of(row)?,
            kind,
            outcome: match kind {
                SpanKind::Client => self.of_call(row, status)?,
                _ => of_request(row, kind, status)?,
            },
            has_failed: kind.has_failed(status, http_status_of(row.get(10)?)),
        })
    }

    fn of_call(&self, row: &Row<'_>, status: SpanStatus) -> rusqlite::Result<Outcome> {
        let http = http_status_of(row.get(10)?);
        let db: Option<u32> = row.get(12)?;
        let error: Option<u32> = row.get(15)?;
        let is_throttled = |id: Option<u32>| id.is_some_and(|id| self.throttled.contains(&id));
        let has_failed = SpanKind::Client.has_failed(status, http) || db.is_some_and(|id| self.failed.contains(&id));
        Ok(match http {
            Some(429) => Outcome::Throttled,
            _ if is_throttled(db) || is_throttled(error) => Outcome::Throttled,
            _ if has_failed => Outcome::Failed,
            _ => Outcome::Succeeded,
        })
    }
}

fn of_request(row: &Row<'_>, kind: SpanKind, status: SpanStatus) -> rusqlite::Result<Outcome> {
    let has_failed = kind.has_failed(status, http_status_of(row.get(10)?));
    Ok(if has_failed { Outcome::Failed } else { Outcome::Succeeded })
}

fn target_of(row: &Row<'_>) -> rusqlite::Result<Target> {
    if let Some(system) = row.get(11)? {
        return Ok(Target::System(system));
    }
    Ok(match row.get(13)? {
        Some(address) => Target::Address(address, row.get(14)?),
        None => Target::Unknown,
    })
}

/// Charge of a call; not a number when no charge was said.
fn charge_of(row: &Row<'_>, at: usize) -> rusqlite::Result<f64> {
    let charge = row.get::<_, Option<f64>>(at)?.filter(|charge| charge.is_finite() && *charge >= 0.0);
    Ok(charge.unwrap_or(f64::NAN))
}

impl SpanRow {
    /// A span whose trace stands for so many.
    fn times(self, traces: f64) -> Self {
        Self { weight: plausible_weight(self.weight * plausible_weight(traces)), ..self }
    }

    /// A span of this shape: the rest is what its row says.
    fn with_row(self, row: &Row<'_>) -> rusqlite::Result<Self> {
        let start_ns: i64 = row.get(4)?;
        let parent: Option<[u8; 8]> = row.get(3)?;
        Ok(Self {
            span: u64::from_be_bytes(row.get(2)?),
            parent: parent.map_or(0, u64::from_be_bytes),
            start_ns: plausible(start_ns),
            end_ns: plausible(start_ns.saturating_add(row.get(5)?)),
            charge: charge_of(row, 6)?,
            ..self
        })
    }
}

#[cfg(test)]
impl SpanRow {
    /// A span without anything to count.
    pub(super) fn bare(span: u64, parent: u64, service: u32, kind: SpanKind) -> Self {
        Self {
            span,
            parent,
            start_ns: 0,
            end_ns: 0,
            weight: 1.0,
            charge: f64::NAN,
            service,
            scope: 0,
            name: 0,
            is_step: false,
            target: Target::Unknown,
            kind,
            outcome: Outcome::Succeeded,
            has_failed: false,
        }
    }
}
