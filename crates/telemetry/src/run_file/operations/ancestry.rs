//! The server span to which a span belongs.
//!
//! Parent ids are followed upwards within the span's service: the work of another service belongs to that service.
//! Spans in between are passed through, since an SDK's span around its requests is not an operation. Some tracers give
//! a call's span a separate service: a call belongs to the service of its parent span, unless that is a call too.

use narrows_model::trace::SpanKind;

use super::repeated_spans::is_call;
use super::spans::{SpanRow, Target};

/// How many parents are followed; also what ends a circle.
const DEPTH_MAX: usize = 64;

/// The spans of one trace by id.
#[derive(Debug, Default)]
pub(super) struct Ancestry {
    /// Id and position, in order. An id may stand twice: some tracers give both ends of a call the same.
    by_id: Vec<(u64, usize)>,
    /// Parent and service of each server span, in order.
    servers: Vec<(u64, u32)>,
}

impl Ancestry {
    /// Takes up the next trace.
    pub(super) fn enter(&mut self, trace: &[SpanRow]) {
        self.by_id.clear();
        self.by_id.extend(trace.iter().enumerate().map(|(at, span)| (span.span, at)));
        self.by_id.sort_unstable();
        self.servers.clear();
        let servers = trace.iter().filter(|span| span.kind == SpanKind::Server && span.parent != 0);
        self.servers.extend(servers.map(|span| (span.parent, span.service)));
        self.servers.sort_unstable();
    }

    /// Target of a call: as the call names it, else the service whose server span is below it or has its id.
    pub(super) fn target(&self, trace: &[SpanRow], span: &SpanRow) -> Target {
        if span.target != Target::Unknown {
            return span.target;
        }
        let first = self.servers.partition_point(|(parent, _)| *parent < span.span);
        let below = self.servers[first..].iter().take_while(|(parent, _)| *parent == span.span);
        let sharing = self.with_id(span.span).filter(|at| trace[*at].kind == SpanKind::Server);
        let mut services = below.map(|(_, service)| *service).chain(sharing.map(|at| trace[at].service));
        services.find(|service| *service != span.service).map_or(Target::Unknown, Target::System)
    }

