//! Whether two spans report one call: what stacked instrumentation libraries have in common with each other.
//!
//! Both the count of calls and the warning about spans that come twice use this. Nothing is decided about what to do
//! with a double, and nothing is read from the times of more than two spans.

use std::collections::HashSet;

use narrows_model::trace::{Span, SpanId};

use crate::read::requests::{is_database, query_text};

/// Overlap of two spans as a share of the shorter one, 0 to 1; 0 if that has no length.
pub(crate) fn overlap_share(a: &Span, b: &Span) -> f64 {
    let together = a.end_ns.min(b.end_ns).saturating_sub(a.start_ns.max(b.start_ns)).max(0);
    let shorter = a.duration_ns().min(b.duration_ns());
    if shorter > 0 { together as f64 / shorter as f64 } else { 0.0 }
}

/// True if two calls request the same: statements that `is_one_shape` holds for one, one address, or one remote method.
/// A database span without a statement is taken to be of the other's when it has the name of its operation.
pub(crate) fn are_same_request<'a>(a: &'a Span, b: &'a Span, is_one_shape: impl Fn(&'a str, &'a str) -> bool) -> bool {
    match (query_text(a), query_text(b)) {
        (Some(one), Some(other)) => one == other || is_one_shape(one, other),
        (Some(text), None) => is_database(b) && first_word(text).eq_ignore_ascii_case(first_word(&b.name)),
        (None, Some(text)) => is_database(a) && first_word(text).eq_ignore_ascii_case(first_word(&a.name)),
        (None, None) => {
            let same_url = a.facts.url.is_some() && a.facts.url == b.facts.url;
            let method = |span: &'a Span| (&span.facts.rpc_service, &span.facts.rpc_method);
            same_url || a.facts.rpc_method.is_some() && method(a) == method(b)
        }
    }
}

/// True if two calls over HTTP or to a remote method, neither a query, are one call that two libraries report:
/// siblings of two scopes that start together and share most of the shorter one's time, or one inside the other.
/// `above` are the spans above `span`. A gRPC call and the HTTP request that carries it are one too.
pub(crate) fn is_same_remote_call(known: &Span, span: &Span, above: &HashSet<SpanId>, limits: Limits) -> bool {
    let is_over = |a: &Span, b: &Span| a.facts.rpc_method.is_some() && carries(b);
    let is_same_question =
        are_same_request(known, span, |_, _| false) && has_one_method(known, span) || is_over(known, span);
    if !is_same_question || is_database(known) || is_database(span) {
        return false;
    }
    if above.contains(&known.span_id) {
        return known.start_ns <= span.start_ns && span.start_ns < known.end_ns.max(known.start_ns.saturating_add(1));
    }
    known.parent_id == span.parent_id
        && known.scope != span.scope
        && span.start_ns.abs_diff(known.start_ns) <= limits.gap_ns_max.unsigned_abs()
        && overlap_share(known, span) >= limits.overlap_share_min
}

/// How close two spans of siblings must be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Between their starts, nanoseconds.
    pub(crate) gap_ns_max: i64,
    /// Of the shorter one's time.
    pub(crate) overlap_share_min: f64,
}

/// True if an HTTP request carries remote calls: its address is that of a method, which gRPC sends as `POST`.
fn carries(span: &Span) -> bool {
    let facts = &span.facts;
    facts.rpc_method.is_none()
        && facts.http_method.as_deref() == Some("POST")
        && facts.url.as_deref().is_none_or(is_method)
}

/// `/shop.v1.Cart/Add`.
fn is_method(url: &str) -> bool {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let mut parts = path.rsplit('/');
    let (method, service) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    !method.is_empty() && service.contains('.') && !method.contains('.')
}

