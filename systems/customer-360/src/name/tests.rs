//! The service of names over a real PostgreSQL; where there is none, these say that they were skipped.

use std::sync::Arc;
use std::time::Duration;

use narrows_listener::Listen;

use super::{Config, open_with};
use crate::telemetry::Telemetry;
use crate::testing::{Postgres, RunningService, SpanRecorder, address_of_nobody, attribute, eventually, reason};
use crate::{Choice, UpstreamConfig, customer, person};

const NAMES: &str = r#"[{"personId":1,"first":"Eric","middle":"Donald","last":"Murphy"},{"personId":2,"first":"Rosa","middle":"Louise McCauley","last":"Parks"},{"personId":3,"first":"Mohandas","middle":"Karamchand","last":"Gandhi"},{"personId":4,"first":"John","middle":"Fitzgerald","last":"Kennedy"},{"personId":5,"first":"William","middle":"Jefferson","last":"Clinton"}]"#;
const CUSTOMERS: &str = r#"[{"customerId":"1-1","person":{"personId":1,"name":{"id":0,"first":"Eric","middle":"Donald","last":"Murphy"}}},{"customerId":"2-1","person":{"personId":2,"name":{"id":0,"first":"Rosa","middle":"Louise McCauley","last":"Parks"}}},{"customerId":"3-1","person":{"personId":3,"name":{"id":0,"first":"Mohandas","middle":"Karamchand","last":"Gandhi"}}},{"customerId":"4-1","person":{"personId":4,"name":{"id":0,"first":"John","middle":"Fitzgerald","last":"Kennedy"}}},{"customerId":"5-1","person":{"personId":5,"name":{"id":0,"first":"William","middle":"Jefferson","last":"Clinton"}}}]"#;

fn config(url: &str) -> Config {
    let timeout = Duration::from_secs(10);
    Config { url: url.to_owned(), connections: 2, in_flight: 8, wait: timeout, timeout }
}

async fn names(config: &Config, telemetry: Telemetry) -> RunningService {
    let names = RunningService::new(open_with(Listen::loopback(0), config, telemetry).await.unwrap());
    eventually("a connection", || async { names.get("/health").await.0 == 200 }).await;
    names
}

#[tokio::test]
async fn the_chain_responds_field_by_field_as_the_original() {
    let Some(postgres) = Postgres::start().await else { return };
    let names = names(&config(&postgres.url()), Telemetry::default()).await;
    let upstream = |url: &str| UpstreamConfig {
        replicas: url.parse().unwrap(),
        choice: Choice::RoundRobin,
        timeout: Duration::from_secs(20),
    };
    let people = RunningService::new(
        person::open_with(Listen::loopback(0), upstream(&names.url), Telemetry::default()).await.unwrap(),
    );
    let customers =
        customer::open_with(Listen::loopback(0), upstream(&people.url), Telemetry::default()).await.unwrap();
    let customers = RunningService::new(customers);
    assert_eq!(names.get("/api/name").await, (200, NAMES.to_owned()));
    let (status, headers, body) = customers.ask("GET", "/api/customer", &[], "").await;
    assert_eq!((status, body.as_str()), (200, CUSTOMERS));
    assert_eq!(headers["content-type"], "application/json");
}

