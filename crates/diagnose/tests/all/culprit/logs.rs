//! Faults that only logs show, in systems with spans and in systems known by logs alone.

use std::collections::BTreeMap;

use narrows_model::diff::{Fate, ServiceDiff, ServiceRole};
use narrows_model::evidence::RunEvidence;
use narrows_model::messages::{LoggedLine, MessageTally, TracedCall};
use narrows_model::operation::OperationEvidence;
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::random::Random;
use narrows_testkit::spans::{SpanBuilder, client, server};
use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

use super::systems::{NAMES, SHOP, System, TRAVEL};
use super::{HEALTHY, Score, compared, first_seed, is_chosen, is_wanted, repeats, shows_misses};

/// Requests of a side, and its length.
const REQUESTS: u64 = 300;
const WINDOW_S: usize = 60;
/// Kinds of requests.
const KINDS: [&str; 3] = ["GET", "POST", "PUT"];

/// Fault of a service that changes no time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LogFault {
    None,
    /// All calls of one operation no longer write a line.
    LineGone,
    /// All calls of one operation write one more line.
    NewLine,
    /// Five of six calls of a rare operation log an error, and nothing else comes of it.
    RareError,
    /// One call in five fails, and with it those that wait for it.
    Failures,
    /// It neither does its work nor calls others.
    EarlyReturn,
}

/// Telemetry of a system.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Telemetry {
    /// Spans, and logs with trace ids.
    Spans,
    /// Logs with trace ids.
    TraceIds,
    /// Logs.
    Lines,
}

/// A side to simulate.
#[derive(Clone, Copy)]
struct Plan {
    system: &'static System,
    telemetry: Telemetry,
    faulty: usize,
    fault: LogFault,
    /// Share of the second kind of request.
    orders: f64,
    seed: u64,
}

impl Plan {
    /// A system and the way in which it logs, both chosen by the number.
    fn new(telemetry: Telemetry, seed: u64) -> Self {
        let system = if seed.is_multiple_of(2) { &SHOP } else { &TRAVEL };
        Self { system, telemetry, faulty: 0, fault: LogFault::None, orders: 0.3, seed }
    }

    /// Whether services log when a call begins, and when it ends. Of one system, as before and after.
    fn style(&self, service: usize) -> (bool, bool) {
        match (self.seed / 2 % 4, service % 2) {
            (0, _) => (true, true),
            (1, _) => (true, false),
            (2, _) => (false, true),
            (_, odd) => (odd == 0, true),
        }
    }
}

/// Requests of a side while they are made.
struct Requests {
    plan: Plan,
    random: Random,
    lines: Vec<LoggedLine>,
    calls: Vec<TracedCall>,
    request: u64,
    /// Calls of the rare operation.
    rare_calls: u64,
}

/// A call that has ended.
struct Ended {
    /// `None` in systems without spans.
    span: Option<SpanBuilder>,
    end_ms: f64,
    has_failed: bool,
}

impl Requests {
    fn log(&mut self, service: usize, at_ms: f64, is_error: bool, template: String) {
        let trace = (self.plan.telemetry != Telemetry::Lines).then_some(u128::from(self.request));
        let time_ns = TRIAL_START_NS + (at_ms * 1e6) as i64;
        self.lines.push(LoggedLine { time_ns, service: service as u32, template, is_error, trace });
    }

