//! Faults in systems of twelve services: the right service comes first, and two healthy sides are silent.
//!
//! `NARROWS_REPEATS=10 cargo test -p narrows-diagnose --test all culprit:: -- --nocapture` prints how often, beside two
//! simple rules (`docs/benchmarks/which-service.md`). `NARROWS_MISSES=1` lists the comparisons
//! that went wrong, and `NARROWS_KIND=TEXT` chooses kinds of faults. The method was developed with the seeds from 100000 and 500000 on (`NARROWS_SEED=100000`); the tests
//! judge it by those from 1000000 on. Without `NARROWS_REPEATS` they make a third of the comparisons, in which each
//! service and each kind of fault occurs, and expect more of all kinds together than of each.

mod labels;
mod logs;
mod metrics;
mod rules;
mod systems;
mod window;

use narrows_diagnose::diff::{Side, diff};
use narrows_diagnose::thresholds::Thresholds;
use narrows_model::diff::{Diff, ServiceDiff, ServiceRole};
use narrows_model::evidence::RunEvidence;
use narrows_model::finding::Confidence;
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::spans::{Beat, query, run_of, server};
use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

use self::rules::{by_self_time, by_server_spans};
use self::systems::{BANK, NAMES, SHOP, System, TRAVEL};
use self::window::{Fault, Paths, Weather, Window, side};

/// Pairs of healthy sides of each kind, for each repetition.
const HEALTHY: u64 = 10;

/// Maximum share of healthy pairs in which a service may be named, percent.
const ALARMS_MAX: u64 = 3;
/// Shares of comparisons in which the right service is to come first and among the first three.
const FIRST_AIM: f64 = 0.9;
const AMONG_THREE_AIM: f64 = 0.97;
/// The share that is to come first over all kinds together, where chance is no excuse.
const FIRST_AIM_OF_ALL: f64 = 0.95;
/// One in so many comparisons is made unless repetitions are asked for.
const SAMPLED: usize = 3;
/// Standard deviations by which chance may keep few comparisons below an aim: the normal distribution's 99 % point.
const CHANCE: f64 = 2.33;

/// Kind of fault.
struct Kind {
    name: &'static str,
    /// One of these for each seed, in turn.
    faults: &'static [Fault],
    /// Share of the calls to the service that are made: one for each seed, in turn.
    reaches: &'static [f64],
    systems: &'static [&'static System],
    /// Requests of each side.
    requests: u32,
    /// Calls that a service makes to have this fault.
    calls_min: usize,
}

const SIMPLE: Kind =
    Kind { name: "", faults: &[], reaches: &[1.0], systems: &[&SHOP, &TRAVEL], requests: 80, calls_min: 0 };
const RARE: Kind = Kind { reaches: &[0.03, 0.06, 0.1, 0.15], requests: 400, ..SIMPLE };

const KINDS: [Kind; 12] = [
    Kind { name: "each request takes 12 ms more", faults: &[Fault::Delay(12.0)], ..SIMPLE },
    Kind { name: "its CPU is burned by a neighbour", faults: &[Fault::Burn(4.0)], ..SIMPLE },
    Kind { name: "a smaller CPU limit", faults: &[Fault::Quota], ..SIMPLE },
    Kind { name: "exceptions", faults: &[Fault::Exceptions(0.2)], ..SIMPLE },
    Kind { name: "returns without its calls", faults: &[Fault::EarlyReturn(0)], calls_min: 1, ..SIMPLE },
    Kind { name: "makes its calls four times", faults: &[Fault::RepeatedCalls], calls_min: 1, ..SIMPLE },
    Kind {
        name: "returns after its second call",
        faults: &[Fault::EarlyReturn(2)],
        systems: &[&SHOP, &BANK],
        calls_min: 3,
        ..SIMPLE
    },
    Kind { name: "calls another service", faults: &[Fault::OtherCallee], calls_min: 1, ..SIMPLE },
    Kind {
        name: "internal spans",
        faults: &[Fault::SpanVanishes, Fault::SpanAppears],
        systems: &[&SHOP, &BANK],
        ..SIMPLE
    },
    Kind { name: "starved", faults: &[Fault::Starved(2.5)], systems: &[&SHOP, &BANK], calls_min: 2, ..SIMPLE },
    Kind { name: "CPU", faults: &[Fault::Cpu(3.0)], ..SIMPLE },
    Kind { name: "memory", faults: &[Fault::Memory(2.5)], ..SIMPLE },
];

