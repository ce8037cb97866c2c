//! OTLP over HTTP: protobuf or JSON in the body of a POST.

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_LENGTH};
use hyper::http::HeaderValue;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};

use super::body::{COMPRESSED_BYTES_MAX, ContentType, Encoding};
use super::export::{Exporter, Refusal, Signal, Verdict, Why, read, too_large};
use super::request::Format;
use super::response::{self, Body};

pub(super) const EXPECTED: &str = "expected content type application/x-protobuf or application/json";

/// Responds to a request to any path.
pub(super) async fn handle(exporter: &Exporter, request: Request<Incoming>) -> Response<Body> {
    let content_type = ContentType::from_headers(request.headers());
    let signal = match request.uri().path() {
        "/v1/traces" => Signal::Traces,
        "/v1/metrics" => Signal::Metrics,
        "/v1/logs" => Signal::Logs,
        _ => {
            let message = "no such path, expected /v1/traces, /v1/metrics or /v1/logs";
            return response::error(StatusCode::NOT_FOUND, content_type, message);
        }
    };
    if request.method() != Method::POST {
        let mut response = response::error(StatusCode::METHOD_NOT_ALLOWED, content_type, "expected POST");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    match export(exporter, signal, content_type, request).await {
        Ok((format, verdict)) => response::verdict(signal, format, &verdict),
        Err(refusal) => {
            exporter.count(&refusal);
            response::refused(content_type, &refusal)
        }
    }
}

/// Nothing of `request` is read.
pub(super) fn refused<B>(request: &Request<B>, refusal: &Refusal) -> Response<Body> {
    response::refused(ContentType::from_headers(request.headers()), refusal)
}

async fn export(
    exporter: &Exporter,
    signal: Signal,
    content_type: ContentType,
    request: Request<Incoming>,
) -> Result<(Format, Verdict), Refusal> {
    let format = match content_type {
        ContentType::Protobuf => Format::Protobuf,
        ContentType::Json => Format::Json,
        ContentType::Other => return Err(Refusal::new(Why::Unsupported, EXPECTED)),
    };
    let encoding = encoding(request.headers())?;
    let _place = exporter.admit()?;
    if length(request.headers()).is_some_and(|length| length > COMPRESSED_BYTES_MAX as u64) {
        return Err(too_large(COMPRESSED_BYTES_MAX));
    }
    let body = read(request.into_body(), COMPRESSED_BYTES_MAX).await?;
    Ok((format, exporter.export(signal, format, encoding, body).await?))
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn encoding(headers: &HeaderMap) -> Result<Encoding, Refusal> {
    Encoding::from_headers(headers).map_err(|name| {
        Refusal::new(Why::Unsupported, format!("content encoding {name:?} is unknown, expected gzip or none"))
    })
}
