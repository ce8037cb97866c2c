//! Dispatch of a request by its route and method.

use axum::http::{HeaderMap, Method};

use super::response::{Failure, Reply};
use super::route::{Part, Route};
use super::{containers, databases, descriptions, documents, feeds, headers, offers, point_operations};
use crate::container::Container;
use crate::database::Database;
use crate::moment::Moment;
use crate::store::Store;

/// "The client addressed a container that was re-created since."
const SUB_STATUS_CONTAINER_MISMATCH: u32 = 1024;

/// A request without its route.
pub(super) struct RequestParts<'a> {
    pub(super) moment: &'a Moment,
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
}

pub(super) fn run(store: &Store, endpoint: &str, route: &Route, incoming: &RequestParts) -> Result<Reply, Failure> {
    let RequestParts { method, headers, body, .. } = *incoming;
    match (route, method.as_str()) {
        (Route::Account, "GET") => Ok(descriptions::account(endpoint)),
        (Route::Offers, "GET") => offers::list(store, None),
        (Route::Offers, "POST") => offers::post(store, headers, body),
        (Route::Offer { id }, "GET") => offers::read(store, id),
        (Route::Offer { id }, "PUT") => offers::replace(store, id, headers, body),
        (Route::Databases, "GET") => databases::list(store, None),
        (Route::Databases, "POST") => databases::post(store, headers, body),
        (Route::Database { database }, _) => {
            let found = store.database(database).ok_or_else(|| missing_database(database))?;
            in_database(store, &found, incoming)
        }
        (Route::Containers { database }, _) => {
            let found = store.database(database).ok_or_else(|| missing_database(database).of_owner())?;
            match method.as_str() {
                "GET" => containers::list(&found, None),
                "POST" => containers::post(store, &found, headers, body),
                _ => Err(Failure::method(method, "GET or POST")),
            }
        }
        (Route::InContainer { database, container, part }, _) => {
            let is_owner = *part != Part::Container;
            let missing = |failure: Failure| if is_owner { failure.of_owner() } else { failure };
            let database_found = store.database(database).ok_or_else(|| missing(missing_database(database)))?;
            let found = database_found.container(container).ok_or_else(|| {
                missing(Failure::not_found(&format!("container {container:?} in database {database:?}")))
            })?;
            in_container(store, &database_found, &found, part, incoming)
        }
        (Route::Account, _) => Err(Failure::method(method, "GET")),
        (Route::Offer { .. }, _) => Err(Failure::method(method, "GET or PUT")),
        (Route::Offers | Route::Databases, _) => Err(Failure::method(method, "GET or POST")),
    }
}

fn missing_database(name: &str) -> Failure {
    Failure::not_found(&format!("database {name:?}"))
}

fn in_database(store: &Store, database: &Database, incoming: &RequestParts) -> Result<Reply, Failure> {
    match incoming.method.as_str() {
        "GET" => Ok(databases::read(database)),
        "DELETE" => databases::delete(store, database),
        _ => Err(Failure::method(incoming.method, "GET or DELETE")),
    }
}

fn in_container(
    store: &Store,
    database: &Database,
    container: &Container,
    part: &Part,
    incoming: &RequestParts,
) -> Result<Reply, Failure> {
    let RequestParts { moment, method, headers, body } = *incoming;
    let is_meant = headers::text(headers, "x-ms-cosmos-intended-collection-rid")?;
    if is_meant.is_some_and(|rid| rid != container.rid) {
        let message = "the container was re-created since the client has read it";
        return Err(Failure::bad_request(message).with_sub_status(SUB_STATUS_CONTAINER_MISMATCH));
    }
    headers::check_consistency(headers)?;
    let wants_binary = headers::wants_binary(headers)?;
    let reply = match (part, method.as_str()) {
        (Part::Container, "GET") => Ok(containers::read(container)),
        (Part::Container, "PUT") => containers::replace(store, container, body),
        (Part::Container, "DELETE") => containers::delete(store, database, container),
        (Part::Ranges, "GET") => Ok(descriptions::ranges(container, headers)),
        (Part::Documents, "GET") => feeds::get(moment, container, headers),
        (Part::Documents, "POST") => documents::post(moment, container, headers, body),
        (Part::Document { id }, "GET") => point_operations::read(moment, container, headers, id),
        (Part::Document { id }, "PUT") => point_operations::replace(moment, container, headers, id, body),
        (Part::Document { id }, "PATCH") => point_operations::patch(moment, container, headers, id, body),
        (Part::Document { id }, "DELETE") => point_operations::delete(moment, container, headers, id),
        (Part::Container, _) => Err(Failure::method(method, "GET, PUT or DELETE")),
        (Part::Ranges, _) => Err(Failure::method(method, "GET")),
        (Part::Documents, _) => Err(Failure::method(method, "GET or POST")),
        (Part::Document { .. }, _) => Err(Failure::method(method, "GET, PUT, PATCH or DELETE")),
    }?;
    let is_of_documents = matches!(part, Part::Documents | Part::Document { .. });
    Ok(if wants_binary && is_of_documents { reply.in_binary() } else { reply })
}
