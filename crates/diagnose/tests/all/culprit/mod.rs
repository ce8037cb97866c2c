//! Faults in systems of twelve services: the right service comes first, and two healthy sides are silent.
//!
//! `NARROWS_REPEATS=10 cargo test -p narrows-diagnose --test all culprit:: -- --nocapture` prints how often, beside two
//! simple rules (`docs/benchmarks/which-service.md`); `NARROWS_SEED=100000` takes other seeds.

mod rules;
mod systems;

use narrows_diagnose::diff::{Side, diff};
use narrows_diagnose::thresholds::Thresholds;
use narrows_model::diff::{Diff, ServiceDiff, ServiceRole};
use narrows_model::evidence::RunEvidence;
use narrows_model::finding::Confidence;
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::spans::{Beat, query, run_of, server};
use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

use self::rules::{by_self_time, by_server_spans};
use self::systems::{Fault, NAMES, SHOP, System, TRAVEL, side};

/// Pairs of healthy sides.
const HEALTHY: u64 = 40;

const FAULTS: [(&str, Fault); 6] = [
    ("each request takes 12 ms more", Fault::Delay(12.0)),
    ("its CPU is burned by a neighbour", Fault::Burn(4.0)),
    ("a smaller CPU limit", Fault::Quota),
    ("exceptions", Fault::Exceptions),
    ("returns early", Fault::EarlyReturn),
    ("makes its calls four times", Fault::RepeatedCalls),
];

/// Where the seeds of the systems begin; others show what does not hold for these alone.
fn first_seed() -> u64 {
    std::env::var("NARROWS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

/// Repetitions of each fault in each service.
fn repeats() -> u64 {
    std::env::var("NARROWS_REPEATS").ok().and_then(|repeats| repeats.parse().ok()).unwrap_or(1)
}

fn compared(before: &RunEvidence, after: &RunEvidence) -> Diff {
    let nothing = [Vec::new()];
    let of = |label, run| Side { label, run, findings: &nothing };
    diff(of("before", before), of("after", after), &Thresholds::default())
}

fn faulty(system: &System, service: usize, fault: Fault, seed: u64) -> Diff {
    compared(&side(system, 0, Fault::None, seed), &side(system, service, fault, seed + 1_000))
}

/// How often the right service was found, of how many.
#[derive(Debug, Default, Clone, Copy)]
struct Score {
    all: u32,
    first: u32,
    among_three: u32,
}

impl Score {
    fn count(&mut self, ranked: &[&str], right: &str) {
        let at = ranked.iter().position(|service| *service == right);
        self.all += 1;
        self.first += u32::from(at == Some(0));
        self.among_three += u32::from(at.is_some_and(|at| at < 3));
    }

    fn and(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            first: self.first + other.first,
            among_three: self.among_three + other.among_three,
        }
    }

    fn shown(self) -> String {
        let share = |count: u32| 100.0 * f64::from(count) / f64::from(self.all);
        format!("{:.0} % / {:.0} %", share(self.first), share(self.among_three))
    }
}

/// Narrows and the two rules on one kind of fault in each service of a system that can have it.
fn scores(system: &System, fault: Fault) -> [Score; 3] {
    let needs_calls = matches!(fault, Fault::EarlyReturn | Fault::RepeatedCalls);
    let services = (1..NAMES.len()).filter(|service| !needs_calls || !system.calls[*service].is_empty());
    let mut scores = [Score::default(); 3];
    for (service, seed) in services.flat_map(|service| (0..repeats()).map(move |seed| (service, seed))) {
        let seed = first_seed() + service as u64 * 100 + seed;
        let (before, after) = (side(system, 0, Fault::None, seed), side(system, service, fault, seed + 10_000));
        let found = compared(&before, &after).services;
        let names: Vec<&str> = found.iter().map(|one| one.service.as_str()).collect();
        let ranked = [names, by_self_time(&before, &after), by_server_spans(&before, &after)];
        for (score, ranked) in scores.iter_mut().zip(ranked) {
            score.count(&ranked, NAMES[service]);
        }
    }
    scores
}

#[test]
fn the_service_with_the_fault_comes_first() {
    let mut total = [Score::default(); 3];
    println!("| fault | system | comparisons | Narrows | growth of self time | growth of server spans |");
    for (what, fault) in FAULTS {
        let mut of_fault = Score::default();
        for (name, system) in [("shop", &SHOP), ("travel", &TRAVEL)] {
            let scores = scores(system, fault);
            let [ours, self_time, spans] = scores.map(Score::shown);
            println!("| {what} | {name} | {} | {ours} | {self_time} | {spans} |", scores[0].all);
            total = [0, 1, 2].map(|at| total[at].and(scores[at]));
            of_fault = of_fault.and(scores[0]);
        }
        assert!(of_fault.first * 100 >= of_fault.all * 85, "{what}: {of_fault:?}");
        assert!(of_fault.among_three * 100 >= of_fault.all * 95, "{what}: {of_fault:?}");
    }
    let [ours, self_time, spans] = total.map(Score::shown);
    println!("| all | | {} | {ours} | {self_time} | {spans} |", total[0].all);
    let [ours, self_time, spans] = total;
    assert!(ours.first > self_time.first.max(spans.first), "{ours:?} {self_time:?} {spans:?}");
}

#[test]
fn two_healthy_sides_are_silent() {
    for (what, fault) in [("healthy", Fault::None), ("with an error now and then", Fault::Sporadic)] {
        let is_silent = |seed: &u64| {
            let system = if seed.is_multiple_of(2) { &SHOP } else { &TRAVEL };
            let seed = first_seed() + 7_000 + seed;
            let found = compared(&side(system, 0, fault, seed), &side(system, 0, fault, seed + 1_000)).services;
            found.iter().all(|one| matches!(one.role, ServiceRole::Unchanged | ServiceRole::Waiting))
        };
        let silent = (0..HEALTHY).filter(is_silent).count();
        println!("silent about {silent} of {HEALTHY} pairs, {what}");
        assert!(silent * 20 >= 19 * HEALTHY as usize, "{what}: {silent} of {HEALTHY}");
    }
}

#[test]
fn a_service_that_returns_early_beside_slower_ones_is_named() {
    let found = faulty(&TRAVEL, 1, Fault::EarlyReturn, 5);
    let ServiceDiff { service, role, calls, share, .. } = &found.services[0];
    assert_eq!((service.as_str(), *role, *share), ("cart", ServiceRole::Calling, None));
    assert_eq!(calls, &Some(("email".to_owned(), 1.0, 0.0)));
    assert!(found.sentence.contains("cart no longer calls email"), "{}", found.sentence);
}

#[test]
fn callers_whose_requests_end_with_the_error_of_another_are_no_cause() {
    let found = faulty(&TRAVEL, 10, Fault::Exceptions, 5).services;
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
