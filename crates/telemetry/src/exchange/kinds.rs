//! Infers the kind of spans without one from changes of the service.
//!
//! A span that names the database it calls is a client span. A span without a parent, or with a parent in another
//! service, is the entry of a request into its service: a server span. A span with a child in another service is the
//! call: a client span. So is a span that names the service it calls, and the first of two spans of different services
//! with one id. All others are internal. If the other side sends or receives a message, the span does the opposite. Spans
//! with a kind keep it.

use std::cmp::Reverse;
use std::collections::HashMap;

use narrows_model::trace::{Span, SpanId, SpanKind, TraceId};

/// Sets the kind of the spans at these positions, which have none. Traces should be complete.
pub(super) fn infer(spans: &mut [Span], without_kind: &[usize]) {
    if without_kind.is_empty() {
        return;
    }
    let places = Places::new(spans);
    let parents: Vec<Option<usize>> = spans.iter().map(|span| places.parent(spans, span)).collect();
    let callees = callees(spans, &parents);
    let sharing = places.sharing(spans);
    let inferred = |at: &usize| match sharing.get(at) {
        Some(callee) => caller_of(*callee),
        None => kind(spans, *at, parents[*at], callees.get(at).map(|callee| &spans[*callee])),
    };
    let kinds: Vec<SpanKind> = without_kind.iter().map(inferred).collect();
    for (at, kind) in without_kind.iter().zip(kinds) {
        spans[*at].kind = kind;
    }
}

/// Positions of spans by their ids.
struct Places(HashMap<(TraceId, SpanId), Vec<usize>>);

impl Places {
    fn new(spans: &[Span]) -> Self {
        let mut places: HashMap<_, Vec<usize>> = HashMap::with_capacity(spans.len());
        for (at, span) in spans.iter().enumerate() {
            places.entry((span.trace_id, span.span_id)).or_default().push(at);
        }
        Self(places)
    }

    /// The parent of a span. If both sides of a call share the parent's id, the one in the span's own service.
    fn parent(&self, spans: &[Span], span: &Span) -> Option<usize> {
        let above = self.0.get(&(span.trace_id, span.parent_id?))?;
        let own = above.iter().find(|at| spans[**at].service == span.service);
        own.or(above.first()).copied()
    }

    /// The kind of the other side, by position of the calling side, where both sides of a call share an id.
    fn sharing(&self, spans: &[Span]) -> HashMap<usize, SpanKind> {
        let mut sharing = HashMap::new();
        for places in self.0.values().filter(|places| places.len() > 1) {
            let caller = places.iter().min_by_key(|at| (spans[**at].start_ns, Reverse(spans[**at].end_ns)));
            let Some(caller) = caller else { continue };
            let callee = places.iter().find(|at| spans[**at].service != spans[*caller].service);
            sharing.extend(callee.map(|callee| (*caller, spans[*callee].kind)));
        }
        sharing
    }
}

/// The position of the first child in another service, by position of the parent.
fn callees(spans: &[Span], parents: &[Option<usize>]) -> HashMap<usize, usize> {
    let mut callees = HashMap::new();
    for (at, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent.filter(|parent| spans[*parent].service != spans[at].service) {
            callees.entry(parent).or_insert(at);
        }
    }
    callees
}

fn kind(spans: &[Span], at: usize, parent: Option<usize>, callee: Option<&Span>) -> SpanKind {
    let span = &spans[at];
    let parent = parent.map(|parent| &spans[parent]);
    match (parent, callee) {
        _ if span.facts.db_system.is_some() => SpanKind::Client,
        (None, _) => SpanKind::Server,
        (_, Some(callee)) if span.facts.peer_service.as_ref() == Some(&callee.service) => caller_of(callee.kind),
        (Some(parent), _) if parent.service != span.service => match parent.kind {
            SpanKind::Producer => SpanKind::Consumer,
            _ => SpanKind::Server,
        },
        (_, Some(callee)) => caller_of(callee.kind),
        _ if span.facts.peer_service.is_some() => SpanKind::Client,
        _ => SpanKind::Internal,
    }
}

