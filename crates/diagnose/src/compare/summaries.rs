//! Figures of the services and the operations of a variant over its repetitions.
//!
//! Medians over repetitions, counts added up, maxima over all. A service that was never sampled is left out: a row of
//! zeros would say that it used nothing.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::comparison::{ReplicaSummary, ServiceSummary};
use narrows_model::evidence::{TrialEvidence, Usage};
use narrows_model::operation::{CallEvidence, CallSummary, OperationEvidence, OperationSummary};
use narrows_model::run::ServiceInstance;
use narrows_model::series::{Series, names};
use narrows_model::trace::SpanKind;

use crate::read::place_loads::replica_of;
use crate::stats::median;

/// The services in the order they were started.
pub(crate) fn services(trials: &[&TrialEvidence]) -> Vec<ServiceSummary> {
    let mut services: Vec<&str> = Vec::new();
    for service in trials.iter().flat_map(|trial| trial.service_names()) {
        if service != names::GENERATOR && !services.contains(&service) {
            services.push(service);
        }
    }
    services.into_iter().filter_map(|service| service_summary(service, trials)).collect()
}

fn service_summary(service: &str, trials: &[&TrialEvidence]) -> Option<ServiceSummary> {
    let usages = |name: &str| -> Vec<(f64, Usage)> {
        let usage = trials.iter().map(|trial| (trial.counted_load().rate(), trial.counted_usage(name, service)));
        usage.filter(|(_, usage)| usage.points > 0).collect()
    };
    let (cpu, memory, pss) = (usages(names::CPU_CORES), usages(names::MEMORY_BYTES), usages(names::MEMORY_PSS_BYTES));
    let mean = |usages: &[(f64, Usage)]| median(usages.iter().map(|(_, usage)| usage.mean).collect());
    let most = |usages: &[(f64, Usage)]| usages.iter().map(|(_, usage)| usage.max).fold(0.0, f64::max);
    let per_request = cpu.iter().filter(|(rate, _)| *rate > 0.0).map(|(rate, usage)| usage.mean / rate);
    (!cpu.is_empty() || !memory.is_empty()).then(|| ServiceSummary {
        service: service.to_owned(),
        cpu_mean: mean(&cpu).unwrap_or(0.0),
        cpu_max: most(&cpu),
        memory_mean: mean(&memory).unwrap_or(0.0),
        memory_max: most(&memory),
        cpu_seconds_per_request: median(per_request.collect()),
        memory_pss_mean: mean(&pss),
        memory_pss_max: (!pss.is_empty()).then(|| most(&pss)),
        replicas: replicas(service, trials),
    })
}

/// The replicas of a service.
fn replicas(service: &str, trials: &[&TrialEvidence]) -> Vec<ReplicaSummary> {
    let numbers: BTreeSet<u32> =
        trials.iter().flat_map(|trial| replicas_of(trial, service)).map(|one| one.replica).collect();
    let rates: Vec<BTreeMap<u32, f64>> = trials.iter().map(|trial| rates_of(trial, service)).collect();
    let summary = |replica: u32| {
        let mean =
            |name: &str| median(trials.iter().filter_map(|trial| mean_of(trial, name, service, replica)).collect());
        let mut instances = trials.iter().flat_map(|trial| replicas_of(trial, service));
        let is_known = rates.iter().any(|rates| !rates.is_empty());
        ReplicaSummary {
            replica,
            cpu_mean: mean(names::CPU_CORES).unwrap_or(0.0),
            cpu_limit_cores: instances.find(|one| one.replica == replica).and_then(|one| one.cpu_limit_cores),
            memory_mean: mean(names::MEMORY_PSS_BYTES).or_else(|| mean(names::MEMORY_BYTES)).unwrap_or(0.0),
            rate: is_known
                .then(|| median(rates.iter().map(|rates| rates.get(&replica).copied().unwrap_or(0.0)).collect()))
                .flatten(),
        }
    };
    numbers.into_iter().map(summary).collect()
}

fn replicas_of<'a>(trial: &'a TrialEvidence, service: &str) -> impl Iterator<Item = &'a ServiceInstance> {
    trial.services.iter().filter(move |instance| instance.service == service)
}

