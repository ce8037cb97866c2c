//! A small run file in memory: tables with the columns that queries read, a few rows, and plain stand-ins for the
//! functions that the real one has.

mod functions;

use narrows_model::table::ColumnType;
use narrows_query::{CompiledQuery, Mistake, compile, tables};
use rusqlite::Connection;
use rusqlite::types::Value;

/// Rows of `requests`: seconds after the start, id, name, success, resultCode, duration, itemCount, trace, service,
/// customDimensions.
const REQUESTS: &str = r#"
    (0,  'r1', 'GET /orders', 1, '200', 10.0,  1, 'a', 'shop',  '{"tenant":"north","http.route":"/orders","size":7,"tags":["x","y"],"retry":{"attempts":2},"cached":true}'),
    (30, 'r2', 'GET /orders', 0, '500', 400.0, 1, 'b', 'shop',  '{"tenant":"south","size":3}'),
    (60, 'r3', 'PUT /orders', 1, '201', 35.5,  2, 'c', 'shop',  '{}'),
    (90, 'r4', 'GET /stock',  1, '200', 5.0,   4, 'd', 'stock', '{"tenant":"it''s"}'),
    (95, 'r5', 'GET /stock',  0, '429', 7.25,  4, 'e', 'stock', '{}'),
    (3700, 'r6', NULL,        1, NULL,  NULL,  1, 'f', 'stock', NULL)"#;

/// Rows of `dependencies`: seconds, id, name, success, type, target, resultCode, duration, charge, itemCount, trace,
/// parent.
const DEPENDENCIES: &str = r"
    (1,  'd1', 'query',  1, 'cosmosdb', 'db', '200', 4.0, 3.2,  1, 'a', 'r1'),
    (2,  'd2', 'query',  0, 'cosmosdb', 'db', '429', 2.0, 0.0,  1, 'a', 'r1'),
    (31, 'd3', 'query',  0, 'cosmosdb', 'db', '429', 9.0, NULL, 2, 'b', 'r2'),
    (61, 'd4', 'GET',    1, 'HTTP',     '',   '200', 8.0, NULL, 1, 'c', 'r3')";

/// When the first row of [`REQUESTS`] is: 2024-03-01T10:00:00Z.
pub(crate) const START_NS: i64 = 1_709_287_200_000_000_000;

pub(crate) struct Bench {
    connection: Connection,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        let connection = Connection::open_in_memory().unwrap();
        functions::register(&connection);
        let tables = tables();
        for table in tables.iter().filter(|table| table.view == Some(table.name)) {
            let stored = table.columns.iter().filter_map(|column| Some((column.stored_as?, column.kind)));
            let columns: Vec<_> = stored.map(|(name, kind)| format!("\"{name}\" {}", affinity(kind))).collect();
            connection.execute_batch(&format!("CREATE TABLE {} ({})", table.name, columns.join(", "))).unwrap();
        }
        let rows = format!(
            "INSERT INTO requests (timestamp_ns, id, name, success, resultCode, duration, itemCount, operation_Id, cloud_RoleName, customDimensions, trial)
             SELECT {START_NS} + column1 * 1000000000, column2, column3, column4, column5, column6, column7, column8, column9, column10, 1 FROM (VALUES {REQUESTS});
             INSERT INTO dependencies (timestamp_ns, id, name, success, type, target, resultCode, duration, charge, itemCount, operation_Id, operation_ParentId)
             SELECT {START_NS} + column1 * 1000000000, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12 FROM (VALUES {DEPENDENCIES});"
        );
        connection.execute_batch(&rows).unwrap();
        Bench { connection }
    }

    /// The rows that a query gives, each as its cells with `|` between.
    pub(crate) fn rows(&self, query: &str) -> Vec<String> {
        let compiled = compile(query, &[]).unwrap_or_else(|mistake| panic!("{query}: {mistake}"));
        self.run(&compiled).unwrap_or_else(|error| panic!("{query}: {error}\n{}", compiled.sql))
    }

    /// Whether SQLite understands a query.
    pub(crate) fn prepare(&self, compiled: &CompiledQuery) -> rusqlite::Result<()> {
        self.connection.prepare(&compiled.sql).map(drop)
    }

    pub(crate) fn run(&self, compiled: &CompiledQuery) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare(&compiled.sql)?;
        let names: Vec<_> = statement.column_names().map(str::to_owned).collect();
        assert_eq!(names, compiled.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>());
        let mut rows = statement.query([])?;
        let mut texts = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Vec::new();
            for (position, column) in compiled.columns.iter().enumerate() {
                let value: Value = row.get(position)?;
                check_kind(&value, column.kind, &compiled.sql);
                cells.push(shown(&value));
            }
            texts.push(cells.join("|"));
        }
        Ok(texts)
    }
}

/// A query's mistake; it has one.
pub(crate) fn mistake(query: &str) -> Mistake {
    compile(query, &[]).expect_err(query)
}

fn affinity(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Real => "REAL",
        ColumnType::Text | ColumnType::Json => "TEXT",
        _ => "INTEGER",
    }
}

/// Values of SQLite have the column's type.
fn check_kind(value: &Value, kind: ColumnType, sql: &str) {
    let is_sound = matches!(
        (value, kind),
        (Value::Null, _)
            | (Value::Integer(0 | 1), ColumnType::Bool)
            | (Value::Integer(_), ColumnType::Integer | ColumnType::Instant | ColumnType::Span)
            | (Value::Real(_), ColumnType::Real)
            | (Value::Text(_), ColumnType::Text | ColumnType::Json)
    );
    assert!(is_sound, "{value:?} in a column of {kind:?}\n{sql}");
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => format!("{number:?}"),
        Value::Text(text) => text.clone(),
        Value::Blob(_) => "blob".to_owned(),
    }
}
