//! What a sender is answered.
//!
//! OTLP/HTTP wants a `google.rpc.Status` with every 4xx and 5xx, in the request's own content type, and the empty
//! response message with every success. The three response messages are one on the wire.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use prost::Message;

use super::body::ContentType;

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// `google.rpc.Status` without its details.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Status {
    /// A `google.rpc.Code`.
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    /// For people.
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

/// All was kept.
pub(super) fn kept() -> Response<Body> {
    protobuf(StatusCode::OK, &ExportTraceServiceResponse::default())
}

/// Some was not kept and need not be sent again.
pub(super) fn kept_in_part(rejected: u64, why: String) -> Response<Body> {
    let rejected_spans = i64::try_from(rejected).unwrap_or(i64::MAX);
    let partial_success = Some(ExportTracePartialSuccess { rejected_spans, error_message: why });
    protobuf(StatusCode::OK, &ExportTraceServiceResponse { partial_success })
}

/// Nothing was kept.
pub(super) fn refused(status: StatusCode, content_type: ContentType, message: String) -> Response<Body> {
    let status_message = Status { code: rpc_code(status), message };
    let mut response = match content_type {
        ContentType::Json => json(status, &status_message),
        ContentType::Protobuf | ContentType::Other => protobuf(status, &status_message),
    };
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn rpc_code(status: StatusCode) -> i32 {
    const INVALID_ARGUMENT: i32 = 3;
    const DEADLINE_EXCEEDED: i32 = 4;
    const RESOURCE_EXHAUSTED: i32 = 8;
    const INTERNAL: i32 = 13;
    const UNAVAILABLE: i32 = 14;
    match status {
        StatusCode::REQUEST_TIMEOUT => DEADLINE_EXCEEDED,
        StatusCode::PAYLOAD_TOO_LARGE => RESOURCE_EXHAUSTED,
        StatusCode::SERVICE_UNAVAILABLE => UNAVAILABLE,
        status if status.is_server_error() => INTERNAL,
        _ => INVALID_ARGUMENT,
    }
}

fn protobuf(status: StatusCode, message: &impl Message) -> Response<Body> {
    respond(status, PROTOBUF, message.encode_to_vec())
}

fn json(status: StatusCode, message: &Status) -> Response<Body> {
    let text = serde_json::json!({ "code": message.code, "message": message.message }).to_string();
    respond(status, JSON, text.into_bytes())
}

fn respond(status: StatusCode, content_type: HeaderValue, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
