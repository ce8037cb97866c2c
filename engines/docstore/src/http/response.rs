//! Responses: a status, a JSON text and the headers every client reads, first of all `x-ms-request-charge`.
//!
//! Failures are responses in Cosmos DB's shape, `{"code", "message"}`, with its sub-status where it has one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};

use super::binary_json;
use crate::charge::Charge;
use crate::storage::Unavailable;

/// "Request rate is large."
const SUB_STATUS_THROTTLED: u32 = 3200;
/// "The owner resource does not exist."
const SUB_STATUS_OWNER_NOT_FOUND: u32 = 1003;
/// "The partition key range is gone."
const SUB_STATUS_RANGE_GONE: u32 = 1002;
/// "The partition is full."
const SUB_STATUS_FULL: u32 = 1014;

/// Headers of most responses, at most.
const HEADERS: usize = 8;

/// Numbers the responses of this process, for `x-ms-activity-id`.
static RESPONSES: AtomicU64 = AtomicU64::new(1);

/// A response before its headers are written.
#[derive(Debug)]
pub(super) struct Reply {
    status: StatusCode,
    charge: Charge,
    body: Vec<u8>,
    /// Content type of `body`.
    kind: &'static str,
    headers: Vec<(HeaderName, String)>,
}

impl Reply {
    pub(super) fn new(status: StatusCode, charge: Charge, body: String) -> Self {
        Self { status, charge, body: body.into_bytes(), kind: "application/json", headers: Vec::new() }
    }

    /// A resource that was created, with its nominal charge.
    pub(super) fn created(body: &Value) -> Self {
        Self::new(StatusCode::CREATED, Charge::DESCRIPTION, body.to_string())
    }

    /// A resource that was deleted.
    pub(super) fn deleted() -> Self {
        Self::new(StatusCode::NO_CONTENT, Charge::DESCRIPTION, String::new())
    }

    /// Resources under the name of their kind.
    pub(super) fn feed(rid: &str, kind: &str, resources: &[Value]) -> Self {
        let count = resources.len();
        Self::description(&json!({ "_rid": rid, kind: resources, "_count": count })).with("x-ms-item-count", count)
    }

    /// A description: 200 with its nominal charge.
    pub(super) fn description(body: &Value) -> Self {
        Self::new(StatusCode::OK, Charge::DESCRIPTION, body.to_string())
    }

    pub(super) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((HeaderName::from_static(name), value.to_string()));
        self
    }

    pub(super) fn with_etag(mut self, etag: &str) -> Self {
        self.headers.push((ETAG, etag.to_owned()));
        self
    }

    /// The same response for a client that asked for no content.
    pub(super) fn without_body(mut self) -> Self {
        self.body = Vec::new();
        self
    }

    /// The same response for a client that reads binary JSON and no text.
    pub(super) fn in_binary(mut self) -> Self {
        if let Ok(bytes) = binary_json::encoded(&self.body) {
            self.body = bytes;
            self.kind = "application/octet-stream";
        }
        self
    }

    /// The session token of a partition: its range and its log sequence number.
    pub(super) fn with_session(self, range: u32, lsn: u64) -> Self {
        self.with_sessions(&[(range, lsn)])
    }

    /// The session tokens of several partitions.
    pub(super) fn with_sessions(self, partitions: &[(u32, u64)]) -> Self {
        let tokens = partitions.iter().map(|(range, lsn)| format!("{range}:-1#{lsn}"));
        self.with("x-ms-session-token", tokens.collect::<Vec<_>>().join(","))
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let number = RESPONSES.fetch_add(1, Ordering::Relaxed) & 0xFFFF_FFFF_FFFF;
        let reply = self.with("x-ms-activity-id", format!("00000000-0000-4000-8000-{number:012x}"));
        let mut response = Response::new(Body::from(reply.body));
        *response.status_mut() = reply.status;
        let headers = response.headers_mut();
        headers.reserve(HEADERS);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.kind));
        for (name, value) in reply.headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
        if let Ok(charge) = HeaderValue::try_from(reply.charge.to_string()) {
            headers.insert("x-ms-request-charge", charge);
        }
        response
    }
}

/// A request that was not done, and why.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    code: &'static str,
    message: String,
    sub_status: Option<u32>,
    retry_after: Option<Duration>,
    additional: Option<String>,
    charge: Charge,
}

