//! The series of a case: CPU from demand × rate (utilisation law), what partitions spend from charges × rate, and what
//! a case says itself.

use std::collections::BTreeMap;

use narrows_model::run::ServiceInstance;
use narrows_model::series::{Point, Series, SeriesKey, names};
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::random::Random;

use super::case::{Case, OneOrMany, Step};
use super::load::Phase;

const SECOND_NS: i64 = 1_000_000_000;
/// CPU of a service that nobody calls, cores.
const IDLE_CORES: f64 = 0.01;
/// A sampled value's noise, to either side.
const NOISE: f64 = 0.04;
const THREADS: f64 = 4.0;

/// All series of a case over these phases, the first of which is the warm-up of the first step.
pub(crate) fn series_of(case: &Case, services: &[ServiceInstance], phases: &[Phase]) -> Vec<Series> {
    let mut book = Book { case, phases, series: Vec::new(), random: Random::of_name(&case.what) };
    let mut host: Vec<f64> = vec![0.0; phases.iter().map(|phase| phase.rates.len()).sum()];
    let generator = instance(names::GENERATOR);
    for instance in services.iter().chain([&generator]) {
        let cores = book.cores(instance);
        host.iter_mut().zip(&cores).for_each(|(sum, cores)| *sum += cores);
        book.write(names::CPU_CORES, "{cpu}", instance, &cores);
        let thread = book.thread(instance, &cores);
        book.write(names::BUSIEST_THREAD_CORES, "{cpu}", instance, &thread);
        let wait = book.by_step(|step| step.thread_wait.get(&instance.service), instance.replica as usize, 0.005);
        book.write(names::BUSIEST_THREAD_WAIT, "s/s", instance, &wait);
    }
    let cores = f64::from(case.cores);
    let derived: Vec<f64> = host.iter().map(|sum| (sum / cores + 0.03).min(1.0)).collect();
    let host = book.told_or(|step| step.host, &derived);
    let steal = book.told_or(|step| step.steal, &vec![0.0; derived.len()]);
    book.write(names::HOST_CPU_UTILIZATION, "1", &instance(""), &host);
    book.write(names::HOST_CPU_STEAL, "1", &instance(""), &steal);
    book.stores();
    book.extra();
    book.calls(services);
    book.series
}

struct Book<'a> {
    case: &'a Case,
    phases: &'a [Phase],
    series: Vec<Series>,
    random: Random,
}

fn instance(service: &str) -> ServiceInstance {
    ServiceInstance::watched(service, 0, 1)
}

