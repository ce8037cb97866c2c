//! Requests from outside, with the time that each spent on dependencies without spans.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::trace::{Span, SpanKind};

use crate::critical_path::category::{Names, is_connecting};
use crate::critical_path::{Role, TimedForest, by_trace};
use crate::exemplars::clipped;
use crate::read::Reading;
use crate::read::calls::Handled;
use crate::read::requests::{is_database, query_text};

/// Maximum characters of a dependency's name.
const NAME_CHARS_MAX: usize = 80;
/// Maximum spans examined to find out whether a service responded to a call.
const BELOW_MAX: usize = 64;

/// A request with its time on each dependency.
pub(super) struct RequestDependencies<'r> {
    pub(super) handled: &'r Handled<'r>,
    /// Time and calls by name of the dependency.
    pub(super) spent: BTreeMap<String, DependencyTime<'r>>,
}

/// One request's time on one dependency.
#[derive(Default)]
pub(super) struct DependencyTime<'r> {
    /// Time on the critical path, nanoseconds.
    pub(super) ns: f64,
    /// The calls, in order of their end.
    pub(super) calls: Vec<&'r Span>,
}

/// Requests from outside, by service and operation.
pub(super) fn by_operation<'r>(reading: &'r Reading<'r>) -> BTreeMap<(&'r str, &'r str), Vec<RequestDependencies<'r>>> {
    let names = Names::new(reading.trial);
    let traces = reading.trial.traces.iter();
    let traced: BTreeSet<&str> = traces.flat_map(|trace| &trace.spans).map(|span| span.service.as_str()).collect();
    let mut found: BTreeMap<(&str, &str), Vec<RequestDependencies<'r>>> = BTreeMap::new();
    for (forest, requests) in by_trace(reading) {
        let tree = TimedForest::new(forest);
        for (service, operation, handled) in requests {
            let entry = handled.request.entry;
            let Some(at) = tree.find(entry.span_id).filter(|at| tree.parent(*at).is_none()) else { continue };
            if entry.kind == SpanKind::Server {
                let dependencies = Dependencies { trial: reading.trial, names: &names, traced: &traced, tree: &tree };
                let spent = dependencies.spent(at);
                found.entry((service, operation)).or_default().push(RequestDependencies { handled, spent });
            }
        }
    }
    found
}

/// The dependencies without spans in one trace.
struct Dependencies<'t, 'r> {
    trial: &'r TrialEvidence,
    names: &'t Names,
    /// Services that sent spans.
    traced: &'t BTreeSet<&'r str>,
    tree: &'t TimedForest<'r>,
}

impl<'r> Dependencies<'_, 'r> {
    fn spent(&self, entry: usize) -> BTreeMap<String, DependencyTime<'r>> {
        let mut known: BTreeMap<usize, Option<String>> = BTreeMap::new();
        let mut spent: BTreeMap<String, DependencyTime<'r>> = BTreeMap::new();
        for section in self.tree.path(entry).sections {
            let is_first = !known.contains_key(&section.span);
            let name = known.entry(section.span).or_insert_with(|| self.dependency(section.span));
            let Some(name) = name.as_ref() else { continue };
            let sum = spent.entry(name.clone()).or_default();
            sum.ns += section.end_ns.saturating_sub(section.start_ns).max(0) as f64;
            if is_first {
                sum.calls.push(self.tree.span(section.span));
            }
        }
        spent
    }

    /// Name of the dependency that a span calls, if only the caller has a span of the call.
    fn dependency(&self, at: usize) -> Option<String> {
        let span = self.tree.span(at);
        let is_query = query_text(span).is_some() || self.carries_query(at);
        let is_message = span.facts.messaging_system.is_some() || span.facts.messaging_destination.is_some();
        // The caller did not wait for its end.
        if self.tree.placed(at).role == Role::Outlives {
            return None;
        }
        if span.kind != SpanKind::Client || is_query || is_message || is_connecting(span) || self.has_response_span(at)
        {
            return None;
        }
        let name = self.name(at);
        (!self.traced.contains(name.as_str())).then_some(name)
    }

    /// Name in the trial, else the address, else the caller's name for it.
    fn name(&self, at: usize) -> String {
        let span = self.tree.span(at);
        let is_outside = self.trial.reached_at(span.facts.server_port).is_none() && !is_database(span);
        let address = span.facts.server_address.as_ref().filter(|address| is_outside && !address.is_empty());
        address.map_or_else(|| self.names.callee(self.tree, at), |address| clipped(address, NAME_CHARS_MAX))
    }

    /// Whether the span carries a query of a span above it in the same service.
    fn carries_query(&self, at: usize) -> bool {
        let service = &self.tree.span(at).service;
        let above = std::iter::successors(self.tree.parent(at), |at| self.tree.parent(*at));
        let mut own = above.map(|at| self.tree.span(at)).take_while(|span| span.service == *service);
        own.any(|span| query_text(span).is_some())
    }

    /// Whether a span of another service, or a server span, is below it.
    fn has_response_span(&self, at: usize) -> bool {
        let service = &self.tree.span(at).service;
        let mut open: Vec<u32> = self.tree.children(at).to_vec();
        let mut seen = 0;
        while let Some(child) = open.pop() {
            let below = self.tree.span(child as usize);
            seen += 1;
            if below.service != *service || below.kind == SpanKind::Server || seen > BELOW_MAX {
                return true;
            }
            open.extend(self.tree.children(child as usize));
        }
        false
    }
}
