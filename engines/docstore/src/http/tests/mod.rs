//! The store as a client meets it: requests in, responses out, time held by the test.

use axum::http::{HeaderMap, Method};
use narrows_serving::Listen;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Access;
use crate::clock::testing::StoredDocument;
use crate::partition_key::PartitionKey;
use crate::scalar::Scalar;
use crate::seed;

const DOCS: &str = "/dbs/dronedelivery/colls/utilization/docs";
const ENDPOINT: &str = "http://127.0.0.1:8081/";
const BY_OWNER: &str = "SELECT * FROM c WHERE c.ownerId = @owner AND c.year = @year AND c.month = @month";

struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    fn charge(&self) -> f64 {
        self.header("x-ms-request-charge").unwrap().parse().unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn message(&self) -> String {
        self.json()["message"].as_str().unwrap().to_owned()
    }
}

fn service(config: Config) -> (Service, StoredDocument) {
    let clock = StoredDocument::default();
    config.validate().unwrap();
    let store = Arc::new(Store::open(&config, clock.clone()).unwrap());
    (served(store, &config), clock)
}

/// A store that requests need no key for.
fn served(store: Arc<Store>, config: &Config) -> Service {
    let (latency, gate) = (Latency::new(config), Gate::new(&Access::Anyone));
    Service { store, latency, gate, long: LongRequests::new() }
}

fn send(service: &Service, method: Method, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_vec())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (head, body) = service.respond(request, &ENDPOINT.into()).await.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        Reply { status: head.status.as_u16(), headers: head.headers, body }
    })
}

fn get(service: &Service, path: &str, headers: &[(&str, &str)]) -> Reply {
    send(service, Method::GET, path, headers, b"")
}

fn query(service: &Service, sql: &str, parameters: &Value, place: &[(&str, &str)]) -> Reply {
    let headers = [&[("x-ms-documentdb-isquery", "true")], place].concat();
    let body = json!({ "query": sql, "parameters": parameters }).to_string();
    send(service, Method::POST, DOCS, &headers, body.as_bytes())
}

fn one_month(owner: &str) -> Value {
    json!([
        { "name": "@owner", "value": owner },
        { "name": "@year", "value": 2021 },
        { "name": "@month", "value": 3 },
    ])
}

#[test]
fn a_query_over_every_partition_costs_a_page_on_each() {
    let (service, _) = service(Config::default());
    let replies: Vec<Reply> = (0..9)
        .map(|range: u32| {
            let range = range.to_string();
            query(&service, BY_OWNER, &one_month("o0007"), &[("x-ms-documentdb-partitionkeyrangeid", range.as_str())])
        })
        .collect();
    let found: u64 = replies.iter().map(|reply| reply.json()["_count"].as_u64().unwrap()).sum();
    let charge: f64 = replies.iter().map(Reply::charge).sum();
    assert_eq!(found, 1);
    assert!((charge - (9.0 * 3.20 + 0.19)).abs() < 1e-9, "{charge}");
}

