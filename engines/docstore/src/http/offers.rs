//! Offers: the throughput of databases and containers, read and changed while they are in use.

use std::sync::Arc;

use axum::http::HeaderMap;
use serde_json::Value;

use super::databases::selected;
use super::response::{Failure, Reply};
use super::{databases, descriptions, headers, queries};
use crate::container::Container;
use crate::database::Database;
use crate::query::{self, Selection};
use crate::resource_id;
use crate::store::Store;
use crate::throughput::Throughput;

/// Subject of an offer.
enum Owner {
    Database(Arc<Database>, Throughput),
    Container(Arc<Container>),
}

/// `GET /offers`, or `POST` with a query.
pub(super) fn list(store: &Store, selection: Option<&Selection>) -> Result<Reply, Failure> {
    let databases = store.databases();
    let of_databases = databases.iter().filter_map(|database| databases::offer(database));
    let containers = store.containers();
    let of_containers = containers.iter().map(|container| of_container(container));
    Ok(Reply::feed("", "Offers", &selected(selection, of_databases.chain(of_containers))?))
}

/// `POST /offers`: a query.
pub(super) fn post(store: &Store, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    if headers::is_query(headers)? {
        return list(store, Some(&queries::read(body)?));
    }
    Err(Failure::bad_request("offers are created with their containers, expected a query"))
}

/// `GET /offers/{offer}`.
pub(super) fn read(store: &Store, id: &str) -> Result<Reply, Failure> {
    Ok(Reply::description(&find(store, id)?.describe()).with_etag(descriptions::ETAG))
}

/// `PUT /offers/{offer}`: another throughput, or the same one under the other rule.
pub(super) fn replace(store: &Store, id: &str, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    let owner = find(store, id)?;
    let offer = Value::Object(query::object(body).map_err(|error| Failure::bad_request(&error))?);
    let throughput = if headers::flag(headers, "x-ms-cosmos-migrate-offer-to-autopilot")? {
        owner.throughput().migrated_to_autoscale()
    } else if headers::flag(headers, "x-ms-cosmos-migrate-offer-to-manual-throughput")? {
        owner.throughput().migrated_to_manual()
    } else {
        Throughput::from_content(&offer["content"]).map_err(|error| Failure::bad_request(&error))?
    };
    match &owner {
        Owner::Database(database, _) => store.provision_database(database, throughput)?,
        Owner::Container(container) => {
            store.journal().check()?;
            container.provision(throughput, store.now());
        }
    }
    read(store, id)
}

fn find(store: &Store, id: &str) -> Result<Owner, Failure> {
    let of_databases = store.databases().into_iter().filter_map(|database| {
        let throughput = database.throughput()?;
        (resource_id::offer(database.number) == id).then_some(Owner::Database(database, throughput))
    });
    let containers = store.containers().into_iter();
    let of_containers = containers.filter(|container| resource_id::offer(container.id.container) == id);
    let mut owners = of_databases.chain(of_containers.map(Owner::Container));
    owners.next().ok_or_else(|| Failure::not_found(&format!("offer {id:?}")))
}

impl Owner {
    fn throughput(&self) -> Throughput {
        match self {
            Self::Database(_, throughput) => *throughput,
            Self::Container(container) => container.throughput(),
        }
    }

    fn describe(&self) -> Value {
        match self {
            Self::Database(database, throughput) => {
                let link = format!("dbs/{}/", database.rid);
                descriptions::offer(database.number, &link, &database.rid, *throughput, database.created_unix_s)
            }
            Self::Container(container) => of_container(container),
        }
    }
}

fn of_container(container: &Container) -> Value {
    let number = container.id.container;
    let (path, created) = (container.id.path(), container.created_unix_s);
    descriptions::offer(number, &path, &container.rid, container.throughput(), created)
}