/// Faults of services that few requests reach.
const RARE_KINDS: [Kind; 2] = [
    Kind {
        name: "rare and slower",
        faults: &[Fault::Burn(4.0), Fault::Burn(10.0), Fault::Burn(40.0), Fault::Burn(160.0)],
        ..RARE
    },
    Kind { name: "rare and failing", faults: &[Fault::Exceptions(0.5), Fault::Exceptions(0.9)], ..RARE },
];

impl Kind {
    /// Both sides of a comparison. The fault and the reach depend on the seed.
    fn sides(&self, system: &System, service: usize, seed: u64) -> (RunEvidence, RunEvidence) {
        // Neighbouring seeds take all pairs of a fault and a reach.
        let at = seed as usize + service;
        let window = Window {
            service,
            requests: self.requests,
            seconds: f64::from(self.requests) / 20.0,
            reach: self.reaches[at % self.reaches.len()],
            has_internal_spans: self.faults.contains(&Fault::SpanVanishes),
            is_sampled: matches!(self.faults[0], Fault::Cpu(_) | Fault::Memory(_)),
            ..Window::of(system)
        };
        let fault = self.faults[(at + at / self.faults.len()) % self.faults.len()];
        (window.run(seed), window.with(fault).run(seed + 10_000))
    }

    /// The services of a system that can have the fault.
    fn services(&self, system: &System) -> Vec<usize> {
        let first = usize::from(self.calls_min < 2);
        let can_have_it = |service: &usize| {
            let is_there = system.is_reached(*service) || *service == 0;
            is_there && system.calls[*service].len() >= self.calls_min
        };
        (first..NAMES.len()).filter(can_have_it).collect()
    }
}

/// Kind of healthy change.
struct Healthy {
    name: &'static str,
    before: fn(&System) -> Window<'_>,
    after: fn(&System) -> Window<'_>,
}

const HEALTHY_KINDS: [Healthy; 8] = [
    Healthy { name: "healthy", before: |of| Window::of(of), after: |of| Window::of(of) },
    Healthy { name: "with an error now and then", before: sporadic, after: sporadic },
    Healthy { name: "with an error now and then, and a rare service", before: rare_sporadic, after: rare_sporadic },
    Healthy { name: "a burst before", before: burst, after: calm },
    Healthy { name: "a burst after", before: calm, after: burst },
    Healthy { name: "drift", before: drift, after: drift },
    Healthy { name: "another mix of operations", before: |of| mix(of, 0, true), after: |of| mix(of, 1, true) },
    Healthy { name: "another mix of entry paths", before: |of| mix(of, 0, false), after: |of| mix(of, 1, false) },
];

fn sporadic(system: &System) -> Window<'_> {
    Window::of(system).with(Fault::Sporadic)
}

fn rare_sporadic(system: &System) -> Window<'_> {
    Window { service: 10, reach: 0.05, requests: 240, seconds: 12.0, ..sporadic(system) }
}

fn calm(system: &System) -> Window<'_> {
    Window { requests: 240, seconds: 120.0, is_sampled: true, has_internal_spans: true, ..Window::of(system) }
}

fn burst(system: &System) -> Window<'_> {
    Window { weather: Weather::Burst, ..calm(system) }
}

fn drift(system: &System) -> Window<'_> {
    Window { weather: Weather::Drift, ..calm(system) }
}

fn mix(system: &System, side: usize, are_named: bool) -> Window<'_> {
    let shares = [[0.5, 0.3, 0.2], [0.15, 0.4, 0.45]][side];
    Window { paths: Some(Paths { shares, are_named }), ..calm(system) }
}

