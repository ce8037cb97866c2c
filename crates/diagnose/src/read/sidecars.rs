//! Sidecars of a trial: what they used, how often a request passes one, and which variant is the same without them.
//!
//! A sidecar's own spans say best how often it is passed, but a proxy may send none, and a hop that only passes bytes on
//! (to a database) never has one. So a request is followed through its calls as well: a service with a sidecar is
//! entered through it once and left through it for each call on this machine, and a database that has one is entered
//! once for each call to it. Without any trace the services with sidecars are taken as a chain.

use std::collections::{BTreeSet, HashMap};

use narrows_model::comparison::{SidecarSummary, TraversalCount};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::run::{TrialState, sidecar_of};
use narrows_model::series::names;
use narrows_model::trace::{Forest, Span, SpanKind, Trace};

use crate::read::programs::is_database_program;
use crate::read::requests::is_database;
use crate::stats::{median, weighted_median};

/// The services of a trial that have sidecars.
pub(crate) fn with_sidecars(trial: &TrialEvidence) -> BTreeSet<&str> {
    trial.service_names().into_iter().filter_map(sidecar_of).collect()
}

/// The services of a trial that are no sidecars.
pub(crate) fn without_sidecars(trial: &TrialEvidence) -> BTreeSet<&str> {
    trial.service_names().into_iter().filter(|name| sidecar_of(name).is_none()).collect()
}

/// Sidecar figures of a variant, medians over its trials; `None` if a trial has no sidecars or was not sampled.
pub(crate) fn summary(trials: &[&TrialEvidence]) -> Option<SidecarSummary> {
    let seen: Vec<SidecarSummary> = trials.iter().map(|trial| of_trial(trial)).collect::<Option<_>>()?;
    let of = |value: fn(&SidecarSummary) -> f64| median(seen.iter().map(value).collect());
    let each: Vec<f64> = seen.iter().filter_map(|one| one.cpu_seconds_per_traversal).collect();
    Some(SidecarSummary {
        cpu_mean: of(|one| one.cpu_mean)?,
        cpu_share: of(|one| one.cpu_share)?,
        traversals_per_request: of(|one| one.traversals_per_request)?,
        counted_from: seen.first()?.counted_from,
        cpu_seconds_per_traversal: median(each),
    })
}

/// Sidecar figures of one trial.
pub(crate) fn of_trial(trial: &TrialEvidence) -> Option<SidecarSummary> {
    let services = with_sidecars(trial);
    let used = |name: &str| trial.counted_usage(names::CPU_CORES, name);
    let all: Vec<(&str, f64)> = trial
        .service_names()
        .into_iter()
        .map(|name| (name, used(name)))
        .filter(|(_, usage)| usage.points > 0)
        .map(|(name, usage)| (name, usage.mean))
        .collect();
    let cpu_mean: f64 = all.iter().filter(|(name, _)| sidecar_of(name).is_some()).map(|(_, cores)| cores).sum();
    let total: f64 = all.iter().map(|(_, cores)| cores).sum();
    if services.is_empty() || cpu_mean <= 0.0 {
        return None;
    }
    let (traversals_per_request, counted_from) = traversals(trial, &services);
    let passed = trial.counted_load().rate() * traversals_per_request;
    Some(SidecarSummary {
        cpu_mean,
        cpu_share: cpu_mean / total,
        traversals_per_request,
        counted_from,
        cpu_seconds_per_traversal: (passed > 0.0).then(|| cpu_mean / passed),
    })
}

/// Mean number of sidecars that a request passes, and the source of that count.
fn traversals(trial: &TrialEvidence, services: &BTreeSet<&str>) -> (f64, TraversalCount) {
    let weight: f64 = trial.traces.iter().map(|trace| trace.weight).sum();
    let hops = sum_over(trial, hops_of);
    let has_database = services.iter().any(|name| is_database_program(trial, name));
    let calls = sum_over(trial, |trace| calls_of(trace, services, has_database));
    let to_databases = sum_over(trial, |trace| database_calls_of(trace, services, has_database));
    let chain = (2 * services.len()).saturating_sub(1) as f64;
    match weight > 0.0 {
        true if hops > 0.0 => ((hops + to_databases) / weight, TraversalCount::Hops),
        true if calls > 0.0 => (calls / weight, TraversalCount::Calls),
        _ => (chain, TraversalCount::Services),
    }
}

fn sum_over(trial: &TrialEvidence, count: impl Fn(&Trace) -> usize) -> f64 {
    trial.traces.iter().map(|trace| trace.weight * count(trace) as f64).sum()
}

/// Spans by which sidecars say that they were passed, each hop once: those that no span of the same sidecar is above.
fn hops(forest: &Forest<'_>) -> impl Iterator<Item = usize> {
    let service = |at: usize| &forest.span(at).service;
    let is_first = move |at: usize| forest.parent(at).is_none_or(|above| service(above) != service(at));
    (0..forest.spans().len()).filter(move |at| sidecar_of(service(*at)).is_some() && is_first(*at))
}

