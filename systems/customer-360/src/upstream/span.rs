//! The CLIENT span of one attempt of a call, by OpenTelemetry's stable HTTP conventions.

use bytes::Bytes;
use http::{HeaderMap, Response};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};

use super::failure::CallFailure;
use crate::base_url::Authority;
use crate::trace::{self, Trace};

/// The span of an attempt, if the request is recorded.
pub(super) struct AttemptSpan(Option<Context>);

impl AttemptSpan {
    /// Begins the span. `resend` counts the earlier attempts of the same call.
    pub(super) fn begin(trace: &Trace, authority: &Authority, path: &'static str, resend: u32) -> Self {
        let Some((tracer, parent)) = trace.recording() else { return Self(None) };
        let Authority { host, port } = authority;
        let mut attributes = vec![
            KeyValue::new("http.request.method", "GET"),
            KeyValue::new("url.full", format!("http://{host}:{port}{path}")),
            KeyValue::new("server.address", host.clone()),
            KeyValue::new("server.port", i64::from(*port)),
        ];
        if resend > 0 {
            attributes.push(KeyValue::new("http.request.resend_count", i64::from(resend)));
        }
        let span = tracer.span_builder("GET").with_kind(SpanKind::Client).with_attributes(attributes);
        Self(Some(parent.with_span(tracer.build_with_context(span, parent))))
    }

    /// Puts the span's context into `headers`, or that of the incoming request.
    pub(super) fn hand_on(&self, trace: &Trace, headers: &mut HeaderMap) {
        match &self.0 {
            Some(cx) => trace::inject(cx, headers),
            None => trace.pass_on(headers),
        }
    }

    /// Ends the span with the result of the attempt.
    pub(super) fn finish(self, result: &Result<Response<Bytes>, CallFailure>) {
        let Some(cx) = self.0 else { return };
        let span = cx.span();
        let failure = match result {
            Ok(response) => {
                let status = response.status();
                span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
                let is_failure = status.is_client_error() || status.is_server_error();
                is_failure.then(|| (status.as_str().to_owned(), String::new()))
            }
            Err(failure) => Some((failure.kind().to_owned(), failure.to_string())),
        };
        if let Some((kind, description)) = failure {
            span.set_attribute(KeyValue::new("error.type", kind));
            span.set_status(Status::error(description));
        }
        span.end();
    }
}
