//! One statement on its way, with the CLIENT span that OpenTelemetry's conventions for databases require.
//!
//! Values are never in the text: they stand as `?`, and the text is the program's own.

use mysql_async::Error as DriverError;
use opentelemetry::trace::{Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, Span};

use super::Failure;
use super::node::Node;

/// `db.system.name` of all nodes.
pub(super) const SYSTEM: &str = "mariadb";

/// A statement of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement {
    /// As it is sent.
    pub(crate) text: &'static str,
    /// Its first word.
    pub(crate) operation: &'static str,
    /// The table it is mainly about; `None` for the bounds of a transaction.
    pub(crate) collection: Option<&'static str>,
}

impl Statement {
    pub(crate) const BEGIN: Self = Self::bound("START TRANSACTION");
    pub(crate) const COMMIT: Self = Self::bound("COMMIT");
    pub(crate) const ROLLBACK: Self = Self::bound("ROLLBACK");

    const fn bound(text: &'static str) -> Self {
        Self { text, operation: text, collection: None }
    }

    /// Meaning of its failure.
    pub(super) fn failure(&self, error: DriverError) -> Failure {
        if self.text == Self::COMMIT.text { Failure::of_commit(error) } else { Failure::of_statement(error) }
    }

    fn summary(&self) -> String {
        match self.collection {
            Some(collection) => format!("{} {collection}", self.operation),
            None => self.operation.to_owned(),
        }
    }
}

/// The span of a statement; nothing at all when the caller's trace is not sampled.
pub(super) struct StatementSpan(Option<Span>);

impl StatementSpan {
    pub(super) fn begin(tracer: &SdkTracer, parent: &Context, node: &Node, statement: &Statement) -> Self {
        let caller = parent.span().span_context().clone();
        if caller.is_valid() && !caller.is_sampled() {
            return Self(None);
        }
        let summary = statement.summary();
        let mut attributes = vec![
            KeyValue::new("db.system.name", SYSTEM),
            KeyValue::new("db.namespace", node.namespace().to_owned()),
            KeyValue::new("db.operation.name", statement.operation),
            KeyValue::new("db.query.summary", summary.clone()),
            KeyValue::new("db.query.text", statement.text),
            KeyValue::new("server.address", node.host().to_owned()),
            KeyValue::new("server.port", i64::from(node.port())),
        ];
        attributes.extend(statement.collection.map(|collection| KeyValue::new("db.collection.name", collection)));
        let span = tracer.span_builder(summary).with_kind(SpanKind::Client).with_attributes(attributes);
        Self(Some(tracer.build_with_context(span, parent)))
    }

    /// Notes the result; `rows` is how many came back, for what returns any.
    pub(super) fn end(self, rows: Result<Option<usize>, &Failure>) {
        let Some(mut span) = self.0 else { return };
        match rows {
            Ok(None) => {}
            Ok(Some(rows)) => {
                let rows = i64::try_from(rows).unwrap_or(i64::MAX);
                span.set_attribute(KeyValue::new("db.response.returned_rows", rows));
            }
            Err(failure) => {
                if let Some(code) = failure.code() {
                    span.set_attribute(KeyValue::new("db.response.status_code", code.to_string()));
                }
                span.set_attribute(KeyValue::new("error.type", failure.error_type()));
                span.set_status(Status::error(failure.to_string()));
            }
        }
        span.end();
    }
}