#[tokio::test]
async fn names_are_found_by_number_and_by_last_name() {
    let Some(postgres) = Postgres::start().await else { return };
    let names = names(&config(&postgres.url()), Telemetry::default()).await;
    let gandhi = r#"{"personId":3,"first":"Mohandas","middle":"Karamchand","last":"Gandhi"}"#;
    for (path, status, body) in [
        ("/api/name/3", 200, gandhi.to_owned()),
        ("/api/name/last/Gandhi", 200, format!("[{gandhi}]")),
        ("/api/name/last/%47andhi", 200, format!("[{gandhi}]")),
        ("/api/name/last/O'Hara%20--", 200, "[]".to_owned()),
    ] {
        assert_eq!(names.get(path).await, (status, body), "{path}");
    }
    for (path, status, expected) in [
        ("/api/name/9", 404, "no_such_name"),
        ("/api/name/-1", 404, "no_such_name"),
        ("/api/name/4294967299", 404, "no_such_name"),
        ("/api/name/three", 400, "bad_request"),
        ("/api/name/99999999999999999999", 400, "bad_request"),
        ("/api/name/last/%FF", 400, "bad_request"),
        ("/api/name/last/%00", 400, "bad_request"),
        ("/api/name/last/", 404, "unknown_route"),
        ("/api/name/1/2", 404, "unknown_route"),
        ("/api/names", 404, "unknown_route"),
        ("/api/name/", 404, "unknown_route"),
    ] {
        let (found, body) = names.get(path).await;
        assert_eq!((found, reason(&body).as_str()), (status, expected), "{path}");
    }
    assert_eq!(names.ask("DELETE", "/api/name/3", &[], "").await.0, 405);
}

