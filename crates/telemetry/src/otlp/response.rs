//! Responses to senders over HTTP.
//!
//! OTLP/HTTP wants a `google.rpc.Status` with every 4xx and 5xx and the export response message with every success,
//! both in the request's own content type. In protobuf the three response messages have the same bytes; in JSON they
//! differ by the name of one field.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::http::HeaderValue;
use hyper::{Response, StatusCode};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use prost::Message;
use serde_json::json;

use super::body::ContentType;
use super::export::{Refusal, Signal, Verdict, Why};
use super::request::Format;
use super::rpc::{Code, Status};

/// A response's body, over HTTP or gRPC.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// In seconds; long enough for a full queue to be written.
pub(super) const TRY_AGAIN_S: u16 = 1;

/// The request was understood, and all or part of it is kept.
pub(super) fn verdict(signal: Signal, format: Format, verdict: &Verdict) -> Response<Body> {
    match format {
        Format::Protobuf => respond(StatusCode::OK, PROTOBUF, message(verdict)),
        Format::Json => respond(StatusCode::OK, JSON, in_json(signal, verdict)),
    }
}

/// The export response message in protobuf.
pub(super) fn message(verdict: &Verdict) -> Vec<u8> {
    let Verdict { rejected, message } = verdict;
    let partial_success = (!message.is_empty()).then(|| ExportTracePartialSuccess {
        rejected_spans: i64::try_from(*rejected).unwrap_or(i64::MAX),
        error_message: message.clone(),
    });
    ExportTraceServiceResponse { partial_success }.encode_to_vec()
}

fn in_json(signal: Signal, verdict: &Verdict) -> Vec<u8> {
    let Verdict { rejected, message } = verdict;
    let rejected_what = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Metrics => "rejectedDataPoints",
        Signal::Logs => "rejectedLogRecords",
    };
    let response = match message.is_empty() {
        true => json!({}),
        false => json!({ "partialSuccess": { rejected_what: rejected.to_string(), "errorMessage": message } }),
    };
    response.to_string().into_bytes()
}

/// Nothing was kept.
pub(super) fn refused(content_type: ContentType, refusal: &Refusal) -> Response<Body> {
    let status = match refusal.why {
        Why::Malformed | Why::Framing => StatusCode::BAD_REQUEST,
        Why::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Why::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Why::Unauthenticated => StatusCode::UNAUTHORIZED,
        // Of what is slow, OTLP lets a sender repeat none but the 50x: after 408 it throws its records away.
        Why::TooSlow | Why::Late | Why::Busy => StatusCode::SERVICE_UNAVAILABLE,
        Why::Broken => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut response = with_status(status, content_type, &Status::new(Code::from_why(refusal.why), &refusal.message));
    if refusal.why == Why::Busy {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(TRY_AGAIN_S));
    }
    if refusal.why == Why::Unauthenticated {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// An error of HTTP rather than of OTLP.
pub(super) fn error(status: StatusCode, content_type: ContentType, message: &str) -> Response<Body> {
    with_status(status, content_type, &Status::new(Code::Unimplemented, message))
}

fn with_status(status: StatusCode, content_type: ContentType, message: &Status) -> Response<Body> {
    match content_type {
        ContentType::Json => {
            let text = json!({ "code": message.code, "message": message.message }).to_string();
            respond(status, JSON, text.into_bytes())
        }
        ContentType::Protobuf | ContentType::Other => respond(status, PROTOBUF, message.encode_to_vec()),
    }
}

fn respond(status: StatusCode, content_type: HeaderValue, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_slow_may_be_sent_again_and_what_is_wrong_may_not() {
        // OTLP's list of what a sender repeats.
        let is_repeated = |why| {
            let status = refused(ContentType::Protobuf, &Refusal::new(why, "")).status();
            matches!(status.as_u16(), 429 | 502 | 503 | 504)
        };
        for why in [Why::TooSlow, Why::Late, Why::Busy] {
            assert!(is_repeated(why), "{why:?}");
        }
        for why in [Why::Malformed, Why::Framing, Why::Unsupported, Why::TooLarge, Why::Broken, Why::Unauthenticated] {
            assert!(!is_repeated(why), "{why:?}");
        }
    }
}
