//! The SERVER span of a request, by OpenTelemetry's stable HTTP conventions, and trace context from the caller.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Common part of the spans of one route.
#[derive(Debug, Clone)]
pub struct Route {
    /// The pattern of its paths, such as `/owners/{id}`.
    pub path: &'static str,
    /// Tracer that makes them.
    pub tracer: SdkTracer,
}

/// The request's span, as an extension of the request: what the handler calls is traced under it.
#[derive(Debug, Clone)]
pub struct Trace(pub Context);

/// A middleware for `route`: the span begins before the handler and ends with its response. If the client goes away
/// meanwhile, the handler is dropped and the span ends there.
pub async fn trace(State(route): State<Route>, mut request: Request, next: Next) -> Response {
    let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(request.headers()));
    let span = route
        .tracer
        .span_builder(format!("{} {}", request.method(), route.path))
        .with_kind(SpanKind::Server)
        .with_attributes(attributes(&request, route.path));
    let cx = parent.with_span(route.tracer.build_with_context(span, &parent));
    request.extensions_mut().insert(Trace(cx.clone()));
    let response = next.run(request).await;
    finish(&cx, response.status());
    response
}

fn attributes(request: &Request, path: &'static str) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("http.request.method", request.method().to_string()),
        KeyValue::new("http.route", path),
        KeyValue::new("url.path", request.uri().path().to_owned()),
        KeyValue::new("url.scheme", "http"),
    ];
    if let Some(query) = request.uri().query() {
        attributes.push(KeyValue::new("url.query", query.to_owned()));
    }
    if let Some(client) = client_of(request.headers()) {
        attributes.push(KeyValue::new("client.address", client.to_string()));
    }
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).map(str::parse::<Authority>);
    if let Some(Ok(host)) = host {
        attributes.push(KeyValue::new("server.address", host.host().to_owned()));
        attributes.push(KeyValue::new("server.port", i64::from(host.port_u16().unwrap_or(80))));
    }
    attributes
}

/// Who called the first proxy: the first address of those that proxies name.
fn client_of(headers: &HeaderMap) -> Option<IpAddr> {
    headers.get(FORWARDED_FOR)?.to_str().ok()?.split(',').next()?.trim().parse().ok()
}

fn finish(cx: &Context, status: StatusCode) {
    let span = cx.span();
    span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
    if status.is_server_error() {
        span.set_attribute(KeyValue::new("error.type", status.as_str().to_owned()));
        span.set_status(Status::error(""));
    }
    span.end();
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}