    /// The nearest server span above a span of the trace that was entered; `None` if the way up leaves the service,
    /// the trace or what is bearable.
    pub(super) fn server_above<'a>(&self, trace: &'a [SpanRow], span: &SpanRow) -> Option<&'a SpanRow> {
        let mut above = self.above(trace, span).map(|at| &trace[at]);
        above.find(|span| span.kind == SpanKind::Server)
    }

    /// The position of the nearest call above a span, below the server span.
    pub(super) fn call_above(&self, trace: &[SpanRow], span: &SpanRow) -> Option<usize> {
        let mut within = self.above(trace, span).take_while(|at| trace[*at].kind != SpanKind::Server);
        within.find(|at| is_call(&trace[*at]))
    }

    /// The positions of the spans above one, nearest first, up to where the way leaves the service, the trace or what
    /// is bearable.
    fn above(&self, trace: &[SpanRow], span: &SpanRow) -> impl Iterator<Item = usize> {
        let service = self.service(trace, span);
        let find = move |parent| self.find(trace, parent, service);
        std::iter::successors(find(span.parent), move |at| find(trace[*at].parent)).take(DEPTH_MAX)
    }

    /// The position of the span of a service with an id; of several the server span.
    fn find(&self, trace: &[SpanRow], id: u64, service: u32) -> Option<usize> {
        let candidates = self.with_id(id).filter(|at| trace[*at].service == service);
        candidates.max_by_key(|at| trace[*at].kind == SpanKind::Server)
    }

    /// The service whose code made a span.
    fn service(&self, trace: &[SpanRow], span: &SpanRow) -> u32 {
        let above = || self.with_id(span.parent).map(|at| &trace[at]);
        let is_labelled = span.kind == SpanKind::Client && above().all(|above| above.service != span.service);
        let caller = above().find(|above| is_labelled && above.kind != SpanKind::Client);
        caller.map_or(span.service, |above| above.service)
    }

    /// The positions of the spans with an id.
    fn with_id(&self, id: u64) -> impl Iterator<Item = usize> {
        let first = self.by_id.partition_point(|(other, _)| *other < id);
        self.by_id[first..].iter().take_while(move |(other, _)| *other == id).map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SpanKind::{Client, Internal, Server};

    /// Span id, parent id, service and kind of each.
    fn trace(spans: &[(u64, u64, u32, SpanKind)]) -> Vec<SpanRow> {
        spans.iter().map(|(span, parent, service, kind)| SpanRow::bare(*span, *parent, *service, *kind)).collect()
    }

    #[test]
    fn the_way_up_stays_within_the_service() {
        let spans = trace(&[
            (1, 99, 7, Server),
            (2, 1, 7, Internal),
            (3, 2, 7, Client),
            (4, 3, 8, Server),
            (5, 4, 8, Client),
            (6, 5, 8, Client),
            (7, 3, 8, Client),
            (8, 99, 7, Client),
            (9, 0, 7, Client),
        ]);
        let mut ancestry = Ancestry::default();
        ancestry.enter(&spans);
        let above = |id: u64| ancestry.server_above(&spans, &spans[id as usize - 1]).map(|span| span.span);
        let cases = [(3, Some(1)), (4, None), (5, Some(4)), (6, Some(4)), (7, None), (8, None), (9, None), (1, None)];
        for (id, expected) in cases {
            assert_eq!(above(id), expected, "of span {id}");
        }
    }

    #[test]
    fn a_call_whose_span_has_a_service_of_its_own_is_its_callers() {
        let spans = trace(&[
            (1, 0, 7, Server),
            (2, 1, 7, Internal),
            (3, 2, 9, Client),
            (4, 1, 7, Client),
            (5, 4, 8, Client),
            (6, 1, 9, Internal),
        ]);
        let mut ancestry = Ancestry::default();
        ancestry.enter(&spans);
        let above = |id: usize| ancestry.server_above(&spans, &spans[id - 1]).map(|span| span.span);
        assert_eq!([above(3), above(4), above(5), above(6)], [Some(1), Some(1), None, None]);
    }

    #[test]
    fn a_call_that_names_nobody_goes_to_the_service_that_handles_it() {
        let spans = trace(&[
            (1, 0, 7, Server),
            (2, 1, 7, Client),
            (3, 2, 8, Server),
            (4, 1, 7, Client),
            (4, 1, 9, Server),
            (5, 1, 7, Client),
        ]);
        let mut ancestry = Ancestry::default();
        ancestry.enter(&spans);
        let target = |at: usize| ancestry.target(&spans, &spans[at]);
        assert_eq!([target(1), target(3), target(5)], [Target::System(8), Target::System(9), Target::Unknown]);
        let named = SpanRow { target: Target::Address(5, None), ..spans[1] };
        assert_eq!(ancestry.target(&spans, &named), Target::Address(5, None));
    }

    #[test]
    fn circles_end_and_a_shared_id_is_the_servers() {
        let circle = trace(&[(1, 2, 7, Internal), (2, 1, 7, Internal), (3, 1, 7, Client), (4, 4, 7, Client)]);
        let mut ancestry = Ancestry::default();
        ancestry.enter(&circle);
        assert!(circle.iter().all(|span| ancestry.server_above(&circle, span).is_none()));
        let shared = trace(&[(1, 0, 7, Server), (2, 1, 7, Client), (2, 1, 8, Server), (3, 2, 8, Client)]);
        ancestry.enter(&shared);
        let of_service = |at: usize| ancestry.server_above(&shared, &shared[at]).map(|span| span.service);
        assert_eq!((of_service(1), of_service(3)), (Some(7), Some(8)));
    }

    #[test]
    fn the_way_up_is_bounded() {
        let chain = |length: u64| {
            let mut spans = vec![(1, 0, 7, Server)];
            spans.extend((2..=length).map(|id| (id, id - 1, 7, Internal)));
            trace(&spans)
        };
        for (length, is_found) in [(DEPTH_MAX as u64 + 1, true), (DEPTH_MAX as u64 + 2, false)] {
            let spans = chain(length);
            let mut ancestry = Ancestry::default();
            ancestry.enter(&spans);
            assert_eq!(ancestry.server_above(&spans, &spans[length as usize - 1]).is_some(), is_found, "{length}");
        }
    }
}