/// Where the seeds of the systems begin; others show what does not hold for these alone.
fn first_seed() -> u64 {
    std::env::var("NARROWS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_000_000)
}

/// Repetitions of each fault in each service that are asked for.
fn wanted_repeats() -> Option<u64> {
    std::env::var("NARROWS_REPEATS").ok().and_then(|repeats| repeats.parse().ok())
}

/// Repetitions of each fault in each service, of which a part is made if none are asked for.
fn repeats() -> u64 {
    wanted_repeats().unwrap_or(1)
}

/// True if a kind of fault is tested: `NARROWS_KIND` is part of its name, or is not set.
fn is_wanted(kind: &str) -> bool {
    std::env::var("NARROWS_KIND").map_or(true, |wanted| kind.contains(&wanted))
}

/// True if the comparison at this place among those of a kind is made: all if repetitions are asked for.
fn is_chosen(kind: usize, place: usize) -> bool {
    wanted_repeats().is_some() || (kind + place).is_multiple_of(SAMPLED)
}

/// Whether to print each comparison that went wrong (`NARROWS_MISSES=1`).
fn shows_misses() -> bool {
    std::env::var_os("NARROWS_MISSES").is_some()
}

fn compared(before: &RunEvidence, after: &RunEvidence) -> Diff {
    let nothing = [Vec::new()];
    let of = |label, run| Side { label, run, findings: &nothing };
    diff(of("before", before), of("after", after), &Thresholds::default())
}

fn faulty(system: &System, service: usize, fault: Fault, seed: u64) -> Diff {
    compared(&side(system, 0, Fault::None, seed), &side(system, service, fault, seed + 1_000))
}

/// True if a service is named for a change.
fn is_named(service: &ServiceDiff) -> bool {
    !matches!(service.role, ServiceRole::Unchanged | ServiceRole::Waiting)
}

/// How often the right service was found, of how many.
#[derive(Debug, Default, Clone, Copy)]
struct Score {
    all: u32,
    first: u32,
    among_three: u32,
    /// Named nobody.
    silent: u32,
}

impl Score {
    fn count(&mut self, ranked: &[&str], right: &str) {
        let at = ranked.iter().position(|service| *service == right);
        self.all += 1;
        self.first += u32::from(at == Some(0));
        self.among_three += u32::from(at.is_some_and(|at| at < 3));
        self.silent += u32::from(ranked.is_empty());
    }

    fn and(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            first: self.first + other.first,
            among_three: self.among_three + other.among_three,
            silent: self.silent + other.silent,
        }
    }

    /// True if the right service was found as often as aimed at over all kinds.
    fn is_enough_of_all(self) -> bool {
        let all = f64::from(self.all);
        f64::from(self.first) >= FIRST_AIM_OF_ALL * all && f64::from(self.among_three) >= AMONG_THREE_AIM * all
    }

    /// True if the right service was found as often as aimed at, as far as this number of comparisons can tell.
    fn is_enough(self) -> bool {
        let all = f64::from(self.all);
        let is_within =
            |found: u32, aim: f64| f64::from(found) >= aim * all - CHANCE * (all * aim * (1.0 - aim)).sqrt();
        is_within(self.first, FIRST_AIM) && is_within(self.among_three, AMONG_THREE_AIM)
    }

    fn shown(self) -> String {
        if self.all == 0 {
            return "–".to_owned();
        }
        let share = |count: u32| 100.0 * f64::from(count) / f64::from(self.all);
        format!("{:.0} % / {:.0} %", share(self.first), share(self.among_three))
    }
}

/// Scores of Narrows and the two rules on some kinds of faults.
#[derive(Debug, Default)]
struct Judgement {
    total: [Score; 3],
    /// Rows of the table in `docs/benchmarks/which-service.md`.
    table: Vec<String>,
    /// Comparisons in which another service came first, or none.
    misses: Vec<String>,
    /// Kinds of faults that are found too seldom.
    too_few: Vec<String>,
}

impl Judgement {
    fn of(kinds: &[Kind]) -> Self {
        let mut judgement = Self::default();
        for (number, kind) in kinds.iter().enumerate().filter(|(_, kind)| is_wanted(kind.name)) {
            let mut of_kind = Score::default();
            for (at, system) in kind.systems.iter().enumerate() {
                let scores = judgement.scores(system, kind, number + at);
                judgement.add_row(kind.name, system.name, scores);
                judgement.total = [0, 1, 2].map(|at| judgement.total[at].and(scores[at]));
                of_kind = of_kind.and(scores[0]);
            }
            if !of_kind.is_enough() {
                judgement.too_few.push(format!("{}: {of_kind:?}", kind.name));
            }
        }
        judgement.add_row("all", "", judgement.total);
        judgement
    }

    /// The table, and the comparisons that went wrong if they are asked for.
    fn lines(&self) -> impl Iterator<Item = &String> {
        self.table.iter().chain(self.misses.iter().filter(|_| shows_misses()))
    }

    /// Expects as much as is aimed at.
    fn assert_enough(&self) {
        assert_eq!(self.too_few, [""; 0], "{:?}", self.misses);
        assert!(self.total[0].is_enough_of_all(), "{:?}: {:?}", self.total[0], self.misses);
    }

