//! Errors of services or databases that name one reason, and how many requests meet them.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::finding::Exemplar;
use narrows_model::trace::{Span, Trace, TraceId};

use crate::exemplars::{EXEMPLARS_MAX, exemplar};
use crate::read::Reading;
use crate::read::errors::deepest;

/// Report of the reason by a span: its name, and the text of the error if there is one; `None` if the span reports nothing
/// or something else.
pub(crate) type Reports = fn(&Span) -> Option<(&'static str, Option<&str>)>;

/// Fewest requests that must show a reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Least {
    /// Traces that show it.
    pub(crate) traces: usize,
    /// Share of all requests, 0 to 1.
    pub(crate) share: f64,
}

/// Requests that met an error of a service for this reason.
pub(crate) struct ErrorReports<'a> {
    pub(crate) name: &'static str,
    /// The text of one, as it was recorded.
    pub(crate) text: Option<&'a str>,
    /// A span that reports it.
    pub(crate) span: &'a Span,
    /// Of all requests, 0 to 1.
    pub(crate) share: f64,
    /// Services whose spans report it.
    pub(crate) services: BTreeSet<&'a str>,
    /// Each once.
    traces: BTreeMap<TraceId, &'a Trace>,
}

impl<'a> ErrorReports<'a> {
    /// The services that report it in at least so many traces, and to at least such a share of all requests. The deepest
    /// span of a trace that reports it counts.
    pub(crate) fn by_service(reading: &Reading<'a>, reports: Reports, least: Least) -> BTreeMap<&'a str, Self> {
        Self::by_place(reading, reports, |span| &span.service, least)
    }

    /// The same by the place that a reporting span names.
    pub(crate) fn by_place(
        reading: &Reading<'a>,
        reports: Reports,
        place: impl Fn(&'a Span) -> &'a str,
        least: Least,
    ) -> BTreeMap<&'a str, Self> {
        let ids: BTreeSet<TraceId> = reading.requests.iter().map(|request| request.trace.id).collect();
        let traces: Vec<&Trace> = reading.trial.traces.iter().filter(|trace| ids.contains(&trace.id)).collect();
        let all: f64 = traces.iter().map(|trace| trace.weight).sum();
        let mut found: BTreeMap<&str, Self> = BTreeMap::new();
        for trace in traces {
            for span in deepest(trace, |span| reports(span).is_some()) {
                let Some((name, text)) = reports(span) else { continue };
                let new = || Self { name, text, span, share: 0.0, services: BTreeSet::new(), traces: BTreeMap::new() };
                let known = found.entry(place(span)).or_insert_with(new);
                known.services.insert(&span.service);
                known.text = known.text.or(text);
                known.traces.insert(trace.id, trace);
            }
        }
        for reported in found.values_mut() {
            reported.share = reported.traces.values().map(|trace| trace.weight).sum::<f64>() / all.max(1.0);
        }
        found.retain(|_, reported| reported.traces.len() >= least.traces && reported.share >= least.share);
        found
    }

    /// Traces that show it.
    pub(crate) fn count(&self) -> usize {
        self.traces.len()
    }

    pub(crate) fn exemplars(&self, reports: Reports) -> Vec<Exemplar> {
        let shown = self.traces.values().take(EXEMPLARS_MAX);
        shown.map(|trace| exemplar(trace, deepest(trace, |span| reports(span).is_some()))).collect()
    }
}
