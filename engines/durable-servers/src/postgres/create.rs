//! Creation and recognition of a hub's tables.

use narrows_durable::store::{HubShape, StoreError};

use super::calls::{Act, Calls};
use super::sql;

/// Content of table `hub`.
pub(super) struct Hub {
    pub(super) shape: HubShape,
    /// Prefix of the messages between its nodes.
    pub(super) secret: String,
}

/// Makes the tables if the schema has none.
pub(super) fn create(calls: &Calls, wanted: HubShape) -> Result<(), StoreError> {
    let schema = calls.schema().to_owned();
    let act = Act::new("read", format!("schema {schema}"));
    let found = calls.of_hub(sql::LOOK_FOR_HUB, vec![Box::new(schema.clone())], act)?;
    let (hubs, tables) = found.rows.first().map_or((0, 0), |row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
    match (hubs, tables) {
        (0, 0) => calls.script(script(&schema, wanted), Act::new("create", format!("schema {schema}"))),
        (0, _) => {
            let what = format!("it has {tables} tables, expected none or those of a hub");
            Err(StoreError::Foreign { place: calls.place(format!("schema {schema}")), what })
        }
        _ => Ok(()),
    }
}

/// All in one transaction, and one node after another. The schema's name was checked to hold no quotes.
fn script(schema: &str, wanted: HubShape) -> String {
    format!(
        "begin; select pg_advisory_xact_lock({lock}); create schema if not exists \"{schema}\"; {tables}
         insert into partitions (id) select generate_series(0, {last}) where not exists (select from hub);
         insert into hub (layout, partitions, format, secret)
           values ({layout}, {partitions}, {format}, gen_random_uuid()::text) on conflict do nothing;
         commit",
        lock = sql::CREATE_LOCK,
        tables = sql::TABLES,
        last = i32::from(wanted.partitions) - 1,
        layout = sql::LAYOUT,
        partitions = wanted.partitions,
        format = wanted.format,
    )
}

/// Reads table `hub`.
pub(super) fn hub(calls: &Calls) -> Result<Hub, StoreError> {
    let place = || calls.place("table hub");
    let found = calls.of_hub(sql::HUB, Vec::new(), Act::new("read", "table hub"))?;
    let Some(row) = found.rows.first() else {
        return Err(StoreError::Foreign { place: place(), what: "it is empty, expected one row".to_owned() });
    };
    let layout: i64 = row.get(0);
    if layout != sql::LAYOUT {
        let what = format!("its tables are of layout {layout}, expected {}", sql::LAYOUT);
        return Err(StoreError::Foreign { place: place(), what });
    }
    let number = |column: usize| u16::try_from(row.get::<_, i64>(column)).ok();
    match (number(1), number(2)) {
        (Some(partitions), Some(format)) => Ok(Hub { shape: HubShape { partitions, format }, secret: row.get(3) }),
        _ => Err(StoreError::Damaged { place: place(), what: "its numbers are out of range".to_owned() }),
    }
}