#[test]
fn a_query_by_partition_key_touches_one_range() {
    let (service, clock) = service(Config { throughput_ru_per_second: 9, ..Config::default() });
    let key = [("x-ms-documentdb-partitionkey", r#"["o0007"]"#)];
    let reply = query(&service, BY_OWNER, &one_month("o0007"), &key);
    assert_eq!((reply.status, reply.charge()), (200, 3.39));
    let found = &reply.json()["Documents"][0];
    assert_eq!((&found["ownerId"], &found["year"], &found["month"]), (&json!("o0007"), &json!(2021), &json!(3)));

    // With 1 RU/s for each partition, the one that was touched is the one that now refuses.
    let key_of_owner = PartitionKey(vec![Scalar::Text("o0007".into())]);
    let home = service.store.containers()[0].range_of(&key_of_owner);
    for range in 0..9 {
        let id = range.to_string();
        let reply =
            query(&service, BY_OWNER, &one_month("o0007"), &[("x-ms-documentdb-partitionkeyrangeid", id.as_str())]);
        assert_eq!(reply.status == 429, range == home, "range {range}");
    }
    // Four seconds pay the query and the refusal.
    clock.set_ms(4_000);
    let reply = query(&service, "SELECT * FROM c", &json!([]), &key);
    assert_eq!(reply.json()["_count"], 100, "only the owner's documents, cut at the default page");
    assert_eq!(reply.charge(), 22.2);
}

#[test]
fn a_partition_refuses_from_the_request_after_the_one_that_uses_up_its_second() {
    let (service, clock) = service(Config { documents_per_container: 0, ..Config::default() });
    let ask = |range| query(&service, "SELECT * FROM c", &json!([]), &[("x-ms-documentdb-partitionkeyrangeid", range)]);
    let mut now_ms = 0;
    // 100 RU/s: 31 pages use 99.20, the 32nd overdraws. The later seconds pay that and two refusals first.
    for pages in [32, 31, 31] {
        assert!((0..pages).all(|_| ask("4").status == 200));
        let refused = ask("4");
        assert_eq!(refused.status, 429);
        let wait_ms: u64 = refused.header("x-ms-retry-after-ms").unwrap().parse().unwrap();
        assert!((1..=1_000).contains(&wait_ms), "{wait_ms}");
        now_ms += wait_ms;
        clock.set_ms(now_ms - 1);
        assert_eq!(ask("4").header("x-ms-retry-after-ms"), Some("1"), "rounded up");
        clock.set_ms(now_ms);
        assert_eq!(refused.header("x-ms-substatus"), Some("3200"));
        assert_eq!(refused.header("x-ms-request-charge"), Some("0.38"));
        assert_eq!(refused.json()["code"], "429");
        assert_eq!(ask("5").status, 200, "another partition has its own budget");
    }
}

#[test]
fn pages_follow_each_other_by_continuation() {
    let (service, _) = service(Config { documents_per_container: 110, ..Config::default() });
    let mut ids = Vec::new();
    let mut continuation = String::new();
    let mut counts = Vec::new();
    loop {
        let place = [
            ("x-ms-documentdb-partitionkey", r#"["o0000"]"#),
            ("x-ms-max-item-count", "40"),
            ("x-ms-continuation", continuation.as_str()),
        ];
        let reply = query(&service, "SELECT * FROM c", &json!([]), &place);
        let documents = reply.json()["Documents"].as_array().unwrap().clone();
        counts.push(documents.len());
        ids.extend(documents.iter().map(|document| document["id"].as_str().unwrap().to_owned()));
        match reply.header("x-ms-continuation") {
            Some(next) => continuation = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(counts, [40, 40, 30]);
    assert_eq!(ids, (0..110).map(|number| format!("d000{number}")).collect::<Vec<_>>());
}

#[test]
fn a_document_is_created_replaced_and_read() {
    let (service, _) = service(Config { documents_per_container: 0, ..Config::default() });
    let key = ("x-ms-documentdb-partitionkey", r#"["o1"]"#);
    let upsert = [key, ("x-ms-documentdb-is-upsert", "True")];
    let body = |year: u32| json!({ "id": "d1", "ownerId": "o1", "year": year }).to_string();
    let post = |headers: &[(&str, &str)], year| send(&service, Method::POST, DOCS, headers, body(year).as_bytes());

    assert_eq!(post(&upsert, 2020).status, 201);
    let replaced = post(&upsert, 2021);
    assert_eq!((replaced.status, replaced.charge()), (200, 9.6));
    let conflict = post(&[key], 2022);
    assert_eq!((conflict.status, &conflict.json()["code"]), (409, &json!("Conflict")));

    let path = format!("{DOCS}/d1/");
    let read = get(&service, &path, &[key]);
    assert_eq!((read.status, read.charge()), (200, 1.0));
    assert_eq!(read.json()["year"], 2021);
    assert_eq!(read.header("etag"), read.json()["_etag"].as_str());
    let missing = get(&service, &path, &[("x-ms-documentdb-partitionkey", r#"["o2"]"#)]);
    assert_eq!((missing.status, &missing.json()["code"]), (404, &json!("NotFound")));

    let by_year = |year: u32| {
        let sql = format!("SELECT * FROM c WHERE c.year = {year}");
        query(&service, &sql, &json!([]), &[key]).json()["_count"].clone()
    };
    assert_eq!((by_year(2020), by_year(2021)), (json!(0), json!(1)), "the index follows the document");

    let put = |id: &str, year| send(&service, Method::PUT, &format!("{DOCS}/{id}"), &[key], body(year).as_bytes());
    let put_again = put("d1", 2030);
    assert_eq!((put_again.status, put_again.charge(), &put_again.json()["year"]), (200, 9.6, &json!(2030)));
    assert_eq!((by_year(2021), by_year(2030)), (json!(0), json!(1)));
    assert!(put("d2", 2031).message().contains("not \"d2\", the id of the path"));
    let absent = json!({ "id": "d2", "ownerId": "o1" }).to_string();
    let absent = send(&service, Method::PUT, &format!("{DOCS}/d2"), &[key], absent.as_bytes());
    assert_eq!((absent.status, &absent.json()["code"]), (404, &json!("NotFound")));

    let mismatch = post(&[("x-ms-documentdb-partitionkey", r#"["o2"]"#)], 2020);
    assert_eq!((mismatch.status, mismatch.header("x-ms-substatus")), (400, Some("1001")));
}

#[test]
fn descriptions_lead_from_the_account_to_the_ranges() {
    let (service, _) = service(Config { documents_per_container: 0, ..Config::default() });
    let account = get(&service, "/", &[]).json();
    assert_eq!(account["writableLocations"][0]["databaseAccountEndpoint"], "http://127.0.0.1:8081/");
    let database = get(&service, "/dbs/dronedelivery", &[]).json();
    assert_eq!(database["id"], "dronedelivery");
    let container = get(&service, "/dbs/dronedelivery/colls/utilization/", &[]).json();
    assert_eq!(container["partitionKey"], json!({ "paths": ["/ownerId"], "kind": "Hash", "version": 2 }));

    let by_rid = format!("/{}pkranges", container["_self"].as_str().unwrap());
    let ranges = get(&service, &by_rid, &[]);
    assert_eq!(ranges.json()["_count"], 9);
    assert_eq!(ranges.json()["PartitionKeyRanges"][0]["minInclusive"], "");
    assert_eq!(ranges.json()["PartitionKeyRanges"][8]["maxExclusive"], "FF");
    let again = get(&service, &by_rid, &[("if-none-match", ranges.header("etag").unwrap())]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    for missing in ["/dbs/other", "/dbs/dronedelivery/colls/other", "/nothing"] {
        assert_eq!(get(&service, missing, &[]).json()["code"], "NotFound", "{missing}");
    }
}

#[test]
fn a_malformed_request_is_reported_where() {
    let (service, _) = service(Config { documents_per_container: 0, ..Config::default() });
    let key = ("x-ms-documentdb-partitionkeyrangeid", "0");
    let ask = |sql, place: &[(&str, &str)]| query(&service, sql, &json!([]), place);
    let refused = |reply: Reply, expected: &str| {
        assert_eq!((reply.status, &reply.json()["code"]), (400, &json!("BadRequest")));
        assert!(reply.message().contains(expected), "{}", reply.message());
        assert_eq!(reply.charge(), 0.0);
    };
    refused(ask("SELECT * FORM c", &[key]), "syntax error at character 10 of the query");
    refused(ask("SELECT * FROM c", &[("x-ms-documentdb-partitionkeyrangeid", "9")]), "no range 9, expected 0 to 8");
    refused(ask("SELECT * FROM c", &[key, ("x-ms-max-item-count", "0")]), "x-ms-max-item-count is \"0\"");
    refused(ask("SELECT * FROM c", &[("x-ms-documentdb-partitionkey", "o1")]), "a JSON array of scalars");
    refused(send(&service, Method::POST, DOCS, &[], b"{\n\"id\" 1}"), "line 2 column 6");
    let fan_out = ask("SELECT * FROM c", &[]);
    assert_eq!(fan_out.header("x-ms-substatus"), Some("1004"));
    refused(fan_out, "several partitions");
}

#[test]
fn a_body_over_the_limit_is_refused() {
    let (service, _) = service(Config { documents_per_container: 0, ..Config::default() });
    let reply = send(&service, Method::POST, DOCS, &[], &vec![b' '; MAX_BODY_BYTES + 1]);
    assert_eq!((reply.status, &reply.json()["code"]), (413, &json!("RequestEntityTooLarge")));
}

#[test]
fn seeded_documents_weigh_about_785_bytes() {
    let (service, _) = service(Config::default());
    for owner in 0..seed::owners(11_000) {
        let key = format!("[\"o000{owner}\"]");
        let path = format!("{DOCS}/d000{}", owner * seed::MONTHS_PER_OWNER);
        let reply = get(&service, &path, &[("x-ms-documentdb-partitionkey", key.as_str())]);
        assert!((775..=795).contains(&reply.body.len()), "{} bytes", reply.body.len());
    }
}

#[test]
fn a_delay_holds_every_request_back() {
    use std::future::Future;
    use std::task::{Context, Waker};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let responds_at_once = |delay| {
        let (service, _) = service(Config { delay, documents_per_container: 0, ..Config::default() });
        let _entered = runtime.enter();
        let endpoint = ENDPOINT.into();
        let mut response = std::pin::pin!(service.respond(Request::new(Body::empty()), &endpoint));
        response.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    };
    assert!(responds_at_once(Duration::ZERO));
    assert!(!responds_at_once(Duration::from_secs(60)));
}

#[test]
fn the_store_responds_on_a_socket() {
    use std::io::{Read, Write};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let response = runtime.block_on(async {
        let config = Config {
            listen: Listen::loopback(0),
            access: Access::Anyone,
            documents_per_container: 0,
            ..Config::default()
        };
        let server = Server::open_with(config, None).await.unwrap();
        let address = server.address();
        let serving = tokio::spawn(server.serve(std::future::pending()));
        let asking = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
            let mut response = String::new();
            stream.read_to_string(&mut response).unwrap();
            response
        });
        let response = asking.await.unwrap();
        serving.abort();
        assert!(response.contains(&format!("http://{address}/")), "{response}");
        response
    });
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
}

mod binary;
mod containers;
mod damage;
mod documents;
mod feeds;
mod fuzz;
mod lifetime;
mod long;
mod pages;
mod restart;
mod sorted;
mod splits;
mod tls;
mod walks;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn random_bytes_get_a_response(
        path in "[/%a-f0-9.]{0,20}",
        key in "[ -~]{0,12}",
        body in proptest::collection::vec(any::<u8>(), 0..200),
        is_query in any::<bool>(),
    ) {
        let (service, _) = service(Config { documents_per_container: 0, ..Config::default() });
        let is_query = if is_query { "true" } else { "false" };
        let headers = [("x-ms-documentdb-partitionkey", key.as_str()), ("x-ms-documentdb-isquery", is_query)];
        let reply = send(&service, Method::POST, DOCS, &headers, &body);
        prop_assert!((400..500).contains(&reply.status));
        prop_assert!(reply.json()["message"].is_string());
        let reply = get(&service, &format!("{DOCS}/{path}"), &headers);
        prop_assert!(reply.status < 500);
        prop_assert!(reply.header("x-ms-request-charge").is_some());
    }
}
