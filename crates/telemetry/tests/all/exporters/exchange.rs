//! The exchange of every program: it requests `/hello…` from itself, which returns 200, and `/boom`, which returns 500.

use narrows_model::trace::{Span, SpanKind};
use narrows_telemetry::otlp::convert::EXCEPTIONS;

use super::collecting::Collection;

pub(crate) const SERVICE: &str = "exporter";

/// In what the programs differ.
pub(crate) struct Expectation {
    /// The routes that the server's spans name, where its library knows routes.
    pub(crate) routes: Option<[&'static str; 2]>,
    /// The type of the exception that `/boom` records.
    pub(crate) exception: Option<&'static str>,
}

/// Both requests are there as a client's span and, below it, a server's, with what they were about.
pub(crate) fn check(collected: &Collection, protocol: &str, expected: &Expectation) {
    collected.is_whole();
    let of_kind = |kind| collected.spans.iter().filter(move |span| span.kind == kind);
    for (i, (path, status)) in [("/hello", 200), ("/boom", 500)].into_iter().enumerate() {
        let said = format!("{path} over {protocol}: {:#?}", collected.spans);
        let client = of_kind(SpanKind::Client).find(|span| span.facts.http_status == Some(status)).expect(&said);
        let server = of_kind(SpanKind::Server).find(|span| span.parent_id == Some(client.span_id)).expect(&said);
        assert_eq!(server.trace_id, client.trace_id, "{said}");
        assert_eq!(server.facts.http_status, Some(status), "{said}");
        for span in [client, server] {
            assert_eq!((span.service.as_str(), span.facts.http_method.as_deref()), (SERVICE, Some("GET")), "{said}");
            assert!(span.facts.url.as_deref().is_some_and(|url| url.contains(path)), "{said}");
            assert!(span.end_ns > span.start_ns && span.weight == 1.0, "{said}");
        }
        if let Some(routes) = expected.routes {
            assert_eq!(server.facts.http_route.as_deref(), Some(routes[i]), "{said}");
        }
    }
    if let Some(exception) = expected.exception {
        let said = format!("{exception} over {protocol}: {:#?}", collected.spans);
        assert!(collected.spans.iter().any(|span| recorded(span, exception)), "{said}");
    }
}

fn recorded(span: &Span, exception: &str) -> bool {
    let kept = span.attributes.get(EXCEPTIONS).and_then(|kept| kept.as_array());
    kept.is_some_and(|kept| kept.iter().any(|one| one["type"] == exception && one["message"] == "boom"))
}