    fn add_row(&mut self, kind: &str, system: &str, scores: [Score; 3]) {
        let [ours, self_time, spans] = scores.map(Score::shown);
        let Score { all, silent, .. } = scores[0];
        self.table.push(format!("| {kind} | {system} | {all} | {ours} | {silent} | {self_time} | {spans} |"));
    }

    /// Scores on one kind of fault in each service of a system that can have it; `number` decides which of them are chosen.
    fn scores(&mut self, system: &System, kind: &Kind, number: usize) -> [Score; 3] {
        let mut scores = [Score::default(); 3];
        let services = kind.services(system).into_iter().enumerate();
        let services = services.filter(|(place, _)| is_chosen(number, *place)).map(|(_, service)| service);
        for (service, seed) in services.flat_map(|service| (0..repeats()).map(move |seed| (service, seed))) {
            let seed = first_seed() + service as u64 * 100 + seed;
            let (before, after) = kind.sides(system, service, seed);
            let found = compared(&before, &after).services;
            let names: Vec<&str> = found.iter().filter(|one| is_named(one)).map(|one| one.service.as_str()).collect();
            if names.first() != Some(&NAMES[service]) {
                let place = format!("{} in {} of {}", kind.name, NAMES[service], system.name);
                self.misses.push(format!("{place}, seed {seed}: {names:?}"));
            }
            scores[0].count(&names, NAMES[service]);
            if wanted_repeats().is_some() {
                scores[1].count(&by_self_time(&before, &after), NAMES[service]);
                scores[2].count(&by_server_spans(&before, &after), NAMES[service]);
            }
        }
        scores
    }
}

#[test]
fn the_service_with_the_fault_comes_first() {
    println!("| fault | system | comparisons | Narrows | silent | growth of self time | growth of server spans |");
    let judgement = Judgement::of(&KINDS);
    judgement.lines().for_each(|line| println!("{line}"));
    judgement.assert_enough();
}

#[test]
fn a_service_with_a_fault_that_few_requests_reach_comes_first() {
    let judgement = Judgement::of(&RARE_KINDS);
    judgement.lines().for_each(|line| println!("{line}"));
    judgement.assert_enough();
}

#[test]
fn two_healthy_sides_are_silent() {
    let mut alarms = Vec::new();
    let pairs = HEALTHY * repeats();
    for kind in &HEALTHY_KINDS {
        let is_silent = |seed: &u64| {
            let system = [&SHOP, &TRAVEL, &BANK][(*seed % 3) as usize];
            let seed = first_seed() + 7_000 + seed;
            let (before, after) = ((kind.before)(system).run(seed), (kind.after)(system).run(seed + 1_000));
            let found = compared(&before, &after).services;
            let named = found.iter().filter(|one| is_named(one));
            let named: Vec<String> = named.map(|one| format!("{}: {:?}", one.service, one.role)).collect();
            if shows_misses() && !named.is_empty() {
                println!("{} of {}, seed {seed}: {named:?}", kind.name, system.name);
            }
            named.is_empty()
        };
        let silent = (0..pairs).filter(is_silent).count() as u64;
        println!("silent about {silent} of {pairs} pairs, {}", kind.name);
        if (pairs - silent) * 100 > ALARMS_MAX * pairs.max(34) {
            alarms.push(format!("{}: {silent} of {pairs}", kind.name));
        }
    }
    assert_eq!(alarms, [""; 0]);
}

#[test]
fn a_service_that_returns_early_beside_slower_ones_is_named() {
    let found = faulty(&TRAVEL, 1, Fault::EarlyReturn(0), 5);
    let ServiceDiff { service, role, calls, share, .. } = &found.services[0];
    assert_eq!((service.as_str(), *role, *share), ("cart", ServiceRole::Calling, None));
    assert_eq!(calls, &Some(("email".to_owned(), 1.0, 0.0)));
    assert!(found.sentence.contains("cart no longer calls email"), "{}", found.sentence);
}

#[test]
fn the_sentence_says_how_few_requests_reach_a_slower_service() {
    let window = Window { service: 10, requests: 400, reach: 0.04, ..Window::of(&SHOP) };
    let found = compared(&window.run(1), &window.with(Fault::Burn(20.0)).run(2));
    let ServiceDiff { service, role, reached, call_ns, .. } = &found.services[0];
    assert_eq!((service.as_str(), *role), ("accounts", ServiceRole::Slower));
    assert!(reached.is_some_and(|(before, after)| before < 0.07 && after < 0.07), "{reached:?}");
    assert!(call_ns.is_some_and(|(before, after)| after > 10.0 * before), "{call_ns:?}");
    assert!(found.sentence.contains("of each of its calls instead of"), "{}", found.sentence);
    assert!(found.sentence.contains("% of the requests"), "{}", found.sentence);
}

