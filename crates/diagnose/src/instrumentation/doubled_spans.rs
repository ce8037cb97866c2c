//! `doubled-spans`: two libraries report each call, as siblings.
//!
//! SQLAlchemy and its driver, an HTTP client and the one it is built on: both are instrumented, neither knows of the
//! other, and both hang their span under the same parent. Two spans are doubles when they are of two scopes of one
//! service, request the same, and were under way together for nearly all of the shorter one's time. A repetition of a
//! query comes after it, and queries side by side come from one scope; neither is a double. A library that is
//! instrumented twice under one name cannot be distinguished from queries side by side, and is not reported.

use std::collections::BTreeMap;

use narrows_model::caveat::{DoubledSpans as Doubled, TrialCaveat};
use narrows_model::trace::{Span, Trace};
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, example, example_text, how_to_disable, is_call, sibling_calls};
use crate::read::doubles::overlap_share;

/// How many of the calls that began after a span are compared with it.
const LOOK_AHEAD: usize = 32;

/// See the module.
pub(super) struct DoubledSpans;

impl Trap for DoubledSpans {
    fn id(&self) -> &'static str {
        "doubled-spans"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        let mut calls: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (_, span) in scene.spans().filter(|(_, span)| is_call(span)) {
            *calls.entry((&span.service, &span.scope)).or_default() += 1;
        }
        let of = |service, scope| calls.get(&(service, scope)).copied().unwrap_or(0);
        let cases = pairs(scene).into_iter().filter_map(|((service, first, second), pairs)| {
            // The library that reported fewer calls could be doubled throughout; of two with as many it is the inner
            // one.
            let (one, other) = (of(service, first), of(service, second));
            let is_first = one < other || one == other && pairs.example.2.scope == first;
            let (kept, double) = if is_first { (second, first) } else { (first, second) };
            let all = of(service, double);
            let is_regular = pairs.count as f64 >= scene.thresholds.doubled_share * all as f64;
            (is_regular && pairs.count >= scene.thresholds.doubled_calls)
                .then(|| pairs.describe(service, kept, double, all))
        });
        cases.collect()
    }
}

/// The doubles of two scopes of a service.
struct Pairs<'a> {
    count: usize,
    overlap_sum: f64,
    example: (&'a Trace, &'a Span, &'a Span),
}

/// By service and the two scopes, in order of their names.
fn pairs<'a>(scene: &Scene<'a>) -> BTreeMap<(&'a str, &'a str, &'a str), Pairs<'a>> {
    let mut found: BTreeMap<(&str, &str, &str), Pairs<'a>> = BTreeMap::new();
    for forest in scene.forests {
        for siblings in sibling_calls(forest) {
            for (at, span) in siblings.iter().copied().enumerate() {
                let later = siblings[at + 1..].iter().copied().take(LOOK_AHEAD);
                let mut later = later.take_while(|other| other.start_ns < span.end_ns);
                if let Some(double) = later.find(|other| is_double(scene, span, other)) {
                    let (first, second) = in_order(&span.scope, &double.scope);
                    let pairs = found.entry((&span.service, first, second)).or_insert(Pairs {
                        count: 0,
                        overlap_sum: 0.0,
                        example: (forest.trace(), span, double),
                    });
                    pairs.count += 1;
                    pairs.overlap_sum += overlap_share(span, double);
                }
            }
        }
    }
    found
}

fn is_double<'a>(scene: &Scene<'a>, span: &'a Span, other: &'a Span) -> bool {
    span.service == other.service
        && span.scope != other.scope
        && overlap_share(span, other) >= scene.thresholds.doubled_overlap_share
        && scene.are_same_request(span, other)
}

fn in_order<'a>(a: &'a str, b: &'a str) -> (&'a str, &'a str) {
    if a <= b { (a, b) } else { (b, a) }
}

impl Pairs<'_> {
    fn describe(&self, service: &str, kept: &str, double: &str, all: usize) -> TrialCaveat {
        let (trace, span, other) = self.example;
        TrialCaveat::DoubledSpans(Doubled {
            service: service.to_owned(),
            kept: kept.to_owned(),
            double: double.to_owned(),
            doubles: self.count,
            spans: all,
            overlap: self.overlap_sum / self.count as f64,
            example: example(trace, &[span, other]),
        })
    }
}

