//! Answers as JSON, and failures as problem details (RFC 9457).

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::json;

/// A failed request as its caller is told.
pub(crate) fn problem(status: StatusCode, reason: &str, detail: &str) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or("Failure");
    let members = json!({
        "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail, "reason": reason,
    });
    answer(status, "application/problem+json", members.to_string())
}

/// `body` as JSON, with status 200.
pub(crate) fn json_answer(body: &impl Serialize) -> Response<Body> {
    match serde_json::to_string(body) {
        Ok(text) => answer(StatusCode::OK, "application/json", text),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, "unwritable", &error.to_string()),
    }
}

fn answer(status: StatusCode, kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
