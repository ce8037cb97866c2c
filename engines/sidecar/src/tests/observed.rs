//! Reports of hops about requests: spans, and lines of the access log.

use opentelemetry::trace::{SpanKind, Status};

use super::*;
use crate::config::Direction;
use crate::telemetry::Telemetry;
use crate::testing::Spans;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

async fn get(client: &mut Client, path: &str, traceparent: Option<&str>) -> Response<Bytes> {
    let builder = Request::get(path).header("host", "h").header("tracestate", "a=b");
    let builder = traceparent.into_iter().fold(builder, |builder, value| builder.header("traceparent", value));
    client.send(builder.body(Full::default()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn sampled_requests_get_a_span_at_each_hop_and_others_pass_as_they_are() {
    let exporter = Spans::default();
    let upstream = server(|request: Request<Incoming>| async move {
        let value = |name| request.headers().get(name).map_or("", |value| value.to_str().unwrap());
        let mut response = text(format!("{} {}", value("traceparent"), value("tracestate")));
        *response.status_mut() = if request.uri().path() == "/gone" { StatusCode::NOT_FOUND } else { StatusCode::OK };
        response
    });
    let inbound = RunningSidecar::with(
        &config(vec![hop("in", upstream.await)]),
        Some(Telemetry::with_exporter(exporter.clone())),
    );
    let mut towards = hop("out", inbound.addresses[0]);
    towards.direction = Direction::Outbound;
    let outbound = RunningSidecar::with(&config(vec![towards]), Some(Telemetry::with_exporter(exporter.clone())));
    let mut client = Client::connect(outbound.addresses[0]).await;

    for traceparent in [None, Some(format!("00-{TRACE}-{PARENT}-00")), Some("nonsense".to_owned())] {
        let response = get(&mut client, "/", traceparent.as_deref()).await;
        assert_eq!(response.body(), &format!("{} a=b", traceparent.unwrap_or_default()));
    }
    assert!(exporter.take().is_empty());

    let response = get(&mut client, "/gone?q=1", Some(&format!("00-{TRACE}-{PARENT}-01"))).await;
    // Each record is written as its response's body is let go of; stopping waits for that.
    outbound.stop().await.unwrap();
    inbound.stop().await.unwrap();
    let mut spans = exporter.take();
    spans.sort_by_key(|span| span.span_kind != SpanKind::Client);
    let [client_span, server_span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(client_span.parent_span_id.to_string(), PARENT);
    assert_eq!(server_span.parent_span_id, client_span.span_context.span_id());
    assert_eq!(server_span.span_context.trace_id().to_string(), TRACE);
    let forwarded = format!("00-{TRACE}-{}-01 a=b", server_span.span_context.span_id());
    assert_eq!(response.body(), &forwarded);
    assert_eq!((server_span.span_kind.clone(), &server_span.status), (SpanKind::Server, &Status::Unset));
    assert_eq!(client_span.status, Status::error(""));
    let attribute = |span: &opentelemetry_sdk::trace::SpanData, key: &str| {
        span.attributes.iter().find(|pair| pair.key.as_str() == key).map(|pair| pair.value.to_string())
    };
    assert_eq!(attribute(server_span, "url.path").as_deref(), Some("/gone"));
    assert_eq!(attribute(server_span, "http.response.status_code").as_deref(), Some("404"));
    assert_eq!(attribute(client_span, "error.type").as_deref(), Some("404"));
}

#[tokio::test]
async fn each_request_and_connection_has_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let mut tcp = hop("tcp", server(echo).await);
    tcp.protocol = Protocol::Tcp;
    let come = Arc::new(Notify::new());
    let arrived = Arc::clone(&come);
    let stuck = raw(move |stream| {
        arrived.notify_one();
        async move {
            let _open = stream;
            std::future::pending::<()>().await;
        }
    });
    let hops = vec![hop("in", server(echo).await), hop("down", nobody().await), tcp, hop("stuck", stuck.await)];
    let mut config = config(hops);
    config.access_log = Some(path.clone());
    // Long enough for the connections whose callers have left.
    config.limits.drain_ms = 1_000;
    let sidecar = RunningSidecar::start(&config);
    Client::connect(sidecar.addresses[0]).await.get("/one?q='2'").await;
    Client::connect(sidecar.addresses[1]).await.get("/two").await;
    Client::connect(sidecar.addresses[2]).await.get("/three").await;
    let mut leaving = TcpStream::connect(sidecar.addresses[3]).await.unwrap();
    leaving.write_all(b"GET /four HTTP/1.1\r\nhost: h\r\n\r\n").await.unwrap();
    come.notified().await;
    sidecar.stop().await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| format!("{} {} {} {}", line["hop"], line["path"], line["status"], line["error"]))
        .collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            r#""down" "/two" 502 "upstream-unreachable""#,
            r#""in" "/one?q='2'" 200 null"#,
            r#""stuck" "/four" null "caller-left""#,
            r#""tcp" null null null"#,
        ]
    );
}
