//! The statements over the one table, each prepared once for each connection.

use tokio_postgres::{Client, Row, Statement};

use super::rows::{Form, Rows};
use crate::payload::{Name, Text};

/// The table.
pub(super) const TABLE: &str = "name";

const ALL: &str = r#"SELECT personId, "first", middle, "last" FROM name"#;
const BY_ID: &str = r#"SELECT personId, "first", middle, "last" FROM name WHERE personId = $1"#;
const BY_LAST: &str = r#"SELECT personId, "first", middle, "last" FROM name WHERE "last" = $1"#;
const INSERT: &str = r#"INSERT INTO name (personId, "first", middle, "last") VALUES ($1, $2, $3, $4)"#;

/// A query with its values.
#[derive(Debug)]
pub(super) enum Query {
    All,
    ById(i32),
    ByLast(String),
    Insert(Name<'static>),
}

impl Query {
    /// The statement's text.
    pub(super) fn text(&self) -> &'static str {
        match self {
            Self::All => ALL,
            Self::ById(_) => BY_ID,
            Self::ByLast(_) => BY_LAST,
            Self::Insert(_) => INSERT,
        }
    }

    /// Operation of the statement, in SQL's word.
    pub(super) fn operation(&self) -> &'static str {
        if matches!(self, Self::Insert(_)) { "INSERT" } else { "SELECT" }
    }
}

/// The statements of one connection.
#[derive(Debug)]
pub(super) struct Statements {
    all: Statement,
    by_id: Statement,
    by_last: Statement,
    insert: Statement,
}

impl Statements {
    pub(super) async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            all: client.prepare(ALL).await?,
            by_id: client.prepare(BY_ID).await?,
            by_last: client.prepare(BY_LAST).await?,
            insert: client.prepare(INSERT).await?,
        })
    }

    /// Runs a query. The rows are read where they are; a fault in them is the inner error.
    pub(super) async fn run(
        &self,
        client: &Client,
        query: &Query,
    ) -> Result<Result<Rows, String>, tokio_postgres::Error> {
        let list = |rows: Vec<Row>| Rows::from_rows(&rows, Form::List);
        match query {
            Query::All => client.query(&self.all, &[]).await.map(list),
            Query::ById(id) => client.query(&self.by_id, &[id]).await.map(|rows| Rows::from_rows(&rows, Form::One)),
            Query::ByLast(last) => client.query(&self.by_last, &[last]).await.map(list),
            Query::Insert(name) => {
                let [first, middle, last] = [&name.first, &name.middle, &name.last].map(text);
                let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] = [&name.person_id, &first, &middle, &last];
                client.execute(&self.insert, &values).await.map(|_| Ok(Rows::default()))
            }
        }
    }
}

fn text<'a>(text: &'a Option<Text<'_>>) -> Option<&'a str> {
    text.as_ref().map(|text| text.0.as_ref())
}
