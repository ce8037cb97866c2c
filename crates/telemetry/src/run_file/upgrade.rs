//! Fills the columns of schema 5 for the spans of an older file, once its run is resumed.
//!
//! Facts that had no column are read off each span's attributes, as a file of that schema is read. Spans whose shape has
//! more to say then get another shape, a copy with these facts. What a trace stands for was a factor of its spans' weights
//! and is its own now, or further thinning would count it again. It takes about ten seconds for a million spans.

use std::collections::HashMap;

use narrows_model::trace::{SpanFacts, SpanKind};
use rusqlite::{Connection, Row, params};
use serde_json::{Map, Value};

use super::intern::Strings;
use super::spans::{RequestName, fixed};
use super::words::kind_of;
use crate::normalise;

/// Most shapes that are remembered.
const SHAPES_MAX: usize = 65_536;

/// What a shape of schema 4 lacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Further {
    texts: [Option<String>; 9],
    destination: Option<String>,
    request_name: Option<String>,
    /// What its trace stands for, which its weight has as a factor there; none when that is itself.
    stands_for: Option<u32>,
}

/// Reads the facts of all spans and writes them to where they belong. For use within a transaction.
pub(super) fn fill_facts(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TEMP TABLE further (trace, span_id, kind, start_ns, shape, batch_size, \
         PRIMARY KEY (trace, span_id, kind, start_ns)) WITHOUT ROWID",
    )?;
    find_further(connection)?;
    connection.execute_batch(
        "UPDATE span_rows SET shape = f.shape, batch_size = f.batch_size FROM temp.further AS f \
         WHERE span_rows.trace = f.trace AND span_rows.span_id = f.span_id AND span_rows.kind = f.kind \
         AND span_rows.start_ns = f.start_ns; \
         DROP TABLE temp.further; \
         DELETE FROM span_shape_rows WHERE id NOT IN (SELECT shape FROM span_rows)",
    )
}

fn find_further(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "SELECT s.trace, s.span_id, s.kind, s.start_ns, s.shape, h.kind, \
               (SELECT text FROM strings WHERE id = h.name), (SELECT text FROM strings WHERE id = h.http_method), \
               (SELECT text FROM strings WHERE id = h.http_route), \
               printf((SELECT text FROM strings WHERE id = h.url), a1, a2, a3, a4, a5, a6, a7, a8, a9), \
               printf((SELECT text FROM strings WHERE id = h.attributes), a1, a2, a3, a4, a5, a6, a7, a8, a9), \
               (SELECT CAST(nullif(weight, 1) AS INTEGER) FROM trace_rows WHERE id = s.trace) \
               FROM span_rows AS s CROSS JOIN span_shape_rows AS h ON h.id = s.shape";
    let mut shapes = Shapes { strings: Strings::default(), known: HashMap::new() };
    let mut insert = connection.prepare("INSERT INTO temp.further VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut spans = connection.prepare(sql)?;
    let mut rows = spans.query([])?;
    while let Some(row) = rows.next()? {
        let (further, batch_size) = further_of(row)?;
        if further == Further::default() && batch_size.is_none() {
            continue;
        }
        let shape = shapes.with(connection, row.get(4)?, further)?;
        let key: (i64, [u8; 8], i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        insert.execute(params![key.0, key.1, key.2, key.3, shape, batch_size])?;
    }
    Ok(())
}

/// What a span has to say beyond its shape.
fn further_of(row: &Row<'_>) -> rusqlite::Result<(Further, Option<u32>)> {
    // Attributes that cannot be read say nothing; whoever reads the span will say why.
    let attributes: Option<String> = row.get(10)?;
    let attributes: Map<String, Value> =
        attributes.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let facts = normalise::facts(&attributes);
    let kept =
        SpanFacts { http_method: row.get(7)?, http_route: row.get(8)?, url: row.get(9)?, ..SpanFacts::default() };
    let name: String = row.get(6)?;
    let kind = kind_of(row.get(5)?).unwrap_or(SpanKind::Internal);
    let request_name = RequestName::of(kind, &name, &kept, &attributes).text().map(Into::into);
    let texts = [
        facts.rpc_system,
        facts.rpc_service,
        facts.rpc_method,
        facts.rpc_status,
        facts.messaging_system,
        facts.messaging_operation,
        facts.db_collection,
        facts.peer_service,
        facts.url_template,
    ];
    let destination = facts.messaging_destination;
    Ok((Further { texts, destination, request_name, stands_for: row.get(11)? }, facts.batch_size))
}

/// Copies of shapes, with more facts.
struct Shapes {
    strings: Strings,
    known: HashMap<(i64, Further), i64>,
}

impl Shapes {
    /// The number of a shape that is as this one, with these facts.
    fn with(&mut self, connection: &Connection, shape: i64, further: Further) -> rusqlite::Result<i64> {
        let key = (shape, further);
        if let Some(id) = self.known.get(&key) {
            return Ok(*id);
        }
        let id = copy(connection, &mut self.strings, shape, &key.1)?;
        if self.known.len() >= SHAPES_MAX {
            self.known.clear();
        }
        self.known.insert(key, id);
        Ok(id)
    }
}

fn copy(connection: &Connection, strings: &mut Strings, shape: i64, further: &Further) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO span_shape_rows (trial, service, scope, name, kind, status, status_message, http_method, \
               http_route, http_status, url, db_system, db_namespace, db_query, db_operation, db_status, db_sub_status, \
               db_partition, server_address, server_port, error_type, resend_count, weight, attributes, rpc_system, \
               rpc_service, rpc_method, rpc_status, messaging_system, messaging_operation, db_collection, peer_service, \
               url_template, messaging_destination, request_name) \
               SELECT trial, service, scope, name, kind, status, status_message, http_method, \
               http_route, http_status, url, db_system, db_namespace, db_query, db_operation, db_status, db_sub_status, \
               db_partition, server_address, server_port, error_type, resend_count, weight / ?13, attributes, ?2, ?3, ?4, ?5, \
               ?6, ?7, ?8, ?9, ?10, ?11, ?12 FROM span_shape_rows WHERE id = ?1";
    let mut ids = [None; 9];
    for (id, text) in ids.iter_mut().zip(&further.texts) {
        *id = strings.optional(connection, text.as_deref())?;
    }
    let destination = further.destination.as_deref().map(fixed);
    let destination = strings.optional(connection, destination.as_deref())?;
    let name = strings.optional(connection, further.request_name.as_deref())?;
    let [a, b, c, d, e, f, g, h, i] = ids;
    let stands_for = further.stands_for.unwrap_or(1);
    connection.prepare_cached(sql)?.insert(params![shape, a, b, c, d, e, f, g, h, i, destination, name, stands_for])
}
