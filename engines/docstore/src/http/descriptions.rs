//! What the store says about itself: the account, the database, a container and its partition key ranges.

use axum::http::header::IF_NONE_MATCH;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::response::Reply;
use crate::charge::Charge;
use crate::container::Container;
use crate::store::Store;

/// Ranges never change in this store, so one tag stands for all of a container's.
const RANGES_ETAG: &str = "\"1\"";

/// `GET /`: clients go on at the endpoint it names.
pub(super) fn account(endpoint: &str) -> Reply {
    let locations = json!([{ "name": "local", "databaseAccountEndpoint": endpoint }]);
    let replicas = json!({ "asyncReplication": false, "minReplicaSetSize": 1, "maxReplicasetSize": 1 });
    Reply::description(&json!({
        "id": "narrows",
        "_rid": "narrows.local",
        "_self": "",
        "_dbs": "//dbs/",
        "media": "//media/",
        "addresses": "//addresses/",
        "writableLocations": locations,
        "readableLocations": locations,
        "enableMultipleWriteLocations": false,
        "userReplicationPolicy": replicas,
        "systemReplicationPolicy": replicas,
        "userConsistencyPolicy": { "defaultConsistencyLevel": "Session" },
        "readPolicy": { "primaryReadCoefficient": 1, "secondaryReadCoefficient": 1 },
        "queryEngineConfiguration": "{}",
    }))
}

/// `GET /dbs/{db}`.
pub(super) fn database(store: &Store) -> Reply {
    Reply::description(&json!({
        "id": store.database,
        "_rid": store.database_rid,
        "_self": format!("dbs/{}/", store.database_rid),
        "_etag": "\"1\"",
        "_colls": "colls/",
        "_users": "users/",
        "_ts": store.unix_s(),
    }))
}

/// `GET /dbs/{db}/colls/{coll}`.
pub(super) fn container(store: &Store, container: &Container) -> Reply {
    Reply::description(&json!({
        "id": container.name,
        "_rid": container.rid,
        "_self": path(store, container),
        "_etag": "\"1\"",
        "_docs": "docs/",
        "_sprocs": "sprocs/",
        "_triggers": "triggers/",
        "_udfs": "udfs/",
        "_conflicts": "conflicts/",
        "_ts": store.unix_s(),
        "partitionKey": { "paths": [format!("/{}", container.partition_key)], "kind": "Hash", "version": 2 },
        "indexingPolicy": { "indexingMode": "consistent", "automatic": true },
    }))
}

/// `GET /dbs/{db}/colls/{coll}/pkranges`: every range, or 304 for a client that has them.
pub(super) fn ranges(store: &Store, container: &Container, headers: &HeaderMap) -> Reply {
    if headers.get(IF_NONE_MATCH).is_some_and(|etag| etag == RANGES_ETAG) {
        return Reply::new(StatusCode::NOT_MODIFIED, Charge::DESCRIPTION, String::new()).with_etag(RANGES_ETAG);
    }
    let count = container.ranges.count();
    let ranges: Vec<Value> = (0..count).map(|range| description_of_range(store, container, range)).collect();
    Reply::description(&json!({ "_rid": container.rid, "PartitionKeyRanges": ranges, "_count": count }))
        .with("x-ms-item-count", count)
        .with_etag(RANGES_ETAG)
}

fn description_of_range(store: &Store, container: &Container, range: u32) -> Value {
    json!({
        "id": range.to_string(),
        "_rid": container.rid,
        "_self": format!("{}pkranges/{range}/", path(store, container)),
        "_etag": RANGES_ETAG,
        "_ts": store.unix_s(),
        "minInclusive": container.ranges.min_inclusive(range),
        "maxExclusive": container.ranges.max_exclusive(range),
        "ridPrefix": range,
        "throughputFraction": 1.0 / f64::from(container.ranges.count()),
        "status": "online",
        "parents": [],
    })
}

fn path(store: &Store, container: &Container) -> String {
    format!("dbs/{}/colls/{}/", store.database_rid, container.rid)
}
