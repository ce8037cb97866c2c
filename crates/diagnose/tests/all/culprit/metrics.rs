//! The same systems, known by metrics alone: latency, errors, requests and CPU of each service in intervals of minutes, with
//! days, bursts and drift; five intervals with a fault against days, or 20 minutes, of normal ones.

use narrows_diagnose::diff::{Side, diff};
use narrows_diagnose::thresholds::Thresholds;
use narrows_model::diff::{Diff, ServiceRole};
use narrows_model::evidence::RunEvidence;
use narrows_model::run::{Window, WindowKind};
use narrows_model::series::{Point, Series, SeriesKey, names, services};
use narrows_testkit::random::Random;
use narrows_testkit::trial::{TrialBuilder, run_of_trials};

use super::systems::{NAMES, SHOP, System, TRAVEL};
use super::{Score, first_seed, is_chosen, is_wanted, repeats, shows_misses};

/// Pairs of healthy sides for each kind of knowledge and history.
const HEALTHY: u64 = 9;
const DAY_S: i64 = 86_400;
/// Intervals that have a fault.
const FAULTY: i64 = 5;

/// Fault of a service in the later intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Each request takes so many milliseconds more.
    Delay(f64),
    /// This share of the requests fails at once.
    Errors(f64),
    /// So many times as much CPU for each request, whose own time grows by half of that.
    Cpu(f64),
    /// It makes each call so many times.
    Calls(f64),
    /// So many times its requests come from elsewhere in addition.
    Traffic(f64),
}

const FAULTS: [(&str, Fault); 5] = [
    ("each request takes 12 ms more", Fault::Delay(12.0)),
    ("one request in five fails", Fault::Errors(0.2)),
    ("three times as much CPU", Fault::Cpu(3.0)),
    ("makes its calls three times", Fault::Calls(3.0)),
    ("receives other requests too", Fault::Traffic(2.0)),
];

/// Knowledge of who calls whom.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Graph {
    /// Callers report latency, requests and errors of their calls.
    Clients,
    /// A list of callers and callees.
    Edges,
    Nothing,
}

const GRAPHS: [(&str, Graph); 3] =
    [("client metrics", Graph::Clients), ("edge list", Graph::Edges), ("no graph", Graph::Nothing)];

/// Normal intervals before.
#[derive(Debug, Clone, Copy)]
struct History {
    step_s: i64,
    intervals: i64,
    /// Seconds from the end of the normal intervals to the later ones.
    pause_s: i64,
}

const HISTORIES: [(&str, History); 2] = [
    ("three days by 10 minutes", History { step_s: 600, intervals: 3 * DAY_S / 600, pause_s: 7_200 }),
    ("20 minutes by 15 seconds", History { step_s: 15, intervals: 80, pause_s: 60 }),
];

/// Disturbances of one service, carried from interval to interval.
#[derive(Debug, Clone, Copy, Default)]
struct Disturbance {
    /// Deviation of the logarithm of its own time, which fades slowly.
    drift: f64,
    /// Intervals that a burst of load goes on for, and how many times as long its requests take meanwhile.
    burst: (u32, f64),
    /// Intervals that a burst of errors goes on for.
    errors: u32,
}

/// Means of one service in one interval.
#[derive(Debug, Clone, Copy, Default)]
struct Means {
    rate: f64,
    latency_ms: f64,
    errors: f64,
    cores: f64,
}

/// One system over time.
struct Simulation<'s> {
    system: &'s System,
    /// The services in an order in which callers stand before their callees.
    order: Vec<usize>,
    faulty: usize,
    fault: Fault,
    random: Random,
    load: f64,
    disturbances: [Disturbance; 12],
}

