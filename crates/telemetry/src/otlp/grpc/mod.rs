//! OTLP over gRPC: three unary methods, all named `Export`.
//!
//! Written by hand over hyper's HTTP/2, by gRPC's "gRPC over HTTP2" and "Compression" documents. A gRPC library would
//! decode messages as a whole, inflate them without our bound and bring eight crates, for what is two small files:
//! only unary calls with one message in and one out are known here. No reflection, no health service.

mod frame;
mod timeout;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::http::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Version};
use prost::Message;

use super::body::{COMPRESSED_BYTES_MAX, ContentType, Encoding};
use super::export::{Exporter, Refusal, Signal, Verdict, Why, read};
use super::request::Format;
use super::response::{self, Body, TRY_AGAIN_S};
use super::rpc::{Code, Status};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_ENCODING: &str = "grpc-encoding";
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ACCEPTED: HeaderValue = HeaderValue::from_static("identity,gzip");

/// Whether a request says it is gRPC, with messages in protobuf.
pub(super) fn is_meant(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = value.split(';').next().unwrap_or_default().trim();
    name.eq_ignore_ascii_case("application/grpc") || name.eq_ignore_ascii_case("application/grpc+proto")
}

/// Responds to a call of any method.
pub(super) async fn handle(exporter: &Exporter, request: Request<Incoming>) -> Response<Body> {
    if request.version() != Version::HTTP_2 {
        let message = "gRPC needs HTTP/2";
        return response::error(StatusCode::HTTP_VERSION_NOT_SUPPORTED, ContentType::Other, message);
    }
    if request.method() != Method::POST {
        return response::error(StatusCode::METHOD_NOT_ALLOWED, ContentType::Other, "gRPC needs POST");
    }
    match call(exporter, request).await {
        Ok(verdict) => kept(&verdict),
        Err(refusal) => {
            exporter.count(&refusal);
            refused(&refusal)
        }
    }
}

async fn call(exporter: &Exporter, request: Request<Incoming>) -> Result<Verdict, Refusal> {
    let signal = signal(request.uri().path())?;
    let encoding = encoding(request.headers())?;
    let deadline = timeout::from_headers(request.headers())?;
    let _place = exporter.admit()?;
    let export = async {
        let body = read(request.into_body(), COMPRESSED_BYTES_MAX + frame::HEAD_BYTES).await?;
        let (encoding, message) = frame::only_message(body, encoding)?;
        exporter.export(signal, Format::Protobuf, encoding, message).await
    };
    match deadline {
        None => export.await,
        Some(deadline) => tokio::time::timeout(deadline, export).await.unwrap_or_else(|_| {
            Err(Refusal::new(Why::Late, format!("not stored within the call's deadline of {deadline:?}")))
        }),
    }
}

fn signal(path: &str) -> Result<Signal, Refusal> {
    match path {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Ok(Signal::Traces),
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Ok(Signal::Metrics),
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Ok(Signal::Logs),
        path => Err(Refusal::new(Why::Unsupported, format!("unknown method {path}"))),
    }
}

/// Compression of a message whose compressed flag is set.
fn encoding(headers: &HeaderMap) -> Result<Encoding, Refusal> {
    match headers.get(GRPC_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(Encoding::Plain),
        Some(b"gzip") => Ok(Encoding::Gzip),
        Some(name) => {
            let name = String::from_utf8_lossy(name);
            Err(Refusal::new(
                Why::Unsupported,
                format!("message encoding {name:?} is unknown, expected gzip or identity"),
            ))
        }
    }
}

fn kept(verdict: &Verdict) -> Response<Body> {
    let message = frame::framed(&response::message(verdict));
    let trailers = HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from(Code::Ok as u16))]);
    respond(Full::new(message).with_trailers(async { Some(Ok(trailers)) }).boxed_unsync())
}

/// A "Trailers-Only" response: the status is one of the headers.
pub(super) fn refused(refusal: &Refusal) -> Response<Body> {
    let Refusal { why, message } = refusal;
    let code = Code::from_why(*why);
    let mut response = respond(Empty::new().boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(GRPC_STATUS, HeaderValue::from(code as u16));
    if let Ok(message) = HeaderValue::from_str(&percent_encoded(message)) {
        headers.insert(GRPC_MESSAGE, message);
    }
    if *why == Why::Busy {
        let status = Status::new(code, message).again_in(std::time::Duration::from_secs(TRY_AGAIN_S.into()));
        if let Ok(details) = HeaderValue::from_str(&STANDARD_NO_PAD.encode(status.encode_to_vec())) {
            headers.insert(GRPC_DETAILS, details);
        }
    }
    response
}

fn respond(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response.headers_mut().insert(GRPC_ACCEPT_ENCODING, ACCEPTED);
    response
}

/// gRPC's `Percent-Encoded`: bytes other than printable ASCII, and `%`, become `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