    /// A call of a service in a request of a kind.
    fn call(&mut self, service: usize, kind: usize, start_ms: f64) -> Ended {
        let Plan { system, faulty, fault, seed, .. } = self.plan;
        let fault = if service == faulty { fault } else { LogFault::None };
        let name = NAMES[service];
        let verb = KINDS[kind];
        let (logs_begin, logs_end) = self.plan.style(service);
        let mut now_ms = start_ms + self.random.between(0.5, 2.0);
        if logs_begin {
            self.log(service, start_ms + 0.1, false, format!("received {verb} /{name} for *"));
        }
        let is_affected = kind == affected_kind(service, seed);
        if fault == LogFault::EarlyReturn {
            return self.ended(service, kind, start_ms, now_ms, Vec::new(), false);
        }
        if fault != LogFault::LineGone || !is_affected {
            self.log(service, now_ms, false, format!("{name}: loaded * for {verb}"));
        }
        if fault == LogFault::NewLine && is_affected {
            self.log(service, now_ms + 0.05, false, "using default of *".to_owned());
        }
        if fault == LogFault::RareError && kind == 2 {
            self.rare_calls += 1;
            if self.rare_calls % 6 != 1 {
                self.log(service, now_ms + 0.1, true, "no entry for *".to_owned());
            }
        }
        self.noise(service, now_ms);
        if fault == LogFault::Failures && self.random.unit() < 0.2 {
            self.log(service, now_ms + 0.2, true, "pool of * is empty".to_owned());
            return self.ended(service, kind, start_ms, now_ms + 0.3, Vec::new(), true);
        }
        let mut children = Vec::new();
        for callee in system.calls[service] {
            if (callee + service + kind).is_multiple_of(4) {
                continue;
            }
            let ended = self.call(*callee, kind, now_ms + 0.2);
            let length_ms = ended.end_ms + 0.2 - now_ms;
            children.extend(ended.span.map(|span| client("GET").service(name).at(now_ms, length_ms).child(span)));
            now_ms = ended.end_ms + 0.4;
            if ended.has_failed {
                let template = match seed / 8 % 2 {
                    0 => format!("call of {} failed: *", NAMES[*callee]),
                    _ => "no result: *".to_owned(),
                };
                self.log(service, now_ms, true, template);
                return self.ended(service, kind, start_ms, now_ms + 0.1, children, true);
            }
        }
        if logs_end {
            self.log(service, now_ms + 0.3, false, format!("done {verb} /{name} in * ms"));
        }
        self.ended(service, kind, start_ms, now_ms + 0.4, children, false)
    }

    /// Lines that each system writes now and then.
    fn noise(&mut self, service: usize, now_ms: f64) {
        let kinds = [(0.02, false, "refreshed cache of *"), (0.03, false, "slow query: *"), (0.005, true, "retried *")];
        for (share, is_error, text) in kinds {
            if self.random.unit() < share {
                self.log(service, now_ms, is_error, text.to_owned());
            }
        }
        if self.random.unit() < 0.01 {
            let number = self.random.below(12);
            self.log(
                service,
                now_ms,
                number < 4,
                format!("odd case {}", ["a", "b", "c", "d", "e", "f"][number as usize % 6]),
            );
        }
    }

    fn ended(
        &mut self,
        service: usize,
        kind: usize,
        start_ms: f64,
        end_ms: f64,
        children: Vec<SpanBuilder>,
        has_failed: bool,
    ) -> Ended {
        self.calls.push(TracedCall {
            service: service as u32,
            operation: operation(service, kind),
            start_ns: TRIAL_START_NS + (start_ms * 1e6) as i64,
            end_ns: TRIAL_START_NS + (end_ms * 1e6) as i64,
            weight: 1.0,
        });
        let has_spans = self.plan.telemetry == Telemetry::Spans;
        let span = || server(NAMES[service], &name_of(operation(service, kind))).at(start_ms, end_ms - start_ms);
        Ended { span: has_spans.then(|| span().children(children)), end_ms, has_failed }
    }
}

/// The kind of request in which some faults show.
fn affected_kind(service: usize, seed: u64) -> usize {
    (service + seed as usize) % 2
}

/// Number of an operation, above those of services.
fn operation(service: usize, kind: usize) -> u32 {
    (100 + 10 * service + kind) as u32
}

fn name_of(number: u32) -> String {
    match number as usize {
        service if service < 100 => NAMES[service].to_owned(),
        operation => format!("{} /{}", KINDS[operation % 10], NAMES[operation / 10 - 10]),
    }
}

/// A burst of errors in part of a side, in some services.
fn bursts(requests: &mut Requests) {
    for service in 0..NAMES.len() {
        if requests.random.unit() < 0.2 {
            let start_ms = requests.random.between(0.0, WINDOW_S as f64 * 1e3 * 0.9);
            for number in 0..30 {
                requests.request = 1_000_000 + number;
                requests.log(service, start_ms + 50.0 * number as f64, true, "connection to * was reset".to_owned());
            }
        }
    }
}

