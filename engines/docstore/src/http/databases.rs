//! Databases: list, create, read and delete.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::containers::offered;
use super::response::{Failure, Reply};
use super::{descriptions, headers, queries};
use crate::database::{CreateError, Database, MAX_RESOURCES};
use crate::definition::name_of;
use crate::query::{self, Selection};
use crate::store::Store;

/// `GET /dbs`, or `POST /dbs` with a query.
pub(super) fn list(store: &Store, selection: Option<&Selection>) -> Result<Reply, Failure> {
    let databases = store.databases();
    let databases = databases.iter().map(|database| descriptions::database(database));
    Ok(Reply::feed("", "Databases", &selected(selection, databases)?))
}

/// `POST /dbs`: a query or a new database.
pub(super) fn post(store: &Store, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    if headers::is_query(headers)? {
        return list(store, Some(&queries::read(body)?));
    }
    let definition = query::object(body).map_err(|error| Failure::bad_request(&error))?;
    let name = name_of(&definition).map_err(|error| Failure::bad_request(&error))?;
    let created = store.create_database(name, offered(headers)?);
    let database = created.map_err(|rejected| refused(&rejected, "database", name))?;
    Ok(Reply::created(&descriptions::database(&database)).with_etag(descriptions::ETAG))
}

/// `DELETE /dbs/{db}`.
pub(super) fn delete(store: &Store, database: &Database) -> Result<Reply, Failure> {
    store.delete_database(database)?;
    Ok(Reply::deleted())
}

/// The resources that a query selects; all without one.
pub(super) fn selected(
    selection: Option<&Selection>,
    resources: impl Iterator<Item = Value>,
) -> Result<Vec<Value>, Failure> {
    let mut selected = Vec::new();
    for resource in resources {
        let is_selected = selection.map_or(Ok(true), |selection| selection.matches(&resource.to_string()))?;
        if is_selected {
            selected.push(resource);
        }
    }
    Ok(selected)
}

/// Why a database or container was not created.
pub(super) fn refused(rejected: &CreateError, kind: &str, name: &str) -> Failure {
    match rejected {
        CreateError::Exists => Failure::conflict(format!("{kind} {name:?} exists already")),
        CreateError::TooMany => Failure::too_many(MAX_RESOURCES),
        CreateError::Unavailable(unavailable) => unavailable.clone().into(),
    }
}

/// The offer of a database, if it has one.
pub(super) fn offer(database: &Database) -> Option<Value> {
    let throughput = database.throughput()?;
    let link = format!("dbs/{}/", database.rid);
    Some(descriptions::offer(database.number, &link, &database.rid, throughput, database.created_unix_s))
}

/// Description of the database, for `GET /dbs/{db}`.
pub(super) fn read(database: &Database) -> Reply {
    Reply::description(&json!(descriptions::database(database))).with_etag(descriptions::ETAG)
}
