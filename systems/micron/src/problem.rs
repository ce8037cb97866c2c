//! Answers as JSON, and failures as problem details (RFC 9457).

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// When to come again after the database was not to be had, seconds.
const RETRY_AFTER_S: u16 = 1;

/// A failed request as its caller is told.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    members: Map<String, Value>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: &str) -> Self {
        let title = status.canonical_reason().unwrap_or("Failure");
        let mut members = Map::new();
        for (name, value) in [
            ("type", json!("about:blank")),
            ("title", json!(title)),
            ("status", json!(status.as_u16())),
            ("detail", json!(detail)),
        ] {
            members.insert(name.to_owned(), value);
        }
        Self { status, members }
    }

    /// Adds a member of this problem's own.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let body = serde_json::to_vec(&self.members).unwrap_or_default();
        let mut response = answer(self.status, "application/problem+json", body.into());
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        response
    }
}

/// `body` as JSON, with a status of success.
pub(crate) fn json_answer(status: StatusCode, body: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(body) {
        Ok(bytes) => encoded_answer(status, bytes.into()),
        Err(error) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()).into_response(),
    }
}

/// A body that is JSON already.
pub(crate) fn encoded_answer(status: StatusCode, body: Bytes) -> Response<Body> {
    answer(status, "application/json", body)
}

fn answer(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passes_by_itself_says_when_to_come_again() {
        for (status, header) in [(StatusCode::SERVICE_UNAVAILABLE, Some("1")), (StatusCode::CONFLICT, None)] {
            let response = Problem::new(status, "no").with("reason", json!("x")).into_response();
            assert_eq!(response.status(), status);
            assert_eq!(response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap()), header);
            assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        }
    }
}