/// Mean of the counted points of one replica's series; `None` if it was not sampled.
fn mean_of(trial: &TrialEvidence, name: &str, service: &str, replica: u32) -> Option<f64> {
    let is_its = |series: &&Series| {
        (series.key.name.as_str(), series.key.service.as_str(), series.key.replica) == (name, service, replica)
    };
    let points = trial.series.iter().filter(is_its).flat_map(|series| &series.points);
    let usage =
        Usage::from_values(points.filter(|point| trial.is_counted(point.time_ns)).map(|point| point.value).collect());
    (usage.points > 0).then_some(usage.mean)
}

/// Requests per second that each replica handled: its share of the sampled traces' requests at the service, of all that
/// its operations counted. Empty where no span says which replica handled it.
fn rates_of(trial: &TrialEvidence, service: &str) -> BTreeMap<u32, f64> {
    let mut seen: BTreeMap<u32, f64> = BTreeMap::new();
    let entries = trial.traces.iter().flat_map(|trace| trace.spans.iter().map(move |span| (span, trace.weight)));
    for (span, weight) in entries.filter(|(span, _)| span.kind == SpanKind::Server && span.service == service) {
        if let Some((_, replica)) = replica_of(trial, span) {
            *seen.entry(replica).or_default() += weight;
        }
    }
    let sum: f64 = seen.values().sum();
    let counted: f64 =
        trial.operations.iter().filter(|operation| operation.service == service).map(|o| o.completed + o.failed).sum();
    let seconds = trial.counted_load().seconds;
    if sum <= 0.0 || seconds <= 0.0 {
        return BTreeMap::new();
    }
    seen.into_iter().map(|(replica, weight)| (replica, weight / sum * counted / seconds)).collect()
}

/// The operations by service and name.
pub(crate) fn operations(trials: &[&TrialEvidence]) -> Vec<OperationSummary> {
    let mut found: BTreeMap<(&str, &str), Vec<Seen<'_>>> = BTreeMap::new();
    for (trial, operation) in trials.iter().flat_map(|trial| trial.operations.iter().map(move |o| (*trial, o))) {
        found.entry((&operation.service, &operation.name)).or_default().push((trial, operation));
    }
    found.into_iter().map(|((service, name), seen)| operation_summary(service, name, &seen)).collect()
}

/// An operation and the trial it was seen in.
type Seen<'a> = (&'a TrialEvidence, &'a OperationEvidence);

fn operation_summary(service: &str, name: &str, seen: &[Seen<'_>]) -> OperationSummary {
    let durations = seen.iter().map(|(_, operation)| &operation.duration);
    let quantiles: Vec<_> = durations.filter(|d| d.count() > 0).map(|d| d.quantiles()).collect();
    let of_duration = |value: fn(&narrows_model::histogram::Quantiles) -> f64| {
        median(quantiles.iter().map(value).collect()).unwrap_or(0.0)
    };
    OperationSummary {
        service: service.to_owned(),
        name: name.to_owned(),
        completed: seen.iter().map(|(_, operation)| operation.completed).sum(),
        failed: seen.iter().map(|(_, operation)| operation.failed).sum(),
        mean_ns: of_duration(|q| q.mean_ns),
        p50_ns: of_duration(|q| q.p50_ns as f64),
        p95_ns: of_duration(|q| q.p95_ns as f64),
        p99_ns: of_duration(|q| q.p99_ns as f64),
        calls: calls(seen),
    }
}

/// A call and how often the operation above it completed.
type Counted<'a> = (&'a CallEvidence, f64);

/// The calls by target and name, most attempts first.
fn calls(seen: &[Seen<'_>]) -> Vec<CallSummary> {
    let mut found: BTreeMap<(&str, &str), Vec<Counted<'_>>> = BTreeMap::new();
    for (trial, operation) in seen {
        for call in &operation.calls {
            let target = service_at(trial, &call.target).unwrap_or(&call.target);
            found.entry((target, &call.name)).or_default().push((call, operation.completed));
        }
    }
    let mut calls: Vec<CallSummary> =
        found.into_iter().map(|((target, _), counted)| call_summary(target, &counted)).collect();
    let attempts = |call: &CallSummary| call.succeeded + call.throttled + call.failed;
    calls.sort_by(|a, b| attempts(b).total_cmp(&attempts(a)));
    calls
}

/// The service of this trial that listens at an address. Ports differ from trial to trial, names do not.
fn service_at<'a>(trial: &'a TrialEvidence, target: &str) -> Option<&'a str> {
    let port: u16 = target.rsplit_once(':')?.1.parse().ok()?;
    trial.reached_at(Some(port)).map(|instance| instance.service.as_str())
}

