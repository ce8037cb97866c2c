//! Databases, containers and their throughput, made and changed while the store is in use.

use super::*;

pub(super) fn post(service: &Service, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    send(service, Method::POST, path, headers, body.to_string().as_bytes())
}

pub(super) fn put(service: &Service, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    send(service, Method::PUT, path, headers, body.to_string().as_bytes())
}

pub(super) fn delete(service: &Service, path: &str, headers: &[(&str, &str)]) -> Reply {
    send(service, Method::DELETE, path, headers, b"")
}

/// A store with database `db` and in it the container of `definition`, with those headers.
pub(super) fn with_container(definition: &Value, headers: &[(&str, &str)]) -> (Service, StoredDocument) {
    let (service, clock) =
        service(Config { containers: vec!["c".into()], documents_per_container: 0, ..Config::default() });
    assert_eq!(post(&service, "/dbs", &[], &json!({ "id": "db" })).status, 201);
    let created = post(&service, "/dbs/db/colls", headers, definition);
    assert_eq!(created.status, 201, "{:?}", String::from_utf8(created.body));
    (service, clock)
}

pub(super) fn by_owner(name: &str) -> Value {
    json!({ "id": name, "partitionKey": { "paths": ["/owner"], "kind": "Hash", "version": 2 } })
}

#[test]
fn a_database_and_a_container_are_made_listed_and_deleted() {
    let (service, _) = with_container(&by_owner("things"), &[]);
    let names = |path: &str, kind: &str| {
        let listed = get(&service, path, &[]).json();
        let names = listed[kind].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("/dbs", "Databases"), ["dronedelivery", "db"]);
    assert_eq!(names("/dbs/db/colls", "DocumentCollections"), ["things"]);
    assert_eq!(post(&service, "/dbs", &[], &json!({ "id": "db" })).status, 409);
    assert_eq!(post(&service, "/dbs/db/colls", &[], &by_owner("things")).status, 409);

    let query = json!({ "query": "SELECT * FROM r WHERE r.id = 'db'" });
    let found = post(&service, "/dbs", &[("content-type", "application/query+json")], &query).json();
    assert_eq!((&found["_count"], &found["Databases"][0]["id"]), (&json!(1), &json!("db")));

    assert_eq!(delete(&service, "/dbs/db/colls/things", &[]).status, 204);
    assert_eq!(get(&service, "/dbs/db/colls/things", &[]).status, 404);
    assert_eq!(delete(&service, "/dbs/db", &[]).status, 204);
    assert_eq!(names("/dbs", "Databases"), ["dronedelivery"]);
}

#[test]
fn what_is_in_a_missing_owner_is_missing_with_its_own_sub_status() {
    let (service, _) = with_container(&by_owner("things"), &[]);
    for path in ["/dbs/db/colls/other/docs/1", "/dbs/other/colls/things/pkranges", "/dbs/other/colls"] {
        let missing = get(&service, path, &[]);
        assert_eq!((missing.status, missing.header("x-ms-substatus")), (404, Some("1003")), "{path}");
    }
    for path in ["/dbs/db/colls/other", "/dbs/other"] {
        let missing = get(&service, path, &[]);
        assert_eq!((missing.status, missing.header("x-ms-substatus")), (404, None), "{path}");
    }
}

#[test]
fn methods_that_are_not_served_are_refused_with_those_that_are() {
    let (service, _) = with_container(&by_owner("things"), &[]);
    let cases = [
        (Method::PUT, "/", "expected GET"),
        (Method::DELETE, "/dbs", "expected GET or POST"),
        (Method::PUT, "/dbs/db", "expected GET or DELETE"),
        (Method::POST, "/dbs/db/colls/things", "expected GET, PUT or DELETE"),
        (Method::PUT, "/dbs/db/colls/things/docs", "expected GET or POST"),
        (Method::POST, "/dbs/db/colls/things/docs/1", "expected GET, PUT, PATCH or DELETE"),
        (Method::DELETE, "/offers", "expected GET or POST"),
    ];
    for (method, path, expected) in cases {
        let reply = send(&service, method, path, &[], b"");
        assert_eq!(reply.status, 405);
        assert!(reply.message().ends_with(expected), "{}", reply.message());
    }
}

