//! Containers: list, create, read, change and delete.

use axum::http::HeaderMap;
use serde_json::Value;

use super::databases::{refused, selected};
use super::response::{Failure, Reply};
use super::{descriptions, headers, queries};
use crate::container::Container;
use crate::database::Database;
use crate::definition::Definition;
use crate::query::{self, Selection};
use crate::store::Store;
use crate::throughput::Throughput;

const MANUAL: &str = "x-ms-offer-throughput";
const AUTOSCALE: &str = "x-ms-cosmos-offer-autopilot-settings";

/// `GET /dbs/{db}/colls`, or `POST` with a query.
pub(super) fn list(database: &Database, selection: Option<&Selection>) -> Result<Reply, Failure> {
    let containers = database.containers();
    let containers = containers.iter().map(|container| descriptions::container(container));
    Ok(Reply::feed(&database.rid, "DocumentCollections", &selected(selection, containers)?))
}

/// `POST /dbs/{db}/colls`: a query or a new container.
pub(super) fn post(store: &Store, database: &Database, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    if headers::is_query(headers)? {
        return list(database, Some(&queries::read(body)?));
    }
    let definition = definition(body)?;
    let name = definition.name.clone();
    let created = store.create_container(database, definition, offered(headers)?);
    let container = created.map_err(|rejected| refused(&rejected, "container", &name))?;
    Ok(Reply::created(&descriptions::container(&container)).with_etag(descriptions::ETAG))
}

/// `GET /dbs/{db}/colls/{coll}`.
pub(super) fn read(container: &Container) -> Reply {
    Reply::description(&descriptions::container(container)).with_etag(descriptions::ETAG)
}

/// `PUT /dbs/{db}/colls/{coll}`.
pub(super) fn replace(store: &Store, container: &Container, body: &[u8]) -> Result<Reply, Failure> {
    store.journal().check()?;
    container.redefine(definition(body)?).map_err(|error| Failure::bad_request(&error))?;
    Ok(read(container))
}

/// `DELETE /dbs/{db}/colls/{coll}`.
pub(super) fn delete(store: &Store, database: &Database, container: &Container) -> Result<Reply, Failure> {
    store.delete_container(database, container)?;
    Ok(Reply::deleted())
}

/// The throughput that the headers of a creation ask for.
pub(super) fn offered(headers: &HeaderMap) -> Result<Option<Throughput>, Failure> {
    let offered = match (headers::text(headers, MANUAL)?, headers::text(headers, AUTOSCALE)?) {
        (None, None) => return Ok(None),
        (Some(amount), None) => Throughput::manual(amount),
        (None, Some(settings)) => match serde_json::from_str::<Value>(settings) {
            Ok(settings) => Throughput::autoscale(&settings),
            Err(_) => return Err(headers::unusable(AUTOSCALE, settings, "{\"maxThroughput\": 1000}")),
        },
        (Some(_), Some(_)) => Err(format!("{MANUAL} and {AUTOSCALE} exclude each other, expected one of them")),
    };
    offered.map(Some).map_err(|error| Failure::bad_request(&error))
}

fn definition(body: &[u8]) -> Result<Definition, Failure> {
    let body = query::object(body).map_err(|error| Failure::bad_request(&error))?;
    Definition::from_json(&body).map_err(|error| Failure::bad_request(&error))
}
