//! `dns`: requests wait while a service looks up the addresses of names.
//!
//! A look-up precedes a new connection, so it costs little if connections are kept open. It is found by look-up spans
//! on the critical path of external requests: `dns.lookup` in Node.js, `http.dns` in Go, elsewhere any span with the
//! attribute `dns.question.name`. Without such spans, the sockets of a service show how many look-ups are under way
//! (`by_sockets.rs`). Without these, the metric `dns.lookup.duration` gives the time spent in look-ups, but not whether a
//! request waits for it.

use std::collections::{BTreeMap, HashMap};

use narrows_model::finding::evidence::dns::{self as evidence, DnsSign};
use narrows_model::finding::{Confidence, Finding, FindingKind};
use narrows_model::trace::{Span, SpanKind, Trace};

use crate::Detector;
use crate::critical_path::{Role, TimedForest, by_trace};
use crate::exemplars::{EXEMPLARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::calls::went_wrong;
use crate::read::periods::period_of;
use crate::read::pools::mean_of;
use crate::stats::{finite, weighted_median};
use crate::thresholds::rule_thresholds;

mod by_sockets;
mod words;

rule_thresholds! {
    /// Requests that must show a look-up.
    dns_requests: usize = 5;
    /// Share of the time of all requests that look-ups must take.
    dns_share: f64 = 0.10;
    /// Time per request that look-ups must take, nanoseconds.
    dns_ns: f64 = 2e6;
}

/// See the module.
#[derive(Debug)]
pub struct Dns;

const QUESTION: &str = "dns.question.name";
/// Names of look-up spans without that attribute.
const SPANS: [&str; 2] = ["dns.lookup", "http.dns"];
/// Prefix of .NET's look-up spans.
const SPAN_PREFIX: &str = "DNS lookup";
const METRIC: &str = "dns.lookup.duration";
const NAMES_MAX: usize = 3;
/// Maximum characters of a looked-up name.
const NAME_CHARS_MAX: usize = 80;

impl Detector for Dns {
    fn kind(&self) -> FindingKind {
        FindingKind::Dns
    }

    fn version(&self) -> u32 {
        2
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let waits = Waits::of(reading);
        let by_spans: Vec<Finding> =
            waits.iter().filter_map(|(place, wait)| wait.finding(self, reading, place.0, place.1)).collect();
        let services = reading.trial.service_names().into_iter();
        let has_spans = |service: &str| waits.keys().any(|(of, _)| *of == service);
        let others = services.filter(|service| !has_spans(service));
        let by_others = others
            .filter_map(|service| by_sockets::finding(reading, service).or_else(|| by_metric(self, reading, service)));
        by_spans.into_iter().chain(by_others.collect::<Vec<_>>()).collect()
    }
}

fn is_lookup(span: &Span) -> bool {
    span.attributes.contains_key(QUESTION) || SPANS.contains(&span.name.as_str()) || span.name.starts_with(SPAN_PREFIX)
}

/// The service that looks up a name, and the operation whose requests wait for it.
type Place<'r> = (&'r str, &'r str);

/// Waits of one operation's requests for one service's look-ups.
#[derive(Default)]
struct Waits<'r> {
    /// Look-up time on critical paths, weighted by trace, nanoseconds.
    waited_ns: f64,
    /// Look-ups on critical paths, with the weights of their traces.
    lookups: Vec<(&'r Span, f64)>,
    shown: Vec<(&'r Trace, &'r Span)>,
    requests: usize,
    /// Latency of all requests of that operation, weighted by trace, nanoseconds.
    whole_ns: f64,
    weight: f64,
}

impl<'r> Waits<'r> {
    fn of(reading: &Reading<'r>) -> BTreeMap<Place<'r>, Self> {
        let mut found: BTreeMap<Place<'r>, Self> = BTreeMap::new();
        let mut whole: HashMap<&str, (f64, f64)> = HashMap::new();
        for (forest, requests) in by_trace(reading) {
            let (tree, trace) = (TimedForest::new(forest), forest.trace());
            for (_, operation, handled) in requests {
                let entry = handled.request.entry;
                let Some(at) = tree.find(entry.span_id).filter(|at| tree.parent(*at).is_none()) else { continue };
                if entry.kind != SpanKind::Server {
                    continue;
                }
                let of_operation = whole.entry(operation).or_default();
                *of_operation = (of_operation.0 + handled.latency_ns() * trace.weight, of_operation.1 + trace.weight);
                let lookups = lookups_on_path(&tree, at);
                let mut services: Vec<&str> = Vec::new();
                for (span, waited_ns) in lookups {
                    let wait = found.entry((&span.service, operation)).or_default();
                    wait.waited_ns += waited_ns * trace.weight;
                    wait.lookups.push((span, trace.weight));
                    if !services.contains(&span.service.as_str()) {
                        services.push(&span.service);
                        wait.requests += 1;
                        wait.shown.push((trace, span));
                    }
                }
            }
        }
        for ((_, operation), wait) in &mut found {
            (wait.whole_ns, wait.weight) = whole.get(operation).copied().unwrap_or_default();
        }
        found
    }

    fn share(&self) -> f64 {
        if self.whole_ns > 0.0 { finite(self.waited_ns / self.whole_ns).min(1.0) } else { 0.0 }
    }

    fn finding(&self, detector: &Dns, reading: &Reading<'_>, service: &str, operation: &str) -> Option<Finding> {
        let thresholds = &reading.thresholds.dns;
        let request_ns = self.waited_ns / self.weight.max(f64::MIN_POSITIVE);
        let is_found = self.requests >= thresholds.dns_requests
            && self.share() >= thresholds.dns_share
            && request_ns >= thresholds.dns_ns;
        let all: f64 = self.lookups.iter().map(|(_, weight)| weight).sum();
        let failed = self.lookups.iter().filter(|(span, _)| went_wrong(span)).map(|(_, weight)| weight).sum::<f64>();
        let evidence = || evidence::Dns {
            sign: DnsSign::Spans,
            names: self.names(),
            per_request: finite(all / self.weight.max(f64::MIN_POSITIVE)),
            request_ns: finite(request_ns),
            lookup_ns: finite(weighted_median(
                self.lookups.iter().map(|(span, weight)| (span.duration_ns() as f64, *weight)).collect(),
            )),
            failed_share: Some(finite(failed / all.max(f64::MIN_POSITIVE))),
            requests: self.requests,
            sockets: None,
        };
        is_found.then(|| Finding {
            resource: (*service).into(),
            operation: Some((*operation).into()),
            cost_share: self.share(),
            confidence: Confidence::High,
            exemplars: self.shown.iter().take(EXEMPLARS_MAX).map(|(trace, span)| exemplar(trace, [*span])).collect(),
            ..Finding::new(evidence(), detector.version())
        })
    }

    fn names(&self) -> Vec<String> {
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for (span, weight) in &self.lookups {
            if let Some(name) = span.attributes.get(QUESTION).and_then(|name| name.as_str()) {
                *counts.entry(name).or_default() += weight;
            }
        }
        let mut counts: Vec<(&str, f64)> = counts.into_iter().collect();
        counts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        counts.into_iter().take(NAMES_MAX).map(|(name, _)| clipped(name, NAME_CHARS_MAX)).collect()
    }
}

/// Look-ups that a request waits for, with the wait for each in nanoseconds.
fn lookups_on_path<'r>(tree: &TimedForest<'r>, entry: usize) -> Vec<(&'r Span, f64)> {
    let mut waited: BTreeMap<usize, f64> = BTreeMap::new();
    for section in tree.path(entry).sections {
        if is_lookup(tree.span(section.span)) && tree.placed(section.span).role != Role::Outlives {
            *waited.entry(section.span).or_default() += section.end_ns.saturating_sub(section.start_ns).max(0) as f64;
        }
    }
    waited.into_iter().map(|(at, ns)| (tree.span(at), ns)).collect()
}

/// The finding for the interval where look-ups take the largest share of the requests' time.
fn by_metric(detector: &Dns, reading: &Reading<'_>, service: &str) -> Option<Finding> {
    let thresholds = &reading.thresholds.dns;
    let found = reading.intervals.iter().filter(|interval| interval.rate > 0.0).filter_map(|interval| {
        let within = interval.start_ns..interval.end_ns;
        let (mean_s, count) = mean_of(reading.trial, service, METRIC, &within)?;
        let requests = interval.rate * interval.seconds();
        let request_ns = mean_s * count / requests * 1e9;
        let share = request_ns / interval.service_ns.max(f64::MIN_POSITIVE);
        let evidence = evidence::Dns {
            sign: DnsSign::Metric,
            names: Vec::new(),
            per_request: finite(count / requests),
            request_ns: finite(request_ns),
            lookup_ns: finite(mean_s * 1e9),
            failed_share: None,
            requests: 0,
            sockets: None,
        };
        let is_found = share >= thresholds.dns_share && request_ns >= thresholds.dns_ns;
        is_found.then_some((share, interval, evidence))
    });
    let (share, interval, evidence) = found.max_by(|(a, _, _), (b, _, _)| a.total_cmp(b))?;
    Some(Finding {
        resource: service.into(),
        cost_share: finite(share).min(1.0),
        confidence: Confidence::Low,
        period: period_of(reading.trial, interval.start_ns, interval.end_ns),
        ..Finding::new(evidence, detector.version())
    })
}

#[cfg(test)]
mod tests;
