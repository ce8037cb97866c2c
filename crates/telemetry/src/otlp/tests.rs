//! Whole exchanges over a real socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

use flate2::Compression;
use flate2::write::GzEncoder;
use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::Span;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1 as otlp;
use prost::Message;

use super::answer::Status;
use super::*;
use crate::{Kept, Receipt, Refused};

/// Keeps spans and answers as it was told; holds its receipts back when told nothing.
#[derive(Default)]
struct FakeStore {
    spans: Mutex<Vec<Span>>,
    outcome: Option<Result<Kept, Refused>>,
    held_back: Mutex<Vec<oneshot::Sender<Result<Kept, Refused>>>>,
    reached: Option<mpsc::SyncSender<()>>,
}

impl FakeStore {
    fn answering(outcome: Result<Kept, Refused>) -> Arc<Self> {
        Arc::new(Self { outcome: Some(outcome), ..Self::default() })
    }

    fn receipt(&self) -> Receipt {
        let (sender, receipt) = oneshot::channel();
        match &self.outcome {
            Some(outcome) => sender.send(outcome.clone()).unwrap(),
            None => self.held_back.lock().unwrap().push(sender),
        }
        if let Some(reached) = &self.reached {
            reached.send(()).unwrap();
        }
        receipt
    }
}

impl Store for FakeStore {
    fn spans(&self, spans: Vec<Span>) -> Receipt {
        self.spans.lock().unwrap().extend(spans);
        self.receipt()
    }

    fn points(&self, _: Vec<(SeriesKey, Point)>) -> Receipt {
        self.receipt()
    }

    fn logs(&self, _: Vec<LogLine>) -> Receipt {
        self.receipt()
    }
}

fn start(store: Arc<FakeStore>) -> Receiver {
    Receiver::start("127.0.0.1:0".parse().unwrap(), store, Weights::new()).unwrap()
}

fn traces(count: usize) -> Vec<u8> {
    let span = otlp::Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: "GET /".to_owned(),
        start_time_unix_nano: 1,
        ..Default::default()
    };
    let scope_spans = vec![otlp::ScopeSpans { spans: vec![span; count], ..Default::default() }];
    let resource_spans = vec![otlp::ResourceSpans { scope_spans, ..Default::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn message(&self) -> String {
        Status::decode(self.body.as_slice()).unwrap().message
    }

    fn partial(&self) -> (i64, String) {
        let partial = ExportTraceServiceResponse::decode(self.body.as_slice()).unwrap().partial_success.unwrap();
        (partial.rejected_spans, partial.error_message)
    }
}

fn send(address: SocketAddr, line: &str, headers: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("{line} HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    // The receiver may answer and close before it has read a body that is too large.
    let _ = stream.write_all(body);
    stream
}

fn receive(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..split].to_vec()).unwrap().to_ascii_lowercase();
    Answer { status: head[9..12].parse().unwrap(), body: bytes[split + 4..].to_vec(), head }
}

const PROTOBUF: &str = "content-type: application/x-protobuf\r\n";
const GZIPPED: &str = "content-type: application/x-protobuf\r\ncontent-encoding: gzip\r\n";

fn post(receiver: &Receiver, headers: &str, body: &[u8]) -> Answer {
    receive(send(receiver.local_addr(), "POST /v1/traces", headers, body))
}

#[test]
fn spans_are_accepted_plain_and_gzipped() {
    let store = FakeStore::answering(Ok(Kept { kept: 3, over_limit: 0 }));
    let receiver = start(Arc::clone(&store));
    for (headers, body) in [(PROTOBUF, traces(3)), (GZIPPED, gzip(&traces(3)))] {
        let answer = post(&receiver, headers, &body);
        assert_eq!((answer.status, answer.body.len()), (200, 0));
        assert!(answer.head.contains("content-type: application/x-protobuf"));
    }
    let stats = receiver.stop();
    assert_eq!(stats, ReceiverStats { batches: 2, spans: 6, ..ReceiverStats::default() });
    assert_eq!(store.spans.lock().unwrap().len(), 6);
}

#[test]
fn an_empty_request_of_each_signal_is_accepted() {
    let receiver = start(Arc::default());
    for path in ["/v1/traces", "/v1/metrics", "/v1/logs"] {
        let answer = receive(send(receiver.local_addr(), &format!("POST {path}"), PROTOBUF, &[]));
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{path}");
    }
    assert_eq!(receiver.stats().batches, 3);
}

