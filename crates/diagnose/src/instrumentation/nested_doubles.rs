//! `nested-doubles`: two libraries report each call, one span within the other.
//!
//! An object mapper above the driver (Hibernate over JDBC, Mongoose over MongoDB's driver), an HTTP client above the
//! one it is built on. A span is doubled when it holds exactly one call of its service, of another scope but the same
//! protocol, that lasts nearly as long. A call over another protocol is no double but what carries it (a document store
//! called over HTTP), and a phase of the program with one query in it is no call.

use std::collections::BTreeMap;

use narrows_model::caveat::{NestedDoubles as Nested, TrialCaveat};
use narrows_model::trace::{Forest, Span, SpanKind, Trace};
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, example, example_text, how_to_disable, is_call};
use crate::read::requests::{is_database, query_text};

/// Words in the scopes of object mappers, whose spans are mostly internal ones.
const MAPPERS: [&str; 9] = [
    "hibernate",
    "spring-data",
    "jpa",
    "sequelize",
    "typeorm",
    "mikro-orm",
    "activerecord",
    "active_record",
    "entityframework",
];

/// See the module.
pub(super) struct NestedDoubles;

impl Trap for NestedDoubles {
    fn id(&self) -> &'static str {
        "nested-doubles"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        let mut outer: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut found: BTreeMap<(&str, &str, &str), Nests<'_>> = BTreeMap::new();
        for forest in scene.forests {
            let spans = forest.spans().iter().enumerate();
            for (at, span) in spans.filter(|(_, span)| is_call(span) || is_mapper(span)) {
                *outer.entry((&span.service, &span.scope)).or_default() += 1;
                let Some(inner) = double_within(scene, forest, at) else { continue };
                let example = (forest.trace(), span, inner);
                let nests = found.entry((&span.service, &span.scope, &inner.scope));
                let nests = nests.or_insert(Nests { count: 0, share_sum: 0.0, example });
                nests.count += 1;
                nests.share_sum += inner.duration_ns() as f64 / span.duration_ns() as f64;
            }
        }
        let cases = found.into_iter().filter_map(|((service, scope, inner), nests)| {
            let all = outer.get(&(service, scope)).copied().unwrap_or(0);
            let is_regular = nests.count as f64 >= scene.thresholds.doubled_share * all as f64;
            (is_regular && nests.count >= scene.thresholds.doubled_calls)
                .then(|| nests.describe(service, scope, inner, all))
        });
        cases.collect()
    }
}

/// The spans of one scope that hold their double of another.
struct Nests<'a> {
    count: usize,
    share_sum: f64,
    example: (&'a Trace, &'a Span, &'a Span),
}

/// The only call below a span, if it is the span's double.
fn double_within<'a>(scene: &Scene<'a>, forest: &Forest<'a>, at: usize) -> Option<&'a Span> {
    let span = forest.span(at);
    let mut calls = forest.children(at).map(|child| forest.span(child)).filter(|child| is_call(child));
    let (inner, None) = (calls.next()?, calls.next()) else { return None };
    let lasts = span.duration_ns() > 0
        && inner.duration_ns() as f64 >= scene.thresholds.nested_length_share * span.duration_ns() as f64;
    (lasts && inner.service == span.service && inner.scope != span.scope && is_same_call(scene, span, inner))
        .then_some(inner)
}

fn is_same_call<'a>(scene: &Scene<'a>, span: &'a Span, inner: &'a Span) -> bool {
    let says_what =
        |span: &Span| query_text(span).is_some() || span.facts.url.is_some() || span.facts.rpc_method.is_some();
    let same_protocol = match (is_database(span), is_database(inner)) {
        (true, true) => true,
        (false, true) => is_mapper(span),
        (false, false) => {
            let both = |has: fn(&Span) -> bool| has(span) && has(inner);
            both(|span| span.facts.http_method.is_some()) || both(|span| span.facts.rpc_system.is_some())
        }
        (true, false) => false,
    };
    same_protocol && (!says_what(span) || !says_what(inner) || scene.are_same_request(span, inner))
}

fn is_mapper(span: &Span) -> bool {
    let scope = span.scope.to_ascii_lowercase();
    span.kind == SpanKind::Internal && MAPPERS.iter().any(|mapper| scope.contains(mapper))
}

