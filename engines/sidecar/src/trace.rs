//! W3C trace context at a hop: a sampled request gets its own span, any other passes as it is.
//!
//! Deciding costs a look at one byte of one header. A hop begins no trace: who is to be observed is decided where a
//! request begins. `tracestate` always goes on unchanged.

use std::time::SystemTime;

use http::header::HeaderMap;
use http::{HeaderName, HeaderValue};
use opentelemetry::trace::{
    Span, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState, Tracer,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;

use crate::config::Direction;
use crate::hop::Hop;
use crate::host_port::HostPort;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// `00-<32 digits>-<16 digits>-<2 digits>`.
const LENGTH: usize = 55;
/// Sampled, and that the trace id is random: the two flags there are.
const FLAGS_KNOWN: u8 = 0b11;

/// The sampled span that a request comes from.
pub(crate) fn sampled_parent(headers: &HeaderMap) -> Option<SpanContext> {
    let value = headers.get(TRACEPARENT)?.as_bytes();
    let last = *value.get(LENGTH - 1)?;
    if hex(last)? & 1 == 0 {
        return None;
    }
    parse(value)
}

/// The context that a header carries; `None` if it is malformed.
fn parse(value: &[u8]) -> Option<SpanContext> {
    let is_separated = [2, 35, 52].iter().all(|&at| value.get(at) == Some(&b'-'));
    let version = number(value.get(0..2)?)?;
    let is_known_length = value.len() == LENGTH || version > 0 && value.get(LENGTH) == Some(&b'-');
    if !is_separated || version == 0xff || !is_known_length {
        return None;
    }
    let trace_id = TraceId::from(number(&value[3..35])?);
    let span_id = SpanId::from(number(&value[36..52])? as u64);
    let flags = number(&value[53..55])? as u8 & FLAGS_KNOWN;
    let context = SpanContext::new(trace_id, span_id, TraceFlags::new(flags), true, TraceState::default());
    context.is_valid().then_some(context)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |sum: u128, &digit| Some(sum << 4 | u128::from(hex(digit)?)))
}

fn write(context: &SpanContext) -> Option<HeaderValue> {
    let flags = context.trace_flags().to_u8() & FLAGS_KNOWN;
    HeaderValue::try_from(format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id())).ok()
}

/// A hop's part of a trace.
pub(crate) struct HopSpan {
    span: opentelemetry_sdk::trace::Span,
    direction: Direction,
}

impl HopSpan {
    /// Begins a span below `parent` and names it in `headers` as the parent of what comes after.
    pub(crate) fn begin(
        tracer: &SdkTracer,
        hop: &Hop,
        method: &str,
        path: &str,
        parent: SpanContext,
        headers: &mut HeaderMap,
    ) -> Self {
        let kind = match hop.direction {
            Direction::Inbound => SpanKind::Server,
            Direction::Outbound => SpanKind::Client,
        };
        let builder = tracer
            .span_builder(method.to_owned())
            .with_kind(kind)
            .with_start_time(SystemTime::now())
            .with_attributes(attributes(hop, method, path));
        let span = builder.start_with_context(tracer, &Context::new().with_remote_span_context(parent));
        if let Some(value) = write(span.span_context()) {
            headers.insert(TRACEPARENT, value);
        }
        Self { span, direction: hop.direction }
    }

    /// Ends it. `status` is the caller's, 0 where it got none; `fault` is what the hop has to say about it.
    pub(crate) fn end(mut self, status: u16, fault: Option<&'static str>) {
        if status > 0 {
            self.span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status)));
        }
        let failing_from = if self.direction == Direction::Inbound { 500 } else { 400 };
        if let Some(word) = fault {
            self.span.set_attribute(KeyValue::new("error.type", word));
            self.span.set_status(Status::error(word));
        } else if status >= failing_from {
            self.span.set_attribute(KeyValue::new("error.type", status.to_string()));
            self.span.set_status(Status::error(""));
        }
        self.span.end();
    }
}

fn attributes(hop: &Hop, method: &str, path: &str) -> Vec<KeyValue> {
    let server = match hop.direction {
        Direction::Inbound => HostPort::from(hop.listen),
        Direction::Outbound => hop.pool.upstream().address.clone(),
    };
    let mut attributes = vec![
        KeyValue::new("http.request.method", method.to_owned()),
        KeyValue::new("server.address", server.host.clone()),
        KeyValue::new("server.port", i64::from(server.port)),
        KeyValue::new("sidecar.hop", hop.name.clone()),
    ];
    let path = path.to_owned();
    match hop.direction {
        Direction::Inbound => {
            attributes.push(KeyValue::new("url.scheme", if hop.accepts_tls { "https" } else { "http" }));
            attributes.push(KeyValue::new("url.path", path));
        }
        Direction::Outbound => {
            let scheme = if hop.pool.upstream().tls.is_some() { "https" } else { "http" };
            attributes.push(KeyValue::new("url.full", format!("{scheme}://{server}{path}")));
        }
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn parent(value: &str) -> Option<(String, String, u8)> {
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        let context = sampled_parent(&headers)?;
        Some((context.trace_id().to_string(), context.span_id().to_string(), context.trace_flags().to_u8()))
    }

    #[test]
    fn only_well_formed_sampled_parents_count() {
        let of = |version: &str, flags: &str| format!("{version}-{TRACE}-{SPAN}-{flags}");
        let found = |flags| Some((TRACE.to_owned(), SPAN.to_owned(), flags));
        for (value, expected) in [
            (of("00", "01"), found(1)),
            (of("00", "03"), found(3)),
            (of("00", "ff"), found(3)),
            (of("cc", "01-more"), found(1)),
            (of("00", "00"), None),
            (of("00", "02"), None),
            (of("00", "01-more"), None),
            (of("ff", "01"), None),
            (of("0G", "01"), None),
            (of("00", "0x1"), None),
            (format!("00-{TRACE}-{}-01", SPAN.to_uppercase()), None),
            (format!("00-{}-{SPAN}-01", "0".repeat(32)), None),
            (format!("00-{TRACE}-{}-01", "0".repeat(16)), None),
            (format!("00_{TRACE}-{SPAN}-01"), None),
            ("1".repeat(LENGTH), None),
            ("1".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(parent(&value), expected, "{value}");
        }
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        let value = format!("00-{TRACE}-{SPAN}-01");
        assert_eq!(write(&parse(value.as_bytes()).unwrap()).unwrap(), value.as_str());
    }
}
