//! A store whose folder is opened again: everything a client can see is as it was.

use std::path::Path;

use super::containers::{by_owner, delete, post, put};
use super::*;
use crate::Flush;

const THINGS: &str = "/dbs/db/colls/things/docs";

pub(super) fn kept(dir: &Path) -> Config {
    Config { dir: Some(dir.to_owned()), documents_per_container: 0, ..Config::default() }
}

/// Closes a store and opens its folder again, `later_s` seconds later.
pub(super) fn again(service: Service, dir: &Path, later_s: u64) -> Service {
    drop(service);
    let (service, clock) = super::service(kept(dir));
    clock.set_ms(later_s * 1_000);
    service
}

/// A store in `dir` with the container `things` in database `db`.
pub(super) fn with_things(dir: &Path, definition: &Value, headers: &[(&str, &str)]) -> (Service, StoredDocument) {
    let (service, clock) = service(kept(dir));
    assert_eq!(post(&service, "/dbs", &[], &json!({ "id": "db" })).status, 201);
    assert_eq!(post(&service, "/dbs/db/colls", headers, definition).status, 201);
    (service, clock)
}

fn of_owner(owner: u32) -> String {
    format!("[\"o{owner}\"]")
}

pub(super) fn create(service: &Service, id: u32, owner: u32, more: Value) -> Reply {
    let mut document = json!({ "id": id.to_string(), "owner": format!("o{owner}") });
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    post(service, THINGS, &[("x-ms-documentdb-partitionkey", &of_owner(owner))], &document)
}

pub(super) fn read(service: &Service, id: u32, owner: u32) -> Reply {
    get(service, &format!("{THINGS}/{id}"), &[("x-ms-documentdb-partitionkey", &of_owner(owner))])
}

fn raise(service: &Service, amount: u32) {
    let offers = get(service, "/offers", &[]).json();
    let mut offer = offers["Offers"].as_array().unwrap().last().unwrap().clone();
    offer["content"]["offerThroughput"] = json!(amount);
    let address = format!("/{}", offer["_self"].as_str().unwrap());
    assert_eq!(put(service, &address, &[], &offer).status, 200);
}

