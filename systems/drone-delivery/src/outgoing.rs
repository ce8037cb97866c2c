//! Calls to other services: a CLIENT span and trace context for each.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use narrows_serving::client::{CallError, Client};
use opentelemetry::propagation::{Injector, TextMapPropagator as _};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;

use crate::base_url::server;

/// A response with all of its body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// `error.type` of a span.
pub(crate) fn kind(error: &CallError) -> &'static str {
    match error {
        CallError::Connection(_) => "connection",
        CallError::Timeout => "timeout",
        CallError::TooLarge => "too_large",
    }
}

/// A request without headers.
pub(crate) fn request(method: Method, url: Uri, body: Bytes) -> Request<Bytes> {
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut()) = (method, url);
    request
}

/// Sends `request` and reads the response to its end.
pub(crate) async fn exchange(client: &Client, request: Request<Bytes>) -> Result<Reply, CallError> {
    let (head, body) = client.send(request).await?.into_parts();
    Ok(Reply { status: head.status, headers: head.headers, body })
}

/// A traced `GET`; `resend` counts the earlier attempts of the same call.
pub(crate) async fn get(
    client: &Client,
    tracer: &SdkTracer,
    parent: &Context,
    url: Uri,
    resend: u32,
) -> Result<Reply, CallError> {
    let span = tracer.span_builder("GET").with_kind(SpanKind::Client).with_attributes(attributes(&url, resend));
    let cx = parent.with_span(tracer.build_with_context(span, parent));
    let mut request = request(Method::GET, url, Bytes::new());
    TraceContextPropagator::new().inject_context(&cx, &mut Headers(request.headers_mut()));
    let result = exchange(client, request).await;
    finish(&cx, &result);
    result
}

fn attributes(url: &Uri, resend: u32) -> Vec<KeyValue> {
    let (address, port) = server(url);
    let mut attributes = vec![
        KeyValue::new("http.request.method", "GET"),
        KeyValue::new("url.full", url.to_string()),
        KeyValue::new("server.address", address.to_owned()),
        KeyValue::new("server.port", i64::from(port)),
    ];
    if resend > 0 {
        attributes.push(KeyValue::new("http.request.resend_count", i64::from(resend)));
    }
    attributes
}

fn finish(cx: &Context, result: &Result<Reply, CallError>) {
    let span = cx.span();
    let failure = match result {
        Ok(reply) => {
            span.set_attribute(KeyValue::new("http.response.status_code", i64::from(reply.status.as_u16())));
            let is_failure = reply.status.is_client_error() || reply.status.is_server_error();
            is_failure.then(|| (reply.status.as_str().to_owned(), String::new()))
        }
        Err(error) => Some((kind(error).to_owned(), error.to_string())),
    };
    if let Some((kind, description)) = failure {
        span.set_attribute(KeyValue::new("error.type", kind));
        span.set_status(Status::error(description));
    }
    span.end();
}

struct Headers<'a>(&'a mut HeaderMap);

impl Injector for Headers<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}
