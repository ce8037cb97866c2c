//! All that happens below the first span of a request, whether it is waited for or not: the visits to services, the calls
//! that begin them, and the spans inside of services.

use std::collections::BTreeMap;

use narrows_model::trace::{Span, SpanKind};

use crate::critical_path::TimedForest;
use crate::critical_path::category::{Names, is_connecting};
use crate::read::calls::Times;

/// Caller and callee.
pub(super) type Pair = (String, String);

/// One call of a service.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) service: String,
    /// The time in it and in none that it calls, nanoseconds.
    pub(super) own_ns: f64,
}

/// All that happens below the first span of a request.
#[derive(Debug, Default)]
pub(super) struct Below<'t> {
    pub(super) visits: Vec<Visit>,
    /// Nanoseconds in a service and in none that it calls, by service.
    pub(super) own: BTreeMap<String, f64>,
    /// Number of calls.
    pub(super) calls: BTreeMap<Pair, u32>,
    /// Nanoseconds of calls before the callee's span begins and after it ends.
    pub(super) gaps: BTreeMap<Pair, f64>,
    /// Number of internal spans by service and name.
    pub(super) internal: BTreeMap<(&'t str, &'t str), u32>,
}

impl<'t> Below<'t> {
    pub(super) fn new(tree: &TimedForest<'t>, entry: usize, names: &Names) -> Self {
        let mut below = Self::default();
        let mut spans: Vec<(usize, Option<usize>)> = vec![(entry, Some(0))];
        below.visits.push(Visit { service: place_of(tree, entry, names), own_ns: 0.0 });
        while let Some((at, visit)) = spans.pop() {
            let (span, own_ns, place) = (tree.span(at), own_ns(tree, at), place_of(tree, at, names));
            if let Some(visit) = visit {
                below.visits[visit].own_ns += own_ns;
            }
            if span.kind == SpanKind::Client && has_server_span(tree, at) {
                *below.gaps.entry((span.service.clone(), place.clone())).or_default() += own_ns;
            }
            for child in tree.children(at).iter().map(|child| *child as usize) {
                spans.push((child, below.visit_of(tree, (at, visit, &place), child, names)));
            }
            *below.own.entry(place).or_default() += own_ns;
        }
        below
    }

    /// The visit that a child of a span belongs to; `None` for the steps of a call and what cannot be told.
    fn visit_of(
        &mut self,
        tree: &TimedForest<'t>,
        parent: (usize, Option<usize>, &str),
        child: usize,
        names: &Names,
    ) -> Option<usize> {
        let (at, visit, place) = parent;
        let (caller, span) = (tree.span(at), tree.span(child));
        if is_call_of(caller, span) {
            let callee = place_of(tree, child, names);
            *self.calls.entry((caller.service.clone(), callee.clone())).or_default() += 1;
            self.visits.push(Visit { service: callee, own_ns: 0.0 });
            return Some(self.visits.len() - 1);
        }
        if span.kind == SpanKind::Internal && span.service == caller.service {
            *self.internal.entry((&span.service, &span.name)).or_default() += 1;
        }
        visit.filter(|_| match span.kind {
            SpanKind::Client => !is_connecting(span),
            _ => span.service == place,
        })
    }
}

/// The service that a span's own time is spent at: of a call, the callee.
pub(super) fn place_of(tree: &TimedForest<'_>, at: usize, names: &Names) -> String {
    let span = tree.span(at);
    if span.kind == SpanKind::Client { names.callee(tree, at) } else { span.service.clone() }
}

/// True if the callee of a client span recorded the call too.
pub(super) fn has_server_span(tree: &TimedForest<'_>, at: usize) -> bool {
    tree.children(at)
        .iter()
        .any(|child| matches!(tree.span(*child as usize).kind, SpanKind::Server | SpanKind::Consumer))
}

/// True if a span is a call to another service: by a client, but not the second of two stacked ones, or without one.
fn is_call_of(caller: &Span, span: &Span) -> bool {
    match (span.kind, caller.kind) {
        (SpanKind::Client, SpanKind::Client) => caller.service != span.service,
        (SpanKind::Client, _) => !is_connecting(span),
        (_, SpanKind::Client) => false,
        _ => caller.service != span.service,
    }
}

/// The time of a span when no span below it is under way, nanoseconds.
fn own_ns(tree: &TimedForest<'_>, at: usize) -> f64 {
    let times = |at: usize| (tree.placed(at).start_ns, tree.placed(at).end_ns);
    let children = Times::union_of(tree.children(at).iter().map(|child| times(*child as usize)));
    Times::union_of([times(at)]).without(&children).length_ns()
}