fn names(service: &Service, path: &str, kind: &str) -> Vec<String> {
    let listed = get(service, path, &[]).json();
    listed[kind].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

/// All that clients can see of a store, with the times left out.
pub(super) fn everything(service: &Service) -> Vec<String> {
    let mut seen = vec![];
    let mut see = |path: &str, headers: &[(&str, &str)]| {
        let reply = get(service, path, headers);
        let headers = ["etag", "x-ms-session-token", "x-ms-continuation"].map(|name| reply.header(name).unwrap_or(""));
        let text = String::from_utf8(reply.body.clone()).unwrap();
        let text: Vec<&str> = text.split("\"_ts\":").map(|part| part.trim_start_matches(char::is_numeric)).collect();
        seen.push(format!("{path} {} {headers:?} {}", reply.status, text.join("\"_ts\":")));
    };
    see("/dbs", &[]);
    see("/offers", &[]);
    for database in names(service, "/dbs", "Databases") {
        see(&format!("/dbs/{database}/colls"), &[]);
        for container in names(service, &format!("/dbs/{database}/colls"), "DocumentCollections") {
            let container = format!("/dbs/{database}/colls/{container}");
            see(&format!("{container}/pkranges"), &[]);
            for range in names(service, &format!("{container}/pkranges"), "PartitionKeyRanges") {
                let range = ("x-ms-documentdb-partitionkeyrangeid", range.as_str());
                let page = ("x-ms-max-item-count", "1000");
                see(&format!("{container}/docs"), &[range, page]);
                see(&format!("{container}/docs"), &[range, page, ("a-im", "Incremental Feed")]);
            }
        }
    }
    seen
}

#[test]
fn everything_is_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let definition = json!({
        "id": "things",
        "partitionKey": { "paths": ["/owner"], "kind": "Hash", "version": 2 },
        "defaultTtl": -1,
        "uniqueKeyPolicy": { "uniqueKeys": [{ "paths": ["/name", "/b/\"c/d\""] }] },
        "indexingPolicy": { "indexingMode": "none" },
    });
    let (service, _) = with_things(dir.path(), &definition, &[("x-ms-offer-throughput", "10000")]);
    for number in 0..60 {
        assert_eq!(create(&service, number, number % 7, json!({ "name": number, "π": "ü" })).status, 201);
    }
    let key = of_owner(3);
    let key = [("x-ms-documentdb-partitionkey", key.as_str())];
    assert_eq!(delete(&service, &format!("{THINGS}/3"), &key).status, 204);
    assert_eq!(put(&service, &format!("{THINGS}/10"), &key, &json!({ "id": "10", "owner": "o3" })).status, 200);
    raise(&service, 30_000);
    assert_eq!(create(&service, 60, 0, json!({ "name": 60 })).status, 201);
    let levels = json!({ "paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2 });
    let settings = ("x-ms-cosmos-offer-autopilot-settings", "{\"maxThroughput\": 4000}");
    assert_eq!(post(&service, "/dbs", &[settings], &json!({ "id": "other" })).status, 201);
    let deep = json!({ "id": "deep", "partitionKey": levels });
    assert_eq!(post(&service, "/dbs/other/colls", &[], &deep).status, 201);
    let document = json!({ "id": "1", "tenant": "t", "user": null });
    let key = [("x-ms-documentdb-partitionkey", "[\"t\", null]")];
    assert_eq!(post(&service, "/dbs/other/colls/deep/docs", &key, &document).status, 201);

    let before = everything(&service);
    assert!(before.iter().filter(|seen| seen.contains("things/docs")).count() >= 6, "{before:#?}");
    let service = again(service, dir.path(), 0);
    assert_eq!(everything(&service), before);
    // The log is read again as well as the database it was copied to.
    assert_eq!(everything(&again(service, dir.path(), 0)), before);
}

#[test]
fn readers_go_on_where_they_were_also_after_a_split() {
    let dir = tempfile::tempdir().unwrap();
    let (service, _) = with_things(dir.path(), &by_owner("things"), &[("x-ms-offer-throughput", "10000")]);
    for number in 0..40 {
        assert_eq!(create(&service, number, number, json!({})).status, 201);
    }
    let query = |service: &Service, range: &str, continuation: &str| {
        let headers = [
            ("x-ms-documentdb-isquery", "true"),
            ("x-ms-documentdb-partitionkeyrangeid", range),
            ("x-ms-max-item-count", "15"),
            ("x-ms-continuation", continuation),
        ];
        post(service, THINGS, &headers, &json!({ "query": "SELECT * FROM c" }))
    };
    let change = |service: &Service, range: &str, tag: &str| {
        let range = ("x-ms-documentdb-partitionkeyrangeid", range);
        let headers = [("a-im", "Incremental Feed"), range, ("x-ms-max-item-count", "15"), ("if-none-match", tag)];
        get(service, THINGS, &headers)
    };
    let ids = |reply: &Reply| {
        let body = reply.json();
        let documents = body["Documents"].as_array().unwrap().iter();
        documents.map(|document| document["id"].as_str().unwrap().parse::<u32>().unwrap()).collect::<Vec<_>>()
    };
    let (queried, changed) = (query(&service, "0", ""), change(&service, "0", "0"));
    let service = again(service, dir.path(), 0);
    raise(&service, 20_000);
    let service = again(service, dir.path(), 1);

    assert_eq!(query(&service, "0", "").header("x-ms-substatus"), Some("1002"));
    let (mut by_query, mut by_change) = (ids(&queried), ids(&changed));
    for range in ["1", "2"] {
        by_query.extend(ids(&query(&service, range, queried.header("x-ms-continuation").unwrap())));
        by_change.extend(ids(&change(&service, range, changed.header("etag").unwrap())));
    }
    for mut found in [by_query, by_change] {
        found.sort_unstable();
        assert_eq!(found, (0..40).collect::<Vec<_>>());
    }
    let stale = [("x-ms-documentdb-partitionkey", "[\"o7\"]"), ("if-match", "\"00000000-0000000000000001\"")];
    assert_eq!(delete(&service, &format!("{THINGS}/7"), &stale).status, 412);
}

#[test]
fn what_was_there_is_never_taken_for_something_new() {
    let dir = tempfile::tempdir().unwrap();
    let (service, _) = with_things(dir.path(), &by_owner("things"), &[]);
    let rid = |reply: &Reply| reply.json()["_rid"].as_str().unwrap().to_owned();
    let first = create(&service, 1, 1, json!({}));
    let key = [("x-ms-documentdb-partitionkey", "[\"o1\"]")];
    assert_eq!(delete(&service, &format!("{THINGS}/1"), &key).status, 204);
    let service = again(service, dir.path(), 0);
    let second = create(&service, 1, 1, json!({}));
    assert_ne!(rid(&first), rid(&second));
    assert_ne!(first.header("etag"), second.header("etag"));

    let container = rid(&get(&service, "/dbs/db/colls/things", &[]));
    assert_eq!(delete(&service, "/dbs/db/colls/things", &[]).status, 204);
    let service = again(service, dir.path(), 0);
    assert_eq!(get(&service, "/dbs/db/colls/things", &[]).status, 404);
    let created = post(&service, "/dbs/db/colls", &[], &by_owner("things"));
    assert_ne!(rid(&created), container);
    assert_eq!(read(&service, 1, 1).status, 404);
}

#[test]
fn a_document_ends_on_its_time_while_the_store_is_closed_or_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut definition = by_owner("things");
    definition["defaultTtl"] = json!(1_000);
    let (service, clock) = with_things(dir.path(), &definition, &[]);
    for (id, ttl) in [(1, json!({})), (2, json!({ "ttl": 5_000 })), (3, json!({ "ttl": -1 }))] {
        assert_eq!(create(&service, id, 1, ttl).status, 201);
    }
    let status = |service: &Service| [1, 2, 3].map(|id| read(service, id, 1).status);
    let service = again(service, dir.path(), 500);
    assert_eq!(status(&service), [200, 200, 200]);
    let service = again(service, dir.path(), 2_000);
    assert_eq!(status(&service), [404, 200, 200]);
    clock.set_ms(0);
    // Expired documents are gone, whatever the clock says then.
    let service = again(service, dir.path(), 0);
    assert_eq!(status(&service), [404, 200, 200]);
    assert_eq!(status(&again(service, dir.path(), 9_000)), [404, 404, 200]);
}

#[test]
fn unique_values_are_taken_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut definition = by_owner("things");
    definition["uniqueKeyPolicy"] = json!({ "uniqueKeys": [{ "paths": ["/name"] }] });
    let (service, _) = with_things(dir.path(), &definition, &[]);
    assert_eq!(create(&service, 1, 1, json!({ "name": "a" })).status, 201);
    let service = again(service, dir.path(), 0);
    assert_eq!(create(&service, 2, 1, json!({ "name": "a" })).status, 409);
    assert_eq!(create(&service, 2, 1, json!({ "name": "b" })).status, 201);
}