/// Text of the caveat.
pub(crate) fn text(doubled: &Doubled) -> String {
    let Doubled { service, kept, double, doubles, spans, overlap, example } = doubled;
    format!(
        "{service} reports calls twice: {} of {} spans of {double} stand beside a span of {kept} under the same \
         parent, make the same call, and overlap it for {} of its time. Counts of calls and of request units \
         hold both; the detectors of repeated queries count such a query once. Switch one of the two off, for \
         example with {}. {}",
        units::count(*doubles as u64),
        units::count(*spans as u64),
        units::percent(*overlap),
        how_to_disable(double),
        example_text(example)
    )
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{Beat, SpanBuilder, client, query, run_of, server};

    use super::super::scene::tests::{assert_one, caveats, traces};
    use super::*;

    const ORM: &str = "opentelemetry.instrumentation.sqlalchemy";
    const DRIVER: &str = "opentelemetry.instrumentation.psycopg2";
    /// As measured: 8.32 ms and 8.17 ms, 0.07 ms apart.
    const OUTER: Beat = Beat { first_ms: 1.0, step_ms: 10.0, length_ms: 8.32 };
    const INNER: Beat = Beat { first_ms: 1.07, step_ms: 10.0, length_ms: 8.17 };

    fn caveats_of(children: impl IntoIterator<Item = SpanBuilder>) -> Vec<String> {
        caveats(&DoubledSpans, traces(&server("shop", "GET /").at(0.0, 200.0).children(children)))
    }

    fn both(count: usize, inner: Beat, text: &str) -> Vec<SpanBuilder> {
        let mut spans = run_of(count, OUTER, |_| query("SELECT a FROM t WHERE b = %(b)s").scope(ORM));
        spans.extend(run_of(count, inner, |_| query(text).scope(DRIVER)));
        spans
    }

    #[test]
    fn an_orm_and_its_driver_are_reported() {
        let said = caveats_of(both(5, INNER, "SELECT a FROM t WHERE b = %s"));
        let words = ["shop reports calls twice: 150 of 150 spans", "100 % of its time", "psycopg2. Example: trace 4e"];
        assert_one(&said, &words);
    }

    #[test]
    fn two_http_clients_are_reported_once_for_each_pair() {
        let get = |scope: &str| client("GET").url("http://stock/parts").scope(scope).at(5.0, 9.0);
        let said =
            caveats_of([get("opentelemetry.instrumentation.httpx"), get("opentelemetry.instrumentation.urllib3")]);
        assert_one(&said, &["30 of 30 spans", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="]);
    }

    #[test]
    fn what_is_asked_again_is_no_double() {
        let again = Beat { first_ms: 9.5, ..INNER };
        let one_after_the_other = run_of(8, OUTER, |i| query("SELECT a FROM t").scope([ORM, DRIVER][i % 2]));
        assert_eq!(caveats_of(one_after_the_other), [""; 0]);
        let retried = run_of(1, OUTER, |_| query("SELECT a FROM t").scope(ORM).failed());
        let retries = run_of(1, again, |_| query("SELECT a FROM t").scope(ORM));
        assert_eq!(caveats_of(retried.into_iter().chain(retries)), [""; 0]);
    }

    #[test]
    fn queries_side_by_side_are_no_doubles() {
        let side_by_side = Beat { step_ms: 0.05, ..OUTER };
        assert_eq!(caveats_of(run_of(9, side_by_side, |_| query("SELECT a FROM t WHERE b = ?").scope(ORM))), [""; 0]);
        let two_pools = Beat { first_ms: 4.0, ..INNER };
        assert_eq!(caveats_of(both(5, two_pools, "SELECT a FROM t WHERE b = %s")), [""; 0]);
    }

    #[test]
    fn a_cache_and_what_it_missed_are_no_doubles() {
        assert_eq!(caveats_of(both(5, INNER, "GET cart:17")), [""; 0]);
    }

    #[test]
    fn a_double_now_and_then_is_not_worth_telling() {
        let mut spans = both(1, INNER, "SELECT a FROM t WHERE b = %s");
        let apart = Beat { first_ms: 20.0, step_ms: 10.0, length_ms: 5.0 };
        spans.extend(run_of(8, apart, |i| query("SELECT x FROM y").scope([ORM, DRIVER][i % 2])));
        assert_eq!(caveats_of(spans), [""; 0]);
    }
}
