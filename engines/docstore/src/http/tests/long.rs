//! Long requests beside other requests.

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::containers::post;
use super::*;
use crate::charge::Charge;

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["o"]"#);

/// A runtime with the connection threads of a small machine.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A store with one partition, in which a short query does much work.
fn heavy() -> Arc<Service> {
    let (service, _) = service(Config {
        partitions: 1,
        throughput_ru_per_second: 10_000,
        documents_per_container: 0,
        ..Config::default()
    });
    let numbers: Vec<u32> = (0..1_000).collect();
    let document = json!({ "id": "1", "ownerId": "o", "a": numbers, "text": "x".repeat(300_000) });
    assert_eq!(post(&service, DOCS, &[KEY], &document).status, 201);
    assert_eq!(post(&service, DOCS, &[KEY], &json!({ "id": "2", "ownerId": "o" })).status, 201);
    Arc::new(service)
}

async fn respond(service: Arc<Service>, request: Request) -> u16 {
    service.respond(request, &ENDPOINT.into()).await.status().as_u16()
}

fn started(runtime: &Runtime, service: &Arc<Service>, sql: &str) -> JoinHandle<u16> {
    let body = Body::from(json!({ "query": sql }).to_string());
    let request = Request::post(DOCS).header(KEY.0, KEY.1).header("x-ms-documentdb-isquery", "true").body(body);
    runtime.spawn(respond(Arc::clone(service), request.unwrap()))
}

/// Waits until the number of running long requests is as wanted.
async fn running(service: &Service, is_wanted: impl Fn(usize) -> bool) {
    while !is_wanted(service.long.running()) {
        tokio::task::yield_now().await;
    }
}

#[test]
fn who_reads_a_partition_does_not_wait_for_queries_that_take_long() {
    let (runtime, service) = (runtime(), heavy());
    let queries = [
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a WHERE c.text BETWEEN c.text AND c.text",
        r"SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a WHERE REGEXMATCH('a', CONCAT('\\w{50}', ToString(x * 1000 + y)))",
    ];
    let queries = queries.map(|sql| started(&runtime, &service, sql));
    runtime.block_on(async {
        running(&service, |count| count > 0).await;
        for _ in 0..100 {
            let read = Request::get(format!("{DOCS}/2")).header(KEY.0, KEY.1).body(Body::empty()).unwrap();
            assert_eq!(tokio::spawn(respond(Arc::clone(&service), read)).await.unwrap(), 200);
        }
        assert!(queries.iter().any(|query| !query.is_finished()), "100 reads took longer than all queries");
        queries.iter().for_each(JoinHandle::abort);
    });
}

#[test]
fn a_query_stops_when_its_client_leaves() {
    let (runtime, service) = (runtime(), heavy());
    let before = usage(&service);
    let query = started(&runtime, &service, "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a");
    runtime.block_on(async {
        running(&service, |count| count > 0).await;
        query.abort();
        // Its thread may still run for a moment.
        running(&service, |count| count == 0).await;
    });
    assert_eq!(usage(&service), before, "a query that does all it may is booked");
}

fn usage(service: &Service) -> Charge {
    service.store.containers()[0].ranges().iter().map(|range| range.partition.usage().consumed).sum()
}

#[test]
fn a_long_query_is_booked_once() {
    let (service, _) = service(Config { partitions: 1, documents_per_container: 20_000, ..Config::default() });
    let range = [("x-ms-documentdb-partitionkeyrangeid", "0")];
    let reply = query(&service, "SELECT VALUE COUNT(1) FROM c WHERE c.month > 0", &json!([]), &range);
    assert_eq!((reply.status, &reply.json()["Documents"]), (200, &json!([20_000])));
    // 3.20 + 0.19 + 20,000 · 0.05.
    assert_eq!((reply.charge(), usage(&service).to_string().as_str()), (1003.39, "1003.39"));
}