#[test]
fn generated_documents_are_written_into_a_new_folder_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (service, _) = service(Config { documents_per_container: 120, ..kept(dir.path()) });
    let key = [("x-ms-documentdb-partitionkey", "[\"o0001\"]")];
    assert_eq!(delete(&service, &format!("{DOCS}/d000110"), &key).status, 204);
    let before = everything(&service);
    drop(service);
    let other =
        Config { documents_per_container: 500, partitions: 2, containers: vec!["c".into()], ..kept(dir.path()) };
    let (service, _) = super::service(other);
    assert_eq!(everything(&service), before);
    assert_eq!(get(&service, &format!("{DOCS}/d000111"), &key).status, 200);
    assert_eq!(get(&service, &format!("{DOCS}/d000110"), &key).status, 404);
}

#[test]
fn a_folder_that_was_not_filled_to_its_end_is_filled_anew() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("docstore.sqlite.new"), "half of it").unwrap();
    let (service, _) = service(Config { documents_per_container: 10, ..kept(dir.path()) });
    assert_eq!(
        service.store.containers()[0].ranges().iter().map(|range| range.partition.mark().documents).sum::<u64>(),
        10
    );
    assert!(!dir.path().join("docstore.sqlite.new").exists());
}

#[test]
fn partitions_that_outgrow_their_size_are_split_on_the_disk_too() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { split_bytes: 20_000, ..kept(dir.path()) };
    let (service, clock) = service(config.clone());
    post(&service, "/dbs", &[], &json!({ "id": "db" }));
    post(&service, "/dbs/db/colls", &[("x-ms-offer-throughput", "10000")], &by_owner("things"));
    for number in 0..50 {
        clock.set_ms(u64::from(number) * 1_000);
        assert_eq!(create(&service, number, number, json!({ "text": "x".repeat(1_000) })).status, 201);
    }
    let before = everything(&service);
    assert!(names(&service, "/dbs/db/colls/things/pkranges", "PartitionKeyRanges").len() >= 3);
    drop(service);
    let (service, _) = super::service(config);
    assert_eq!(everything(&service), before);
}

