//! Whether a file declares exactly the tables, views and indexes of a run file.
//!
//! Run files are mailed around, and what a file declares is a program: a view named `trials` may never end, a trigger runs
//! when spans get their rows, a virtual table is code. So a file is compared with what [`schema`] makes before anything
//! else is read from it, and anything missing, different or additional refuses it. Only comments and the width of white
//! space may differ.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rusqlite::{Connection, Row};

use super::schema;

/// Declarations of one file that are compared; a run file has about fifty.
const DECLARATIONS_MAX: i64 = 1_000;
/// Tables that `ANALYZE` makes when the run ends, and the index made then. A run that was cut short has none of them.
const OPTIONAL: [&str; 3] = ["sqlite_stat1", "sqlite_stat4", "span_rows_by_shape"];

/// Type and name of a declaration.
type Key = (String, String);

/// Declaration of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Declaration {
    table: String,
    /// Without comments; none of an index that SQLite makes itself.
    sql: Option<String>,
}

/// Says how what a file declares differs from a run file; `None` if it does not. Runs nothing that the file declares.
pub(super) fn difference(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let expected = expected()?;
    let mut missing: BTreeMap<&Key, &Declaration> = expected.iter().collect();
    for (key, found) in declared(connection)? {
        let (kind, name) = &key;
        let namesakes = || expected.keys().find(|(_, other)| other == name);
        match (missing.remove(&key), namesakes()) {
            (Some(wanted), _) if *wanted == found => {}
            (Some(_), _) => return Ok(Some(format!("its {kind} {name} is declared differently"))),
            (None, Some((wanted, _))) => return Ok(Some(format!("{name} is a {kind}, expected a {wanted}"))),
            (None, None) => return Ok(Some(format!("unexpected {kind} {name} on {}", found.table))),
        }
    }
    let first = missing.into_keys().find(|(_, name)| !OPTIONAL.contains(&name.as_str()));
    Ok(first.map(|(kind, name)| format!("the {kind} {name} is missing")))
}

/// Declarations of a run file.
fn expected() -> rusqlite::Result<&'static BTreeMap<Key, Declaration>> {
    static EXPECTED: OnceLock<BTreeMap<Key, Declaration>> = OnceLock::new();
    if let Some(expected) = EXPECTED.get() {
        return Ok(expected);
    }
    let made = Connection::open_in_memory()?;
    schema::create(&made)?;
    made.execute_batch(schema::INDEX_SPANS)?;
    made.execute_batch("ANALYZE")?;
    let expected = declared(&made)?.into_iter().collect();
    Ok(EXPECTED.get_or_init(|| expected))
}

/// Declarations of a file, in no particular order; a name that is declared twice comes twice.
fn declared(connection: &Connection) -> rusqlite::Result<Vec<(Key, Declaration)>> {
    // By its real name: a file can declare a view that is called sqlite_schema.
    let sql = "SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT ?1";
    let read = |row: &Row<'_>| {
        let sql: Option<String> = row.get(3)?;
        let declaration = Declaration { table: row.get(2)?, sql: sql.as_deref().map(without_comments) };
        Ok(((row.get(0)?, row.get(1)?), declaration))
    };
    connection.prepare(sql)?.query_map([DECLARATIONS_MAX], read)?.collect()
}

/// A statement with one space for each run of white space and comments outside of quotes.
///
/// It takes for white space and comments only what SQLite takes for them. A text that it reads otherwise than SQLite does
/// comes out different from the expected one, so the file is refused.
fn without_comments(sql: &str) -> String {
    let mut bare = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let blank = blank_length(rest);
        if blank > 0 {
            bare.push(' ');
            rest = &rest[blank..];
            continue;
        }
        let length = match closing_quote(first) {
            Some(quote) => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
            None => first.len_utf8(),
        };
        bare.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    bare
}

/// The bytes of white space and comments that a text begins with.
fn blank_length(text: &str) -> usize {
    let mut rest = text;
    loop {
        let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\x0c', '\r']);
        let after = match (trimmed.strip_prefix("--"), trimmed.strip_prefix("/*")) {
            (Some(comment), _) => comment.find('\n').map_or("", |end| &comment[end..]),
            (_, Some(comment)) => comment.find("*/").map_or("", |end| &comment[end + 2..]),
            _ => trimmed,
        };
        if after.len() == rest.len() {
            return text.len() - rest.len();
        }
        rest = after;
    }
}

fn closing_quote(first: char) -> Option<char> {
    match first {
        '\'' | '"' | '`' => Some(first),
        '[' => Some(']'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        schema::create(&connection).unwrap();
        connection
    }

    #[test]
    fn what_is_made_here_is_a_run_file_at_every_age() {
        let connection = made();
        assert_eq!(difference(&connection).unwrap(), None);
        schema::index_spans(&connection).unwrap();
        connection.execute_batch("ANALYZE; VACUUM").unwrap();
        assert_eq!(difference(&connection).unwrap(), None);
        schema::drop_spans_index(&connection).unwrap();
        assert_eq!(difference(&connection).unwrap(), None);
    }

    #[test]
    fn every_other_declaration_is_reported() {
        for (sql, expected) in [
            ("DROP TABLE findings", "the table findings is missing"),
            ("DROP VIEW logs", "the view logs is missing"),
            ("DROP INDEX points_by_time", "the index points_by_time is missing"),
            ("CREATE TABLE more (x)", "unexpected table more on more"),
            ("CREATE INDEX more ON points (value)", "unexpected index more on points"),
            ("CREATE TRIGGER more AFTER INSERT ON points BEGIN SELECT 1; END", "unexpected trigger more on points"),
            ("DROP TABLE findings; CREATE VIEW findings AS SELECT 1", "findings is a view, expected a table"),
            (
                "DROP VIEW logs; CREATE VIEW logs AS WITH RECURSIVE t (x) AS (SELECT 1 UNION ALL SELECT x FROM t) SELECT x FROM t",
                "its view logs is declared differently",
            ),
            ("ALTER TABLE trials ADD COLUMN more AS (variant || 'x')", "its table trials is declared differently"),
            (
                "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 0, \
                 sql = 'CREATE VIRTUAL TABLE findings USING dbstat' WHERE name = 'findings'",
                "its table findings is declared differently",
            ),
            ("CREATE TABLE more (x INTEGER PRIMARY KEY AUTOINCREMENT)", "unexpected table more on more"),
            (
                "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('view', 'sqlite_schema', 'sqlite_schema', 0, \
                 'CREATE VIEW sqlite_schema AS SELECT 1')",
                "unexpected view sqlite_schema on sqlite_schema",
            ),
        ] {
            let connection = made();
            connection.execute_batch(sql).unwrap();
            assert_eq!(difference(&connection).unwrap().as_deref(), Some(expected), "{sql}");
        }
    }

    #[test]
    fn comments_and_white_space_do_not_count_and_quotes_do() {
        for (one, other, are_equal) in [
            ("a b", "a -- c 'd\n  b", true),
            ("a b", "a/* c */b", true),
            ("a b", "ab", false),
            ("'a  b'", "'a b'", false),
            ("'a -- b'", "'a ' -- b'", false),
            ("\"a/*\" */", "\"a/* x\" */", false),
            ("[a -- ]", "[a ]", false),
            ("a\u{b}b", "a b", false),
            ("'a''-- b'", "'a''", false),
            ("é ü", "é\r\n\tü", true),
        ] {
            assert_eq!(without_comments(one) == without_comments(other), are_equal, "{one} and {other}");
        }
    }
}