#[test]
fn a_container_is_changed_but_not_in_its_key() {
    let (service, _) = with_container(&by_owner("things"), &[]);
    let path = "/dbs/db/colls/things";
    let mut changed = by_owner("things");
    changed["defaultTtl"] = json!(10);
    assert_eq!(put(&service, path, &[], &changed).json()["defaultTtl"], 10);
    changed["partitionKey"]["paths"] = json!(["/other"]);
    let refused = put(&service, path, &[], &changed);
    assert_eq!(refused.status, 400);
    assert!(refused.message().contains("partitionKey cannot be changed"));
    let refused = post(&service, "/dbs/db/colls", &[], &json!({ "id": "x" }));
    assert_eq!(refused.status, 400);
    assert!(refused.message().contains("partitionKey is null"));
}

#[test]
fn throughput_decides_the_partitions_and_is_changed_while_in_use() {
    let (service, _) = with_container(&by_owner("things"), &[("x-ms-offer-throughput", "20100")]);
    let path = "/dbs/db/colls/things";
    assert_eq!(get(&service, &format!("{path}/pkranges"), &[]).json()["_count"], 3);
    let link = get(&service, path, &[]).json()["_self"].clone();
    let query = json!({
        "query": "SELECT * FROM root WHERE root.resource=@link", "parameters": [{ "name": "@link", "value": link }],
    });
    let find = || post(&service, "/offers", &[("x-ms-documentdb-isquery", "true")], &query).json()["Offers"][0].clone();
    let mut offer = find();
    assert_eq!(offer["content"]["offerThroughput"], 20_100);
    let address = format!("/{}", offer["_self"].as_str().unwrap());

    offer["content"]["offerThroughput"] = json!(600);
    assert_eq!(put(&service, &address, &[], &offer).status, 200);
    assert_eq!(find()["content"]["offerThroughput"], 600);
    // 200 RU/s on each of three partitions: 63 pages of 3.20, of which the last overdraws.
    let select = json!({ "query": "SELECT * FROM c" });
    let headers = [("x-ms-documentdb-isquery", "true"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    let served = (0..100).take_while(|_| post(&service, &format!("{path}/docs"), &headers, &select).status == 200);
    assert_eq!(served.count(), 63);

    offer["content"]["offerThroughput"] = json!(50);
    assert_eq!(put(&service, &address, &[], &offer).status, 400);
    let migrated = put(&service, &address, &[("x-ms-cosmos-migrate-offer-to-autopilot", "true")], &offer).json();
    assert_eq!(migrated["content"]["offerAutopilotSettings"]["maxThroughput"], 1_000);
    assert_eq!(get(&service, "/offers/none", &[]).status, 404);
}

#[test]
fn throughput_that_is_not_offered_is_refused() {
    let (service, _) = with_container(&by_owner("things"), &[]);
    let create = |headers: &[(&str, &str)]| post(&service, "/dbs/db/colls", headers, &by_owner("more"));
    assert_eq!(create(&[("x-ms-offer-throughput", "399")]).status, 400);
    let autoscale = ("x-ms-cosmos-offer-autopilot-settings", "{\"maxThroughput\":4000}");
    assert_eq!(create(&[("x-ms-offer-throughput", "400"), autoscale]).status, 400);
    assert_eq!(create(&[("x-ms-cosmos-offer-autopilot-settings", "4000")]).status, 400);
    assert_eq!(create(&[autoscale]).status, 201);
}

#[test]
fn a_client_that_means_another_container_of_this_name_is_refused() {
    let (service, _) = with_container(&by_owner("things"), &[]);
    let rid = get(&service, "/dbs/db/colls/things", &[]).json()["_rid"].as_str().unwrap().to_owned();
    let read = || {
        let headers = [("x-ms-documentdb-partitionkey", "[1]"), ("x-ms-cosmos-intended-collection-rid", rid.as_str())];
        get(&service, "/dbs/db/colls/things/docs/1", &headers)
    };
    assert_eq!(read().status, 404);
    delete(&service, "/dbs/db/colls/things", &[]);
    post(&service, "/dbs/db/colls", &[], &by_owner("things"));
    let refused = read();
    assert_eq!((refused.status, refused.header("x-ms-substatus")), (400, Some("1024")));
}

#[test]
fn a_consistency_level_above_the_accounts_is_refused() {
    let (service, _) = with_container(&by_owner("things"), &[]);
    let read = |level| get(&service, "/dbs/db/colls/things", &[("x-ms-consistency-level", level)]).status;
    assert_eq!([read("Session"), read("Eventual"), read("Strong")], [200, 200, 400]);
}
