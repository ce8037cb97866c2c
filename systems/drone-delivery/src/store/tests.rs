//! The client against a store that responds from a script.

use std::time::Duration;

use opentelemetry::trace::{SpanContext, TraceContextExt as _, Tracer as _};
use tokio::sync::{Barrier, Notify};

use super::*;
use crate::testing::{Fake, FakeRequest, FakeResponse, SpanRecorder, attribute, described, url_of_nobody};

/// The partition key of a container of which the query's filter says nothing, and of one whose key it fixes.
const BY_ID: &str = "id";
const BY_OWNER: &str = "ownerId";

const TEXT: &str = "SELECT * FROM c WHERE c.ownerId = @ownerId";
const RANGE: &str = "x-ms-documentdb-partitionkeyrangeid";
const KEY: &str = "x-ms-documentdb-partitionkey";

fn ranges(count: usize) -> FakeResponse {
    let ranges: Vec<Value> =
        (0..count).map(|id| json!({ "id": id.to_string(), "minInclusive": format!("{id:02X}") })).collect();
    FakeResponse::new(200, json!({ "PartitionKeyRanges": ranges }))
}

fn page(documents: &[u32]) -> FakeResponse {
    FakeResponse::new(200, json!({ "Documents": documents })).with("x-ms-request-charge", "3.2")
}

fn throttled(wait_ms: u64) -> FakeResponse {
    FakeResponse::new(429, "")
        .with("x-ms-retry-after-ms", wait_ms)
        .with("x-ms-substatus", 3200)
        .with("x-ms-request-charge", 0)
}

/// Requests that a store got, except for its container's description.
fn asked_of(fake: &Fake) -> Vec<FakeRequest> {
    fake.asked().into_iter().filter(|asked| !asked.is_description()).collect()
}

fn is_listing(asked: &FakeRequest) -> bool {
    asked.path.ends_with("/pkranges")
}

fn range_of(asked: &FakeRequest) -> u32 {
    asked.header(RANGE).unwrap().parse().unwrap()
}

struct Client {
    store: Store,
    recorded: SpanRecorder,
    parent: Context,
}

impl Client {
    fn of(config: StoreConfig) -> Self {
        let recorded = SpanRecorder::default();
        let tracer = recorded.telemetry().tracer();
        let parent = Context::new().with_span(tracer.start("parent"));
        Self { store: Store::open(config, tracer).unwrap(), recorded, parent }
    }

    async fn ask(&self) -> Result<Vec<u32>, StoreError> {
        let query = Query { text: TEXT, filter: vec![("ownerId", "o0001".into())] };
        self.store.query(&self.parent, &query, Vec::push).await
    }

    fn parent(&self) -> SpanContext {
        self.parent.span().span_context().clone()
    }
}

fn config(url: &BaseUrl) -> StoreConfig {
    StoreConfig {
        token: None,
        url: url.clone(),
        database: "d".to_owned(),
        container: "c".to_owned(),
        parallelism: Parallelism::Serial,
        connections_max: 100,
        prefetch_max: 100,
        retries_max: 9,
    }
}

/// A store of `count` ranges that each hold their own number.
async fn own_numbers(count: usize) -> Fake {
    Fake::container(BY_ID, move |asked| async move {
        if is_listing(&asked) { ranges(count) } else { page(&[range_of(&asked)]) }
    })
    .await
}

#[tokio::test]
async fn a_query_asks_every_range_and_lists_the_ranges_once() {
    let fake = own_numbers(9).await;
    let client = Client::of(config(&fake.url));
    let expected: Vec<u32> = (0..9).collect();
    assert_eq!(client.ask().await, Ok(expected.clone()));
    assert_eq!(client.ask().await, Ok(expected));
    assert_eq!(asked_of(&fake).iter().filter(|asked| is_listing(asked)).count(), 1);

    let post = &asked_of(&fake)[1];
    assert_eq!(post.path, "/dbs/d/colls/c/docs");
    assert_eq!(post.header("content-type"), Some("application/query+json"));
    assert_eq!(post.header("x-ms-documentdb-isquery"), Some("true"));
    assert_eq!((post.header(RANGE), post.header(KEY)), (Some("0"), None));
    let expected = json!({ "query": TEXT, "parameters": [{ "name": "@ownerId", "value": "o0001" }] });
    assert_eq!(serde_json::from_str::<Value>(&post.body).unwrap(), expected);
}

