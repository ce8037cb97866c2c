//! `traces-without-request`: traces that no request began.
//!
//! The root of a request's trace is a server span, that of a message's a consumer span. A trace whose root is neither
//! is background work (a scheduler, a poll, DDL at start-up), or what a request did in a service whose framework is not
//! instrumented: each of its queries is a trace of its own then, and nothing ties them together.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::caveat::{TracesWithoutRequest as Requestless, TrialCaveat};
use narrows_model::trace::{Span, SpanKind, Trace};
use narrows_model::units;

use super::Trap;
use super::scene::{Scene, example, example_text, name_of, root};

/// Names of roots that are reported.
const NAMES_MAX: usize = 3;

/// See the module.
pub(super) struct TracesWithoutRequest;

impl Trap for TracesWithoutRequest {
    fn id(&self) -> &'static str {
        "traces-without-request"
    }

    fn caveats(&self, scene: &Scene<'_>) -> Vec<TrialCaveat> {
        let serving = scene.spans().filter(|(_, span)| is_request(span)).map(|(_, span)| span.service.as_str());
        let serving: BTreeSet<&str> = serving.collect();
        let mut services: BTreeMap<&str, Vec<(&Trace, &Span)>> = BTreeMap::new();
        for forest in scene.forests {
            let trace = forest.trace();
            if let Some(root) = root(forest).filter(|_| !trace.spans.iter().any(is_request)) {
                services.entry(&root.service).or_default().push((trace, root));
            }
        }
        let all = scene.forests.len();
        let is_many = |traces: &[(&Trace, &Span)]| {
            traces.len() >= scene.thresholds.requestless_traces
                && traces.len() as f64 >= scene.thresholds.requestless_share * all as f64
        };
        let cases = services.into_iter().filter(|(_, traces)| is_many(traces));
        cases.map(|(service, traces)| describe(service, &traces, all, serving.contains(service))).collect()
    }
}

fn is_request(span: &Span) -> bool {
    matches!(span.kind, SpanKind::Server | SpanKind::Consumer)
}

fn describe(service: &str, traces: &[(&Trace, &Span)], all: usize, has_server_spans: bool) -> TrialCaveat {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for (_, root) in traces {
        *names.entry(name_of(root)).or_default() += 1;
    }
    let mut roots: Vec<(String, usize)> = names.into_iter().collect();
    roots.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    roots.truncate(NAMES_MAX);
    let (trace, root) = traces[0];
    TrialCaveat::TracesWithoutRequest(Requestless {
        service: service.to_owned(),
        requestless: traces.len(),
        traces: all,
        roots,
        has_server_spans,
        example: example(trace, &[root]),
    })
}

/// Text of the caveat.
pub(crate) fn text(found: &Requestless) -> String {
    let Requestless { service, requestless, traces, roots, has_server_spans, example } = found;
    let names: Vec<String> = roots.iter().map(|(name, count)| format!("{name:?} ({count})")).collect();
    let advice = if *has_server_spans {
        "That is work beside the requests (a scheduler, a poll, a pool that tests its connections); it uses up part \
         of the number of traces examined. Drop it with a sampler if you do not need it."
    } else {
        "The service sends no server spans at all, so its calls cannot be grouped by request, and repeated queries \
         are not seen: instrument its web framework, or check that the framework's version is one that the \
         instrumentation supports."
    };
    format!(
        "{} of {} traces looked at were started by {service} and hold no request; their first spans are {}. {advice} \
         {}",
        units::count(*requestless as u64),
        units::count(*traces as u64),
        names.join(", "),
        example_text(example)
    )
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{SpanBuilder, client, query, server};

    use super::super::scene::tests::{assert_one, caveats, traces};
    use super::*;

    /// Thirty traces of the one root and so many of the other.
    fn caveats_beside(usual: SpanBuilder, odd: SpanBuilder, count: u32) -> Vec<String> {
        let mut all = traces(&usual);
        all.extend((101..101 + count).map(|number| odd.clone().trace(number)));
        caveats(&TracesWithoutRequest, all)
    }

    fn shop() -> SpanBuilder {
        server("shop", "GET /").child(query("SELECT a FROM t"))
    }

    #[test]
    fn work_beside_the_requests_is_reported() {
        let said = caveats_beside(shop(), query("CREATE TABLE t (a int)").service("shop"), 25);
        assert_one(&said, &["25 of 55 traces", "started by shop", "\"CREATE\" (25)", "work beside the requests"]);
    }

    #[test]
    fn queries_without_their_framework_are_reported() {
        let said = caveats_beside(shop(), query("SELECT b FROM u").service("stock"), 60);
        assert_one(&said, &["60 of 90 traces", "The service sends no server spans", "web framework"]);
    }

    #[test]
    fn requests_and_a_little_background_are_in_order() {
        assert_eq!(caveats_beside(shop(), query("SELECT 1").service("shop"), 3), [""; 0]);
        let caller = client("GET").service("browser").child(server("shop", "GET /"));
        assert_eq!(caveats_beside(shop(), caller, 60), [""; 0], "a client above the server");
    }
}