#[test]
fn a_caller_whose_calls_all_begin_late_is_the_cause() {
    let found = faulty(&BANK, 3, Fault::Starved(5.0), 5).services;
    assert_eq!((found[0].service.as_str(), found[0].role), ("checkout", ServiceRole::Slower));
    assert!((found[0].change_ns / 1e6 - 30.0).abs() < 3.0, "{:?}", found[0]);
    assert!(!found[1..].iter().any(is_named), "{found:?}");
}

#[test]
fn callers_whose_requests_end_with_the_error_of_another_are_no_cause() {
    let found = faulty(&TRAVEL, 10, Fault::Exceptions(0.2), 5).services;
    let ServiceDiff { service, role, errors, example, .. } = &found[0];
    assert_eq!((service.as_str(), *role, errors.0), ("accounts", ServiceRole::Failing, 0.0));
    assert!(errors.1 > 0.1 && example.is_some(), "{:?}", found[0]);
    assert!(found.iter().all(|one| one.service == "accounts" || one.calls.is_none()), "{found:?}");
}

#[test]
fn who_waits_for_the_cause_is_no_cause() {
    let found = faulty(&SHOP, 10, Fault::Delay(40.0), 5).services;
    let role = |name: &str| found.iter().find(|one| one.service == name).map(|one| one.role);
    let first = &found[0];
    assert_eq!(
        (first.service.as_str(), first.role, first.confidence),
        ("accounts", ServiceRole::Slower, Confidence::High)
    );
    assert!((first.change_ns / 1e6 - 40.0).abs() < 2.0, "{first:?}");
    assert_eq!(role("payment"), Some(ServiceRole::Unchanged));
}

#[test]
fn who_calls_more_often_is_the_cause_and_not_who_is_called() {
    let found = faulty(&SHOP, 4, Fault::RepeatedCalls, 5);
    let ServiceDiff { service, calls, .. } = &found.services[0];
    assert_eq!((service.as_str(), calls), ("payment", &Some(("accounts".to_owned(), 1.0, 4.0))));
    assert!(found.sentence.contains("payment calls accounts 4 times instead of once"), "{}", found.sentence);
}

/// Eighty requests of orders that make so many queries, each of so many milliseconds.
fn orders(queries: usize, each_ms: f64) -> RunEvidence {
    let traces = (0..80u32).map(|number| {
        let beat =
            Beat { first_ms: 1.0, step_ms: each_ms + 0.05, length_ms: each_ms * (1.0 + f64::from(number % 5) / 50.0) };
        let queries = run_of(queries, beat, |_| query("SELECT name FROM items WHERE id = ?"));
        let length_ms = 2.0 + queries.len() as f64 * (each_ms + 0.05);
        let request = server("orders", "GET /orders").at(0.0, length_ms).children(queries);
        request.trace_from(number, TRIAL_START_NS + i64::from(number) * 50_000_000)
    });
    let load = Load { vus: 4, rate: 20.0, latency_ms: 10.0 };
    run_of_trials([TrialBuilder::new("a").steady(10, load).traces(traces).build()])
}

#[test]
fn one_longer_query_in_place_of_many_makes_the_database_no_slower() {
    let (many, one) = (orders(50, 0.1), orders(1, 1.5));
    for (before, after, role) in [(&many, &one, ServiceRole::Faster), (&one, &many, ServiceRole::Slower)] {
        let found = compared(before, after);
        let [orders, database] = &found.services[..] else { panic!("{:?}", found.services) };
        assert_eq!((orders.service.as_str(), orders.role), ("orders", role));
        assert_eq!((database.role, database.change_ns), (ServiceRole::Unchanged, 0.0));
        // 50 queries of 0.1 ms and 0.05 ms between them, against one of 1.55 ms.
        assert!((orders.change_ns.abs() / 1e6 - 5.95).abs() < 0.3, "{orders:?}");
    }
    let sentence = compared(&many, &one).sentence;
    assert!(sentence.contains("orders calls postgresql once instead of 50 times"), "{sentence}");
}

#[test]
fn too_few_requests_are_not_compared() {
    let mut few = side(&SHOP, 0, Fault::None, 1);
    few.trials[0].traces.truncate(9);
    assert_eq!(compared(&few, &side(&SHOP, 3, Fault::Delay(50.0), 2)).services, []);
}