#[test]
fn accepted_is_said_only_after_the_receipt() {
    let (reached, has_reached) = mpsc::sync_channel(1);
    let store = Arc::new(FakeStore { reached: Some(reached), ..FakeStore::default() });
    let receiver = start(Arc::clone(&store));
    let stream = send(receiver.local_addr(), "POST /v1/traces", PROTOBUF, &traces(1));
    has_reached.recv().unwrap();
    stream.set_nonblocking(true).unwrap();
    assert_eq!(stream.peek(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    store.held_back.lock().unwrap().remove(0).send(Ok(Kept { kept: 1, over_limit: 0 })).unwrap();
    assert_eq!(receive(stream).status, 200);
}

#[test]
fn what_the_store_says_reaches_the_sender() {
    let receiver = start(FakeStore::answering(Err(Refused::Busy)));
    let answer = post(&receiver, PROTOBUF, &traces(1));
    assert_eq!((answer.status, answer.message().as_str()), (503, "the run file's queue is full"));
    assert!(answer.head.contains("retry-after: 1"));
    assert_eq!(receiver.stats().unserved_requests, 1);

    let receiver = start(FakeStore::answering(Err(Refused::Broken("disk full".to_owned()))));
    let answer = post(&receiver, PROTOBUF, &traces(1));
    assert_eq!((answer.status, answer.message().as_str()), (500, "the run file cannot be written: disk full"));

    let receiver = start(FakeStore::answering(Ok(Kept { kept: 1, over_limit: 2 })));
    let answer = post(&receiver, PROTOBUF, &traces(3));
    assert_eq!((answer.status, answer.partial()), (200, (2, "2 over the limit of what is kept".to_owned())));
    assert_eq!(receiver.stats().refused, 2);
}

#[test]
fn malformed_spans_are_said_and_the_others_kept() {
    let receiver = start(FakeStore::answering(Ok(Kept { kept: 1, over_limit: 0 })));
    let scope_spans = vec![otlp::ScopeSpans { spans: vec![otlp::Span::default()], ..Default::default() }];
    let request =
        ExportTraceServiceRequest { resource_spans: vec![otlp::ResourceSpans { scope_spans, ..Default::default() }] };
    let (rejected, why) = post(&receiver, PROTOBUF, &request.encode_to_vec()).partial();
    assert_eq!(rejected, 1);
    assert!(why.contains("trace id"), "{why}");
    assert_eq!(receiver.stats().malformed_records, 1);
}

#[test]
fn what_is_not_understood_is_refused_with_a_reason() {
    let receiver = start(FakeStore::answering(Ok(Kept::default())));
    let bomb = gzip(&vec![0; body::INFLATED_BYTES_MAX + 1]);
    let cases: [(&str, &[u8], u16, &str); 6] = [
        (PROTOBUF, &[0x0a, 0xff], 400, "request: a number is cut short, at or after byte 2"),
        (GZIPPED, b"not gzip at all", 400, "body is not whole gzip: invalid gzip header"),
        (GZIPPED, &bomb, 413, "body inflates to more than 67108864 bytes"),
        (PROTOBUF, &vec![0; body::COMPRESSED_BYTES_MAX + 1], 413, "body is larger than 16777216 bytes"),
        ("content-type: text/plain\r\n", b"", 415, routes::EXPECTS_PROTOBUF),
        (
            "content-type: application/x-protobuf\r\ncontent-encoding: br\r\n",
            b"",
            415,
            "content encoding \"br\" is unknown, expected gzip or none",
        ),
    ];
    for (headers, body, status, message) in cases {
        let answer = post(&receiver, headers, body);
        assert_eq!((answer.status, answer.message().as_str()), (status, message));
    }
    let json = post(&receiver, "content-type: application/json\r\n", b"{}");
    assert_eq!(json.status, 415);
    assert!(String::from_utf8(json.body).unwrap().contains("OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"));
    assert_eq!(receiver.stats().malformed_requests, 7);
    assert_eq!(receive(send(receiver.local_addr(), "POST /v1/profiles", PROTOBUF, b"")).status, 404);
    assert_eq!(receive(send(receiver.local_addr(), "GET /v1/traces", "", b"")).status, 405);
}

#[test]
fn requests_in_flight_are_bounded() {
    let (reached, has_reached) = mpsc::sync_channel(routes::IN_FLIGHT_MAX);
    let store = Arc::new(FakeStore { reached: Some(reached), ..FakeStore::default() });
    let receiver = start(Arc::clone(&store));
    let request = || send(receiver.local_addr(), "POST /v1/traces", PROTOBUF, &traces(1));
    let waiting: Vec<TcpStream> = (0..routes::IN_FLIGHT_MAX).map(|_| request()).collect();
    waiting.iter().for_each(|_| has_reached.recv().unwrap());
    assert_eq!(receive(request()).status, 503);
    for sender in store.held_back.lock().unwrap().drain(..) {
        sender.send(Ok(Kept::default())).unwrap();
    }
    assert!(waiting.into_iter().all(|stream| receive(stream).status == 200));
}

#[test]
fn stopping_lets_go_of_a_request_that_waits_for_the_store() {
    let (reached, has_reached) = mpsc::sync_channel(1);
    let store = Arc::new(FakeStore { reached: Some(reached), ..FakeStore::default() });
    let receiver = start(Arc::clone(&store));
    let mut waiting = send(receiver.local_addr(), "POST /v1/traces", PROTOBUF, &traces(1));
    has_reached.recv().unwrap();
    assert_eq!(receiver.stop().batches, 1);
    let mut answer = Vec::new();
    // Closed or reset, as the kernel sees fit, but neither answered nor left waiting.
    let _ = waiting.read_to_end(&mut answer);
    assert!(answer.is_empty());
}

#[test]
fn a_taken_address_is_an_error_that_names_it() {
    let receiver = start(Arc::default());
    let error = Receiver::start(receiver.local_addr(), Arc::<FakeStore>::default(), Weights::new()).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen for OTLP on {}", receiver.local_addr()));
}
