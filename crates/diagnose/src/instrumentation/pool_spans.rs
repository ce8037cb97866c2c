//! `pool-spans`: a span for each connection that is taken from a pool, between the queries.
//!
//! Libraries that instrument the pool report one such span before each query of a program that takes a connection for
//! each query. Rules that look for neighbouring spans of one text see none then, and counts of client spans are twice
//! those of queries. Connections that are really opened (`tcp.connect`, `pg.connect`) are not meant.

use std::collections::{BTreeMap, HashSet};

use narrows_model::caveat::{PoolSpans as Pool, TrialCaveat};
use narrows_model::trace::{Span, SpanId, Trace};
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, example, example_text, name_of};
use crate::read::pools::is_taking;
use crate::read::requests::Request;
use crate::stats::weighted_median;

/// See the module.
pub(super) struct PoolSpans;

impl Trap for PoolSpans {
    fn id(&self) -> &'static str {
        "pool-spans"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        let mut services: BTreeMap<&str, Vec<Takings<'_>>> = BTreeMap::new();
        for takings in scene.requests.iter().filter_map(|request| Takings::new(scene, request)) {
            services.entry(&takings.request.entry.service).or_default().push(takings);
        }
        let cases = services.into_iter().filter(|(_, takings)| {
            let connections: usize = takings.iter().map(|takings| takings.spans.len()).sum();
            takings.len() >= scene.thresholds.pool_requests && connections >= scene.thresholds.pool_connections
        });
        cases.map(|(service, takings)| describe(service, &takings)).collect()
    }
}

/// A request that takes a connection for most of its queries.
struct Takings<'a> {
    request: &'a Request<'a>,
    spans: Vec<&'a Span>,
}

impl<'a> Takings<'a> {
    fn new(scene: &Scene<'_>, request: &'a Request<'a>) -> Option<Self> {
        let entry = request.entry;
        let (within, queries) = (entry.start_ns..=entry.end_ns, request.queries.len());
        let is_its = |span: &&Span| span.service == entry.service && within.contains(&span.start_ns) && is_taking(span);
        let spans = &request.trace.spans[request.trace.spans.partition_point(|span| span.start_ns < entry.start_ns)..];
        let spans: Vec<&Span> = spans.iter().take_while(|span| span.start_ns <= entry.end_ns).filter(is_its).collect();
        let ids: HashSet<SpanId> = spans.iter().map(|span| span.span_id).collect();
        let spans: Vec<&Span> =
            spans.into_iter().filter(|span| span.parent_id.is_none_or(|parent| !ids.contains(&parent))).collect();
        let is_regular = spans.len() as f64 >= scene.thresholds.pool_query_share * queries as f64;
        (spans.len() > 1 && queries > 1 && is_regular).then_some(Self { request, spans })
    }

    fn weight(&self) -> f64 {
        self.request.trace.weight
    }
}

fn describe(service: &str, takings: &[Takings<'_>]) -> TrialCaveat {
    let median = |value: &dyn Fn(&Takings<'_>) -> f64| {
        weighted_median(takings.iter().map(|takings| (value(takings), takings.weight())).collect())
    };
    let time_ns = |takings: &Takings<'_>| takings.spans.iter().map(|span| span.duration_ns() as f64).sum::<f64>();
    let first = &takings[0];
    let (trace, span): (&Trace, &Span) = (first.request.trace, first.spans[0]);
    TrialCaveat::PoolSpans(Pool {
        service: service.to_owned(),
        span: name_of(span),
        requests: takings.len(),
        connections: median(&|takings| takings.spans.len() as f64),
        queries: median(&|takings| takings.request.queries.len() as f64),
        time_ns: median(&time_ns),
        example: example(trace, &[span]),
    })
}

/// Text of the caveat.
pub(crate) fn text(pool: &Pool) -> String {
    let Pool { service, span, requests, connections, queries, time_ns, example } = pool;
    format!(
        "{service} takes a connection from its pool for nearly every query: {} {span} spans beside {} queries in a \
         request (median of {} requests), which take {} of it. Narrows ignores them when it looks for repeated \
         queries; their time counts as time between queries. Take one connection for a request or for its \
         transaction; if they take long, the pool is too small or connections are held while other work is done. {}",
        units::number(*connections),
        units::number(*queries),
        units::count(*requests as u64),
        units::duration(*time_ns),
        example_text(example)
    )
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{Beat, SpanBuilder, database, internal, query, run_of, server};

    use super::super::scene::tests::{assert_one, caveats, traces};
    use super::*;

    const QUERIES: Beat = Beat { first_ms: 2.0, step_ms: 5.0, length_ms: 3.0 };
    const CONNECTIONS: Beat = Beat { first_ms: 1.0, step_ms: 5.0, length_ms: 0.5 };

    fn caveats_of(connections: Vec<SpanBuilder>) -> Vec<String> {
        let queries = run_of(11, QUERIES, |_| query("SELECT a FROM t WHERE b = $1"));
        caveats(&PoolSpans, traces(&server("shop", "GET /").at(0.0, 90.0).children(queries).children(connections)))
    }

    #[test]
    fn a_connection_for_each_query_is_reported() {
        let said = caveats_of(run_of(11, CONNECTIONS, |_| internal("pg-pool.connect")));
        assert_one(
            &said,
            &["shop takes a connection", "11 pg-pool.connect spans beside 11 queries", "take 5.50 ms of it"],
        );
        assert_one(&caveats_of(run_of(11, CONNECTIONS, |_| database("connect"))), &["connect spans beside"]);
    }

    #[test]
    fn what_is_below_a_taking_counts_once() {
        let nested = run_of(11, CONNECTIONS, |i| {
            let at = CONNECTIONS.first_ms + 5.0 * i as f64;
            internal("pg-pool.connect").child(database("connect").at(at, 0.4))
        });
        assert_one(&caveats_of(nested), &["11 pg-pool.connect spans beside 11 queries", "take 5.50 ms of it"]);
    }

    #[test]
    fn one_connection_for_a_request_is_in_order() {
        assert_eq!(caveats_of(run_of(1, CONNECTIONS, |_| internal("pg-pool.connect"))), [""; 0]);
        assert_eq!(caveats_of(run_of(4, CONNECTIONS, |_| internal("pg-pool.connect"))), [""; 0]);
    }

    #[test]
    fn connections_that_are_opened_are_not_meant() {
        assert_eq!(caveats_of(run_of(11, CONNECTIONS, |_| internal("tcp.connect"))), [""; 0]);
        assert_eq!(caveats_of(run_of(11, CONNECTIONS, |_| internal("connect"))), [""; 0]);
    }
}