/// The kind of a call that this kind of span handles.
fn caller_of(callee: SpanKind) -> SpanKind {
    if callee == SpanKind::Consumer { SpanKind::Producer } else { SpanKind::Client }
}

#[cfg(test)]
mod tests {
    use SpanKind::{Client, Consumer, Internal, Producer, Server};
    use narrows_model::trace::SpanFacts;

    use super::*;
    use crate::testing::span;

    /// The inferred kinds, after spans without a kind were set to internal.
    fn inferred(mut spans: Vec<Span>) -> Vec<SpanKind> {
        let without: Vec<usize> = (0..spans.len()).filter(|at| spans[*at].kind == Internal).collect();
        infer(&mut spans, &without);
        spans.iter().map(|span| span.kind).collect()
    }

    #[test]
    fn the_service_changes_between_a_call_and_its_handling() {
        let none = |id, parent, service| span(id, parent, service, Internal);
        let chain =
            vec![none(1, 0, "web"), none(2, 1, "web"), none(3, 2, "web"), none(4, 3, "store"), none(5, 4, "store")];
        assert_eq!(inferred(chain), [Server, Internal, Client, Server, Internal]);
        let without_client_spans = vec![none(1, 0, "web"), none(2, 1, "store"), none(3, 2, "disk")];
        assert_eq!(inferred(without_client_spans), [Server, Server, Server]);
        assert_eq!(inferred(vec![none(4, 9, "store")]), [Server], "its parent is not there");
    }

    #[test]
    fn the_other_side_of_a_call_may_say_its_kind() {
        let call = vec![span(1, 0, "web", Server), span(2, 1, "web", Internal), span(3, 2, "store", Server)];
        assert_eq!(inferred(call), [Server, Client, Server]);
        let message = vec![span(1, 0, "web", Server), span(2, 1, "web", Internal), span(3, 2, "worker", Consumer)];
        assert_eq!(inferred(message), [Server, Producer, Consumer]);
        let handled = vec![span(1, 0, "web", Producer), span(2, 1, "worker", Internal)];
        assert_eq!(inferred(handled), [Producer, Consumer]);
    }

    #[test]
    fn a_call_to_what_sends_no_spans_says_whom_it_calls() {
        let facts = |set: fn(&mut SpanFacts)| {
            let mut call = span(2, 1, "web", Internal);
            set(&mut call.facts);
            inferred(vec![span(1, 0, "web", Server), call])[1]
        };
        assert_eq!(facts(|facts| facts.db_system = Some("mysql".into())), Client);
        assert_eq!(facts(|facts| facts.peer_service = Some("bank".into())), Client);
        assert_eq!(facts(|_| {}), Internal);
        let mut labelled = span(2, 1, "mysql", Internal);
        labelled.facts.db_system = Some("mysql".into());
        assert_eq!(inferred(vec![span(1, 0, "web", Server), labelled])[1], Client, "with a service of its own");
    }

    #[test]
    fn an_id_of_both_sides_is_that_of_the_own_service() {
        let shared = vec![
            span(1, 0, "web", Server),
            span(2, 1, "web", Client),
            span(2, 1, "store", Server),
            span(3, 2, "store", Internal),
        ];
        assert_eq!(inferred(shared)[3], Internal);
    }

    #[test]
    fn the_first_of_two_sides_with_one_id_is_the_call() {
        let none = |id, parent, service| span(id, parent, service, Internal);
        let mut shared = vec![none(1, 0, "web"), none(2, 1, "web"), none(2, 1, "store"), none(3, 2, "store")];
        shared[2].start_ns += 1;
        assert_eq!(inferred(shared), [Server, Client, Server, Internal]);
    }

    #[test]
    fn a_call_with_a_service_of_its_own_names_the_service_that_it_calls() {
        let none = |id, parent, service| span(id, parent, service, Internal);
        let mut labelled = vec![none(1, 0, "web"), none(2, 1, "web-client"), none(3, 2, "store")];
        labelled[1].facts.peer_service = Some("store".into());
        assert_eq!(inferred(labelled.clone()), [Server, Client, Server]);
        labelled[1].facts.peer_service = Some("web".into());
        assert_eq!(inferred(labelled), [Server, Server, Server], "it names its caller");
    }
}
