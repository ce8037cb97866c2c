//! Responses as JSON, and failures as problem details (RFC 9457) with a `reason` that programs can count by.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

/// A response with all of its body.
pub(crate) type FullResponse = Response<Full<Bytes>>;

/// A 200 with JSON that is written already.
pub(crate) fn json(body: Vec<u8>) -> FullResponse {
    response(StatusCode::OK, "application/json", body.into())
}

/// A 200 with a fixed body, for health checks.
pub(crate) fn healthy() -> FullResponse {
    json(br#"{"status":"up"}"#.to_vec())
}

fn response(status: StatusCode, kind: &'static str, body: Bytes) -> FullResponse {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Why a request failed, in a few fixed words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) &'static str);

/// A failed request as reported to its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) reason: String,
    pub(crate) detail: String,
}

/// A problem's members on the wire.
#[derive(Serialize)]
struct Members<'a> {
    r#type: &'static str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    reason: &'a str,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, reason: Reason, detail: impl Into<String>) -> Self {
        Self { status, reason: reason.0.to_owned(), detail: detail.into() }
    }

    pub(crate) fn unknown_route(path: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, Reason("unknown_route"), format!("nothing is at {path}"))
    }

    pub(crate) fn into_response(self) -> FullResponse {
        let title = self.status.canonical_reason().unwrap_or("Failure");
        let members = Members {
            r#type: "about:blank",
            title,
            status: self.status.as_u16(),
            detail: &self.detail,
            reason: &self.reason,
        };
        // Plain texts and a number can always be written.
        let body = serde_json::to_vec(&members).unwrap_or_default();
        let mut response = response(self.status, "application/problem+json", body.into());
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response.extensions_mut().insert(FailureMark(self.reason));
        response
    }
}

/// Marks a failed response for the span of its request.
#[derive(Debug, Clone)]
pub(crate) struct FailureMark(pub(crate) String);

/// A 405 that names the allowed method.
pub(crate) fn wrong_method(allowed: &'static str) -> FullResponse {
    let detail = format!("this path is for {allowed}");
    let mut response = Problem::new(StatusCode::METHOD_NOT_ALLOWED, Reason("wrong_method"), detail).into_response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    #[tokio::test]
    async fn a_problem_names_its_reason() {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, Reason("pool_full"), "no \"place\" came free");
        let response = problem.into_response();
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let expected = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"no \"place\" came free","reason":"pool_full"}"#;
        assert_eq!(body, expected);
    }

    #[test]
    fn a_wrong_method_is_refused_with_the_right_one() {
        let response = wrong_method("GET");
        assert_eq!((response.status().as_u16(), &response.headers()[ALLOW]), (405, &HeaderValue::from_static("GET")));
        assert!(!response.headers().contains_key(RETRY_AFTER));
    }
}
