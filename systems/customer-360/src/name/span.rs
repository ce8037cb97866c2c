//! The CLIENT span of a query by OpenTelemetry's stable conventions for databases, and that of a wait for a place in the pool.

use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer as _};
use opentelemetry::{KeyValue, StringValue};
use opentelemetry_sdk::trace::Span;
use tokio_postgres::config::Host;

use super::failure::QueryFailure;
use super::rows::Rows;
use super::statement::{Query, TABLE};
use crate::trace::Trace;

const PORT_DEFAULT: u16 = 5432;

/// Where the database is, as spans say it.
#[derive(Debug)]
pub(super) struct DatabaseServer {
    namespace: StringValue,
    address: StringValue,
    port: i64,
}

impl DatabaseServer {
    pub(super) fn from_config(config: &tokio_postgres::Config) -> Self {
        let host = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(path)) => path.to_string_lossy().into_owned(),
            None => String::new(),
        };
        let port = config.get_ports().first().copied().unwrap_or(PORT_DEFAULT);
        let namespace = config.get_dbname().or(config.get_user()).unwrap_or_default().to_owned();
        Self { namespace: namespace.into(), address: host.into(), port: i64::from(port) }
    }
}

/// The span of a query, if its request is recorded. It ends when it is dropped, at the latest.
pub(super) struct QuerySpan(Option<Span>);

impl QuerySpan {
    pub(super) fn begin(trace: &Trace, server: &DatabaseServer, query: &Query) -> Self {
        let Some((tracer, parent)) = trace.recording() else { return Self(None) };
        let summary = format!("{} {TABLE}", query.operation());
        let attributes = vec![
            KeyValue::new("db.system.name", "postgresql"),
            KeyValue::new("db.namespace", server.namespace.clone()),
            KeyValue::new("db.collection.name", TABLE),
            KeyValue::new("db.operation.name", query.operation()),
            KeyValue::new("db.query.summary", summary.clone()),
            KeyValue::new("db.query.text", query.text()),
            KeyValue::new("server.address", server.address.clone()),
            KeyValue::new("server.port", server.port),
        ];
        let span = tracer.span_builder(summary).with_kind(SpanKind::Client).with_attributes(attributes);
        Self(Some(tracer.build_with_context(span, parent)))
    }

    pub(super) fn finish(self, result: &Result<Rows, QueryFailure>) {
        let Some(mut span) = self.0 else { return };
        match result {
            Ok(rows) => {
                let rows = i64::try_from(rows.count).unwrap_or(i64::MAX);
                span.set_attribute(KeyValue::new("db.response.returned_rows", rows));
            }
            Err(failure) => {
                if let Some(state) = failure.state() {
                    span.set_attribute(KeyValue::new("db.response.status_code", state.to_owned()));
                }
                fail(&mut span, failure);
            }
        }
        span.end();
    }
}

/// The span of a wait for a place in the pool, if its request is recorded.
pub(super) struct WaitSpan(Option<Span>);

impl WaitSpan {
    pub(super) fn begin(trace: &Trace) -> Self {
        let begun = trace.recording().map(|(tracer, parent)| {
            tracer.build_with_context(tracer.span_builder("pool.acquire").with_kind(SpanKind::Internal), parent)
        });
        Self(begun)
    }

    pub(super) fn finish(self, failure: Option<&QueryFailure>) {
        let Some(mut span) = self.0 else { return };
        if let Some(failure) = failure {
            fail(&mut span, failure);
        }
        span.end();
    }
}

fn fail(span: &mut Span, failure: &QueryFailure) {
    span.set_attribute(KeyValue::new("error.type", failure.kind()));
    span.set_status(Status::error(failure.to_string()));
}