impl Nests<'_> {
    fn describe(&self, service: &str, scope: &str, inner: &str, all: usize) -> TrialCaveat {
        let (trace, span, within) = self.example;
        TrialCaveat::NestedDoubles(Nested {
            service: service.to_owned(),
            outer: scope.to_owned(),
            inner: inner.to_owned(),
            doubles: self.count,
            spans: all,
            inner_share: self.share_sum / self.count as f64,
            example: example(trace, &[span, within]),
        })
    }
}

/// Text of the caveat.
pub(crate) fn text(nested: &Nested) -> String {
    let Nested { service, outer, inner, doubles, spans, inner_share, example } = nested;
    format!(
        "{service} reports calls twice, one span within the other: {} of {} spans of {outer} hold exactly one \
         call, a span of {inner}, which takes {} of their time. Times are right, because the inner span lies \
         within the outer; counts of spans are too high, and twice as many are sent and stored. Switch the outer \
         one off unless you need it, with {}. {}",
        units::count(*doubles as u64),
        units::count(*spans as u64),
        units::percent(*inner_share),
        how_to_disable(outer),
        example_text(example)
    )
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{SpanBuilder, client, document_query, internal, query, server};

    use super::super::scene::tests::{assert_one, caveats, traces};
    use super::*;

    const MAPPER: &str = "io.opentelemetry.hibernate-6.0";

    fn caveats_of(child: SpanBuilder) -> Vec<String> {
        caveats(&NestedDoubles, traces(&server("shop", "GET /").at(0.0, 50.0).child(child)))
    }

    fn jdbc(start_ms: f64, length_ms: f64) -> SpanBuilder {
        query("select a from t where b = ?").scope("io.opentelemetry.jdbc").at(start_ms, length_ms)
    }

    #[test]
    fn a_mapper_over_its_driver_is_reported() {
        let said = caveats_of(internal("Session.find Owner").scope(MAPPER).at(1.0, 10.0).child(jdbc(1.3, 9.5)));
        assert_one(
            &said,
            &["30 of 30 spans of io.opentelemetry.hibernate-6.0", "95 % of their time", "HIBERNATE_ENABLED=false"],
        );
    }

    #[test]
    fn an_http_client_over_another_is_reported() {
        let get = |scope: &str| client("GET").url("http://stock/parts").scope(scope);
        let said = caveats_of(get("requests").at(1.0, 10.0).child(get("urllib3").at(1.2, 9.7)));
        assert_one(&said, &["30 of 30 spans of requests", "the instrumentation requests"]);
    }

    #[test]
    fn a_remote_call_over_its_transport_is_reported() {
        let call = |scope: &str| client("Cart/Add").remote("shop.v1.Cart", "Add").scope(scope);
        let said = caveats_of(call("resilience").at(1.0, 10.0).child(call("grpc").at(1.2, 9.7)));
        assert_one(&said, &["30 of 30 spans of resilience"]);
        let other = client("Cart/Pay").remote("shop.v1.Cart", "Pay").scope("grpc").at(1.2, 9.7);
        assert_eq!(caveats_of(call("resilience").at(1.0, 10.0).child(other)), [""; 0]);
    }

    #[test]
    fn a_mapper_with_several_queries_or_work_of_its_own_is_in_order() {
        let mapper = || internal("Session.find Owner").scope(MAPPER).at(1.0, 10.0);
        assert_eq!(caveats_of(mapper().child(jdbc(1.0, 5.0)).child(jdbc(6.1, 4.8))), [""; 0]);
        assert_eq!(caveats_of(mapper().child(jdbc(1.0, 5.0))), [""; 0]);
        assert_eq!(caveats_of(internal("load owner").scope("shop").at(1.0, 10.0).child(jdbc(1.0, 9.9))), [""; 0]);
    }

    #[test]
    fn what_carries_a_call_is_no_double() {
        let over_http = document_query("SELECT * FROM c", "1").at(1.0, 10.0);
        let over_http = over_http.child(client("POST").url("http://store/docs").scope("http").at(1.1, 9.8));
        assert_eq!(caveats_of(over_http), [""; 0]);
        let other_text = query("SELECT a FROM t").scope("cache").at(1.0, 10.0);
        assert_eq!(caveats_of(other_text.child(query("SELECT b FROM u").scope("driver").at(1.1, 9.8))), [""; 0]);
        let of_other_service = client("GET").url("http://a/").at(1.0, 10.0);
        let of_other_service =
            of_other_service.child(client("GET").url("http://a/").scope("x").service("b").at(1.0, 9.9));
        assert_eq!(caveats_of(of_other_service), [""; 0]);
    }
}
