//! Calls through a whole service, to fakes that respond from a script.

use std::time::Duration;

use narrows_listener::Listen;

use crate::telemetry::Telemetry;
use crate::testing::{
    Fake, FakeResponse, RunningService, SpanRecorder, address_of_nobody, ask, attribute, eventually, ok, reason,
    response,
};
use crate::{Choice, UpstreamConfig, person};

const NAMES: &str = r#"[{"personId":1,"first":"Eric","middle":"Donald","last":"Murphy"}]"#;
const PEOPLE: &str = r#"[{"personId":1,"name":{"personId":1,"first":"Eric","middle":"Donald","last":"Murphy"}}]"#;
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// The service of people over these replicas of the service of names.
async fn people_of(urls: &str, choice: Choice, telemetry: Telemetry) -> RunningService {
    let config = UpstreamConfig { replicas: urls.parse().unwrap(), choice, timeout: Duration::from_secs(20) };
    RunningService::new(person::open_with(Listen::loopback(0), config, telemetry).await.unwrap())
}

async fn people(urls: &str) -> RunningService {
    people_of(urls, Choice::RoundRobin, Telemetry::default()).await
}

#[tokio::test]
async fn names_become_people_over_one_kept_connection() {
    let names = Fake::start(|_| ok(NAMES)).await;
    let people = people(&names.url).await;
    for _ in 0..3 {
        assert_eq!(people.get("/api/person").await, (200, PEOPLE.to_owned()));
    }
    let heads = names.heads();
    let host = names.url.strip_prefix("http://").unwrap();
    assert_eq!(heads, [format!("get /api/name http/1.1\r\nhost: {host}\r\n\r\n"), heads[0].clone(), heads[0].clone()]);
    assert_eq!(people.get("/health").await, (200, r#"{"status":"up"}"#.to_owned()));
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let people = people("http://127.0.0.1:1").await;
    for path in ["/", "/api/persons", "/api/person/1", "/api"] {
        let (status, body) = people.get(path).await;
        assert_eq!((status, reason(&body).as_str()), (404, "unknown_route"), "{path}");
    }
    for path in ["/api/person", "/health"] {
        let (status, headers, body) = people.ask("POST", path, &[], "{}").await;
        assert_eq!((status, reason(&body).as_str()), (405, "wrong_method"));
        assert_eq!(headers["allow"], "GET");
    }
}

#[tokio::test]
async fn an_unsampled_context_goes_on_as_it_came_and_leaves_no_span() {
    let names = Fake::start(|_| ok(NAMES)).await;
    let recorded = SpanRecorder::default();
    let traceparent = format!("00-{TRACE}-{PARENT}-00");
    for telemetry in [Telemetry::default(), recorded.telemetry()] {
        let people = people_of(&names.url, Choice::RoundRobin, telemetry).await;
        people.ask("GET", "/api/person", &[("traceparent", &traceparent), ("tracestate", "a=b")], "").await;
    }
    assert_eq!(names.header("traceparent"), [traceparent.clone(), traceparent]);
    assert_eq!(names.header("tracestate"), ["a=b", "a=b"]);
    assert_eq!(recorded.all().len(), 0);
}

#[tokio::test]
async fn a_sampled_context_goes_on_under_the_spans_of_server_and_call() {
    let names = Fake::start(|_| ok(NAMES)).await;
    let recorded = SpanRecorder::default();
    let people = people_of(&names.url, Choice::RoundRobin, recorded.telemetry()).await;
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    people.ask("GET", "/api/person?a=b", &[("traceparent", &traceparent)], "").await;
    let (server, call) = (recorded.only("GET /api/person"), recorded.only("GET"));
    assert_eq!(server.parent_span_id.to_string(), PARENT);
    assert_eq!(call.parent_span_id, server.span_context.span_id());
    let sent = format!("00-{TRACE}-{}-01", call.span_context.span_id());
    assert_eq!(names.header("traceparent"), [sent]);
    for (name, value) in [
        ("http.request.method", "GET"),
        ("http.route", "/api/person"),
        ("url.path", "/api/person"),
        ("url.query", "a=b"),
        ("url.scheme", "http"),
        ("server.address", "127.0.0.1"),
        ("http.response.status_code", "200"),
    ] {
        assert_eq!(attribute(&server, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(attribute(&call, "url.full"), Some(format!("{}/api/name", names.url)));
    assert_eq!(attribute(&call, "http.response.status_code").as_deref(), Some("200"));
    assert_eq!(attribute(&call, "http.request.resend_count"), None);
}

#[tokio::test]
async fn a_context_that_is_none_begins_a_trace_here() {
    let names = Fake::start(|_| ok(NAMES)).await;
    let recorded = SpanRecorder::default();
    let people = people_of(&names.url, Choice::RoundRobin, recorded.telemetry()).await;
    people.ask("GET", "/api/person", &[("traceparent", "00-nothing-00")], "").await;
    let server = recorded.only("GET /api/person");
    assert_eq!(server.parent_span_id.to_string(), "0000000000000000");
    let sent = names.header("traceparent");
    assert!(sent[0].starts_with(&format!("00-{}-", server.span_context.trace_id())), "{sent:?}");
}

#[tokio::test]
async fn a_failed_response_is_reported_by_kind() {
    let problem = r#"{"status":503,"detail":"no place","reason":"pool_full"}"#;
    let large = "x".repeat(5 << 20);
    for (told, status, expected) in [
        (response(503, problem), 503, "pool_full"),
        (response(504, problem), 504, "pool_full"),
        (response(503, "busy"), 503, "refused"),
        (response(500, problem), 502, "refused"),
        (response(404, "{}"), 502, "refused"),
        (ok("[{]"), 502, "unreadable_response"),
        (ok(&large), 502, "too_large"),
        (FakeResponse::Last("nonsense\r\n\r\n".to_owned()), 502, "malformed_response"),
    ] {
        let told = std::sync::Mutex::new(Some(told));
        let names = Fake::start(move |_| told.lock().unwrap().take().unwrap()).await;
        let recorded = SpanRecorder::default();
        let people = people_of(&names.url, Choice::RoundRobin, recorded.telemetry()).await;
        let (found, body) = people.get("/api/person").await;
        assert_eq!((found, reason(&body).as_str()), (status, expected), "{body}");
        assert_eq!(attribute(&recorded.only("GET /api/person"), "error.type").as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn a_response_in_parts_is_put_together() {
    let (one, two) = NAMES.split_at(10);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    let until_closed = format!("HTTP/1.1 200 OK\r\n\r\n{NAMES}");
    let names = Fake::start(move |number| match number {
        0 => FakeResponse::Response(chunked.clone()),
        _ => FakeResponse::Last(until_closed.clone()),
    })
    .await;
    let people = people(&names.url).await;
    for _ in 0..2 {
        assert_eq!(people.get("/api/person").await, (200, PEOPLE.to_owned()));
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_is_replaced_without_a_failure() {
    let names = Fake::start(|_| {
        FakeResponse::Last(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{NAMES}", NAMES.len()))
    });
    let names = names.await;
    let people = people(&names.url).await;
    for _ in 0..5 {
        assert_eq!(people.get("/api/person").await, (200, PEOPLE.to_owned()));
    }
    assert_eq!(names.heads().len(), 5);
}

#[tokio::test]
async fn a_replica_that_is_gone_is_passed_by() {
    let names = Fake::start(|_| ok(NAMES)).await;
    let recorded = SpanRecorder::default();
    let urls = format!("http://{},{}", address_of_nobody().await, names.url);
    let people = people_of(&urls, Choice::Affinity(0), recorded.telemetry()).await;
    assert_eq!(people.get("/api/person").await, (200, PEOPLE.to_owned()));
    let calls: Vec<_> = recorded.all().into_iter().filter(|span| span.name == "GET").collect();
    let seen = calls.iter().map(|call| (attribute(call, "error.type"), attribute(call, "http.request.resend_count")));
    let expected = [(Some("no_connection".to_owned()), None), (None, Some("1".to_owned()))];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn no_listener_and_no_response_are_reported_apart() {
    let people = people(&format!("http://{}", address_of_nobody().await)).await;
    let (status, body) = people.get("/api/person").await;
    assert_eq!((status, reason(&body).as_str()), (502, "no_connection"), "{body}");

    let names = Fake::start(|_| FakeResponse::Nothing).await;
    let config = UpstreamConfig {
        replicas: names.url.parse().unwrap(),
        choice: Choice::RoundRobin,
        timeout: Duration::from_secs(1),
    };
    let recorded = SpanRecorder::default();
    let people =
        RunningService::new(person::open_with(Listen::loopback(0), config, recorded.telemetry()).await.unwrap());
    let (status, body) = people.get("/api/person").await;
    assert_eq!(attribute(&recorded.only("GET"), "error.type").as_deref(), Some("timeout"));
    assert_eq!((status, reason(&body).as_str()), (504, "timeout"), "{body}");
    assert_eq!(names.heads().len(), 1, "a slow call is not made again");
}

#[tokio::test]
async fn replicas_take_turns_or_have_their_own() {
    let fakes = [Fake::start(|_| ok(NAMES)).await, Fake::start(|_| ok(NAMES)).await];
    let urls = format!("{},{}", fakes[0].url, fakes[1].url);
    let seen = || [fakes[0].heads().len(), fakes[1].heads().len()];
    for (choice, expected) in
        [(Choice::RoundRobin, [3, 3]), (Choice::Affinity(3), [3, 9]), (Choice::Affinity(2), [9, 9])]
    {
        let people = people_of(&urls, choice, Telemetry::default()).await;
        for _ in 0..6 {
            people.get("/api/person").await;
        }
        assert_eq!(seen(), expected, "{choice:?}");
    }
}

#[tokio::test]
async fn a_request_in_progress_gets_its_response_before_the_end() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut people = people(&format!("http://{}", listener.local_addr().unwrap())).await;
    let url = people.url.clone();
    let asking = tokio::spawn(async move { ask(&url, "GET", "/api/person", &[], "").await });
    let (mut stream, _) = listener.accept().await.unwrap();
    people.stop();
    let refused =
        || async { tokio::net::TcpStream::connect(people.url.strip_prefix("http://").unwrap()).await.is_err() };
    eventually("no new connections", refused).await;
    let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{NAMES}", NAMES.len());
    tokio::io::AsyncWriteExt::write_all(&mut stream, response.as_bytes()).await.unwrap();
    let (status, headers, body) = asking.await.unwrap();
    assert_eq!((status, body.as_str()), (200, PEOPLE));
    assert_eq!(headers["connection"], "close");
    people.ended().await;
}