impl Simulation<'_> {
    /// A value around 0 with this deviation.
    fn normal(&mut self, deviation: f64) -> f64 {
        let sum: f64 = (0..3).map(|_| self.random.unit()).sum();
        (sum - 1.5) * 2.0 * deviation
    }

    fn disturb(&mut self, step_s: i64) {
        // Minutes of drift are the same, whatever the length of an interval.
        let kept = 0.5_f64.powf(step_s as f64 / 1_800.0);
        let news = (1.0 - kept * kept).sqrt();
        self.load = self.load * kept + self.normal(0.1 * news);
        let begins = step_s as f64 / 300.0;
        for service in 0..12 {
            let drift = self.normal(0.06 * news);
            let (burst, errors) = (self.random.unit() < 0.004 * begins, self.random.unit() < 0.004 * begins);
            let one = &mut self.disturbances[service];
            one.drift = one.drift * kept + drift;
            one.burst.0 = one.burst.0.saturating_sub(1);
            one.errors = one.errors.saturating_sub(1);
            if burst {
                self.disturbances[service].burst = (1 + self.random.below(2) as u32, self.random.between(2.0, 6.0));
            }
            if errors {
                self.disturbances[service].errors = 1 + self.random.below(2) as u32;
            }
        }
    }

    /// The services in an interval, and requests per second of each call.
    fn interval(&mut self, time_s: i64, step_s: i64, is_faulty: bool) -> ([Means; 12], Vec<(usize, usize, f64)>) {
        self.disturb(step_s);
        let day = (time_s % DAY_S) as f64 / DAY_S as f64;
        let busy = 1.0 + 0.5 * (std::f64::consts::TAU * day).sin();
        let mut means = [Means::default(); 12];
        let mut calls = Vec::new();
        means[0].rate = 20.0 * busy * self.load.exp();
        for service in self.order.clone() {
            let is_it = is_faulty && service == self.faulty;
            if let (true, Fault::Traffic(times)) = (is_it, self.fault) {
                means[service].rate *= 1.0 + times;
            }
            let completed = if let (true, Fault::Errors(share)) = (is_it, self.fault) { 1.0 - share } else { 1.0 };
            let times = if let (true, Fault::Calls(times)) = (is_it, self.fault) { times } else { 1.0 };
            for callee in self.system.calls[service] {
                let rate = means[service].rate * completed * times;
                means[*callee].rate += rate;
                calls.push((service, *callee, rate));
            }
        }
        for service in self.order.clone().into_iter().rev() {
            let is_it = is_faulty && service == self.faulty;
            means[service] = self.means(service, means, busy, is_it, step_s);
        }
        (means, calls)
    }

    fn means(&mut self, service: usize, all: [Means; 12], busy: f64, is_it: bool, step_s: i64) -> Means {
        let fault = if is_it { self.fault } else { Fault::None };
        let disturbance = self.disturbances[service];
        let burst = if disturbance.burst.0 > 0 { disturbance.burst.1 } else { 1.0 };
        let rate = all[service].rate;
        let requests = (rate * step_s as f64).max(1.0);
        let noise = self.normal(0.35 / requests.sqrt());
        let mut own_ms =
            (2.7 + service as f64 / 3.0) * (1.0 + 0.2 * (busy - 1.0)) * burst * (disturbance.drift + noise).exp();
        let mut cores =
            0.01 + rate * (1.0 + service as f64 / 4.0) / 1e3 * (0.5 * disturbance.drift + self.normal(0.03)).exp();
        let mut errors = if disturbance.errors > 0 { 0.05 } else { 0.002 };
        match fault {
            Fault::Delay(more_ms) => own_ms += more_ms,
            Fault::Errors(share) => errors += share,
            Fault::Cpu(times) => {
                cores = 0.01 + (cores - 0.01) * times;
                own_ms *= 1.0 + (times - 1.0) / 4.0;
            }
            _ => {}
        }
        errors = (errors + self.normal((errors / requests).sqrt())).max(0.0);
        let times = if let Fault::Calls(times) = fault { times } else { 1.0 };
        let callees: Vec<Means> = self.system.calls[service].iter().map(|callee| all[*callee]).collect();
        let waited: Vec<f64> = callees.iter().map(|callee| (callee.latency_ms + 0.4) * times).collect();
        let waited_ms = match self.system.is_parallel[service] {
            true => waited.iter().copied().fold(0.0, f64::max) * 1.1,
            false => waited.iter().sum(),
        };
        let completed = if let Fault::Errors(share) = fault { 1.0 - share } else { 1.0 };
        errors += callees.iter().map(|callee| callee.errors * times).sum::<f64>() * completed;
        Means { rate, latency_ms: own_ms + waited_ms * completed, errors: errors.min(1.0), cores }
    }
}

