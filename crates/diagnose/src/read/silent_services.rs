//! Services that ran and that no span shows, or whose spans do not join those of their callers.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use narrows_model::run::sidecar_of;
use narrows_model::trace::{Span, SpanId, SpanKind, TraceId};

use crate::read::Reading;
use crate::read::programs::{is_database_program, is_proxy_program, is_store_program};
use crate::read::requests::is_database;

/// Traces below which the absence of a service from them means nothing.
const TRACES_MIN: usize = 20;
/// Libraries that may report one call, each around the next, and the span around them all.
const STACKED_MAX: usize = 4;

/// Services without any span, except databases, message brokers, proxies and sidecars, which send none anyway.
pub(crate) fn silent_services<'a>(reading: &Reading<'a>) -> Vec<&'a str> {
    let trial = reading.trial;
    if trial.traces.len() < TRACES_MIN {
        return Vec::new();
    }
    let spans = || trial.traces.iter().flat_map(|trace| &trace.spans);
    let speaking: BTreeSet<&str> = spans().map(|span| span.service.as_str()).collect();
    let asked_as_database: BTreeSet<u16> =
        spans().filter(|span| is_database(span)).filter_map(|span| span.facts.server_port).collect();
    let is_store = |service: &str| {
        let mut instances = trial.services.iter().filter(|instance| instance.service == service);
        instances.any(|instance| asked_as_database.iter().any(|port| instance.is_reached_at(*port)))
    };
    let mut services = trial.service_names();
    // A proxy only passes on what the spans of others show.
    let is_passage = |service: &str| is_proxy_program(trial, service) || sidecar_of(service).is_some();
    let is_expected = |service: &str| !is_store(service) && !is_store_program(trial, service) && !is_passage(service);
    services.retain(|service| !speaking.contains(service) && is_expected(service));
    services
}

/// Databases that ran while no span of any service shows a database.
pub(crate) fn unseen_databases<'a>(reading: &Reading<'a>) -> Vec<&'a str> {
    let trial = reading.trial;
    let mut spans = trial.traces.iter().flat_map(|trace| &trace.spans);
    if trial.traces.len() < TRACES_MIN || spans.any(is_database) {
        return Vec::new();
    }
    let mut services = trial.service_names();
    services.retain(|service| is_database_program(trial, service));
    services
}

/// Which services of the trial the calls go to, and whether they have server spans.
#[derive(Debug)]
pub(crate) struct Callers<'a> {
    /// The services that listen at each port.
    ports: BTreeMap<u16, BTreeSet<&'a str>>,
    /// All services.
    names: BTreeSet<&'a str>,
    /// Calls to each service: how many, and how many of them have a server span.
    calls: BTreeMap<&'a str, (usize, usize)>,
    /// Services that begin traces.
    beginning: BTreeSet<&'a str>,
}

impl<'a> Callers<'a> {
    pub(crate) fn new(reading: &Reading<'a>) -> Self {
        let mut ports: BTreeMap<u16, BTreeSet<&'a str>> = BTreeMap::new();
        for instance in &reading.trial.services {
            for port in instance.stand_in_ports.iter().chain([&instance.port]) {
                ports.entry(*port).or_default().insert(&instance.service);
            }
        }
        let names = reading.trial.service_names().into_iter().collect();
        let mut callers = Self { ports, names, calls: BTreeMap::new(), beginning: BTreeSet::new() };
        let served = served_calls(reading);
        for request in reading.requests {
            if request.entry.parent_id.is_none() {
                callers.beginning.insert(&request.entry.service);
            }
            let queries = request.queries.iter().map(|query| query.span);
            for call in request.other_calls.iter().copied().chain(queries) {
                let has_server_span = served.contains(&(request.trace.id, call.span_id));
                callers.count(call, has_server_span);
            }
        }
        callers
    }

    fn count(&mut self, call: &Span, has_server_span: bool) {
        let called: BTreeSet<&'a str> = self.called(call).collect();
        for service in called {
            let (calls, served) = self.calls.entry(service).or_default();
            *calls += 1;
            *served += usize::from(has_server_span);
        }
    }

    /// The services that a call goes to: by its port, or by the name it gives.
    fn called(&self, call: &Span) -> impl Iterator<Item = &'a str> {
        let facts = &call.facts;
        let said = [&facts.server_address, &facts.peer_service].into_iter().flatten();
        let named = said.filter_map(|name| self.names.get(name.as_str()).copied());
        let listening = facts.server_port.and_then(|port| self.ports.get(&port)).into_iter().flatten().copied();
        listening.chain(named)
    }

    /// True if a call goes to this service.
    pub(crate) fn goes_to(&self, call: &Span, service: &str) -> bool {
        self.called(call).any(|called| called == service)
    }

    /// True if any span is a call to it.
    pub(crate) fn have_called(&self, service: &str) -> bool {
        self.calls.contains_key(service)
    }

    /// True if this share of the calls to it, at least, has no server span, while it begins traces itself.
    pub(crate) fn are_torn_from(&self, service: &str, share: f64) -> bool {
        let (calls, served) = self.calls.get(service).copied().unwrap_or_default();
        let unserved = calls.saturating_sub(served) as f64;
        calls > 0 && unserved >= share * calls as f64 && self.beginning.contains(service)
    }
}

/// The calls that have a server span: the parent of each request and, where stacked libraries report one call, the call
/// around it.
fn served_calls(reading: &Reading<'_>) -> HashSet<(TraceId, SpanId)> {
    let mut served = HashSet::new();
    for request in reading.requests {
        let (forest, trace_id) = (request.forest, request.trace.id);
        let around = |call: usize| forest.parent(call).filter(|_| forest.span(call).kind == SpanKind::Client);
        let parent = forest.find(request.entry.span_id).and_then(|at| forest.parent(at));
        let calls = std::iter::successors(parent, |call| around(*call));
        served.extend(calls.take(STACKED_MAX).map(|call| (trace_id, forest.span(call).span_id)));
    }
    served
}