fn has_one_method(a: &Span, b: &Span) -> bool {
    let methods = (&a.facts.http_method, &b.facts.http_method);
    matches!(methods, (None, _) | (_, None)) || methods.0 == methods.1
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::Trace;
    use narrows_testkit::spans::{SpanBuilder, client, database, internal, query, server};

    use super::*;

    const LIMITS: Limits = Limits { gap_ns_max: 1_000_000, overlap_share_min: 0.9 };

    fn siblings(a: SpanBuilder, b: SpanBuilder) -> Trace {
        server("shop", "GET /").at(0.0, 90.0).child(a).child(b).trace(1)
    }

    #[test]
    fn calls_ask_the_same_when_their_texts_have_one_shape() {
        let same = |a, b| {
            let trace = siblings(a, b);
            are_same_request(&trace.spans[1], &trace.spans[2], |one, other| one.replace("%(b)s", "%s") == other)
        };
        assert!(same(query("SELECT a FROM t WHERE b = %(b)s"), query("SELECT a FROM t WHERE b = %s")));
        assert!(!same(query("SELECT a FROM t"), query("SELECT b FROM t")));
        assert!(same(query("SELECT a FROM t"), database("SELECT shop")));
        assert!(same(database("select"), query("SELECT a FROM t")));
        assert!(!same(query("SELECT a FROM t"), database("connect")));
        assert!(same(client("GET").url("http://a/x"), client("GET /x").url("http://a/x")));
        assert!(!same(client("GET").url("http://a/x"), client("GET").url("http://a/y")));
        assert!(!same(client("call"), internal("call")));
        let grpc = |method: &str| client("grpc").remote("shop.v1.Cart", method);
        assert!(same(grpc("Add"), grpc("Add")));
        assert!(!same(grpc("Add"), grpc("Remove")));
    }

    #[test]
    fn overlap_is_a_share_of_the_shorter() {
        let trace =
            server("shop", "GET /").at(0.0, 10.0).child(client("a").at(8.0, 4.0)).child(client("b").at(30.0, 0.0));
        let trace = trace.trace(1);
        assert_eq!(overlap_share(&trace.spans[0], &trace.spans[1]), 0.5);
        assert_eq!(overlap_share(&trace.spans[0], &trace.spans[2]), 0.0);
    }

    #[test]
    fn two_libraries_report_one_remote_call() {
        let get = |scope: &str| client("GET").url("http://stock/parts/7").scope(scope);
        let is_one = |trace: &Trace, above: bool| {
            let ids = if above { HashSet::from([trace.spans[1].span_id]) } else { HashSet::new() };
            is_same_remote_call(&trace.spans[1], &trace.spans[2], &ids, LIMITS)
        };
        let beside = |a: SpanBuilder, b: SpanBuilder| is_one(&siblings(a, b), false);
        assert!(beside(get("requests").at(5.0, 9.0), get("urllib3").at(5.4, 8.3)));
        assert!(!beside(get("requests").at(5.0, 9.0), get("requests").at(5.4, 8.3)), "one library, side by side");
        assert!(!beside(get("requests").at(5.0, 9.0), get("urllib3").at(6.1, 7.9)), "too late");
        assert!(!beside(get("requests").at(5.0, 0.5), get("urllib3").at(5.6, 0.5)), "one after the other");
        let other = || client("GET").url("http://stock/parts/8").scope("urllib3");
        assert!(!beside(get("requests").at(5.0, 9.0), other().at(5.1, 8.0)), "another part");
        let nested = |outer: SpanBuilder, inner: SpanBuilder| {
            is_one(&server("shop", "GET /").at(0.0, 90.0).child(outer.child(inner)).trace(1), true)
        };
        assert!(nested(get("requests").at(5.0, 9.0), get("urllib3").at(7.0, 6.0)));
        assert!(!nested(get("requests").at(5.0, 9.0), other().at(7.0, 6.0)), "what it asks for itself");
        let post =
            |url: &str| client("POST").url(url).scope("http2").facts(|facts| facts.http_method = Some("POST".into()));
        let add = || client("shop.v1.Cart/Add").remote("shop.v1.Cart", "Add").at(5.0, 9.0);
        assert!(nested(add(), post("http://cart:1/shop.v1.Cart/Add").at(5.1, 8.0)));
        assert!(!nested(add(), post("http://cart:1/login").at(5.1, 8.0)));
    }
}