/// The services in an order in which callers stand before their callees.
fn order(system: &System) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < 12 {
        let is_called_by_rest = |service: usize, order: &[usize]| {
            (0..12).any(|other| !order.contains(&other) && system.calls[other].contains(&service))
        };
        let next = (0..12).find(|service| !order.contains(service) && !is_called_by_rest(*service, &order));
        order.extend(next);
    }
    order
}

/// The series of one side.
#[derive(Default)]
struct Recorded {
    series: std::collections::BTreeMap<(usize, Option<usize>, &'static str), Vec<Point>>,
}

impl Recorded {
    fn put(&mut self, subject: (usize, Option<usize>), name: &'static str, time_s: i64, value: f64) {
        let points = self.series.entry((subject.0, subject.1, name)).or_default();
        points.push(Point { time_ns: time_s * 1_000_000_000, value });
    }

    fn run(self, from_s: i64, until_s: i64) -> RunEvidence {
        let mut trial = TrialBuilder::new("a").build();
        trial.windows = vec![Window {
            index: 0,
            kind: WindowKind::Steady,
            label: "all of it".into(),
            start_ns: from_s * 1_000_000_000,
            end_ns: until_s * 1_000_000_000,
            drained_ns: None,
            vus: 0,
            rate: None,
        }];
        let key = |(service, callee, name): (usize, Option<usize>, &str)| SeriesKey {
            name: name.to_owned(),
            service: NAMES[service].to_owned(),
            labels: callee.map(|callee| (services::PEER.to_owned(), NAMES[callee].to_owned())).into_iter().collect(),
            ..SeriesKey::default()
        };
        trial.series = self.series.into_iter().map(|(of, points)| Series { key: key(of), points }).collect();
        run_of_trials([trial])
    }
}

/// A system as it is known by `graph`: normal ones, then some with a fault.
fn sides(system: &System, faulty: usize, fault: Fault, graph: Graph, history: History, seed: u64) -> [RunEvidence; 2] {
    let History { step_s, intervals, pause_s } = history;
    let random = Random::new(seed);
    let (order, disturbances) = (order(system), [Disturbance::default(); 12]);
    let mut simulation = Simulation { system, order, faulty, fault, random, load: 0.0, disturbances };
    let from_s = 20_000 * DAY_S + simulation.random.below(DAY_S as u64) as i64 / step_s * step_s;
    let normal = (0..intervals).map(|step| (from_s + step * step_s, false));
    let later_s = from_s + intervals * step_s + pause_s;
    let later = (0..FAULTY).map(|step| (later_s + step * step_s, true));
    let mut recorded = [Recorded::default(), Recorded::default()];
    for (time_s, is_later) in normal.chain(later) {
        let (means, calls) = simulation.interval(time_s, step_s, is_later);
        let side = &mut recorded[usize::from(is_later)];
        for (service, one) in means.iter().enumerate() {
            side.put((service, None), services::REQUESTS, time_s, one.rate);
            side.put((service, None), services::ERRORS, time_s, one.rate * one.errors);
            side.put((service, None), services::LATENCY, time_s, one.latency_ms / 1e3);
            side.put((service, None), names::CPU_CORES, time_s, one.cores);
        }
        for (caller, callee, rate) in calls {
            let of = (caller, Some(callee));
            match graph {
                Graph::Clients => {
                    side.put(of, services::REQUESTS, time_s, rate);
                    side.put(of, services::ERRORS, time_s, rate * means[callee].errors);
                    side.put(of, services::LATENCY, time_s, (means[callee].latency_ms + 0.4) / 1e3);
                }
                Graph::Edges => side.put(of, services::CALLS, time_s, 1.0),
                Graph::Nothing => {}
            }
        }
    }
    let [before, after] = recorded;
    [before.run(from_s, later_s - pause_s), after.run(later_s, later_s + FAULTY * step_s)]
}

fn compared(sides: &[RunEvidence; 2]) -> Diff {
    let nothing = [Vec::new()];
    let of = |label, run| Side { label, run, findings: &nothing };
    diff(of("before", &sides[0]), of("after", &sides[1]), &Thresholds::default())
}

/// Whether the metrics can tell that it is this service's fault.
fn is_told(system: &System, service: usize, fault: Fault, graph: Graph) -> bool {
    match fault {
        // Who calls is not known without callers.
        Fault::Calls(_) => graph != Graph::Nothing && !system.calls[service].is_empty(),
        // An edge list cannot tell more calls from requests that come from elsewhere.
        Fault::Traffic(_) => graph != Graph::Edges,
        _ => true,
    }
}

/// The fault in each service that can have it, after both histories in turn.
/// Adds comparisons that went wrong to `misses`.
fn score(fault: Fault, graph: Graph, misses: &mut Vec<String>) -> Score {
    let mut score = Score::default();
    for (at, system) in [&SHOP, &TRAVEL].into_iter().enumerate() {
        let services = (1..NAMES.len()).filter(|service| is_told(system, *service, fault, graph));
        for service in services.filter(|service| is_chosen(at + graph as usize, *service)) {
            for repeat in 0..repeats() {
                let seed = first_seed() + 50_000 + at as u64 * 5_000 + service as u64 * 100 + repeat;
                let (_, history) = HISTORIES[(at + service + repeat as usize) % 2];
                let found = compared(&sides(system, service, fault, graph, history, seed)).services;
                let is_named = |role| !matches!(role, ServiceRole::Unchanged | ServiceRole::Waiting);
                let named = found.iter().filter(|one| is_named(one.role)).map(|one| one.service.as_str());
                let named: Vec<&str> = named.collect();
                if named.first() != Some(&NAMES[service]) {
                    let place = format!("{fault:?} in {} of {}", NAMES[service], system.name);
                    misses.push(format!("{place}, {graph:?}, seed {seed}: {named:?}"));
                }
                score.count(&named, NAMES[service]);
            }
        }
    }
    score
}

#[test]
fn the_service_with_the_fault_comes_first() {
    println!("| fault | known | comparisons | Narrows |");
    let (mut failed, mut misses, mut all) = (Vec::new(), Vec::new(), Score::default());
    for (what, fault) in FAULTS.into_iter().filter(|(what, _)| is_wanted(what)) {
        let mut of_fault = Score::default();
        for (known, graph) in GRAPHS {
            let score = score(fault, graph, &mut misses);
            if score.all > 0 {
                println!("| {what} | {known} | {} | {} |", score.all, score.shown());
                of_fault = of_fault.and(score);
            }
        }
        if !of_fault.is_enough() {
            failed.push((what, of_fault));
        }
        all = all.and(of_fault);
    }
    misses.iter().filter(|_| shows_misses()).for_each(|miss| println!("{miss}"));
    assert!(failed.is_empty() && all.is_enough_of_all(), "{failed:?} {all:?} {misses:?}");
}

#[test]
fn a_service_that_takes_more_memory_is_named() {
    let mut sides = sides(&SHOP, 0, Fault::None, Graph::Nothing, HISTORIES[1].1, 1);
    for (side, bytes) in sides.iter_mut().zip([2e8, 6e8]) {
        let trial = &mut side.trials[0];
        let points = trial.series[0].points.iter().map(|point| Point { value: bytes, ..*point }).collect();
        let (name, service) = (names::MEMORY_BYTES.to_owned(), NAMES[4].to_owned());
        trial.series.push(Series { key: SeriesKey { name, service, ..SeriesKey::default() }, points });
    }
    let found = compared(&sides);
    let first = &found.services[0];
    assert_eq!((first.service.as_str(), first.role, first.memory), ("payment", ServiceRole::Heavier, Some((2e8, 6e8))));
    assert!(found.sentence.contains("payment uses 572 MiB of memory instead of 191 MiB"), "{}", found.sentence);
}

#[test]
fn two_healthy_sides_are_silent() {
    let (mut all, mut silent) = (0, 0);
    for ((known, graph), (before, history)) in
        GRAPHS.into_iter().flat_map(|graph| HISTORIES.map(|history| (graph, history)))
    {
        let is_silent = |seed: &u64| {
            let system = if seed.is_multiple_of(2) { &SHOP } else { &TRAVEL };
            let found = compared(&sides(system, 0, Fault::None, graph, history, first_seed() + 90_000 + seed)).services;
            found.iter().all(|one| matches!(one.role, ServiceRole::Unchanged | ServiceRole::Waiting))
        };
        let pairs = HEALTHY * repeats();
        let quiet = (0..pairs).filter(is_silent).count() as u64;
        println!("silent about {quiet} of {pairs} pairs: {known}, {before}");
        (all, silent) = (all + pairs, silent + quiet);
    }
    assert!(silent * 100 >= 97 * all, "{silent} of {all}");
}