#[test]
fn a_late_write_to_a_deleted_container_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (service, _) = with_things(dir.path(), &by_owner("things"), &[]);
    let container = service.store.database("db").unwrap().container("things").unwrap();
    assert_eq!(delete(&service, "/dbs/db", &[]).status, 204);
    let key = PartitionKey(vec![Scalar::Text("o1".into())]);
    let crate::container::Address { key, effective, .. } = container.address(key, "1");
    let document = crate::document::Document::parse(b"{\"id\":\"1\"}").unwrap();
    let operation = crate::partition::Operation::Create(document);
    let command = crate::partition::Command { key, effective, operation, if_match: None, if_none_match: None };
    let moment = Moment::at(Duration::ZERO);
    container.transact(&command.effective.clone(), &moment, &[command]).unwrap();
    container.provision(crate::throughput::Throughput::Manual(20_000), Duration::ZERO);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(service.store.journal().durable(moment.seen())).unwrap();
    assert_eq!(post(&service, "/dbs", &[], &json!({ "id": "db" })).status, 201);
    let before = everything(&service);
    assert_eq!(everything(&again(service, dir.path(), 0)), before);
}

/// One thing a client does.
#[derive(Debug, Clone)]
enum Act {
    Create {
        id: u32,
        owner: u32,
    },
    Upsert {
        id: u32,
        owner: u32,
        text: String,
    },
    Patch {
        id: u32,
        owner: u32,
    },
    Delete {
        id: u32,
        owner: u32,
    },
    /// Two writes as one transaction, the second of which may fail.
    Both {
        id: u32,
        owner: u32,
        other: u32,
    },
    Provision(u32),
    Redefine(Option<i64>),
    Recreate,
    Later,
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    let (id, owner) = (0_u32..6, 0_u32..4);
    let at = || (id.clone(), owner.clone());
    prop_oneof![
        4 => at().prop_map(|(id, owner)| Act::Create { id, owner }),
        4 => (at(), "[a-zü]{0,8}").prop_map(|((id, owner), text)| Act::Upsert { id, owner, text }),
        2 => at().prop_map(|(id, owner)| Act::Patch { id, owner }),
        3 => at().prop_map(|(id, owner)| Act::Delete { id, owner }),
        3 => (at(), 0_u32..6).prop_map(|((id, owner), other)| Act::Both { id, owner, other }),
        1 => (1_u32..5).prop_map(|tens| Act::Provision(tens * 10_000)),
        1 => proptest::option::of(prop_oneof![Just(-1), Just(1_000)]).prop_map(Act::Redefine),
        1 => Just(Act::Recreate),
        1 => Just(Act::Later),
        2 => Just(Act::Restart),
    ]
}

