//! Calls to other services: a pooled HTTP/1.1 client, bounded answers, a CLIENT span and trace context for each.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use opentelemetry::propagation::{Injector, TextMapPropagator as _};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use reqwest::{Client, Request, Url};

use crate::Error;

/// The largest answer that is read: Cosmos DB's limit of a page.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// How long a connection may take to be made.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);

/// A client that keeps connections open and takes no proxy from the environment. `patience` is for one whole call;
/// `idle_max` connections are kept for each host.
pub(crate) fn client(patience: Duration, idle_max: usize) -> Result<Client, Error> {
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_PATIENCE)
        .timeout(patience)
        .pool_max_idle_per_host(idle_max)
        .build()
        .map_err(Error::Client)
}

/// An answer with all of its body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A call without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    #[error("no connection: {0}")]
    Connection(String),
    #[error("no answer in time")]
    Timeout,
    #[error("the answer is larger than {ANSWER_BYTES_MAX} bytes")]
    TooLarge,
}

impl CallError {
    /// `error.type` of a span.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Connection(_) => "connection",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
        }
    }
}

impl From<reqwest::Error> for CallError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() && !error.is_connect() {
            return Self::Timeout;
        }
        let mut innermost: &dyn std::error::Error = &error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        Self::Connection(innermost.to_string())
    }
}

/// Sends `request` and reads the answer to its end.
pub(crate) async fn exchange(client: &Client, request: Request) -> Result<Reply, CallError> {
    let mut response = client.execute(request).await?;
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(CallError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Reply { status, headers, body: body.into() })
}

/// A traced `GET`; `resend` counts the earlier attempts of the same call.
pub(crate) async fn get(
    client: &Client,
    tracer: &SdkTracer,
    parent: &Context,
    url: Url,
    resend: u32,
) -> Result<Reply, CallError> {
    let span = tracer.span_builder("GET").with_kind(SpanKind::Client).with_attributes(attributes(&url, resend));
    let cx = parent.with_span(tracer.build_with_context(span, parent));
    let mut request = Request::new(reqwest::Method::GET, url);
    TraceContextPropagator::new().inject_context(&cx, &mut Headers(request.headers_mut()));
    let result = exchange(client, request).await;
    finish(&cx, &result);
    result
}

fn attributes(url: &Url, resend: u32) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("http.request.method", "GET"),
        KeyValue::new("url.full", url.as_str().to_owned()),
        KeyValue::new("server.address", url.host_str().unwrap_or_default().to_owned()),
        KeyValue::new("server.port", i64::from(url.port_or_known_default().unwrap_or_default())),
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
        Err(error) => Some((error.kind().to_owned(), error.to_string())),
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