impl Book<'_> {
    /// The step of each phase, and the rates of its seconds.
    fn steps(&self) -> impl Iterator<Item = (usize, &Step, &[f64])> {
        let step = |at: usize| at.saturating_sub(1);
        self.phases.iter().enumerate().map(move |(at, phase)| (step(at), &self.case.load[step(at)], &phase.rates[..]))
    }

    fn cores(&mut self, instance: &ServiceInstance) -> Vec<f64> {
        let known = self.case.services.get(&instance.service);
        let replicas = known.and_then(|service| service.replicas).unwrap_or(1);
        let share = known.and_then(|service| service.shares.get(instance.replica as usize).copied());
        let share = share.unwrap_or(1.0 / f64::from(replicas));
        let demand = match instance.service.as_str() {
            names::GENERATOR => self.case.generator.cpu,
            service => self.case.cpu.get(service).copied().unwrap_or(0.0),
        };
        let cap = instance.cpu_limit_cores.unwrap_or(f64::from(self.case.cores));
        let mut cores = Vec::new();
        for (_, step, rates) in self.steps() {
            let told = step.cpu.get(&instance.service).map(|told| told.at(instance.replica as usize));
            let follows = |rate: &f64| IDLE_CORES + demand / 1000.0 * rate * share;
            cores.extend(rates.iter().map(|rate| told.unwrap_or_else(|| follows(rate)).min(cap)));
        }
        cores.iter_mut().for_each(|value| *value = self.random.around(*value, NOISE).min(cap));
        cores
    }

    fn thread(&mut self, instance: &ServiceInstance, cores: &[f64]) -> Vec<f64> {
        let told_threads = self.case.services.get(&instance.service).and_then(|service| service.threads);
        let is_generator = instance.service == names::GENERATOR;
        let threads = told_threads.unwrap_or(if is_generator { self.case.generator.threads } else { THREADS });
        let uneven = if threads > 1.0 { 1.2 } else { 0.98 };
        let derived: Vec<f64> = cores.iter().map(|cores| (cores / threads * uneven).min(cores.min(1.0))).collect();
        let place = instance.replica as usize;
        self.told_or(|step| step.thread.get(&instance.service).map(|told| told.at(place)), &derived)
    }

    /// Values of the steps, with noise, or else the derived values.
    fn told_or(&mut self, told: impl Fn(&Step) -> Option<f64>, derived: &[f64]) -> Vec<f64> {
        let values: Vec<Option<f64>> =
            self.steps().flat_map(|(_, step, rates)| vec![told(step); rates.len()]).collect();
        let pairs = values.into_iter().zip(derived);
        pairs
            .map(|(told, derived)| {
                told.map_or(*derived, |told| self.random.around(told, NOISE / 2.0).min(told.max(1.0)))
            })
            .collect()
    }

    fn by_step<'b>(
        &'b self,
        told: impl Fn(&'b Step) -> Option<&'b OneOrMany>,
        place: usize,
        otherwise: f64,
    ) -> Vec<f64> {
        self.steps()
            .flat_map(|(_, step, rates)| vec![told(step).map_or(otherwise, |told| told.at(place)); rates.len()])
            .collect()
    }

    fn stores(&mut self) {
        for (name, store) in &self.case.stores {
            for partition in &store.partitions {
                let spent = self.spent(partition);
                let labels = BTreeMap::from([(names::PARTITION.to_owned(), partition.clone())]);
                let key = |metric: &str| SeriesKey {
                    name: metric.into(),
                    service: name.clone(),
                    labels: labels.clone(),
                    ..SeriesKey::default()
                };
                if let Some(provisioned) = store.provisioned {
                    let points = points(&vec![provisioned; spent.len()]);
                    self.series.push(Series { key: key(names::THROUGHPUT_PROVISIONED), points });
                }
                let points = points(&running_sum(&spent));
                self.series.push(Series { key: key(names::THROUGHPUT_CONSUMED), points });
            }
        }
    }

    /// Request units that a partition spends each second: charges of its spans × rate, unless the step says it.
    fn spent(&mut self, partition: &str) -> Vec<f64> {
        let mut spent = Vec::new();
        for (phase, (_, step, rates)) in self.phases.iter().zip(self.steps()) {
            let per_request = charge_per_request(phase, partition);
            spent.extend(rates.iter().enumerate().map(|(s, rate)| match step.spent.get(partition) {
                Some(told) => told.at(s),
                None => per_request * rate,
            }));
        }
        spent.iter_mut().for_each(|value| *value = self.random.around(*value, NOISE));
        spent
    }

    fn extra(&mut self) {
        for extra in &self.case.series {
            let values: Vec<f64> =
                self.steps().flat_map(|(at, _, rates)| vec![extra.value.at(at); rates.len()]).collect();
            let factors = extra.factors.iter().chain(extra.factors.is_empty().then_some(&1.0)).cycle();
            let values: Vec<f64> = values.iter().zip(factors).map(|(value, factor)| value * factor).collect();
            let sum = || running_sum(&values).into_iter().map(|sum| extra.from + sum).collect();
            let values = if extra.cumulative { sum() } else { values };
            let key = SeriesKey {
                name: extra.name.clone(),
                unit: extra.unit.clone(),
                service: extra.service.clone(),
                replica: extra.replica,
                labels: extra.labels.clone(),
            };
            self.series.push(Series { key, points: points(&values) });
        }
    }

    fn calls(&mut self, services: &[ServiceInstance]) {
        for calls in &self.case.calls {
            let called = |one: &&ServiceInstance| (&one.service, one.replica) == (&calls.to, calls.to_replica);
            let port = services.iter().find(called).map(|one| format!("127.0.0.1:{}", one.port));
            let labels = BTreeMap::from([(names::NETWORK_PEER.to_owned(), port.unwrap_or_else(|| calls.to.clone()))]);
            let none = OneOrMany::One(0.0);
            let told = [
                (names::CONNECTIONS, &calls.connections),
                (names::REQUESTS_OUTSTANDING, &calls.outstanding),
                (names::REQUEST_RATE, &calls.rate),
                (names::REQUESTS_UNDECIDED, calls.undecided.as_ref().unwrap_or(&none)),
                (names::RESPONSES_UNREAD, calls.unread.as_ref().unwrap_or(&none)),
                (names::CONNECTIONS_OPENED, calls.opened.as_ref().unwrap_or(&none)),
            ];
            for (name, value) in told {
                let values: Vec<f64> =
                    self.steps().flat_map(|(at, _, rates)| vec![value.at(at); rates.len()]).collect();
                let key = SeriesKey {
                    name: name.to_owned(),
                    service: calls.from.clone(),
                    replica: calls.replica,
                    labels: labels.clone(),
                    ..SeriesKey::default()
                };
                self.series.push(Series { key, points: points(&values) });
            }
        }
    }

    fn write(&mut self, name: &str, unit: &str, instance: &ServiceInstance, values: &[f64]) {
        let key = SeriesKey {
            name: name.into(),
            unit: unit.into(),
            service: instance.service.clone(),
            replica: instance.replica,
            labels: BTreeMap::new(),
        };
        self.series.push(Series { key, points: points(values) });
    }
}

fn charge_per_request(phase: &Phase, partition: &str) -> f64 {
    let of_trace = |trace: &narrows_model::trace::Trace| -> f64 {
        let is_here = |span: &&narrows_model::trace::Span| span.facts.db_partition.as_deref() == Some(partition);
        trace.spans.iter().filter(is_here).filter_map(|span| span.facts.db_charge).sum()
    };
    let of_sample =
        |traces: &[narrows_model::trace::Trace]| traces.iter().map(of_trace).sum::<f64>() / traces.len() as f64;
    phase.samples.iter().map(|sample| sample.share * of_sample(&sample.traces)).sum()
}

fn running_sum(values: &[f64]) -> Vec<f64> {
    let sums = values.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    });
    sums.collect()
}

fn points(values: &[f64]) -> Vec<Point> {
    let at = |s: i64| TRIAL_START_NS + s * SECOND_NS + SECOND_NS / 2;
    values.iter().zip(0_i64..).map(|(value, s)| Point { time_ns: at(s), value: *value }).collect()
}
