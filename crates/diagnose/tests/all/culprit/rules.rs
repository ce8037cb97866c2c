//! Two simple rules to rank services by, to compare with.

use std::collections::BTreeMap;

use narrows_model::evidence::RunEvidence;
use narrows_model::trace::{Span, SpanKind, Trace};

/// Sums by service.
type Sums<'a> = BTreeMap<&'a str, f64>;

/// The service first whose time outside of its calls grew most.
pub(crate) fn by_self_time<'a>(before: &'a RunEvidence, after: &'a RunEvidence) -> Vec<&'a str> {
    ranked(&self_times(before), &self_times(after))
}

/// The service first whose server spans became longer by most, on average.
pub(crate) fn by_server_spans<'a>(before: &'a RunEvidence, after: &'a RunEvidence) -> Vec<&'a str> {
    ranked(&server_means(before), &server_means(after))
}

fn ranked<'a>(before: &Sums<'a>, after: &Sums<'a>) -> Vec<&'a str> {
    let growth = |service: &str| after.get(service).unwrap_or(&0.0) - before.get(service).unwrap_or(&0.0);
    let mut services: Vec<&'a str> = before.keys().copied().collect();
    services.sort_by(|one, other| growth(other).total_cmp(&growth(one)));
    services
}

fn server_spans(run: &RunEvidence) -> impl Iterator<Item = (&Trace, &Span)> {
    let traces = run.trials.iter().flat_map(|trial| &trial.traces);
    traces
        .flat_map(|trace| trace.spans.iter().map(move |span| (trace, span)))
        .filter(|(_, span)| span.kind == SpanKind::Server)
}

fn self_times(run: &RunEvidence) -> Sums<'_> {
    let mut sums = Sums::new();
    for (trace, span) in server_spans(run) {
        *sums.entry(&span.service).or_default() += span.duration_ns() as f64 - called_ns(trace, span);
    }
    sums
}

/// How long at least one call of a span was under way.
fn called_ns(trace: &Trace, span: &Span) -> f64 {
    let mut calls: Vec<(i64, i64)> = trace.children(span.span_id).map(|call| (call.start_ns, call.end_ns)).collect();
    calls.sort_unstable();
    let (mut sum, mut end_ns) = (0, span.start_ns);
    for (start_ns, until_ns) in calls {
        sum += (until_ns - start_ns.max(end_ns)).max(0);
        end_ns = end_ns.max(until_ns);
    }
    sum as f64
}

fn server_means(run: &RunEvidence) -> Sums<'_> {
    let (mut sums, mut counts) = (Sums::new(), Sums::new());
    for (_, span) in server_spans(run) {
        *sums.entry(&span.service).or_default() += span.duration_ns() as f64;
        *counts.entry(&span.service).or_default() += 1.0;
    }
    sums.into_iter().map(|(service, sum)| (service, sum / counts[service])).collect()
}
