//! Single documents and batches.

use super::containers::{by_owner, delete, post, put, with_container};
use super::*;

const THINGS: &str = "/dbs/db/colls/things/docs";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["o1"]"#);

fn things() -> (Service, StoredDocument) {
    with_container(&by_owner("things"), &[("x-ms-offer-throughput", "10000")])
}

fn patch(service: &Service, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    send(service, Method::PATCH, path, headers, body.to_string().as_bytes())
}

#[test]
fn properties_come_back_in_the_order_they_were_sent() {
    let (service, _) = things();
    let body = br#"{"id":"1","z":1,"owner":"o1","a":{"y":1,"b":2}}"#;
    let created = send(&service, Method::POST, THINGS, &[KEY], body);
    let text = String::from_utf8(created.body).unwrap();
    assert!(text.starts_with(r#"{"id":"1","z":1,"owner":"o1","a":{"y":1,"b":2},"_rid":""#), "{text}");
}

#[test]
fn a_write_with_an_old_tag_changes_nothing() {
    let (service, _) = things();
    let body = |n: u32| json!({ "id": "1", "owner": "o1", "n": n });
    let path = format!("{THINGS}/1");
    let first = post(&service, THINGS, &[KEY], &body(1)).header("etag").unwrap().to_owned();
    let known = get(&service, &path, &[KEY, ("if-none-match", &first)]);
    assert_eq!((known.status, known.body.len(), known.header("etag")), (304, 0, Some(first.as_str())));
    let second = put(&service, &path, &[KEY, ("if-match", &first)], &body(2));
    assert_eq!(second.status, 200);
    assert_eq!(get(&service, &path, &[KEY, ("if-none-match", &first)]).status, 200);

    let stale = ("if-match", first.as_str());
    let upsert = ("x-ms-documentdb-is-upsert", "true");
    let increment = json!({ "operations": [{ "op": "incr", "path": "/n", "value": 1 }] });
    let replies = [
        put(&service, &path, &[KEY, stale], &body(3)),
        post(&service, THINGS, &[KEY, stale, upsert], &body(3)),
        patch(&service, &path, &[KEY, stale], &increment),
        delete(&service, &path, &[KEY, stale]),
    ];
    for reply in replies {
        assert_eq!((reply.status, &reply.json()["code"]), (412, &json!("PreconditionFailed")));
    }
    assert_eq!(get(&service, &path, &[KEY]).json()["n"], 2);
    assert_eq!(delete(&service, &path, &[KEY, ("if-match", second.header("etag").unwrap())]).status, 204);
    assert_eq!(delete(&service, &path, &[KEY]).status, 404);
}

#[test]
fn a_patch_changes_what_it_names_on_its_condition() {
    let (service, _) = things();
    post(&service, THINGS, &[KEY], &json!({ "id": "1", "owner": "o1", "n": 1, "tags": ["a"] }));
    let path = format!("{THINGS}/1");
    let operations =
        json!([{ "op": "incr", "path": "/n", "value": 4 }, { "op": "add", "path": "/tags/-", "value": "b" }]);
    let body = json!({ "operations": operations, "condition": "from c where c.n = 1" });
    let patched = patch(&service, &path, &[KEY], &body);
    assert_eq!((patched.status, patched.charge()), (200, 9.9));
    assert_eq!((&patched.json()["n"], &patched.json()["tags"]), (&json!(5), &json!(["a", "b"])));
    assert_eq!(patch(&service, &path, &[KEY], &body).status, 412);
    let fixed = json!({ "operations": [{ "op": "set", "path": "/owner", "value": "o2" }] });
    let refused = patch(&service, &path, &[KEY], &fixed);
    assert!(refused.status == 400 && refused.message().contains("operations[0]: \"/owner\" cannot be changed"));
    assert_eq!(patch(&service, &format!("{THINGS}/2"), &[KEY], &body).status, 404);
}

#[test]
fn a_batch_is_done_as_a_whole_or_not_at_all() {
    let (service, _) = things();
    let batch =
        |operations: Value| post(&service, THINGS, &[KEY, ("x-ms-cosmos-is-batch-request", "True")], &operations);
    let document = |id: &str, n: u32| json!({ "id": id, "owner": "o1", "n": n });
    let done = batch(json!([
        { "operationType": "Create", "resourceBody": document("1", 1) },
        { "operationType": "Upsert", "resourceBody": document("2", 2) },
        { "operationType": "Replace", "id": "1", "resourceBody": document("1", 3) },
        { "operationType": "Patch", "id": "2", "resourceBody": { "operations": [{ "op": "incr", "path": "/n", "value": 5 }] } },
        { "operationType": "Read", "id": "1" },
        { "operationType": "Delete", "id": "2" },
    ]));
    let statuses = |reply: &Reply| {
        reply.json().as_array().unwrap().iter().map(|result| result["statusCode"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((done.status, statuses(&done)), (200, vec![201, 201, 200, 200, 200, 204]));
    assert_eq!((&done.json()[3]["resourceBody"]["n"], &done.json()[4]["resourceBody"]["n"]), (&json!(7), &json!(3)));
    let sum: f64 = done.json().as_array().unwrap().iter().map(|result| result["requestCharge"].as_f64().unwrap()).sum();
    assert!((sum - done.charge()).abs() < 1e-9);

    let before = get(&service, &format!("{THINGS}/1"), &[KEY]).json();
    let failed = batch(json!([
        { "operationType": "Replace", "id": "1", "resourceBody": document("1", 9) },
        { "operationType": "Create", "resourceBody": document("3", 1) },
        { "operationType": "Delete", "id": "1" },
        { "operationType": "Create", "resourceBody": document("3", 1) },
        { "operationType": "Read", "id": "3" },
    ]));
    assert_eq!((failed.status, statuses(&failed)), (207, vec![424, 424, 424, 409, 424]));
    assert_eq!(get(&service, &format!("{THINGS}/1"), &[KEY]).json(), before);
    assert_eq!(get(&service, &format!("{THINGS}/3"), &[KEY]).status, 404);
    let found = post(
        &service,
        THINGS,
        &[KEY, ("x-ms-documentdb-isquery", "true")],
        &json!({ "query": "SELECT * FROM c WHERE c.n = 3" }),
    );
    assert_eq!(found.json()["_count"], 1, "the index is as it was");
}

#[test]
fn results_of_a_batch_are_documents_as_they_were_written() {
    let (service, _) = things();
    let operation =
        r#"{"operationType":"Create","resourceBody":{"z":1,"id":"1","owner":"o1","n":12345678901234567890}}"#;
    let headers = [KEY, ("x-ms-cosmos-is-batch-request", "True")];
    let done = send(&service, Method::POST, THINGS, &headers, format!("[{operation}]").as_bytes());
    let body = String::from_utf8(done.body).unwrap();
    assert!(body.contains(r#""resourceBody":{"z":1,"id":"1","owner":"o1","n":12345678901234567890,"_"#), "{body}");
}

#[test]
fn operations_of_a_batch_that_is_no_transaction_stand_alone() {
    let (service, _) = things();
    let headers = [("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "False")];
    let create = |owner: &str| {
        let document = json!({ "id": "1", "owner": owner });
        json!({ "operationType": "Create", "partitionKey": format!("[\"{owner}\"]"), "resourceBody": document })
    };
    let reply = post(
        &service,
        THINGS,
        &headers,
        &json!([create("a"), create("a"), create("b"), { "operationType": "Create" }]),
    );
    let results = reply.json();
    let statuses: Vec<_> = results.as_array().unwrap().iter().map(|result| &result["statusCode"]).collect();
    assert_eq!((reply.status, statuses), (200, vec![&json!(201), &json!(409), &json!(201), &json!(400)]));
    let too_many: Vec<Value> = (0..101).map(|_| create("c")).collect();
    assert_eq!(post(&service, THINGS, &headers, &json!(too_many)).status, 400);
}

#[test]
fn documents_expire_by_their_own_time_or_the_containers() {
    let mut definition = by_owner("things");
    definition["defaultTtl"] = json!(10);
    let (service, clock) = with_container(&definition, &[]);
    let document = |id: &str, ttl: Value| json!({ "id": id, "owner": "o1", "ttl": ttl });
    for (id, ttl) in [("default", json!(null)), ("short", json!(2)), ("endless", json!(-1))] {
        assert_eq!(post(&service, THINGS, &[KEY], &document(id, ttl)).status, 201);
    }
    let alive = |seconds: u64| {
        clock.set_ms(seconds * 1_000);
        let alive =
            ["default", "short", "endless"].map(|id| get(&service, &format!("{THINGS}/{id}"), &[KEY]).status == 200);
        let query = json!({ "query": "SELECT * FROM c" });
        let found =
            post(&service, THINGS, &[KEY, ("x-ms-documentdb-isquery", "true")], &query).json()["_count"].clone();
        assert_eq!(found, alive.iter().filter(|alive| **alive).count());
        alive
    };
    assert_eq!(alive(1), [true, true, true]);
    assert_eq!(alive(2), [true, false, true]);
    assert_eq!(alive(10), [false, false, true]);
    assert_eq!(post(&service, THINGS, &[KEY], &document("short", json!(1))).status, 201);
    assert_eq!(post(&service, THINGS, &[KEY], &document("zero", json!(0))).status, 400);
    definition.as_object_mut().unwrap().remove("defaultTtl");
    put(&service, "/dbs/db/colls/things", &[], &definition);
    assert_eq!(alive(100), [false, true, true], "a container without a time to live keeps everything");
}

#[test]
fn unique_keys_hold_within_a_partition_key() {
    let mut definition = by_owner("things");
    definition["uniqueKeyPolicy"] = json!({ "uniqueKeys": [{ "paths": ["/name", "/at/place"] }] });
    let (service, _) = with_container(&definition, &[]);
    let document =
        |id: &str, owner: &str, name: &str| json!({ "id": id, "owner": owner, "name": name, "at": { "place": 1 } });
    let other = ("x-ms-documentdb-partitionkey", r#"["o2"]"#);
    assert_eq!(post(&service, THINGS, &[KEY], &document("1", "o1", "n")).status, 201);
    assert_eq!(post(&service, THINGS, &[KEY], &document("2", "o1", "n")).status, 409);
    assert_eq!(post(&service, THINGS, &[other], &document("2", "o2", "n")).status, 201);
    assert_eq!(post(&service, THINGS, &[KEY], &document("2", "o1", "m")).status, 201);
    assert_eq!(put(&service, &format!("{THINGS}/2"), &[KEY], &document("2", "o1", "n")).status, 409);
    assert_eq!(put(&service, &format!("{THINGS}/1"), &[KEY], &document("1", "o1", "n")).status, 200);
    assert_eq!(delete(&service, &format!("{THINGS}/1"), &[KEY]).status, 204);
    assert_eq!(put(&service, &format!("{THINGS}/2"), &[KEY], &document("2", "o1", "n")).status, 200);
}

#[test]
fn hierarchical_keys_address_documents() {
    let definition =
        json!({ "id": "things", "partitionKey": { "paths": ["/tenant", "/user/id"], "kind": "MultiHash" } });
    let (service, _) = with_container(&definition, &[("x-ms-offer-throughput", "30000")]);
    let document = json!({ "id": "1", "tenant": "t", "user": { "id": 7 } });
    let key = |text| ("x-ms-documentdb-partitionkey", text);
    assert_eq!(post(&service, THINGS, &[key("[\"t\",7]")], &document).status, 201);
    assert_eq!(get(&service, &format!("{THINGS}/1"), &[key("[\"t\",7]")]).status, 200);
    assert_eq!(get(&service, &format!("{THINGS}/1"), &[key("[\"t\",8]")]).status, 404);
    let short = get(&service, &format!("{THINGS}/1"), &[key("[\"t\"]")]);
    assert_eq!((short.status, short.header("x-ms-substatus")), (400, Some("1001")));
    let query = |text| {
        post(
            &service,
            THINGS,
            &[key(text), ("x-ms-documentdb-isquery", "true")],
            &json!({ "query": "SELECT * FROM c" }),
        )
    };
    let counts =
        ["[\"t\"]", "[\"t\",7]", "[\"t\",8]", "[\"u\"]"].map(|text| query(text).json()["_count"].as_u64().unwrap());
    assert_eq!(counts, [1, 1, 0, 0]);
}

#[test]
fn a_partition_key_that_is_missing_or_of_another_type_is_refused() {
    let (service, _) = things();
    let document = json!({ "id": "1", "owner": "o1" });
    let create = |headers: &[(&str, &str)]| post(&service, THINGS, headers, &document);
    let key = |text| [("x-ms-documentdb-partitionkey", text)];
    let without = create(&[]);
    assert!(without.status == 400 && without.message().contains("x-ms-documentdb-partitionkey is missing"));
    for (text, status, sub_status) in [
        ("[1]", 400, Some("1001")),
        ("[{}]", 400, Some("1001")),
        ("[]", 400, Some("1001")),
        ("[[1]]", 400, None),
        ("\"o1\"", 400, None),
        ("[\"o1\"]", 201, None),
    ] {
        let reply = create(&key(text));
        assert_eq!((reply.status, reply.header("x-ms-substatus")), (status, sub_status), "{text}");
    }
    let keyless = json!({ "id": "2" });
    assert_eq!(post(&service, THINGS, &key("[{}]"), &keyless).status, 201);
    assert_eq!(get(&service, &format!("{THINGS}/2"), &key("[{}]")).status, 200);
    assert_eq!(get(&service, &format!("{THINGS}/2"), &key("[null]")).status, 404);
}

#[test]
fn a_document_may_have_two_megabytes_and_no_byte_more() {
    let (service, clock) = things();
    let of_size = |bytes: usize| {
        let frame = r#"{"id":"1","owner":"o1","text":""}"#.len();
        format!(r#"{{"id":"1","owner":"o1","text":"{}"}}"#, "x".repeat(bytes - frame))
    };
    let create = |bytes| send(&service, Method::POST, THINGS, &[KEY], of_size(bytes).as_bytes());
    let too_large = create((2 << 20) + 1);
    assert_eq!((too_large.status, &too_large.json()["code"]), (413, &json!("RequestEntityTooLarge")));
    assert_eq!(create(2 << 20).status, 201);
    // Two further seconds pay for two megabytes.
    clock.set_ms(2_000);
    let more = json!({ "operations": [{ "op": "add", "path": "/more", "value": "x" }] });
    assert_eq!(patch(&service, &format!("{THINGS}/1"), &[KEY], &more).status, 413);
}

#[test]
fn an_id_with_a_slash_is_refused_and_not_taken_for_a_path() {
    let (service, _) = things();
    let refused = post(&service, THINGS, &[KEY], &json!({ "id": "a/b", "owner": "o1" }));
    assert!(refused.status == 400 && refused.message().contains("without / \\ ? #"));
    assert_eq!(get(&service, &format!("{THINGS}/a%2Fb"), &[KEY]).status, 404);
    let odd = "ä b%+\u{1F600}";
    assert_eq!(post(&service, THINGS, &[KEY], &json!({ "id": odd, "owner": "o1" })).status, 201);
    assert_eq!(get(&service, &format!("{THINGS}/%C3%A4%20b%25+%F0%9F%98%80"), &[KEY]).status, 200);
}

#[test]
fn a_writer_that_wants_no_content_gets_none() {
    let (service, _) = things();
    let created = post(&service, THINGS, &[KEY, ("prefer", "return=minimal")], &json!({ "id": "1", "owner": "o1" }));
    assert_eq!((created.status, created.body.len()), (201, 0));
    assert!(created.header("etag").is_some() && created.header("x-ms-session-token").is_some());
}