fn call_summary(target: &str, counted: &[Counted<'_>]) -> CallSummary {
    let sum = |value: fn(&CallEvidence) -> f64| counted.iter().map(|(call, _)| value(call)).sum::<f64>();
    let each = |value: fn(&CallEvidence) -> Option<f64>| {
        let known = counted.iter().filter(|(_, completed)| *completed > 0.0);
        median(known.filter_map(|(call, completed)| Some(value(call)? / completed)).collect())
    };
    let (first, _) = counted[0];
    CallSummary {
        target: target.to_owned(),
        name: first.name.clone(),
        is_database: first.is_database,
        succeeded_per_operation: each(|call| Some(call.succeeded)).unwrap_or(0.0),
        attempts_per_operation: each(|call| Some(call.attempts())).unwrap_or(0.0),
        succeeded: sum(|call| call.succeeded),
        throttled: sum(|call| call.throttled),
        failed: sum(|call| call.failed),
        charge_per_operation: each(|call| call.charge),
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::operations::{operation, store_calls};
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    fn trial(repetition: u32, cores: f64, throttled: f64) -> TrialEvidence {
        let mut shown = operation("shop", "GET /", 10, 10.0, 100.0 * f64::from(repetition));
        shown.calls = vec![store_calls("query", std::iter::repeat_n((90.0, throttled, 290.0), 10))];
        TrialBuilder::new("a")
            .repetition(repetition)
            .service("shop", None)
            .service("silent", None)
            .steady(10, Load { vus: 4, rate: 10.0, latency_ms: 100.0 })
            .cpu("shop", 0, move |second| if second == 9 { 2.0 * cores } else { cores })
            .series(names::MEMORY_BYTES, "shop", 0, |_| 5e6)
            .operation(shown)
            .build()
    }

    #[test]
    fn counts_add_up_and_the_rest_are_medians() {
        let trials = [trial(1, 0.1, 0.0), trial(2, 0.2, 10.0), trial(3, 0.5, 20.0)];
        let trials: Vec<&TrialEvidence> = trials.iter().collect();
        let [shown] = &operations(&trials)[..] else { panic!("one operation") };
        assert_eq!((shown.completed, shown.failed, shown.mean_ns), (300.0, 0.0, 200e6));
        let [call] = &shown.calls[..] else { panic!("one kind of call") };
        assert_eq!((call.succeeded, call.throttled), (2700.0, 300.0));
        assert_eq!((call.succeeded_per_operation, call.attempts_per_operation), (9.0, 10.0));
        assert_eq!(call.charge_per_operation, Some(29.0));
    }

    #[test]
    fn a_call_to_a_service_of_the_trial_goes_by_its_name() {
        let mut trial = trial(1, 0.1, 0.0);
        for (call, target) in [("127.0.0.1:{}", Some("shop")), ("127.0.0.1:1", None), ("azure.cosmosdb", None)] {
            let address = call.replace("{}", &trial.services[0].port.to_string());
            trial.operations[0].calls[0].target = address.clone();
            let shown = operations(&[&trial]);
            assert_eq!(shown[0].calls[0].target, target.unwrap_or(&address));
        }
    }

    #[test]
    fn services_are_those_that_were_sampled() {
        let trials = [trial(1, 0.1, 0.0), trial(2, 0.2, 0.0), trial(3, 0.5, 0.0)];
        let services = services(&trials.iter().collect::<Vec<_>>());
        let [shop] = &services[..] else { panic!("one service, not {services:?}") };
        assert!((shop.cpu_mean - 0.22).abs() < 1e-9 && shop.cpu_max == 1.0, "{shop:?}");
        assert_eq!((shop.memory_mean, shop.memory_max), (5e6, 5e6));
        assert!((shop.cpu_seconds_per_request.unwrap() - 0.022).abs() < 1e-9);
        assert!(operations(&[]).is_empty() && super::services(&[]).is_empty());
    }
}
