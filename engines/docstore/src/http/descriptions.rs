//! Descriptions of the account, the database, a container, its partition key ranges and offers.

use axum::http::header::IF_NONE_MATCH;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::response::Reply;
use crate::charge::Charge;
use crate::container::Container;
use crate::database::Database;
use crate::ranges::Range;
use crate::resource_id;
use crate::throughput::Throughput;

/// The tag of descriptions; the store does not compare it.
pub(super) const ETAG: &str = "\"1\"";

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

/// A database.
pub(super) fn database(database: &Database) -> Value {
    json!({
        "id": database.name,
        "_rid": database.rid,
        "_self": format!("dbs/{}/", database.rid),
        "_etag": ETAG,
        "_colls": "colls/",
        "_users": "users/",
        "_ts": database.created_unix_s,
    })
}

/// A container.
pub(super) fn container(container: &Container) -> Value {
    let mut description = container.definition().to_json();
    for (name, value) in [
        ("_rid", json!(container.rid)),
        ("_self", json!(container.id.path())),
        ("_etag", json!(ETAG)),
        ("_docs", json!("docs/")),
        ("_sprocs", json!("sprocs/")),
        ("_triggers", json!("triggers/")),
        ("_udfs", json!("udfs/")),
        ("_conflicts", json!("conflicts/")),
        ("_ts", json!(container.created_unix_s)),
    ] {
        description.insert(name.to_owned(), value);
    }
    Value::Object(description)
}

/// The throughput of a database or container, by the path and the id of that resource.
pub(super) fn offer(number: u32, resource: &str, owner: &str, throughput: Throughput, unix_s: u64) -> Value {
    let rid = resource_id::offer(number);
    json!({
        "id": rid,
        "_rid": rid,
        "_self": format!("offers/{rid}/"),
        "_etag": ETAG,
        "_ts": unix_s,
        "offerType": "Invalid",
        "offerVersion": "V2",
        "offerResourceId": owner,
        "resource": resource,
        "content": throughput.content(),
    })
}

/// `GET /dbs/{db}/colls/{coll}/pkranges`: every range, or 304 for a client that has them.
pub(super) fn ranges(container: &Container, headers: &HeaderMap) -> Reply {
    let ranges = container.ranges();
    let etag = ranges.etag();
    if headers.get(IF_NONE_MATCH).is_some_and(|known| *known == *etag) {
        return Reply::new(StatusCode::NOT_MODIFIED, Charge::DESCRIPTION, String::new()).with_etag(&etag);
    }
    let count = f64::from(ranges.count());
    let described: Vec<Value> = ranges.iter().map(|range| range_of(container, range, count)).collect();
    Reply::feed(&container.rid, "PartitionKeyRanges", &described).with_etag(&etag)
}

fn range_of(container: &Container, range: &Range, count: f64) -> Value {
    let id = range.id;
    json!({
        "id": id.to_string(),
        "_rid": container.rid,
        "_self": format!("{}pkranges/{id}/", container.id.path()),
        "_etag": ETAG,
        "_ts": container.created_unix_s,
        "minInclusive": range.span.min_inclusive(),
        "maxExclusive": range.span.max_exclusive(),
        "ridPrefix": id,
        "throughputFraction": 1.0 / count,
        "status": "online",
        "parents": range.parents.iter().map(u32::to_string).collect::<Vec<_>>(),
    })
}