impl Failure {
    fn new(status: StatusCode, code: &'static str, message: String) -> Self {
        Self { status, code, message, sub_status: None, retry_after: None, additional: None, charge: Charge::ZERO }
    }

    pub(super) fn bad_request(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message.to_owned())
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{what} does not exist"))
    }

    /// A request that is not signed with the account's key.
    pub(super) fn unauthorized(message: String) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
    }

    pub(super) fn forbidden(message: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    pub(super) fn conflict(message: String) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message)
    }

    pub(super) fn precondition_failed(message: String) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, "PreconditionFailed", message)
    }

    /// As many databases or containers as there may be.
    pub(super) fn too_many(limit: usize) -> Self {
        Self::forbidden(format!("there are {limit} already, which is the limit"))
    }

    /// The range was split; the client must read the ranges again.
    pub(super) fn gone() -> Self {
        let message = "the partition key range was split, read the ranges again".to_owned();
        Self::new(StatusCode::GONE, "Gone", message).with_sub_status(SUB_STATUS_RANGE_GONE)
    }

    pub(super) fn full() -> Self {
        Self::forbidden("the partition holds as much as it may".to_owned()).with_sub_status(SUB_STATUS_FULL)
    }

    pub(super) fn method(found: &Method, expected: &str) -> Self {
        let message = format!("method {found} is not served here, expected {expected}");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    pub(super) fn too_large(limit_bytes: usize) -> Self {
        let message = format!("the body is cut off or too large, expected at most {limit_bytes} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    pub(super) fn slow_body(timeout: Duration) -> Self {
        let message = format!("the body did not arrive within {timeout:?}");
        Self::new(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", message)
    }

    /// The partition's second is used up; nothing was done.
    pub(super) fn throttled(retry_after: Duration) -> Self {
        let message = "request rate is large, the partition's request units of this second are used up".to_owned();
        let failure = Self::new(StatusCode::TOO_MANY_REQUESTS, "429", message).with_sub_status(SUB_STATUS_THROTTLED);
        Self { retry_after: Some(retry_after), ..failure }
    }

    /// The disk takes no more writes; changes that the request saw or made may be lost.
    pub(super) fn unavailable(why: &str) -> Self {
        let message = format!("the store takes no more writes until it is started again: {why}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    pub(super) fn with_sub_status(self, sub_status: u32) -> Self {
        Self { sub_status: Some(sub_status), ..self }
    }

    /// Adds `additionalErrorInfo` to the body.
    pub(super) fn with_additional(self, information: String) -> Self {
        Self { additional: Some(information), ..self }
    }

    /// The same about the database or container that a resource would be in.
    pub(super) fn of_owner(self) -> Self {
        self.with_sub_status(SUB_STATUS_OWNER_NOT_FOUND)
    }

    pub(super) fn with_charge(self, charge: Charge) -> Self {
        Self { charge, ..self }
    }

    /// The failure as the result of one operation of a batch.
    pub(super) fn result(&self) -> Value {
        let mut result = json!({
            "statusCode": self.status.as_u16(),
            "requestCharge": self.charge.request_units(),
            "message": self.message,
        });
        if let Some(sub_status) = self.sub_status {
            result["subStatusCode"] = json!(sub_status);
        }
        if let Some(wait) = self.retry_after {
            result["retryAfterMilliseconds"] = json!(wait.as_nanos().div_ceil(1_000_000) as u64);
        }
        result
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<Unavailable> for Failure {
    fn from(Unavailable(why): Unavailable) -> Self {
        Self::unavailable(&why)
    }
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Self {
        let mut body = json!({ "code": failure.code, "message": failure.message });
        if let Some(additional) = failure.additional {
            body["additionalErrorInfo"] = additional.into();
        }
        let mut reply = Self::new(failure.status, failure.charge, body.to_string());
        if let Some(sub_status) = failure.sub_status {
            reply = reply.with("x-ms-substatus", sub_status);
        }
        if let Some(wait) = failure.retry_after {
            // Rounded up: a client that waits exactly this long must find the next second begun.
            reply = reply.with("x-ms-retry-after-ms", wait.as_nanos().div_ceil(1_000_000));
        }
        reply
    }
}