/// Sends the request and returns the status.
fn perform(service: &Service, act: &Act) -> u16 {
    let key = |owner: u32| of_owner(owner);
    match act {
        Act::Create { id, owner } => create(service, *id, *owner, json!({ "ttl": 3_000 })).status,
        Act::Upsert { id, owner, text } => {
            let headers = [("x-ms-documentdb-partitionkey", &*key(*owner)), ("x-ms-documentdb-is-upsert", "true")];
            let document = json!({ "id": id.to_string(), "owner": format!("o{owner}"), "text": text });
            post(service, THINGS, &headers, &document).status
        }
        Act::Patch { id, owner } => {
            let patch = json!([{ "op": "add", "path": "/patched", "value": id }]);
            let (path, key) = (format!("{THINGS}/{id}"), key(*owner));
            let headers = [("x-ms-documentdb-partitionkey", &*key)];
            send(service, Method::PATCH, &path, &headers, patch.to_string().as_bytes()).status
        }
        Act::Delete { id, owner } => {
            delete(service, &format!("{THINGS}/{id}"), &[("x-ms-documentdb-partitionkey", &key(*owner))]).status
        }
        Act::Both { id, owner, other } => {
            let body = json!({ "id": other.to_string(), "owner": format!("o{owner}") });
            let batch = json!([
                { "operationType": "Delete", "id": id.to_string() },
                { "operationType": "Create", "resourceBody": body },
            ]);
            let headers = [("x-ms-documentdb-partitionkey", &*key(*owner)), ("x-ms-cosmos-is-batch-request", "true")];
            post(service, THINGS, &headers, &batch).status
        }
        Act::Provision(amount) => {
            raise(service, *amount);
            0
        }
        Act::Redefine(ttl) => {
            let mut definition = by_owner("things");
            definition["defaultTtl"] = json!(ttl);
            put(service, "/dbs/db/colls/things", &[], &definition).status
        }
        Act::Recreate => {
            assert_eq!(delete(service, "/dbs/db/colls/things", &[]).status, 204);
            post(service, "/dbs/db/colls", &[("x-ms-offer-throughput", "10000")], &by_owner("things")).status
        }
        Act::Later | Act::Restart => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_store_that_is_opened_again_is_as_one_in_memory(acts in proptest::collection::vec(act(), 1..60)) {
        let dir = tempfile::tempdir().unwrap();
        let headers = [("x-ms-offer-throughput", "10000")];
        let (mut kept_service, mut kept_clock) = with_things(dir.path(), &by_owner("things"), &headers);
        let (service, clock) = super::containers::with_container(&by_owner("things"), &headers);
        delete(&service, "/dbs/dronedelivery/colls/c", &[]);
        delete(&kept_service, "/dbs/dronedelivery/colls/utilization", &[]);
        let mut now_ms = 0;
        for act in &acts {
            match act {
                Act::Later => {
                    now_ms += 2_000_000;
                    clock.set_ms(now_ms);
                    kept_clock.set_ms(now_ms);
                }
                Act::Restart => {
                    drop(kept_service);
                    (kept_service, kept_clock) = super::service(Config { sync: Flush::Never, ..kept(dir.path()) });
                    kept_clock.set_ms(now_ms);
                }
                act => prop_assert_eq!(perform(&service, act), perform(&kept_service, act), "{:?}", act),
            }
        }
        let expected = everything(&service);
        prop_assert_eq!(&everything(&kept_service), &expected);
        drop(kept_service);
        let (kept_service, kept_clock) = super::service(kept(dir.path()));
        kept_clock.set_ms(now_ms);
        prop_assert_eq!(&everything(&kept_service), &expected);
    }
}
