//! Responses as JSON, and failures as problem details (RFC 9457).

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A failed request as reported to its caller.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    members: Map<String, Value>,
    retry_after: Option<Duration>,
}

impl Problem {
    /// A problem without a type, titled by its status.
    #[must_use]
    pub fn new(status: StatusCode, detail: &str) -> Self {
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
        Self { status, members, retry_after: None }
    }

    /// Adds a member of this problem's own.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }

    /// Says when to come again; the header counts whole seconds, so part of one counts as one.
    #[must_use]
    pub fn with_retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// The response that reports it.
    #[must_use]
    pub fn into_response(self) -> Response<Body> {
        let body = serde_json::to_vec(&self.members).unwrap_or_default();
        let mut response = response(self.status, "application/problem+json", body.into());
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// A 200 with `body` as JSON.
pub fn ok(body: &impl Serialize) -> Response<Body> {
    with_status(StatusCode::OK, body)
}

/// `body` as JSON, with a status of success.
pub fn with_status(status: StatusCode, body: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(body) {
        Ok(bytes) => encoded(status, bytes.into()),
        Err(error) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()).into_response(),
    }
}

/// A body that is JSON already.
#[must_use]
pub fn encoded(status: StatusCode, body: Bytes) -> Response<Body> {
    response(status, "application/json", body)
}

fn response(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_second_to_wait_counts_as_one() {
        for (wait_ms, header) in [(0, "0"), (1, "1"), (1_000, "1"), (1_001, "2")] {
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy");
            let response = problem.with_retry_after(Duration::from_millis(wait_ms)).into_response();
            assert_eq!(response.headers()[RETRY_AFTER], header);
            assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        }
    }
}
