//! OTLP over gRPC, spoken frame by frame.

use bytes::Bytes;
use hyper::http::{HeaderMap, Request, Version};
use tokio::net::TcpStream;

use super::*;
use crate::otlp::rpc::RetryInfo;

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

type Headers<'a> = &'a [(&'a str, &'a str)];

/// A whole response. The status is among the headers when there is no message.
pub(super) struct GrpcResponse {
    pub(super) http_status: u16,
    head: HeaderMap,
    message: Vec<u8>,
    trailers: HeaderMap,
}

impl GrpcResponse {
    fn field(&self, name: &str) -> Option<&str> {
        self.trailers.get(name).or(self.head.get(name)).map(|value| value.to_str().unwrap())
    }

    pub(super) fn code(&self) -> &str {
        self.field("grpc-status").unwrap()
    }

    pub(super) fn text(&self) -> &str {
        self.field("grpc-message").unwrap_or_default()
    }

    pub(super) fn decoded(&self) -> ExportTraceServiceResponse {
        let (head, message) = self.message.split_at(5);
        assert_eq!(head, [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes()].concat());
        ExportTraceServiceResponse::decode(message).unwrap()
    }
}

pub(super) fn framed(compressed: u8, message: &[u8]) -> Vec<u8> {
    [&[compressed], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat()
}

/// One call over a connection of its own.
pub(super) fn call(address: SocketAddr, path: &str, headers: Headers<'_>, body: Vec<u8>) -> GrpcResponse {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = h2::client::handshake(TcpStream::connect(address).await.unwrap()).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        let mut client = client.ready().await.unwrap();
        let mut request = Request::post(format!("http://h{path}")).version(Version::HTTP_2).header("te", "trailers");
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/grpc");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (response, mut sending) = client.send_request(request.body(()).unwrap(), false).unwrap();
        // The receiver may refuse the call and close the stream before it has read a body that is too large.
        let _ = sending.send_data(Bytes::from(body), true);
        let (head, mut received) = response.await.unwrap().into_parts();
        let mut message = Vec::new();
        while let Some(data) = received.data().await {
            let data = data.unwrap();
            received.flow_control().release_capacity(data.len()).unwrap();
            message.extend_from_slice(&data);
        }
        let trailers = received.trailers().await.unwrap().unwrap_or_default();
        GrpcResponse { http_status: head.status.as_u16(), head: head.headers, message, trailers }
    })
}

fn export(receiver: &Receiver, headers: Headers<'_>, body: Vec<u8>) -> GrpcResponse {
    call(receiver.local_addr(), TRACES, headers, body)
}

#[test]
fn spans_are_accepted_plain_and_gzipped_on_the_port_of_http() {
    let store = FakeStore::returning(Ok(KeptCounts { kept: 3, ..KeptCounts::default() }));
    let receiver = start(Arc::clone(&store));
    let gzipped: &[(&str, &str)] = &[("grpc-encoding", "gzip")];
    let cases =
        [(&[][..], framed(0, &traces(3))), (gzipped, framed(1, &gzip(&traces(3)))), (gzipped, framed(0, &traces(3)))];
    for (headers, body) in cases {
        let response = export(&receiver, headers, body);
        assert_eq!((response.http_status, response.code(), response.text()), (200, "0", ""));
        assert_eq!(response.decoded(), ExportTraceServiceResponse::default());
        assert_eq!(response.field("content-type"), Some("application/grpc"));
        assert!(response.trailers.contains_key("grpc-status") && !response.head.contains_key("grpc-status"));
    }
    assert_eq!(post(&receiver, PROTOBUF, &traces(3)).status, 200);
    assert_eq!(receiver.stop(), ReceiverStats { batches: 4, spans: 12, ..ReceiverStats::default() });
}

#[test]
fn an_empty_request_of_each_service_is_accepted() {
    let receiver = start(Arc::default());
    for path in [TRACES, METRICS, LOGS] {
        let response = call(receiver.local_addr(), path, &[], framed(0, &[]));
        assert_eq!((response.code(), response.decoded()), ("0", ExportTraceServiceResponse::default()), "{path}");
    }
    assert_eq!(receiver.stats().batches, 3);
}

#[test]
fn a_full_store_responds_with_when_to_try_again() {
    let receiver = start(FakeStore::returning(Err(StoreError::Busy)));
    let response = export(&receiver, &[], framed(0, &traces(1)));
    assert_eq!((response.http_status, response.code(), response.text()), (200, "14", "the run file's queue is full"));
    let details = response.field("grpc-status-details-bin").unwrap();
    let status = Status::decode(base64(details).as_slice()).unwrap();
    assert_eq!((status.code, status.message.as_str()), (14, "the run file's queue is full"));
    assert_eq!(status.details[0].type_url, "type.googleapis.com/google.rpc.RetryInfo");
    let delay = RetryInfo::decode(status.details[0].value.as_slice()).unwrap().retry_delay.unwrap();
    assert_eq!((delay.seconds, delay.nanos), (1, 0));
    assert_eq!(receiver.stats().unserved_requests, 1);
}