fn side(plan: Plan, seed: u64) -> RunEvidence {
    let mut requests =
        Requests { plan, random: Random::new(seed), lines: Vec::new(), calls: Vec::new(), request: 0, rare_calls: 0 };
    let (mut traces, mut calls_of) = (Vec::new(), BTreeMap::new());
    for number in 0..REQUESTS {
        let start_ms = (number as f64 + requests.random.unit()) * (WINDOW_S as f64 * 990.0 / REQUESTS as f64);
        let kind = match requests.random.unit() {
            _ if number % 40 == 7 => 2,
            chance if chance < plan.orders => 1,
            _ => 0,
        };
        requests.request = number + 1;
        let span = requests.call(0, kind, start_ms).span;
        calls_of.insert(number + 1, std::mem::take(&mut requests.calls));
        traces.extend(span.map(|span| span.trace_from(number as u32, TRIAL_START_NS)));
    }
    bursts(&mut requests);
    let load = Load { vus: 4, rate: REQUESTS as f64 / WINDOW_S as f64, latency_ms: 30.0 };
    let mut trial = TrialBuilder::new("a").steady(WINDOW_S, load).traces(traces).build();
    let mut tally = MessageTally::new(&trial);
    requests.lines.sort_by_key(|line| line.time_ns);
    for line in requests.lines {
        tally.add(line);
    }
    if plan.telemetry == Telemetry::Spans {
        let mut operations: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for (request, calls) in calls_of {
            calls.iter().for_each(|call| *operations.entry((call.service, call.operation)).or_default() += 1.0);
            tally.add_calls(u128::from(request), || calls);
        }
        let evidence = operations.into_iter().map(|((service, operation), completed)| OperationEvidence {
            service: name_of(service),
            name: name_of(operation),
            completed,
            ..OperationEvidence::default()
        });
        trial.operations = evidence.collect();
    }
    trial.messages = tally.into_evidence(|number| Ok::<_, ()>(name_of(number))).unwrap_or_default();
    run_of_trials([trial])
}

/// Services that a kind of request leads through.
fn reached(system: &System, kind: usize) -> Vec<usize> {
    let (mut reached, mut next) = (Vec::new(), vec![0]);
    while let Some(service) = next.pop() {
        if !reached.contains(&service) {
            reached.push(service);
            next.extend(system.calls[service].iter().filter(|callee| !(*callee + service + kind).is_multiple_of(4)));
        }
    }
    reached
}

/// Services of a system that can have a fault, in a system that logs as the plan says.
fn candidates(plan: Plan, fault: LogFault) -> Vec<usize> {
    let is_possible = |service: &usize| {
        let kind = affected_kind(*service, plan.seed);
        match fault {
            LogFault::None => false,
            LogFault::RareError => reached(plan.system, 2).contains(service),
            LogFault::LineGone | LogFault::NewLine => reached(plan.system, kind).contains(service),
            LogFault::EarlyReturn => reached(plan.system, 0).contains(service) && plan.style(*service).0,
            LogFault::Failures => reached(plan.system, 0).contains(service),
        }
    };
    (1..NAMES.len()).filter(is_possible).collect()
}

/// Roles and messages of the first services.
fn shown(found: &[ServiceDiff]) -> String {
    let one = |service: &ServiceDiff| {
        let logs: Vec<&str> = service.logs.iter().map(|kind| kind.template.as_str()).collect();
        format!("{} {:?} {logs:?}", service.service, service.role)
    };
    found.iter().take(3).map(one).collect::<Vec<_>>().join("; ")
}

