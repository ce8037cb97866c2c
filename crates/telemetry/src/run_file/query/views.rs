//! The newest views, for a run file of any schema.
//!
//! A temporary view lies before a table or view of the same name in the file, so the file stays as it is. Columns that
//! an older file lacks are there as NULL, or are made of others where the views of Application Insights read them; those
//! are always made anew.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result};

use super::super::schema::{self, INSIGHTS, OLDER_SPANS};

/// Makes the views. The connection must be allowed to write to its temporary database.
pub(super) fn create(connection: &Connection, is_older: bool) -> Result<()> {
    if is_older {
        add_missing_columns(connection)?;
    }
    connection.execute_batch(&temporary(INSIGHTS))
}

/// A script of views as one of temporary views.
fn temporary(script: &str) -> String {
    script.replace("DROP VIEW IF EXISTS ", "DROP VIEW IF EXISTS temp.").replace("CREATE VIEW ", "CREATE TEMP VIEW ")
}

fn add_missing_columns(connection: &Connection) -> Result<()> {
    let newest = Connection::open_in_memory()?;
    schema::create(&newest)?;
    let there = columns(connection)?;
    for (name, wanted) in columns(&newest)?.into_iter().filter(|(name, _)| is_public(name)) {
        let found = there.get(&name).map_or(&[][..], Vec::as_slice);
        let missing: Vec<&String> = wanted.iter().filter(|column| !found.contains(column)).collect();
        if missing.is_empty() {
            continue;
        }
        let older = |column: &str| {
            OLDER_SPANS.iter().find(|(known, _)| name == "spans" && !found.is_empty() && *known == column)
        };
        let absent = |column: &&String| {
            format!("{} AS {}", older(column).map_or("NULL", |(_, made_of)| made_of), quoted(column))
        };
        let absent: Vec<String> = missing.iter().map(absent).collect();
        let (name, absent) = (quoted(&name), absent.join(", "));
        connection.execute_batch(&match found.is_empty() {
            true => format!("CREATE TEMP VIEW {name} AS SELECT {absent} WHERE 0"),
            false => format!("CREATE TEMP VIEW {name} AS SELECT *, {absent} FROM main.{name}"),
        })?;
    }
    Ok(())
}

/// Tables for people, and views; those of [`INSIGHTS`] are made anew anyway.
fn is_public(name: &str) -> bool {
    let is_inner = name.ends_with("_rows") || ["strings", "points"].contains(&name) || name.starts_with("sqlite_");
    !is_inner && !INSIGHTS.contains(&format!("CREATE VIEW {name} AS"))
}

/// The columns of every table and view.
fn columns(connection: &Connection) -> Result<BTreeMap<String, Vec<String>>> {
    let sql = "SELECT s.name, c.name FROM main.sqlite_schema AS s JOIN pragma_table_info(s.name) AS c \
               WHERE s.type IN ('table', 'view') ORDER BY s.name, c.cid";
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        all.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(all)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