fn hops_of(trace: &Trace) -> usize {
    hops(&Forest::new(trace)).count()
}

/// In once for each request that a service handles, out once for each call that it makes here.
fn calls_of(trace: &Trace, services: &BTreeSet<&str>, has_database: bool) -> usize {
    let own = trace.spans.iter().filter(|span| services.contains(span.service.as_str()));
    let passed = |span: &Span| match span.kind {
        SpanKind::Server => 1,
        SpanKind::Client if is_database(span) => 0,
        SpanKind::Client => usize::from(is_here(span)),
        _ => 0,
    };
    own.map(passed).sum::<usize>() + database_calls_of(trace, services, has_database)
}

/// Out of the service and into the database, for each call to one.
fn database_calls_of(trace: &Trace, services: &BTreeSet<&str>, has_database: bool) -> usize {
    let is_call = |span: &&Span| span.kind == SpanKind::Client && is_database(span) && is_here(span);
    let out = |span: &Span| usize::from(services.contains(span.service.as_str()));
    trace.spans.iter().filter(is_call).map(|span| out(span) + usize::from(has_database)).sum()
}

/// True if a call goes to this machine: sidecars stand before services of the trial only.
fn is_here(span: &Span) -> bool {
    let address = span.facts.server_address.as_deref();
    address.is_none_or(|address| address == "localhost" || address == "::1" || address.starts_with("127."))
}

/// The time that one hop takes by itself, median, nanoseconds: a sidecar's span less what others do below it. None
/// without any.
pub(crate) fn hop_ns(trial: &TrialEvidence) -> Option<f64> {
    let mut own: Vec<(f64, f64)> = Vec::new();
    for trace in &trial.traces {
        let forest = Forest::new(trace);
        let below = others_below(&forest);
        let alone = |hop: usize| {
            let others_ns = below.get(&hop)?;
            Some((forest.span(hop).duration_ns().saturating_sub(*others_ns) as f64, trace.weight))
        };
        own.extend(hops(&forest).filter_map(alone));
    }
    (!own.is_empty()).then(|| weighted_median(own))
}

/// By span: the time of the spans of other services below it, where it or spans of its own service in between called
/// them.
fn others_below(forest: &Forest<'_>) -> HashMap<usize, u64> {
    let service = |at: usize| &forest.span(at).service;
    let mut below: HashMap<usize, u64> = HashMap::new();
    for at in 0..forest.spans().len() {
        let Some(caller) = forest.parent(at).filter(|caller| service(*caller) != service(at)) else { continue };
        let first = forest.upwards(caller).take_while(|above| service(*above) == service(caller)).last();
        *below.entry(first.unwrap_or(caller)).or_default() += forest.span(at).duration_ns();
    }
    below
}

/// The variant, among others of a run, that is the same without sidecars: it runs the same services, under a load of the
/// same kind, and differs in as few parameters as any; of several the one whose throughput is closest. Both as the
/// positions of their first finished trials.
pub(crate) fn counterpart(run: &RunEvidence, at: usize) -> Option<usize> {
    let with = &run.trials[at];
    let services = without_sidecars(with);
    let is_same = |trial: &TrialEvidence| {
        trial.trial.state == TrialState::Done
            && with_sidecars(trial).is_empty()
            && without_sidecars(trial) == services
            && is_open(trial) == is_open(with)
    };
    let distance = |trial: &TrialEvidence| {
        let (a, b) = (&trial.trial.parameters, &with.trial.parameters);
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        let differ = names.into_iter().filter(|name| a.get(*name) != b.get(*name)).count();
        let rates = (trial.counted_load().rate(), with.counted_load().rate());
        (differ, rates.0.max(rates.1) / rates.0.min(rates.1).max(f64::MIN_POSITIVE))
    };
    let candidates = first_of_variants(run).into_iter().filter(|other| is_same(&run.trials[*other]));
    candidates
        .map(|other| (other, distance(&run.trials[other])))
        .min_by(|(_, a), (_, b)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
        .map(|(other, _)| other)
}

/// True if arrivals come at a rate.
pub(crate) fn is_open(trial: &TrialEvidence) -> bool {
    trial.counted_windows().any(|window| window.rate.is_some())
}

/// The positions of the first finished trial of each variant, in the order of the variants.
pub(crate) fn first_of_variants(run: &RunEvidence) -> Vec<usize> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let trials = run.trials.iter().enumerate().filter(|(_, trial)| trial.trial.state == TrialState::Done);
    trials.filter(|(_, trial)| seen.insert(&trial.trial.variant)).map(|(at, _)| at).collect()
}
