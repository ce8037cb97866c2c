//! The service over HTTP with small workloads, on both kinds of store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::time::Duration;

use axum::body::Bytes;
use axum::http::Request;
use narrows_serving::client::Client;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::{Activities, StoreKind};

/// Long enough for any workload here on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(600);

struct Server {
    url: String,
    runner: Arc<Runner>,
    spans: InMemorySpanExporter,
}

async fn serve(store: StoreKind) -> Server {
    let spans = InMemorySpanExporter::default();
    let telemetry =
        Telemetry::with_provider(SCOPE, SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build());
    let config = Config { store, partitions: Some(2), sample: 1.0, ..Config::default() };
    let runner = Arc::new(Runner::open(&config, &telemetry).await.unwrap());
    let router = router(Arc::clone(&runner), &telemetry);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/workloads/", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
    Server { url, runner, spans }
}

impl Server {
    async fn post(&self, path: &str) -> (u16, Value) {
        let request = Request::post(format!("{}{path}", self.url)).body(Bytes::new()).unwrap();
        let response = Client::new(TIMEOUT, 1).send(request).await.unwrap();
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
    }

    /// Events as the engine itself counts them.
    fn events(&self) -> u64 {
        self.runner.held.engine.stats().partitions.iter().map(|partition| partition.counts.events).sum()
    }
}

/// Events are those of the definitions; the engine, which counts for itself, also counts what launching takes.
#[tokio::test]
async fn every_workload_ends_with_the_events_that_the_engine_counted() {
    for store in [StoreKind::Files, StoreKind::Classic, StoreKind::Memory] {
        let server = serve(store.clone()).await;
        for (path, events, launching) in [
            ("hello-cities?n=60", 600, 0),
            ("hello-cities?n=60&launch=entities", 600, 50),
            ("hello-cities?n=3&launch=one-by-one", 30, 0),
            ("fan-out-fan-in?n=3&each=20", 120, 0),
            ("sub-orchestrations?n=6&each=3", 36, 0),
            ("entity-calls?n=60&each=2", 240, 0),
            ("counter?n=70", 70, 0),
            ("periodic?n=4&each=2", 8, 0),
            ("waiting?n=30", 30, 0),
        ] {
            let before = server.events();
            let (status, figures) = server.post(path).await;
            assert_eq!((status, &figures["events"]), (200, &json!(events)), "{path}: {figures}");
            assert_eq!(server.events() - before, events + launching, "{path} on {store:?}");
            let (seconds, rate) =
                (figures["seconds"].as_f64().unwrap(), figures["events_per_second"].as_f64().unwrap());
            assert!((rate * seconds / events as f64 - 1.0).abs() < 1e-9, "{figures}");
            assert_eq!(figures["orchestrations_per_second"].is_null(), path.starts_with("counter"), "{figures}");
            assert_eq!(figures["latency_ms_p50"].is_null(), !path.contains("one-by-one"), "{figures}");
            assert!(figures["log_bytes_per_event"].as_f64().unwrap() > 0.0, "{figures}");
        }
        let left = server.runner.held.client.count(narrows_durable::Filter::default()).await.unwrap();
        assert_eq!(left, 0, "each run forgets what it left");
        let names = server.spans.get_finished_spans().unwrap();
        for name in ["orchestration:HelloCities5", "activity:Hello", "entity:Launcher", "POST /workloads/{workload}"] {
            assert!(names.iter().any(|span| span.name == name), "{name}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_with_a_reason() {
    let server = serve(StoreKind::Memory).await;
    for (path, status, reason) in [
        ("hello", 404, "unknown_workload"),
        ("hello-cities?n=0", 400, "bad_request"),
        ("hello-cities?n=some", 400, "bad_request"),
        ("hello-cities?launch=later", 400, "bad_request"),
        ("counter?each=4", 400, "bad_request"),
    ] {
        let (said, problem) = server.post(path).await;
        assert_eq!((said, &problem["reason"]), (status, &json!(reason)), "{path}: {problem}");
    }
    let turn = server.runner.runs.lock().await;
    assert_eq!(server.post("counter?n=1").await.1["reason"], "busy");
    drop(turn);
    *server.runner.runs.lock().await = None;
    assert_eq!(server.post("counter?n=1").await.0, 503);
}

#[tokio::test]
async fn a_folder_with_orchestrations_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        store: StoreKind::Files,
        folder: Some(folder.path().join("hub")),
        partitions: Some(1),
        activities: Activities::Idempotent,
        sample: 0.0,
        ..Config::default()
    };
    let plan = Plan::new(Workload::HelloCities, Some(2), None, None).unwrap();
    assert_eq!(once(&config, &plan).await.unwrap().n, 2);
    let again = once(&config, &plan).await.unwrap_err().to_string();
    assert!(again.ends_with("hub holds 2 orchestrations, expected none"), "{again}");
    let wrong = Config { sample: 1.5, ..config };
    assert_eq!(once(&wrong, &plan).await.unwrap_err().to_string(), "sample is \"1.5\", expected 0 to 1");
}

/// All commits of a hub with one partition wait one after the other, each for a round trip; those of the last steps may
/// be under way when these have ended.
#[tokio::test]
async fn each_commit_waits_for_a_store_at_a_distance() {
    let plan = Plan::new(Workload::HelloCities, Some(20), None, None).unwrap();
    for store in [StoreKind::Files, StoreKind::Classic] {
        let store_delay = Duration::from_millis(2);
        let config = Config { store, store_delay, partitions: Some(1), sample: 0.0, ..Config::default() };
        let figures = once(&config, &plan).await.unwrap();
        let waited = store_delay.as_secs_f64() * figures.commits.unwrap() as f64;
        assert!(figures.seconds > waited / 2.0, "{figures:?}");
    }
}
