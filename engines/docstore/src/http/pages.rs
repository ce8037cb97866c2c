//! Pages besides the REST interface: the explorer under `/_explorer/`, the usage that it shows, and `/metrics`.
//!
//! They need no key and cost nothing. The explorer is a client in a browser: what it shows of documents it asks for
//! through the REST interface, with the key that is typed into it.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};

use super::prometheus;
use crate::store::Store;
use crate::usage;

/// The page loads its own files and talks to its own store, and nothing else.
const POLICY: &str = "default-src 'self'; img-src data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'";

/// The response to a request for a page; `None` on any other path.
pub(super) fn page(store: &Store, method: &Method, path: &str) -> Option<Response<Body>> {
    let (kind, body) = match path {
        "/metrics" => (prometheus::CONTENT_TYPE, prometheus::page(store)),
        "/_explorer" => return Some(moved("/_explorer/")),
        "/_explorer/" | "/_explorer/index.html" => {
            file("text/html; charset=utf-8", include_str!("../explorer/index.html"))
        }
        "/_explorer/explorer.css" => file("text/css; charset=utf-8", include_str!("../explorer/explorer.css")),
        "/_explorer/explorer.js" => file("text/javascript; charset=utf-8", include_str!("../explorer/explorer.js")),
        "/_explorer/usage" => ("application/json", usage_of(store).to_string()),
        _ => return None,
    };
    if *method != Method::GET {
        let mut refused = Response::new(Body::empty());
        *refused.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return Some(refused);
    }
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Some(response)
}

fn file(kind: &'static str, text: &str) -> (&'static str, String) {
    (kind, text.to_owned())
}

fn moved(to: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    response
}

/// Throughput that every partition has used so far, and the time of this reading.
fn usage_of(store: &Store) -> Value {
    let mut containers = Vec::new();
    usage::read(store, |database, container, partitions| {
        let partitions: Vec<Value> = partitions
            .iter()
            .filter(|partition| !partition.is_split)
            .map(|partition| {
                json!({
                    "id": partition.range,
                    "provisioned": partition.usage.provisioned.request_units(),
                    "consumed": partition.usage.consumed.request_units(),
                    "throttled": partition.usage.throttled,
                    "bytes": partition.usage.text_bytes,
                })
            })
            .collect();
        containers.push(json!({ "database": database.name, "container": container.name, "partitions": partitions }));
    });
    let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    json!({ "unixMs": unix_ms, "containers": containers })
}