#[tokio::test]
async fn names_are_added_once() {
    let Some(postgres) = Postgres::start().await else { return };
    let names = names(&config(&postgres.url()), Telemetry::default()).await;
    let name = r#"{"personId":6,"first":"Zoë","middle":null,"last":"\"Z\""}"#;
    let post = async |body: &str| {
        let (status, _, body) = names.ask("POST", "/api/name/post", &[], body).await;
        (status, body)
    };
    assert_eq!(post(name).await, (200, name.to_owned()));
    assert_eq!(names.get("/api/name/6").await, (200, name.to_owned()));
    let long = format!(r#"{{"personId":7,"first":"{}"}}"#, "x".repeat(256));
    let large = format!(r#"{{"personId":7,"first":"{}"}}"#, "x".repeat(20_000));
    for (body, status, expected) in [
        (name, 409, "already_there"),
        ("", 400, "bad_request"),
        ("{}", 400, "bad_request"),
        ("[1]", 400, "bad_request"),
        (r#"{"personId":null,"first":"A"}"#, 400, "bad_request"),
        (r#"{"personId":"8"}"#, 400, "bad_request"),
        (r#"{"personId":8,"first":"\u0000"}"#, 400, "bad_request"),
        (&long, 400, "bad_request"),
        (&large, 413, "too_large"),
    ] {
        let (found, told) = post(body).await;
        assert_eq!((found, reason(&told).as_str()), (status, expected), "{told}");
    }
}

#[tokio::test]
async fn a_sampled_request_shows_its_query() {
    let Some(postgres) = Postgres::start().await else { return };
    let recorded = SpanRecorder::default();
    let traced = RunningService::new(
        open_with(Listen::loopback(0), &config(&postgres.url()), recorded.telemetry()).await.unwrap(),
    );
    let unsampled = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")];
    let sampled = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
    eventually("a connection", || async { traced.ask("GET", "/api/name", &unsampled, "").await.0 == 200 }).await;
    assert_eq!(recorded.all().len(), 0);
    traced.ask("GET", "/api/name/3", &sampled, "").await;
    let (server, query) = (recorded.only("GET /api/name/{id}"), recorded.only("SELECT name"));
    assert_eq!(query.parent_span_id, server.span_context.span_id());
    for (name, value) in [
        ("db.system.name", "postgresql"),
        ("db.namespace", "customers"),
        ("db.collection.name", "name"),
        ("db.operation.name", "SELECT"),
        ("db.query.summary", "SELECT name"),
        ("db.query.text", r#"SELECT personId, "first", middle, "last" FROM name WHERE personId = $1"#),
        ("server.address", "127.0.0.1"),
        ("db.response.returned_rows", "1"),
    ] {
        assert_eq!(attribute(&query, name).as_deref(), Some(value), "{name}");
    }
}

#[tokio::test]
async fn a_query_that_waits_in_vain_for_a_place_is_reported_so() {
    let Some(postgres) = Postgres::start().await else { return };
    let recorded = SpanRecorder::default();
    let few = Config { in_flight: 1, wait: Duration::from_secs(1), ..config(&postgres.url()) };
    let names =
        Arc::new(RunningService::new(open_with(Listen::loopback(0), &few, recorded.telemetry()).await.unwrap()));
    eventually("a connection", || async { names.get("/health").await.0 == 200 }).await;
    let locking = postgres.client("customers").await;
    locking.batch_execute("BEGIN; LOCK TABLE name IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let blocked = {
        let names = Arc::clone(&names);
        tokio::spawn(async move { names.get("/api/name").await })
    };
    eventually("a query that waits for the lock", || is_blocked(&locking)).await;
    let (status, body) = names.get("/api/name/1").await;
    assert_eq!((status, reason(&body).as_str()), (503, "pool_full"), "{body}");
    locking.batch_execute("COMMIT").await.unwrap();
    assert_eq!(blocked.await.unwrap(), (200, NAMES.to_owned()));
    assert_eq!(names.get("/api/name/1").await.0, 200, "the place is free again");
    assert_eq!(attribute(&recorded.only("pool.acquire"), "error.type").as_deref(), Some("pool_full"));
}

async fn is_blocked(client: &tokio_postgres::Client) -> bool {
    let text = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'name'";
    client.query_one(text, &[]).await.unwrap().get::<_, i64>(0) > 0
}

#[tokio::test]
async fn a_slow_query_is_ended_and_its_place_given_back() {
    let Some(postgres) = Postgres::start().await else { return };
    let hasty = Config { in_flight: 1, timeout: Duration::from_secs(1), ..config(&postgres.url()) };
    let names = names(&hasty, Telemetry::default()).await;
    let locking = postgres.client("customers").await;
    locking.batch_execute("BEGIN; LOCK TABLE name IN ACCESS EXCLUSIVE MODE").await.unwrap();
    for _ in 0..2 {
        let (status, body) = names.get("/api/name").await;
        assert_eq!((status, reason(&body).as_str()), (504, "query_timeout"), "{body}");
    }
    locking.batch_execute("COMMIT").await.unwrap();
    eventually("a response", || async { names.get("/api/name").await == (200, NAMES.to_owned()) }).await;
}

#[tokio::test]
async fn a_database_that_dies_and_comes_back_is_found_again() {
    let Some(mut postgres) = Postgres::start().await else { return };
    let names = names(&config(&postgres.url()), Telemetry::default()).await;
    assert_eq!(names.get("/api/name").await.0, 200);
    postgres.kill();
    eventually("the loss to be noticed", || async { names.get("/health").await.0 == 503 }).await;
    let (status, headers, body) = names.ask("GET", "/api/name", &[], "").await;
    assert_eq!((status, reason(&body).as_str()), (503, "database_unreachable"), "{body}");
    assert_eq!(headers["retry-after"], "1");
    postgres.run().await;
    eventually("a response", || async { names.get("/api/name").await == (200, NAMES.to_owned()) }).await;
}

#[tokio::test]
async fn without_a_database_every_query_fails_at_once() {
    let config = config(&format!("postgres://postgres@{}/customers", address_of_nobody().await));
    let names = RunningService::new(open_with(Listen::loopback(0), &config, Telemetry::default()).await.unwrap());
    for path in ["/api/name", "/api/name/1", "/health"] {
        let (status, body) = names.get(path).await;
        assert_eq!((status, reason(&body).as_str()), (503, "database_unreachable"), "{path}");
    }
    assert_eq!(names.get("/api/nothing").await.0, 404);
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused() {
    let good = config("postgres://postgres@127.0.0.1:1/customers");
    let told = async |config: Config| {
        open_with(Listen::loopback(0), &config, Telemetry::default()).await.unwrap_err().to_string()
    };
    assert_eq!(told(Config { connections: 0, ..good.clone() }).await, "--connections is \"0\", expected 1 to 256");
    assert_eq!(told(Config { in_flight: 5000, ..good.clone() }).await, "--in-flight is \"5000\", expected 1 to 4096");
    let secret = told(Config { url: "postgres://a:secret@h:port/d".to_owned(), ..good }).await;
    assert!(secret.starts_with("--database is not an address of PostgreSQL") && !secret.contains("secret"), "{secret}");
}