#[tokio::test]
async fn a_query_by_partition_key_asks_once_and_needs_no_ranges() {
    let fake = Fake::container(BY_OWNER, async |_| page(&[7]).with("x-ms-session-token", "4:-1#12")).await;
    let client = Client::of(config(&fake.url));
    assert_eq!(client.ask().await, Ok(vec![7]));
    let asked = asked_of(&fake);
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].header(KEY), asked[0].header(RANGE)), (Some(r#"["o0001"]"#), None));
    let span = client.recorded.spans("query c").pop().unwrap();
    assert_eq!(attribute(&span, "db.partition.id").as_deref(), Some("4"));
}

#[tokio::test]
async fn a_throttled_request_waits_as_told_nine_times_and_gives_up() {
    let fake = Fake::container(BY_OWNER, async |_| throttled(3)).await;
    let client = Client::of(config(&fake.url));
    let wait = Duration::from_millis(3);
    assert_eq!(client.ask().await, Err(StoreError::Throttled { retries: 9, retry_after: wait }));
    let asked = asked_of(&fake);
    assert_eq!(asked.len(), 10);
    assert!(asked.windows(2).all(|pair| pair[1].at - pair[0].at >= wait), "no retry comes early");

    let spans = client.recorded.spans("query c");
    let resends: Vec<Option<String>> = spans.iter().map(|span| attribute(span, "http.request.resend_count")).collect();
    let expected: Vec<Option<String>> = (0..10).map(|resend| (resend > 0).then(|| resend.to_string())).collect();
    assert_eq!(resends, expected);
    for (name, value) in [
        ("db.response.status_code", "429"),
        ("azure.cosmosdb.response.sub_status_code", "3200"),
        ("azure.cosmosdb.operation.request_charge", "0"),
        ("http.response.header.x-ms-retry-after-ms", "[\"3\"]"),
        ("error.type", "429"),
    ] {
        assert_eq!(attribute(&spans[0], name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(attribute(&spans[0], "db.response.returned_rows"), None);
}

#[tokio::test]
async fn a_throttled_request_is_repeated_no_more_often_than_the_configuration_says() {
    let fake = Fake::container(BY_OWNER, async |_| throttled(1)).await;
    let client = Client::of(StoreConfig { retries_max: 2, ..config(&fake.url) });
    let retry_after = Duration::from_millis(1);
    assert_eq!(client.ask().await, Err(StoreError::Throttled { retries: 2, retry_after }));
    assert_eq!(asked_of(&fake).len(), 3);
}

#[tokio::test]
async fn a_wait_beyond_the_deadline_is_not_begun() {
    let fake = Fake::container(BY_OWNER, async |_| throttled(30_001)).await;
    let client = Client::of(config(&fake.url));
    let retry_after = Duration::from_millis(30_001);
    assert_eq!(client.ask().await, Err(StoreError::Throttled { retries: 0, retry_after }));
    assert_eq!(asked_of(&fake).len(), 1);
}

#[tokio::test]
async fn a_request_that_is_let_through_after_a_wait_succeeds() {
    let fake = Fake::container(BY_OWNER, async |asked| if asked.number < 9 { throttled(0) } else { page(&[1]) }).await;
    let client = Client::of(config(&fake.url));
    assert_eq!(client.ask().await, Ok(vec![1]));
    assert_eq!(asked_of(&fake).len(), 10);
}

/// A store of `count` ranges that responds only when `together` requests are in flight.
async fn only_together(count: usize, together: usize) -> Fake {
    let barrier = Arc::new(Barrier::new(together));
    Fake::container(BY_ID, move |asked| {
        let barrier = Arc::clone(&barrier);
        async move {
            if is_listing(&asked) {
                return ranges(count);
            }
            barrier.wait().await;
            page(&[range_of(&asked)])
        }
    })
    .await
}

#[tokio::test]
async fn as_many_ranges_are_asked_at_a_time_as_was_set() {
    for (parallelism, in_flight) in
        [(Parallelism::Serial, 1), (Parallelism::AtMost(1), 1), (Parallelism::AtMost(3), 3), (Parallelism::All, 9)]
    {
        let fake = only_together(9, in_flight).await;
        let client = Client::of(StoreConfig { parallelism, ..config(&fake.url) });
        assert_eq!(client.ask().await, Ok((0..9).collect()), "{parallelism:?}");
        assert_eq!(fake.in_flight_max(), in_flight, "{parallelism:?}");
    }
}

#[tokio::test]
async fn connections_bound_what_is_on_the_wire() {
    let fake = only_together(8, 2).await;
    let client = Client::of(StoreConfig { parallelism: Parallelism::All, connections_max: 2, ..config(&fake.url) });
    assert_eq!(client.ask().await, Ok((0..8).collect()));
    assert_eq!(fake.in_flight_max(), 2);
}

#[tokio::test]
async fn the_wait_for_a_connection_is_in_no_span() {
    let fake = own_numbers(4).await;
    let client = Client::of(StoreConfig { parallelism: Parallelism::All, connections_max: 1, ..config(&fake.url) });
    client.ask().await.unwrap();
    let spans = client.recorded.spans("query c");
    assert_eq!(spans.len(), 4);
    assert!(spans.windows(2).all(|pair| pair[0].end_time <= pair[1].start_time));
}

#[tokio::test]
async fn results_come_in_the_order_of_the_ranges_whichever_responds_first() {
    let last = Arc::new(Notify::new());
    let fake = Fake::container(BY_ID, move |asked| {
        let last = Arc::clone(&last);
        async move {
            if is_listing(&asked) {
                return ranges(3);
            }
            match range_of(&asked) {
                0 => last.notified().await,
                2 => last.notify_one(),
                _ => {}
            }
            page(&[range_of(&asked)])
        }
    })
    .await;
    let client = Client::of(StoreConfig { parallelism: Parallelism::All, ..config(&fake.url) });
    assert_eq!(client.ask().await, Ok(vec![0, 1, 2]));
}

#[tokio::test]
async fn pages_follow_each_other_by_continuation() {
    let fake = Fake::container(BY_ID, async |asked| {
        if is_listing(&asked) {
            return ranges(2);
        }
        match (range_of(&asked), asked.header("x-ms-continuation")) {
            (0, None) => page(&[1, 2]).with("x-ms-continuation", "next"),
            (0, Some("next")) => page(&[]).with("x-ms-continuation", "last"),
            (0, Some("last")) => page(&[3]),
            (1, None) => page(&[4]),
            (range, token) => FakeResponse::new(400, format!("range {range} with {token:?}")),
        }
    })
    .await;
    let client = Client::of(config(&fake.url));
    assert_eq!(client.ask().await, Ok(vec![1, 2, 3, 4]));
}

#[tokio::test]
async fn documents_before_their_turn_are_bounded() {
    // Range 1 has pages without end until range 0 responds; there is room for one of them, and one more is in its
    // task's hands.
    let (second, finished) = (Arc::new(Notify::new()), Arc::new(std::sync::atomic::AtomicUsize::new(0)));
    let seen = Arc::clone(&finished);
    let fake = Fake::container(BY_ID, move |asked| {
        let (second, seen) = (Arc::clone(&second), Arc::clone(&seen));
        async move {
            if is_listing(&asked) {
                return ranges(2);
            }
            if range_of(&asked) == 0 {
                second.notified().await;
                for _ in 0..2_000 {
                    tokio::task::yield_now().await;
                }
                seen.fetch_or(1 << 16, std::sync::atomic::Ordering::SeqCst);
                return page(&[0]);
            }
            let state = seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            if state == 2 {
                second.notify_one();
            }
            let told = page(&[1, 1]);
            if state >> 16 == 0 { told.with("x-ms-continuation", "more") } else { told }
        }
    })
    .await;
    let parallelism = Parallelism::All;
    let client = Client::of(StoreConfig { parallelism, prefetch_max: 2, ..config(&fake.url) });
    let documents = client.ask().await.unwrap();
    assert_eq!(documents, [0, 1, 1, 1, 1, 1, 1], "two pages before the turn, one after");
}

#[tokio::test]
async fn ranges_that_changed_are_listed_again_and_the_query_starts_over() {
    let fake = Fake::container(BY_ID, async |asked| match asked.number {
        0 => ranges(2),
        1 => page(&[100]),
        2 => FakeResponse::new(410, ""),
        3 => ranges(3),
        _ => page(&[range_of(&asked)]),
    })
    .await;
    let client = Client::of(config(&fake.url));
    assert_eq!(client.ask().await, Ok(vec![0, 1, 2]), "what came before the change does not count twice");
    assert_eq!(client.ask().await, Ok(vec![0, 1, 2]));
    assert_eq!(asked_of(&fake).iter().filter(|asked| is_listing(asked)).count(), 2);
}

#[tokio::test]
async fn ranges_that_change_for_ever_end_the_query() {
    let fake =
        Fake::container(BY_ID, async |asked| if is_listing(&asked) { ranges(1) } else { FakeResponse::new(410, "") })
            .await;
    let client = Client::of(config(&fake.url));
    assert_eq!(client.ask().await, Err(StoreError::RangesGone));
    assert_eq!(asked_of(&fake).len(), 4);
}

#[tokio::test]
async fn after_a_broken_connection_the_ranges_are_listed_again() {
    let fake = Fake::container(BY_ID, async |asked| match asked.number {
        0 => ranges(1),
        // Ends the connection without a response.
        1 => std::panic::resume_unwind(Box::new("cut")),
        2 => ranges(2),
        _ => page(&[range_of(&asked)]),
    })
    .await;
    let client = Client::of(config(&fake.url));
    assert!(matches!(client.ask().await, Err(StoreError::Unreachable(_))));
    let span = client.recorded.spans("query c").pop().unwrap();
    assert_eq!(attribute(&span, "error.type").as_deref(), Some("connection"));
    assert_eq!(client.ask().await, Ok(vec![0, 1]));
}

#[tokio::test]
async fn a_store_that_comes_back_with_another_partition_key_is_asked_by_it() {
    let fake = Fake::with(async |asked| match asked.number {
        0 => described(BY_ID),
        1 => ranges(1),
        2 => std::panic::resume_unwind(Box::new("cut")),
        3 => described(BY_OWNER),
        _ => page(&[7]),
    })
    .await;
    let client = Client::of(config(&fake.url));
    assert!(client.ask().await.is_err());
    assert_eq!(client.ask().await, Ok(vec![7]));
    assert_eq!(fake.asked()[4].header(KEY), Some(r#"["o0001"]"#));
}

#[tokio::test]
async fn each_attempt_is_a_span_with_its_charge_under_the_caller() {
    let fake = own_numbers(9).await;
    let client = Client::of(StoreConfig { parallelism: Parallelism::All, ..config(&fake.url) });
    client.ask().await.unwrap();
    let spans = client.recorded.spans("query c");
    let charge: f64 = spans
        .iter()
        .map(|span| attribute(span, "azure.cosmosdb.operation.request_charge").unwrap().parse::<f64>().unwrap())
        .sum();
    assert_eq!(spans.len(), 9);
    assert!((charge - 28.8).abs() < 1e-9, "{charge}");
    let mut partitions: Vec<String> = spans.iter().filter_map(|span| attribute(span, "db.partition.id")).collect();
    partitions.sort();
    assert_eq!(partitions.join(""), "012345678");
    for span in &spans {
        assert_eq!(span.parent_span_id, client.parent().span_id());
        assert_eq!(span.span_context.trace_id(), client.parent().trace_id());
        for (name, value) in [
            ("db.system.name", "azure.cosmosdb"),
            ("db.namespace", "d"),
            ("db.collection.name", "c"),
            ("db.operation.name", "query_items"),
            ("db.query.text", TEXT),
            ("db.response.status_code", "200"),
            ("db.response.returned_rows", "1"),
            ("server.address", "127.0.0.1"),
        ] {
            assert_eq!(attribute(span, name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(attribute(span, "error.type"), None);
    }
}

#[tokio::test]
async fn a_failing_store_is_reported_apart_from_a_wrong_request_and_a_wrong_response() {
    for (told, expected) in [
        (FakeResponse::new(503, r#"{"message":"away"}"#), "the store responded with 503: away"),
        (FakeResponse::new(400, r#"{"message":"syntax"}"#), "the store refused the request with 400: syntax"),
        (FakeResponse::new(404, "not JSON"), "the store refused the request with 404: no message"),
    ] {
        for is_listing_told in [true, false] {
            let told = told.clone();
            let fake = Fake::container(BY_ID, move |asked| {
                let told = if is_listing(&asked) && !is_listing_told { ranges(1) } else { told.clone() };
                async move { told }
            })
            .await;
            assert_eq!(Client::of(config(&fake.url)).ask().await.unwrap_err().to_string(), expected);
        }
    }
    let fake = Fake::start(&[(200, "{}")]).await;
    assert!(matches!(Client::of(config(&fake.url)).ask().await, Err(StoreError::Malformed(_))));
    let nobody = url_of_nobody().await;
    assert!(matches!(Client::of(config(&nobody)).ask().await, Err(StoreError::Unreachable(_))));
}

#[test]
fn settings_outside_their_range_are_refused() {
    for text in ["-2", "", "x", "1.5", "99999999999"] {
        assert!(text.parse::<Parallelism>().is_err(), "{text}");
    }
    for (text, expected) in [("-1", Parallelism::All), ("0", Parallelism::Serial), ("7", Parallelism::AtMost(7))] {
        assert_eq!(text.parse::<Parallelism>().unwrap(), expected);
    }
    let url: BaseUrl = "http://127.0.0.1:1".parse().unwrap();
    for (connections_max, prefetch_max, expected) in [
        (0, 1, "max-connections is \"0\", expected 1 to 10000"),
        (1, 100_001, "prefetch is \"100001\", expected 1 to 100000"),
    ] {
        let error = StoreConfig { connections_max, prefetch_max, ..config(&url) }.validate().unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
