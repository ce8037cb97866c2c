//! Spans for tests.

use narrows_model::trace::{Span, SpanFacts, SpanKind, SpanStatus};

/// A span of trace 1 without a name and facts. The ids are numbers; parent 0 makes it a root.
pub(crate) fn span(id: u8, parent: u8, service: &str, kind: SpanKind) -> Span {
    let id_of = |number: u8| u64::from(number).to_be_bytes();
    Span {
        trace_id: [1; 16],
        span_id: id_of(id),
        parent_id: (parent > 0).then(|| id_of(parent)),
        service: service.to_owned(),
        scope: String::new(),
        name: String::new(),
        kind,
        start_ns: 1,
        end_ns: 2,
        status: SpanStatus::Unset,
        status_message: String::new(),
        facts: SpanFacts::default(),
        attributes: Default::default(),
        weight: 1.0,
    }
}
