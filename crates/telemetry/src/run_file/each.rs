//! Everything of one kind that a trial holds, record by record, for those who carry it elsewhere.
//!
//! It reads the views, whose columns stay, and not the tables behind them. Nothing is gathered: a trial may hold more
//! than fits into memory.

use narrows_model::series::{LogLine, LogStream, Point, SeriesKey};
use narrows_model::table::Cell;
use narrows_model::trace::{Span, SpanKind, SpanStatus, Trace};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Params, Row};

use super::bounds::BoundedConnection;
use super::error::Result;
use super::reader::Reader;
use super::words::{Attributes, Json, Word};
use crate::normalise;

/// The views whose rows can be carried elsewhere, each with a column `trial`.
pub const EXPORTED_VIEWS: [&str; 11] = [
    "spans",
    "metrics",
    "logs",
    "requests",
    "dependencies",
    "exceptions",
    "customMetrics",
    "performanceCounters",
    "load_seconds",
    "load_latency",
    "samples",
];

/// Columns that [`span_of`] reads.
const SPAN_COLUMNS: &str = "trace_id, span_id, parent_span_id, service, scope, name, kind, start_ns, end_ns, status, \
                            status_message, attributes, weight";

/// In which order spans come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanOrder {
    /// As is fastest.
    Any,
    /// Those of a trace together, by their start.
    ByTrace,
}

/// Visitor of each record, which may end the reading.
type Visit<'v, T, E> = &'v mut dyn FnMut(T) -> std::result::Result<(), E>;

impl Reader {
    /// The spans of a trial. The inner result is what `visit` ended it with.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn each_span<E>(
        &self,
        trial: i64,
        order: SpanOrder,
        visit: Visit<'_, Span, E>,
    ) -> Result<std::result::Result<(), E>> {
        let order = match order {
            SpanOrder::Any => "",
            SpanOrder::ByTrace => " ORDER BY trace_id, start_ns",
        };
        let sql = format!("SELECT {SPAN_COLUMNS} FROM spans WHERE trial = ?1{order}");
        self.query(|connection| each(connection, &sql, [trial], span_of, visit))
    }

    /// A trace of a trial, its spans in order of start, unless it was not kept. `id` is hexadecimal.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn trace(&self, trial: i64, id: &str) -> Result<Option<Trace>> {
        let sql = format!("SELECT {SPAN_COLUMNS} FROM spans WHERE trial = ?1 AND trace_id = ?2 ORDER BY start_ns");
        let spans = self.query(|connection| connection.rows(&sql, (trial, id), span_of))?;
        Ok(spans.first().map(|first| (first.trace_id, first.weight)).map(|(id, weight)| Trace { id, spans, weight }))
    }

    /// The points of all series of a trial, one series after the other, in order of time.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn each_point<E>(
        &self,
        trial: i64,
        visit: Visit<'_, (SeriesKey, Point), E>,
    ) -> Result<std::result::Result<(), E>> {
        let sql = "SELECT name, unit, service, replica, labels, time_ns, value FROM metrics WHERE trial = ?1 \
                   AND value IS NOT NULL";
        self.query(|connection| each(connection, sql, [trial], point_of, visit))
    }

    /// The log lines of a trial, in order of time.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn each_log<E>(&self, trial: i64, visit: Visit<'_, LogLine, E>) -> Result<std::result::Result<(), E>> {
        let sql = "SELECT time_ns, service, replica, stream, severity, text, trace_id FROM logs WHERE trial = ?1 \
                   ORDER BY time_ns";
        self.query(|connection| each(connection, sql, [trial], log_of, visit))
    }

    /// The names of the columns of a view, and its rows of one trial; see [`EXPORTED_VIEWS`].
    ///
    /// # Errors
    /// When the view is none of those, and when the file cannot be read.
    pub fn each_row<E>(
        &self,
        view: &str,
        trial: i64,
        columns: Visit<'_, Vec<String>, E>,
        visit: Visit<'_, Vec<Cell>, E>,
    ) -> Result<std::result::Result<(), E>> {
        let view =
            EXPORTED_VIEWS.iter().find(|known| **known == view).copied().unwrap_or("a view that is not exported");
        self.query(|connection| {
            let mut statement = connection.prepare(&format!("SELECT * FROM \"{view}\" WHERE trial = ?1"))?;
            let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
            let width = names.len();
            if let Err(ended) = columns(names) {
                return Ok(Err(ended));
            }
            let mut rows = statement.query([trial])?;
            while let Some(row) = rows.next()? {
                let cells = (0..width).map(|at| row.get_ref(at).map(cell)).collect::<rusqlite::Result<_>>()?;
                if let Err(ended) = connection.pause(|| visit(cells)) {
                    return Ok(Err(ended));
                }
            }
            Ok(Ok(()))
        })
    }
}

fn each<T, E>(
    connection: &BoundedConnection,
    sql: &str,
    parameters: impl Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
    visit: Visit<'_, T, E>,
) -> rusqlite::Result<std::result::Result<(), E>> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        let record = read(row)?;
        if let Err(ended) = connection.pause(|| visit(record)) {
            return Ok(Err(ended));
        }
    }
    Ok(Ok(()))
}

fn span_of(row: &Row<'_>) -> rusqlite::Result<Span> {
    let attributes = row.get::<_, Attributes>(11)?.0;
    Ok(Span {
        trace_id: row.get::<_, Hex<16>>(0)?.0,
        span_id: row.get::<_, Hex<8>>(1)?.0,
        parent_id: row.get::<_, Option<Hex<8>>>(2)?.map(|parent| parent.0),
        service: row.get::<_, Option<_>>(3)?.unwrap_or_default(),
        scope: row.get::<_, Option<_>>(4)?.unwrap_or_default(),
        name: row.get::<_, Option<_>>(5)?.unwrap_or_default(),
        kind: row.get::<_, Word<SpanKind>>(6)?.0,
        start_ns: row.get(7)?,
        end_ns: row.get(8)?,
        status: row.get::<_, Word<SpanStatus>>(9)?.0,
        status_message: row.get::<_, Option<_>>(10)?.unwrap_or_default(),
        facts: normalise::facts(&attributes),
        attributes,
        weight: row.get(12)?,
    })
}

fn point_of(row: &Row<'_>) -> rusqlite::Result<(SeriesKey, Point)> {
    let key = SeriesKey {
        name: row.get(0)?,
        unit: row.get(1)?,
        service: row.get(2)?,
        replica: row.get(3)?,
        labels: row.get::<_, Json<_>>(4)?.0,
    };
    Ok((key, Point { time_ns: row.get(5)?, value: row.get(6)? }))
}

fn log_of(row: &Row<'_>) -> rusqlite::Result<LogLine> {
    Ok(LogLine {
        time_ns: row.get(0)?,
        service: row.get::<_, Option<_>>(1)?.unwrap_or_default(),
        replica: row.get(2)?,
        stream: row.get::<_, Word<LogStream>>(3)?.0,
        severity: row.get::<_, Option<_>>(4)?.unwrap_or_default(),
        text: row.get(5)?,
        trace_id: row.get::<_, Option<Hex<16>>>(6)?.map(|trace| trace.0),
    })
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

/// An id as the views show it.
struct Hex<const N: usize>([u8; N]);

impl<const N: usize> FromSql for Hex<N> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        let mut bytes = [0; N];
        if text.len() != N * 2 || !text.is_ascii() {
            return Err(FromSqlError::InvalidType);
        }
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(FromSqlError::other)?;
        }
        Ok(Hex(bytes))
    }
}
