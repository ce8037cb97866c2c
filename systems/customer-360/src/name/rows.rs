//! Rows of the table as JSON, read from PostgreSQL's binary format without a copy between.

use std::borrow::Cow;

use tokio_postgres::Row;

use crate::payload::{Name, Text, written};

/// The names that a query found, written as a list; one alone where the query is for one.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) count: usize,
    pub(super) json: Vec<u8>,
}

/// The order of the columns in every `SELECT`.
const PERSON_ID: usize = 0;
const FIRST: usize = 1;
const MIDDLE: usize = 2;
const LAST: usize = 3;

fn name(row: &Row) -> Result<Name<'_>, tokio_postgres::Error> {
    let text = |column| row.try_get(column).map(|text: Option<&str>| text.map(|text| Text(Cow::Borrowed(text))));
    Ok(Name { person_id: row.try_get(PERSON_ID)?, first: text(FIRST)?, middle: text(MIDDLE)?, last: text(LAST)? })
}

/// Shape of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    List,
    One,
}

impl Rows {
    pub(super) fn from_rows(rows: &[Row], form: Form) -> Result<Self, String> {
        let names: Result<Vec<Name<'_>>, _> = rows.iter().map(name).collect();
        let names = names.map_err(|error| error.to_string())?;
        let json = match form {
            Form::List => written(names.iter()),
            Form::One => names.first().map_or(Ok(Vec::new()), serde_json::to_vec),
        };
        Ok(Self { count: rows.len(), json: json.map_err(|error| error.to_string())? })
    }
}
