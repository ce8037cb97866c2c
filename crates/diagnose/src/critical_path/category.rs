//! Category of a span's own time on the path: work, a wait for a connection, or a call to something.
//!
//! A service that is called is named as the trial names it: by the port that is called when a service of the trial
//! listens there, else by the spans it sent itself, else by what the caller calls it.

use std::collections::HashMap;

use narrows_model::breakdown::{OwnTime, TimeCategory};
use narrows_model::evidence::TrialEvidence;
use narrows_model::trace::{Span, SpanKind};

use super::timed_forest::TimedForest;
use super::times::{Role, is_call};
use super::walk::{CriticalPath, PathPosition};
use crate::exemplars::clipped;
use crate::read::requests::is_database;

/// Characters of a dependency's name at most.
const NAME_CHARS_MAX: usize = 80;
/// Endings of the names of spans that take or open a connection.
const CONNECTING: [&str; 10] = [
    "connect",
    "pool.acquire",
    "pool.getconnection",
    "datasource.getconnection",
    "pool.checkout",
    "acquire connection",
    "dns.lookup",
    "http.dns",
    "tls.handshake",
    "reset_session",
];

/// A service's own time, before it is divided.
pub(super) const OWN: TimeCategory = TimeCategory::Own(OwnTime::NotSampled);

/// Prefix of the names of DNS look-ups in .NET; the name that is looked up follows.
const DOTNET_LOOKUP: &str = "dns lookup";

/// Names of the call targets in a trial.
#[derive(Debug)]
pub(crate) struct Names {
    by_port: HashMap<u16, String>,
    /// The store that reports its throughput, when there is one only.
    store: Option<String>,
}

impl Names {
    pub(crate) fn new(trial: &TrialEvidence) -> Self {
        let ports = trial.services.iter().flat_map(|one| one.stand_in_ports.iter().copied().chain([one.port]));
        let named = |port| Some((port, trial.reached_at(Some(port))?.service.clone()));
        let by_port = ports.filter_map(named).collect();
        let reported = trial.throughput();
        let store = reported.first().map(|partition| partition.service.clone());
        let store = store.filter(|name| reported.iter().all(|partition| partition.service == *name));
        Self { by_port, store }
    }

    /// Target of a failed attempt; if it carries a query, the database.
    pub(super) fn refuser(&self, tree: &TimedForest<'_>, attempt: usize) -> String {
        let carries = |parent: &usize| {
            let (span, attempt) = (tree.span(*parent), tree.span(attempt));
            span.service == attempt.service && is_database(span)
        };
        self.callee(tree, tree.parent(attempt).filter(carries).unwrap_or(attempt))
    }

    /// Target of this span's call.
    pub(crate) fn callee(&self, tree: &TimedForest<'_>, at: usize) -> String {
        let span = tree.span(at);
        let by_port = || span.facts.server_port.and_then(|port| self.by_port.get(&port)).cloned();
        let by_store = || self.store.clone().filter(|_| is_database(span));
        let is_callee = |child: &&u32| is_call(span, tree.span(**child as usize));
        let by_child =
            || tree.children(at).iter().find(is_callee).map(|child| tree.span(*child as usize).service.clone());
        let name = by_port().or_else(by_store).or_else(by_child).unwrap_or_else(|| called(span));
        clipped(&name, NAME_CHARS_MAX)
    }
}

/// The caller's name for the other side.
fn called(span: &Span) -> String {
    let facts = &span.facts;
    let host = facts.url.as_deref().and_then(|url| url.split_once("://")).map(|(_, rest)| rest);
    let host = host.and_then(|rest| rest.split(['/', '?', '#']).next()).map(str::to_owned);
    let known = [&facts.db_system, &facts.peer_service, &facts.messaging_destination, &facts.messaging_system];
    let known = known.into_iter().chain([&facts.rpc_service, &facts.server_address, &host]);
    known.flatten().find(|name| !name.is_empty()).cloned().unwrap_or_else(|| span.name.clone())
}

/// True if a span stands for taking or making a connection.
pub(crate) fn is_connecting(span: &Span) -> bool {
    let name = span.name.to_ascii_lowercase();
    let is_named = CONNECTING.iter().any(|ending| name.ends_with(ending)) || name.starts_with(DOTNET_LOOKUP);
    span.facts.db_query.is_none() && is_named
}

/// True if a span's own time is a service at work, as far as the trace says.
pub(crate) fn is_work(span: &Span) -> bool {
    !is_database(span) && !matches!(span.kind, SpanKind::Client | SpanKind::Producer)
}

/// The category of each span on a request's path.
pub(super) fn categories(tree: &TimedForest<'_>, path: &CriticalPath, names: &Names) -> HashMap<usize, TimeCategory> {
    let mut known: HashMap<usize, TimeCategory> = HashMap::new();
    let Some(first) = path.standings.first() else { return known };
    let service = &tree.span(first.span).service;
    known.insert(first.span, OWN);
    for standing in
        path.standings.iter().skip(1).filter(|standing| matches!(standing.place, PathPosition::OnPath { .. }))
    {
        let above = tree.parent(standing.span).and_then(|parent| Some((parent, known.get(&parent)?.clone())));
        let Some((parent, above)) = above else { continue };
        let category = category(tree, standing.span, parent, above, service, names);
        known.insert(standing.span, category);
    }
    known
}

fn category(
    tree: &TimedForest<'_>,
    at: usize,
    parent: usize,
    above: TimeCategory,
    service: &str,
    names: &Names,
) -> TimeCategory {
    let (span, caller) = (tree.span(at), tree.span(parent));
    let is_new_service = span.service != caller.service || is_call(caller, span);
    if tree.placed(at).role == Role::Outlives {
        return above;
    }
    if is_connecting(span) {
        return TimeCategory::Pool;
    }
    if is_new_service && is_work(span) {
        return if span.service == service {
            OWN
        } else {
            TimeCategory::Dependency(clipped(&span.service, NAME_CHARS_MAX))
        };
    }
    let is_carried = !is_new_service && is_database(caller);
    if is_work(span) || is_carried { above } else { TimeCategory::Dependency(names.callee(tree, at)) }
}
