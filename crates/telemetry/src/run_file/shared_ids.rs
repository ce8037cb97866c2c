//! Separates the two sides of a call that are two spans of a trace with the same id.
//!
//! Zipkin's tracers, tracers with B3 headers and Envoy give the server's span the id of the client's. Children then
//! name both as their parent. This module gives the server's span a new id, below the client's. Spans of its service
//! that name the shared id become its children, as in Jaeger's span id adjuster. Ids in the run file are not changed.

use std::collections::{HashMap, HashSet};

use narrows_model::trace::{Span, SpanId, SpanKind};

/// Gives the server's side of each call a new id if the client's side has the same one.
pub(super) fn separate(spans: &mut [Span]) {
    let mut known: HashSet<SpanId> = HashSet::with_capacity(spans.len());
    let repeated: HashSet<SpanId> = spans.iter().map(|span| span.span_id).filter(|id| !known.insert(*id)).collect();
    if repeated.is_empty() {
        return;
    }
    let is_caller = |span: &&Span| matches!(span.kind, SpanKind::Client | SpanKind::Producer);
    let called: HashSet<SpanId> =
        spans.iter().filter(is_caller).map(|span| span.span_id).filter(|id| repeated.contains(id)).collect();
    let mut own_ids: HashMap<(SpanId, String), SpanId> = HashMap::new();
    for span in spans.iter_mut().filter(|span| is_handling(span) && called.contains(&span.span_id)) {
        let shared = span.span_id;
        span.span_id = fresh(shared, &mut known);
        span.parent_id = Some(shared);
        own_ids.entry((shared, span.service.clone())).or_insert(span.span_id);
    }
    for span in spans.iter_mut() {
        let Some(parent) = span.parent_id.filter(|parent| called.contains(parent)) else { continue };
        if let Some(own) = own_ids.get(&(parent, span.service.clone())).filter(|own| **own != span.span_id) {
            span.parent_id = Some(*own);
        }
    }
}

fn is_handling(span: &Span) -> bool {
    matches!(span.kind, SpanKind::Server | SpanKind::Consumer)
}

/// An id that no span of the trace has. Deterministic.
fn fresh(shared: SpanId, known: &mut HashSet<SpanId>) -> SpanId {
    // The step is odd, so no number repeats before all have occurred.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut number = u64::from_be_bytes(shared);
    loop {
        number = number.wrapping_add(STEP);
        let id = number.to_be_bytes();
        if number != 0 && known.insert(id) {
            return id;
        }
    }
}

#[cfg(test)]
mod tests {
    use SpanKind::{Client, Internal, Server};

    use super::*;
    use crate::testing::span;

    /// The position of each span's parent, after ids were separated.
    fn parents(mut spans: Vec<Span>) -> Vec<Option<usize>> {
        separate(&mut spans);
        let ids: Vec<SpanId> = spans.iter().map(|span| span.span_id).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "each has its own");
        spans.iter().map(|span| ids.iter().position(|id| Some(*id) == span.parent_id)).collect()
    }

    #[test]
    fn the_server_is_below_the_client_and_its_children_follow_it() {
        let shared = vec![
            span(1, 0, "web", Server),
            span(2, 1, "web", Client),
            span(2, 1, "store", Server),
            span(3, 2, "store", Client),
            span(4, 2, "web", Internal),
            span(3, 2, "disk", Server),
            span(5, 3, "disk", Internal),
        ];
        assert_eq!(parents(shared), [None, Some(0), Some(1), Some(2), Some(1), Some(3), Some(5)]);
    }

    #[test]
    fn a_service_that_calls_itself_handles_what_is_below() {
        let own = vec![span(1, 0, "web", Client), span(1, 0, "web", Server), span(2, 1, "web", Internal)];
        assert_eq!(parents(own), [None, Some(0), Some(1)]);
    }

    #[test]
    fn a_trace_without_shared_ids_stays_as_it_is() {
        let spans = vec![span(1, 0, "web", Server), span(2, 1, "web", Client), span(3, 2, "store", Server)];
        let mut separated = spans.clone();
        separate(&mut separated);
        assert_eq!(separated, spans);
        let twice = vec![span(1, 0, "web", Server), span(1, 0, "web", Server)];
        let mut separated = twice.clone();
        separate(&mut separated);
        assert_eq!(separated, twice, "no call");
    }
}