fn base64(text: &str) -> Vec<u8> {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD_NO_PAD.decode(text).unwrap()
}

#[test]
fn what_the_store_says_reaches_the_caller() {
    let receiver = start(FakeStore::returning(Err(StoreError::Broken("100 % full: é".to_owned()))));
    let response = export(&receiver, &[], framed(0, &traces(1)));
    assert_eq!((response.code(), response.text()), ("13", "the run file cannot be written: 100 %25 full: %C3%A9"));
    assert_eq!(response.field("grpc-status-details-bin"), None);

    let receiver = start(FakeStore::returning(Ok(KeptCounts { kept: 1, over_limit: 2, ..KeptCounts::default() })));
    let partial = export(&receiver, &[], framed(0, &traces(3))).decoded().partial_success.unwrap();
    assert_eq!((partial.rejected_spans, partial.error_message.as_str()), (2, "2 over the storage limit"));
}

#[test]
fn calls_that_are_wrong_are_refused_in_the_words_of_grpc() {
    let receiver = start(FakeStore::returning(Ok(KeptCounts::default())));
    let address = receiver.local_addr();
    let unknown = TRACES.replace("Export", "Import");
    let whole = || framed(0, &traces(1));
    let cases: [(&str, Headers<'_>, Vec<u8>, &str, &str); 9] = [
        (&unknown, &[], whole(), "12", "unknown method /opentelemetry.proto.collector.trace.v1.TraceService/Import"),
        (
            TRACES,
            &[("grpc-encoding", "zstd")],
            whole(),
            "12",
            "message encoding \"zstd\" is unknown, expected gzip or identity",
        ),
        (TRACES, &[], Vec::new(), "12", "the call has no message, expected one"),
        (TRACES, &[], [whole(), whole()].concat(), "12", "the call has more than one message, expected one"),
        (
            TRACES,
            &[],
            framed(1, &gzip(&traces(1))),
            "13",
            "the message is compressed and grpc-encoding does not say how",
        ),
        (
            TRACES,
            &[("grpc-encoding", "gzip")],
            framed(1, b"not gzip at all"),
            "13",
            "body is not whole gzip: invalid gzip header",
        ),
        (TRACES, &[], framed(0, &[0x0a, 0xff]), "3", "request: a number is cut short, at or after byte 2"),
        (TRACES, &[], vec![0; body::COMPRESSED_BYTES_MAX + 6], "8", "body is larger than 16777221 bytes"),
        (
            TRACES,
            &[("grpc-timeout", "1 minute")],
            whole(),
            "3",
            "grpc-timeout \"1 minute\" is not up to eight digits and a unit (H, M, S, m, u or n)",
        ),
    ];
    for (path, headers, body, code, text) in cases {
        let response = call(address, path, headers, body);
        assert_eq!((response.http_status, response.code(), response.text()), (200, code, text));
        assert!(response.message.is_empty() && response.field("grpc-accept-encoding") == Some("identity,gzip"));
    }
    assert_eq!(receiver.stats().malformed_requests, 9);
}

#[test]
fn a_call_that_waits_too_long_gives_its_place_back() {
    let (reached, has_reached) = mpsc::sync_channel(1);
    let store = Arc::new(FakeStore { reached: Some(reached), ..FakeStore::default() });
    let receiver = start(Arc::clone(&store));
    let response = export(&receiver, &[("grpc-timeout", "1S")], framed(0, &traces(1)));
    assert_eq!((response.code(), response.text()), ("4", "not stored within the call's deadline of 1s"));
    has_reached.recv().unwrap();
    assert_eq!(store.spans.lock().unwrap().len(), 1, "what is queued is kept all the same");
    let stats = receiver.stats();
    assert_eq!((stats.malformed_requests, stats.unserved_requests), (0, 1), "nothing is wrong with the request");
}

#[test]
fn http_2_without_grpc_is_http() {
    let receiver = start(FakeStore::returning(Ok(KeptCounts::default())));
    let headers = [("content-type", "application/x-protobuf")];
    let response = call(receiver.local_addr(), "/v1/traces", &headers, traces(1));
    assert_eq!((response.http_status, response.field("grpc-status")), (200, None));
    assert_eq!(receiver.stats().spans, 1);
}

#[test]
fn grpc_over_http_1_is_refused() {
    let receiver = start(Arc::default());
    let response = post(&receiver, "content-type: application/grpc\r\n", &framed(0, &[]));
    assert_eq!((response.status, response.message().as_str()), (505, "gRPC needs HTTP/2"));
    let response = post(&receiver, "content-type: application/grpc-web\r\n", &[]);
    assert_eq!((response.status, response.message().as_str()), (415, http::EXPECTED));
}
