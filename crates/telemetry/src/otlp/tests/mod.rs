//! Whole exchanges over a real socket: what they have in common.

mod authentication;
mod connections;
mod hostile;
mod over_grpc;
mod over_http;

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
use tokio::sync::oneshot;

use super::rpc::Status;
use super::*;
use crate::{KeptCounts, Receipt, StoreError};

/// Keeps spans and returns `outcome`; holds its receipts back without one.
#[derive(Default)]
struct FakeStore {
    spans: Mutex<Vec<Span>>,
    outcome: Option<Result<KeptCounts, StoreError>>,
    held_back: Mutex<Vec<oneshot::Sender<Result<KeptCounts, StoreError>>>>,
    reached: Option<mpsc::SyncSender<()>>,
}

impl FakeStore {
    fn returning(outcome: Result<KeptCounts, StoreError>) -> Arc<Self> {
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
    Receiver::start(&["127.0.0.1:0".parse().unwrap()], store, Weights::new()).unwrap()
}

fn span() -> otlp::Span {
    otlp::Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: "GET /".to_owned(),
        start_time_unix_nano: 1,
        ..Default::default()
    }
}

fn request_of(spans: Vec<otlp::Span>) -> Vec<u8> {
    let scope_spans = vec![otlp::ScopeSpans { spans, ..Default::default() }];
    let resource_spans = vec![otlp::ResourceSpans { scope_spans, ..Default::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

fn traces(count: usize) -> Vec<u8> {
    request_of(vec![span(); count])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

struct HttpResponse {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl HttpResponse {
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
    // The receiver may respond and close before it has read a body that is too large.
    let _ = stream.write_all(body);
    stream
}

fn receive(mut stream: TcpStream) -> HttpResponse {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..split].to_vec()).unwrap().to_ascii_lowercase();
    HttpResponse { status: head[9..12].parse().unwrap(), body: bytes[split + 4..].to_vec(), head }
}

const PROTOBUF: &str = "content-type: application/x-protobuf\r\n";
const JSON: &str = "content-type: application/json\r\n";
const GZIPPED: &str = "content-type: application/x-protobuf\r\ncontent-encoding: gzip\r\n";

fn post(receiver: &Receiver, headers: &str, body: &[u8]) -> HttpResponse {
    receive(send(receiver.local_addr(), "POST /v1/traces", headers, body))
}
