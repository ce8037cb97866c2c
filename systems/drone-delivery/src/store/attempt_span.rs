//! The CLIENT span of one attempt on the wire, by OpenTelemetry's conventions for databases and for Cosmos DB.
//!
//! The official clients make one span for the whole query and hide its attempts; here each attempt is seen, since
//! waiting to retry and querying one partition after another are what there is to find. `db.partition.id` is a name of
//! our own: the conventions have none.

use std::sync::Arc;

use narrows_serving::client::CallError;
use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer as _};
use opentelemetry::{Array, Context, KeyValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, Span};

use super::wire::{ContainerAddress, ResponseHead, Target};
use crate::outgoing::kind;

/// A span that ends when it is dropped, at the latest.
pub(super) struct AttemptSpan(Span);

impl AttemptSpan {
    /// Begins the span; `resend` counts the earlier attempts of the same request.
    pub(super) fn begin(
        tracer: &SdkTracer,
        parent: &Context,
        place: &ContainerAddress,
        text: &'static str,
        target: &Target,
        resend: u32,
    ) -> Self {
        let mut attributes = vec![
            KeyValue::new("db.system.name", "azure.cosmosdb"),
            KeyValue::new("db.namespace", place.database.clone()),
            KeyValue::new("db.collection.name", place.container.clone()),
            KeyValue::new("db.operation.name", "query_items"),
            KeyValue::new("db.query.text", text),
            KeyValue::new("server.address", place.address.clone()),
            KeyValue::new("server.port", i64::from(place.port)),
        ];
        if let Target::Range(id) = target {
            attributes.push(KeyValue::new("db.partition.id", Arc::clone(id)));
        }
        if resend > 0 {
            attributes.push(KeyValue::new("http.request.resend_count", i64::from(resend)));
        }
        let name = format!("query {}", place.container);
        let span = tracer.span_builder(name).with_kind(SpanKind::Client).with_attributes(attributes);
        Self(tracer.build_with_context(span, parent))
    }

    /// Records a response; `rows` is how many documents it brought.
    pub(super) fn responded(mut self, head: &ResponseHead, rows: Option<usize>) {
        let span = &mut self.0;
        let status = head.status.as_str().to_owned();
        span.set_attribute(KeyValue::new("db.response.status_code", status.clone()));
        if let Some(charge) = head.charge {
            span.set_attribute(KeyValue::new("azure.cosmosdb.operation.request_charge", charge));
        }
        if let Some(sub_status) = head.sub_status {
            span.set_attribute(KeyValue::new("azure.cosmosdb.response.sub_status_code", sub_status));
        }
        if let Some(rows) = rows {
            span.set_attribute(KeyValue::new("db.response.returned_rows", i64::try_from(rows).unwrap_or(i64::MAX)));
        }
        if let Some(range) = &head.range {
            span.set_attribute(KeyValue::new("db.partition.id", range.clone()));
        }
        if let (429, Some(wait)) = (head.status.as_u16(), &head.retry_after) {
            let wait = Value::Array(Array::String(vec![wait.as_millis().to_string().into()]));
            span.set_attribute(KeyValue::new("http.response.header.x-ms-retry-after-ms", wait));
        }
        if head.status.as_u16() >= 400 {
            span.set_attribute(KeyValue::new("error.type", status));
            span.set_status(Status::error(""));
        }
        span.end();
    }

    /// Records that no response came.
    pub(super) fn failed(mut self, error: &CallError) {
        self.0.set_attribute(KeyValue::new("error.type", kind(error)));
        self.0.set_status(Status::error(error.to_string()));
        self.0.end();
    }
}
