//! W3C trace context of a request, and the SERVER span where it is recorded.
//!
//! Whether a request is recorded was decided by whoever sent the first `traceparent`. One that says "not sampled" goes
//! on as it came: nothing is made, parsed or counted, so that such a request costs what it would without telemetry.
//! Without context the sampler of the environment (`OTEL_TRACES_SAMPLER`) decides, which samples all by default.

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;

use crate::response::{FailureMark, FullResponse};
use crate::telemetry::Telemetry;

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The length of a `traceparent` of version 00.
const TRACEPARENT_BYTES: usize = 55;

/// Facts about a request's trace.
#[derive(Debug, Clone)]
pub(crate) enum Trace {
    /// Nobody records it; its context goes on as it came.
    Passing { traceparent: Option<HeaderValue>, tracestate: Option<HeaderValue> },
    /// Its spans are made under this one.
    Recording { tracer: SdkTracer, cx: Context },
}

impl Trace {
    /// Begins the span of `request`, if there is to be one. `route` is the pattern of the path.
    pub(crate) fn begin<B>(
        telemetry: &Telemetry,
        request: &Request<B>,
        route: impl FnOnce(&Method, &str) -> Option<&'static str>,
    ) -> Self {
        let headers = request.headers();
        let traceparent = headers.get(TRACEPARENT);
        let sampled = traceparent.and_then(|value| is_sampled(value.as_bytes()));
        match (telemetry.tracer(), sampled) {
            (Some(tracer), Some(true) | None) => {
                Self::record(tracer.clone(), request, route(request.method(), request.uri().path()))
            }
            (_, None) => Self::Passing { traceparent: None, tracestate: None },
            (_, Some(_)) => {
                Self::Passing { traceparent: traceparent.cloned(), tracestate: headers.get(TRACESTATE).cloned() }
            }
        }
    }

    fn record<B>(tracer: SdkTracer, request: &Request<B>, route: Option<&'static str>) -> Self {
        let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(request.headers()));
        let name = match route {
            Some(route) => format!("{} {route}", request.method()),
            None => request.method().to_string(),
        };
        let span = tracer.span_builder(name).with_kind(SpanKind::Server).with_attributes(attributes(request, route));
        let cx = parent.with_span(tracer.build_with_context(span, &parent));
        Self::Recording { tracer, cx }
    }

    /// Where spans of this request are made, and under which; `None` if it is not recorded.
    pub(crate) fn recording(&self) -> Option<(&SdkTracer, &Context)> {
        match self {
            Self::Recording { tracer, cx } => Some((tracer, cx)),
            Self::Passing { .. } => None,
        }
    }

    /// Hands the context of a request that is not recorded on to `headers`.
    pub(crate) fn pass_on(&self, headers: &mut HeaderMap) {
        let Self::Passing { traceparent, tracestate } = self else { return };
        let kept = [(TRACEPARENT, traceparent), (TRACESTATE, tracestate)];
        headers.extend(kept.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
    }

    /// Ends the span with the response. If the client goes away before, the span ends where it is dropped.
    pub(crate) fn finish(&self, response: &FullResponse) {
        let Self::Recording { cx, .. } = self else { return };
        let (span, status) = (cx.span(), response.status());
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if status.is_server_error() {
            let reason = response.extensions().get::<FailureMark>().map(|FailureMark(reason)| reason.clone());
            span.set_attribute(KeyValue::new("error.type", reason.unwrap_or_else(|| status.as_str().to_owned())));
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

/// The sampled flag of a `traceparent`; `None` if it is not one, by W3C Trace Context.
fn is_sampled(value: &[u8]) -> Option<bool> {
    let (head, more) = value.split_at_checked(TRACEPARENT_BYTES)?;
    let is_known = &head[..2] == b"00" && more.is_empty();
    let is_newer = &head[..2] != b"00" && &head[..2] != b"ff" && (more.is_empty() || more[0] == b'-');
    let dashes = [2, 35, 52];
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_formed =
        head.iter().enumerate().all(|(at, byte)| if dashes.contains(&at) { *byte == b'-' } else { is_hex(byte) });
    let is_nothing = |digits: &[u8]| digits.iter().all(|digit| *digit == b'0');
    let is_whole = is_formed && !is_nothing(&head[3..35]) && !is_nothing(&head[36..52]);
    // The flag is the last bit, so it says whether the last digit is odd.
    let is_odd = b"13579bdf".contains(&head[54]);
    ((is_known || is_newer) && is_whole).then_some(is_odd)
}

fn attributes<B>(request: &Request<B>, route: Option<&'static str>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("http.request.method", request.method().to_string()),
        KeyValue::new("url.path", request.uri().path().to_owned()),
        KeyValue::new("url.scheme", "http"),
    ];
    if let Some(route) = route {
        attributes.push(KeyValue::new("http.route", route));
    }
    if let Some(query) = request.uri().query() {
        attributes.push(KeyValue::new("url.query", query.to_owned()));
    }
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).map(str::parse::<Authority>);
    if let Some(Ok(host)) = host {
        attributes.push(KeyValue::new("server.address", host.host().to_owned()));
        attributes.push(KeyValue::new("server.port", i64::from(host.port_u16().unwrap_or(80))));
    }
    attributes
}

/// Puts the context of a span into the headers of a call.
pub(crate) fn inject(cx: &Context, headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject_context(cx, &mut Into(headers));
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct Into<'a>(&'a mut HeaderMap);

impl Injector for Into<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_is_read_and_what_is_no_traceparent_is_none() {
        let ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
        for (flags, sampled) in [("00", false), ("01", true), ("02", false), ("03", true), ("0a", false), ("ff", true)]
        {
            assert_eq!(is_sampled(format!("00-{ids}-{flags}").as_bytes()), Some(sampled), "{flags}");
        }
        assert_eq!(is_sampled(format!("cc-{ids}-01-what").as_bytes()), Some(true));
        let zeros = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        let no_span = format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", "0".repeat(16));
        for bad in [
            "",
            "00",
            &format!("00-{ids}-0"),
            &format!("00-{ids}-01-what"),
            &format!("00-{ids}-01x"),
            &format!("cc-{ids}-01x"),
            &format!("ff-{ids}-01"),
            &format!("00-{}-01", ids.to_uppercase()),
            &format!("00_{ids}-01"),
            &zeros,
            &no_span,
        ] {
            assert_eq!(is_sampled(bad.as_bytes()), None, "{bad}");
        }
    }
}
