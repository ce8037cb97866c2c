//! Which service calls which, as traces, ports and sockets show it: the ways by which one thing can hold another back.
//!
//! A service is known by its name. What it calls is known by every name that the call gives it: the service that
//! listens at the port, the service whose server span is below the call, the database's system, the address. So a
//! finding about `postgres` and one about `postgresql` both find their callers. A way that neither shows is not there.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::call_graph::CLIENTS;
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Finding;
use narrows_model::series::names;
use narrows_model::trace::{Forest, Span, SpanKind, hex};

use crate::read::Reading;
use crate::read::servers::connections;

/// Pairs of caller and callee that are kept; what comes later is left out.
const PAIRS_MAX: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Paths<'a> {
    /// Targets that each service calls.
    called: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// The services that requests reach first.
    entrances: BTreeSet<&'a str>,
    /// True if a trace or a socket shows which service calls which, or where requests arrive.
    are_known: bool,
}

impl<'a> Paths<'a> {
    pub(super) fn new(reading: &Reading<'a>) -> Self {
        let mut paths = Self::default();
        let mut pairs: BTreeSet<(&'a str, &'a str)> = BTreeSet::new();
        for request in reading.requests {
            let service = request.entry.service.as_str();
            if request.entry.parent_id.is_none() {
                paths.entrances.insert(service);
            }
            let queries = request.queries.iter().map(|query| query.span);
            for call in queries.chain(request.other_calls.iter().copied()) {
                pairs.extend(names_by_call(reading.trial, call).map(|called| (service, called)));
            }
            if pairs.len() > PAIRS_MAX {
                break;
            }
        }
        for forest in reading.forests {
            pairs.extend(service_pairs(forest).into_iter().take(PAIRS_MAX.saturating_sub(pairs.len())));
        }
        for edge in &reading.conversations().graph.edges {
            match edge.caller.as_str() {
                names::GENERATOR | CLIENTS => _ = paths.entrances.insert(&edge.callee),
                caller => _ = pairs.insert((caller, &edge.callee)),
            }
        }
        paths.are_known = !paths.entrances.is_empty() || !pairs.is_empty();
        pairs.extend(connections(reading.trial).into_iter().filter(|(from, _)| *from != names::GENERATOR));
        for (service, called) in pairs.into_iter().filter(|(service, called)| service != called) {
            paths.called.entry(service).or_default().insert(called);
        }
        paths
    }

    /// True if a trace or a socket shows which service calls which, or where requests arrive.
    pub(super) fn are_known(&self) -> bool {
        self.are_known
    }

    /// True if any service is shown to call this one.
    pub(super) fn shows_callers_of(&self, called: &str) -> bool {
        self.called.values().any(|names| names.contains(called))
    }

    /// True if requests pass by this one on their way: whether one that arrives there, or anywhere when `from` calls
    /// nothing, needs it for its response.
    pub(super) fn lead_by(&self, from: &str, to: &str) -> bool {
        if self.called.contains_key(from) || self.entrances.contains(from) {
            return self.reaches(from, to);
        }
        self.entrances.iter().any(|entrance| self.reaches(entrance, to))
    }

    /// True if one is the other, or calls it, directly or through others.
    pub(super) fn reaches(&self, from: &str, to: &str) -> bool {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![from];
        while let Some(service) = open.pop() {
            if service == to {
                return true;
            }
            if let Some((known, called)) = self.called.get_key_value(service)
                && seen.insert(known)
            {
                open.extend(called.iter().copied());
            }
        }
        false
    }
}

/// Pairs of services of which a span of the second is below a span of the first.
fn service_pairs<'a>(forest: &'a Forest<'_>) -> BTreeSet<(&'a str, &'a str)> {
    let service = |at: usize| forest.span(at).service.as_str();
    (0..forest.spans().len()).filter_map(|at| Some((service(forest.parent(at)?), service(at)))).collect()
}

/// The names that a call itself gives to what it calls.
fn names_by_call<'a>(trial: &'a TrialEvidence, call: &'a Span) -> impl Iterator<Item = &'a str> {
    let facts = &call.facts;
    let listens = trial.reached_at(facts.server_port).into_iter();
    let said = [&facts.db_system, &facts.server_address, &facts.peer_service];
    listens.map(|instance| instance.service.as_str()).chain(said.into_iter().flatten().map(String::as_str))
}

/// Callees of the example spans of a finding, by all names that are known for it; a server span names its service.
pub(super) fn targets<'a>(finding: &Finding, trial: &'a TrialEvidence) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for exemplar in &finding.exemplars {
        let Some(trace) = trial.traces.iter().find(|trace| hex(&trace.id) == exemplar.trace_id) else { continue };
        let shown: Vec<&Span> =
            trace.spans.iter().filter(|span| exemplar.span_ids.contains(&hex(&span.span_id))).collect();
        for span in &shown {
            names.extend(names_by_call(trial, span));
            let below = trace.spans.iter().filter(|other| other.parent_id == Some(span.span_id));
            names.extend(below.filter(|other| other.service != span.service).map(|other| other.service.as_str()));
            if span.kind == SpanKind::Server {
                names.insert(span.service.as_str());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{client, query, server};
    use narrows_testkit::trial::{FIRST_PORT, TrialBuilder};

    use super::*;
    use crate::thresholds::Thresholds;

    fn with_paths(check: impl FnOnce(&Paths<'_>)) {
        let stock = server("stock", "GET /stock").at(2.0, 5.0).child(query("SELECT a FROM t").to_port(FIRST_PORT + 2));
        let shop = server("shop", "GET /").at(0.0, 9.0).child(client("GET").at(1.0, 7.0).child(stock));
        let trial = TrialBuilder::new("a").service("shop", None).service("stock", None).service("store", None);
        let trial = trial.traces([shop.trace(1), server("mail", "GET /").trace(2)]).build();
        Reading::with(&trial, &Thresholds::default(), |reading| check(&Paths::new(reading)));
    }

    #[test]
    fn a_way_goes_over_services_and_ends_at_every_name_of_a_store() {
        with_paths(|paths| {
            for to in ["shop", "stock", "store", "postgresql"] {
                assert!(paths.reaches("shop", to), "{to}");
            }
            assert!(!paths.reaches("stock", "shop"));
            assert!(!paths.reaches("shop", "mail"));
        });
    }

    #[test]
    fn requests_pass_by_what_serves_them() {
        with_paths(|paths| {
            assert!(paths.lead_by("", "store") && paths.lead_by("", "mail"));
            assert!(paths.lead_by("stock", "store") && !paths.lead_by("mail", "store"));
            assert!(!paths.lead_by("", "search"));
        });
    }

    #[test]
    fn spans_that_are_their_own_parents_end_nowhere() {
        let mut trace = server("a", "GET /").child(server("b", "GET /")).trace(1);
        trace.spans[0].parent_id = Some(trace.spans[1].span_id);
        let trial = TrialBuilder::new("a").traces([trace]).build();
        Reading::with(&trial, &Thresholds::default(), |reading| {
            let paths = Paths::new(reading);
            assert!(paths.reaches("a", "b") && !paths.reaches("b", "a") && !paths.reaches("a", "c"));
        });
    }
}