/// Adds comparisons that went wrong to `misses`.
fn score(fault: LogFault, telemetry: Telemetry, misses: &mut Vec<String>) -> Score {
    let mut score = Score::default();
    for number in 0..4 * repeats() {
        let plan = Plan::new(telemetry, first_seed() + 3 * number);
        let of_repeat = |service: &usize| (*service as u64 + number) % 4 < repeats();
        let services = candidates(plan, fault).into_iter().filter(of_repeat);
        for service in services.filter(|service| is_chosen(number as usize, service / 4)) {
            let seed = first_seed() + 100 * number + service as u64;
            let (before, after) = (side(plan, seed), side(Plan { fault, faulty: service, ..plan }, seed + 50_000));
            let found = compared(&before, &after).services;
            let is_named = |one: &&ServiceDiff| {
                !one.logs.is_empty() || !matches!(one.role, ServiceRole::Unchanged | ServiceRole::Waiting)
            };
            let named: Vec<&str> = found.iter().filter(is_named).map(|one| one.service.as_str()).collect();
            if named.first() != Some(&NAMES[service]) {
                let place = format!("{fault:?} in {} of {}", NAMES[service], plan.system.name);
                misses.push(format!("{place}, {telemetry:?}, seeds {} and {seed}: {}", plan.seed, shown(&found)));
            }
            score.count(&named, NAMES[service]);
        }
    }
    score
}

#[test]
fn a_fault_that_only_logs_show_is_named() {
    println!("| fault | telemetry | comparisons | Narrows |");
    let kinds = [
        ("a line is gone", LogFault::LineGone),
        ("a new line", LogFault::NewLine),
        ("an error in 5 of 6 calls of a rare operation", LogFault::RareError),
        ("one call in five fails", LogFault::Failures),
        ("returns early", LogFault::EarlyReturn),
    ];
    let (mut missed, mut misses, mut all) = (Vec::new(), Vec::new(), Score::default());
    for (what, fault) in kinds.into_iter().filter(|(what, _)| is_wanted(what)) {
        let mut of_fault = Score::default();
        for telemetry in [Telemetry::Spans, Telemetry::TraceIds, Telemetry::Lines] {
            let is_rare = fault == LogFault::RareError;
            if telemetry != Telemetry::Spans && is_rare {
                continue;
            }
            let score = score(fault, telemetry, &mut misses);
            println!("| {what} | {telemetry:?} | {} | {} |", score.all, score.shown());
            of_fault = of_fault.and(score);
        }
        if !of_fault.is_enough() {
            missed.push((what, of_fault));
        }
        all = all.and(of_fault);
    }
    misses.iter().filter(|_| shows_misses()).for_each(|miss| println!("{miss}"));
    assert!(missed.is_empty() && all.is_enough_of_all(), "{missed:?} {all:?} {misses:?}");
}

#[test]
fn noisy_logs_of_two_healthy_sides_name_nobody() {
    let pairs = HEALTHY / 2 * repeats();
    for telemetry in [Telemetry::Spans, Telemetry::TraceIds, Telemetry::Lines] {
        let mut named = Vec::new();
        for number in 0..pairs {
            let seed = first_seed() + 20_000 + number;
            let plan = Plan::new(telemetry, seed);
            let after = Plan { orders: if number % 3 == 0 { 0.4 } else { 0.3 }, ..plan };
            let found = compared(&side(plan, seed), &side(after, seed + 5_000)).services;
            named.extend(found.into_iter().find(|one| !one.logs.is_empty()).map(|one| (number, one.service, one.logs)));
        }
        println!("{telemetry:?}: names somebody in {} of {} pairs", named.len(), pairs);
        assert!(named.len() as u64 * 100 <= 3 * pairs, "{telemetry:?}: {named:?}");
    }
}

#[test]
fn the_sentence_says_which_message_is_gone_and_for_which_calls() {
    let plan = Plan::new(Telemetry::Spans, 0);
    let found = compared(&side(plan, 1), &side(Plan { faulty: 1, fault: LogFault::LineGone, ..plan }, 2));
    let (first, fate) = (&found.services[0], found.services[0].logs[0].fate);
    assert_eq!((first.service.as_str(), fate), ("cart", Fate::Vanished));
    let said = "cart no longer logs “cart: loaded * for POST”, which every call of POST /cart did";
    assert!(found.sentence.contains(said), "{}", found.sentence);
}
