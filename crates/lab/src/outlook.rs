//! Whether objectives can still be met while a load lasts.
//!
//! The rule is strict: an objective is lost only when it is missed whatever the rest of the load does. It is judged by
//! extremes: all requests that may still end succeed at once, succeed as late as can be, or fail. If no value between
//! these extremes meets the objective, it is lost.
//!
//! How many requests may still end is known of an open model and of a number of iterations. Of users that send for a
//! time it is reckoned from the fastest second so far; before `SPEED_AFTER_SECONDS`, any number is held possible.

use std::time::Duration;

use narrows_load::{WindowsUnderWay, planned_windows};
use narrows_model::counting::{Phase, Tally};
use narrows_model::evidence::LoadTotals;
use narrows_model::load::{Arrivals, LoadLimits, LoadPlan, LoadSecond, Scenario};
use narrows_model::run::WindowKind;

use crate::experiment::{Objective, Op};

/// How many times the throughput of a user in the fastest second is held possible for all the time that is left.
const HEADROOM: f64 = 2.0;
/// The throughput of users is judged from so many seconds on: the first responses of a system are often its slowest.
const SPEED_AFTER_SECONDS: u64 = 5;
/// "Any number" of requests.
const REQUESTS_ANY: u64 = 1 << 50;
/// A Poisson process exceeds its mean by so many standard deviations in 1 of 10⁹ cases.
const POISSON_DEVIATIONS: f64 = 6.0;
/// A latency above every bound, in nanoseconds: 73 minutes, the largest that distributions distinguish.
const LATENCY_WORST_NS: u64 = (1 << 42) - 1;
/// A time above every planned one, in seconds.
const TIME_WORST_S: f64 = 1e9;

/// Objectives, and the load so far.
#[derive(Debug)]
pub struct Outlook<'a> {
    objectives: Vec<TrackedObjective<'a>>,
    scenarios: Vec<Ahead>,
    windows: WindowsUnderWay,
    /// The windows that count, in nanoseconds since the load's start.
    counted: Vec<(i64, i64)>,
    first_ns: Option<i64>,
    /// How much of the load is over, in nanoseconds.
    elapsed_ns: i64,
}

/// An objective and what it covers.
#[derive(Debug)]
struct TrackedObjective<'a> {
    objective: &'a Objective,
    /// Of the windows that count.
    tally: Tally,
    /// Requests that ended, of each scenario, counted as [`Ahead::counts_from_ns`] says.
    ended: Vec<u64>,
}

impl<'a> Outlook<'a> {
    /// Of a load that is about to begin.
    pub fn new(objectives: impl IntoIterator<Item = &'a Objective>, plan: &LoadPlan) -> Self {
        let windows = planned_windows(plan);
        let counted = windows.iter().filter(|window| window.kind != WindowKind::Warmup);
        let follow =
            |objective| TrackedObjective { objective, tally: Tally::default(), ended: vec![0; plan.scenarios.len()] };
        Self {
            windows: WindowsUnderWay::of(plan),
            objectives: objectives.into_iter().map(follow).collect(),
            scenarios: plan.scenarios.iter().map(Ahead::new).collect(),
            counted: counted.map(|window| (nanos(window.start), nanos(window.end))).collect(),
            first_ns: None,
            elapsed_ns: 0,
        }
    }

    /// Adds completed seconds.
    pub fn add(&mut self, rows: &[LoadSecond]) {
        for row in rows {
            let first_ns = *self.first_ns.get_or_insert(row.start_ns);
            self.elapsed_ns = self.elapsed_ns.max(row.end_ns() - first_ns);
            let counted = self.windows.counts(row);
            self.count(row, row.middle_ns() - first_ns, counted);
        }
    }

    fn count(&mut self, row: &LoadSecond, at_ns: i64, counted: Option<Phase>) {
        let Some(index) = self.scenarios.iter().position(|ahead| ahead.name == row.scenario) else { return };
        let ahead = &mut self.scenarios[index];
        ahead.add(row, at_ns);
        for followed in &mut self.objectives {
            let is_covered = followed.objective.covers(row);
            if is_covered && at_ns >= ahead.counts_from_ns {
                followed.ended[index] += row.ended();
            }
            match counted {
                Some(phase) if is_covered => followed.tally.add(row, phase),
                Some(phase) => followed.tally.pass(row, phase),
                None => {}
            }
        }
    }

    /// The first objective that is lost, with what it covers so far.
    pub fn first_lost(&self) -> Option<(&'a Objective, &LoadTotals)> {
        let lost = self.objectives.iter().find(|followed| self.is_lost(followed))?;
        Some((lost.objective, lost.tally.totals()))
    }

    /// Whether the load has come to its planned end.
    pub fn is_over(&self) -> bool {
        self.scenarios.iter().all(|ahead| ahead.is_over(self.elapsed_ns))
    }

    fn is_lost(&self, followed: &TrackedObjective<'_>) -> bool {
        if followed.tally.totals().seconds <= 0.0 {
            return false;
        }
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for future in self.futures(followed) {
            let Some(value) = followed.objective.metric.measured(&future) else { return false };
            (least, most) = (least.min(value), most.max(value));
        }
        let bound = followed.objective.bound;
        match followed.objective.op {
            Op::Less => least >= bound,
            Op::LessOrEqual => least > bound,
            Op::Greater => most <= bound,
            Op::GreaterOrEqual => most < bound,
            Op::Equal => bound < least || most < bound,
        }
    }

    /// The extremes of how the load may end: all that is left succeeds at once, succeeds as late as can be, fails.
    fn futures(&self, followed: &TrackedObjective<'_>) -> [LoadTotals; 3] {
        let (requests, iterations) = self.left(followed);
        let totals = followed.tally.totals();
        let future = |seconds: f64| LoadTotals { seconds, due: totals.due + iterations, ..totals.clone() };
        let succeed = |seconds: f64, latency_ns: u64| {
            let mut future = future(seconds);
            future.succeeded += requests;
            future.latency.record_n(latency_ns, requests);
            future
        };
        let mut failed = future(TIME_WORST_S);
        failed.errors.reset += requests;
        failed.dropped += iterations;
        [succeed(self.soonest_s(followed), 0), succeed(TIME_WORST_S, LATENCY_WORST_NS), failed]
    }

    /// The most requests that may still end and the most iterations that may still be due, of what an objective covers.
    fn left(&self, followed: &TrackedObjective<'_>) -> (u64, u64) {
        let mut left = (0_u64, 0_u64);
        for (ahead, ended) in self.covered(followed) {
            let requests_each = if followed.objective.request.is_some() { 1 } else { ahead.requests_each };
            left.0 =
                left.0.saturating_add(ahead.requests_left(*ended, requests_each, self.elapsed_ns)).min(REQUESTS_ANY);
            left.1 += ahead.iterations_left();
        }
        left
    }

    /// The least time that will have counted at the end, in seconds.
    fn soonest_s(&self, followed: &TrackedObjective<'_>) -> f64 {
        let until_ns = self.covered(followed).map(|(ahead, _)| ahead.lasts_until_ns()).max().unwrap_or(0);
        let counted_ns: i64 = self.counted.iter().map(|(start, end)| ((*end).min(until_ns) - start).max(0)).sum();
        followed.tally.totals().seconds.max(counted_ns as f64 / 1e9)
    }

    fn covered<'b>(&'b self, followed: &'b TrackedObjective<'_>) -> impl Iterator<Item = (&'b Ahead, &'b u64)> {
        let is_covered = |ahead: &Ahead| followed.objective.scenario.as_ref().is_none_or(|name| *name == ahead.name);
        self.scenarios.iter().zip(&followed.ended).filter(move |(ahead, _)| is_covered(ahead))
    }
}

/// The part of a scenario that is still to be sent.
#[derive(Debug)]
struct Ahead {
    name: String,
    limits: LoadLimits,
    /// When its time is over; `None` if only its iterations limit it.
    end_ns: Option<i64>,
    /// The most requests of an iteration.
    requests_each: u64,
    /// The iterations of an open model, those of the warm-up included; of a closed one those after the warm-up. None
    /// when only time limits them.
    iterations_max: Option<u64>,
    /// From when on ended requests are part of these iterations.
    counts_from_ns: i64,
    /// All its requests that ended since then.
    ended: u64,
    due: u64,
    dropped: u64,
    speed: Speed,
}

impl Ahead {
    fn new(scenario: &Scenario) -> Self {
        let limits = scenario.model.limits();
        let arrivals = narrows_load::arrivals(scenario).map(|mean| match limits.arrivals {
            Some(Arrivals::Poisson) => mean + POISSON_DEVIATIONS * (mean.sqrt() + 1.0),
            _ => mean + 1.0,
        });
        let is_open = arrivals.is_some();
        Self {
            name: scenario.name.clone(),
            end_ns: limits.duration.map(|duration| nanos(scenario.warmup.saturating_add(duration))),
            requests_each: scenario.flows.iter().map(|flow| flow.steps.len() as u64).max().unwrap_or(1),
            iterations_max: arrivals.map(|arrivals| arrivals as u64).or(limits.iterations),
            counts_from_ns: if is_open { 0 } else { nanos(scenario.warmup) },
            ended: 0,
            due: 0,
            dropped: 0,
            speed: Speed::default(),
            limits,
        }
    }

    fn add(&mut self, row: &LoadSecond, at_ns: i64) {
        if at_ns >= self.counts_from_ns {
            self.ended += row.ended();
        }
        self.due += row.due;
        self.dropped += row.dropped;
        self.speed.add(row);
    }

    /// The most requests that may still end, when of them `ended` have and an iteration has `requests_each`.
    fn requests_left(&self, ended: u64, requests_each: u64, elapsed_ns: i64) -> u64 {
        match self.iterations_max {
            Some(iterations) => {
                let begun_before = if self.is_open() { 0 } else { self.carried() };
                let sent_most = iterations.saturating_sub(self.dropped).saturating_mul(requests_each);
                sent_most.saturating_add(begun_before).saturating_sub(ended)
            }
            None => {
                let left_s = self.end_ns.map_or(f64::INFINITY, |end_ns| (end_ns - elapsed_ns).max(0) as f64 / 1e9);
                let each = self.speed.per_user().map(|per_user| per_user * HEADROOM * left_s);
                each.map_or(REQUESTS_ANY, |each| (each * f64::from(self.limits.vus_max)).ceil() as u64 + self.carried())
            }
        }
    }

    /// Requests that may be under way: of the warm-up when the counting begins, or when the time is over.
    fn carried(&self) -> u64 {
        if self.limits.iterations.is_some() && self.counts_from_ns == 0 { 0 } else { u64::from(self.limits.vus_max) }
    }

    fn iterations_left(&self) -> u64 {
        if self.is_open() { self.iterations_max.unwrap_or(0).saturating_sub(self.due) } else { 0 }
    }

    fn is_open(&self) -> bool {
        self.limits.arrivals.is_some()
    }

    /// Until when it lasts at least: iterations may be over at any time.
    fn lasts_until_ns(&self) -> i64 {
        if self.limits.iterations.is_some() { 0 } else { self.end_ns.unwrap_or(0) }
    }

    fn is_over(&self, elapsed_ns: i64) -> bool {
        self.end_ns.is_some_and(|end_ns| end_ns <= elapsed_ns)
            || (self.limits.iterations.is_some() && self.requests_left(self.ended, self.requests_each, elapsed_ns) == 0)
    }
}

/// How many requests of a user end in a second at most.
#[derive(Debug, Default)]
struct Speed {
    seconds: u64,
    second_ns: Option<i64>,
    ended: u64,
    vus: u32,
    vus_before: u32,
    most: f64,
}

impl Speed {
    fn add(&mut self, row: &LoadSecond) {
        if self.second_ns != Some(row.start_ns) {
            self.second_ns = Some(row.start_ns);
            self.seconds += 1;
            (self.ended, self.vus_before, self.vus) = (0, self.vus, 0);
        }
        self.vus = self.vus.max(row.vus);
        self.ended += row.ended();
        let users = self.vus.max(self.vus_before).max(1);
        self.most = self.most.max(self.ended as f64 / f64::from(users));
    }

    /// In the fastest second; none while too little has been seen.
    fn per_user(&self) -> Option<f64> {
        (self.seconds >= SPEED_AFTER_SECONDS && self.most > 0.0).then_some(self.most)
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use narrows_model::load::{
        Connections, Cookies, Flow, Iterations, LoadModel, Protocol, RateStage, RequestTemplate, Retry, Stage,
        StageShape, Step, Template,
    };

    use super::*;
    use crate::experiment::parse_objective;

    const MS: u64 = 1_000_000;
    const SECOND_NS: i64 = 1_000_000_000;

    /// Scenarios `a`, `b` and so on of one request each, by the seconds of their warm-up and their models.
    pub(crate) fn plan(scenarios: &[(u64, LoadModel)]) -> LoadPlan {
        let request = RequestTemplate {
            method: "GET".into(),
            path: Template::text("/"),
            headers: Vec::new(),
            body: None,
            host: "h".into(),
        };
        let scenario = |(name, (warmup_s, model)): (char, &(u64, LoadModel))| Scenario {
            name: name.into(),
            model: model.clone(),
            warmup: Duration::from_secs(*warmup_s),
            flows: vec![Flow::single(request.clone())],
            cookies: Cookies::default(),
            think_time: Duration::ZERO.into(),
            pace: None,
        };
        LoadPlan {
            targets: Vec::new(),
            client_addresses: Vec::new(),
            protocol: Protocol::Http1,
            tls: None,
            scenarios: ('a'..).zip(scenarios).map(scenario).collect(),
            data: Vec::new(),
            tracing: None,
            timeout: Duration::from_secs(5),
            drain: Duration::from_secs(5),
            retry: Retry::Idempotent,
            seed: 1,
            threads: 1,
            connections: Connections::KeepAlive,
        }
    }

    fn shared(iterations: u64) -> LoadModel {
        LoadModel::Iterations { vus: 1, iterations: Iterations::Shared(iterations), max_duration: None }
    }

    fn timed(vus: u32, seconds: u64) -> LoadModel {
        LoadModel::ConstantVus { vus, duration: Duration::from_secs(seconds) }
    }

    fn open(rate: f64, seconds: u64, arrivals: Arrivals) -> LoadModel {
        LoadModel::ConstantArrivalRate { rate, duration: Duration::from_secs(seconds), vus_max: 10, arrivals }
    }

    /// A second of a scenario's request.
    fn of(scenario: &str, request: &str, at: i64, succeeded: u64, failed: u64, latency_ms: u64) -> LoadSecond {
        let mut row = LoadSecond {
            scenario: scenario.into(),
            request: request.into(),
            start_ns: 5_000_000_000 + at * SECOND_NS,
            succeeded,
            vus: 1,
            ..LoadSecond::default()
        };
        row.errors.status = failed;
        row.latency.record_n(latency_ms * MS, succeeded);
        row
    }

    fn second(at: i64, succeeded: u64, failed: u64, latency_ms: u64) -> LoadSecond {
        of("a", "", at, succeeded, failed, latency_ms)
    }

    fn lost(rows: &[LoadSecond], text: &str, plan: &LoadPlan) -> bool {
        let objective = parse_objective(text).unwrap();
        let mut outlook = Outlook::new([&objective], plan);
        outlook.add(rows);
        outlook.first_lost().is_some()
    }

    #[test]
    fn an_objective_is_lost_when_nothing_that_may_come_can_meet_it() {
        let ten = timed(1, 10);
        let even = open(100.0, 10, Arrivals::Uniform);
        // 100 requests in the first second: 90 of them slow, or 10 of them failed.
        let slow = [second(0, 10, 0, 1), second(0, 90, 0, 50)];
        let failing = [second(0, 90, 10, 1)];
        let cases = [
            (&slow[..], "max < 20ms", &ten, true),
            (&slow[..], "max < 60ms", &ten, false),
            (&slow[..], "p50 < 20ms", &shared(150), true),
            (&slow[..], "p50 < 20ms", &shared(300), false),
            (&slow[..], "p50 < 20ms", &ten, false),
            (&slow[..], "p95 < 20ms", &shared(1_000), true),
            (&slow[..], "p99 < 20ms", &even, true),
            (&slow[..], "p95 < 20ms", &even, true),
            (&slow[..], "p90 < 20ms", &even, false),
            (&slow[..], "p50 > 100ms", &shared(300), false),
            (&slow[..], "p50 > 100ms", &shared(150), true),
            (&slow[..], "p50 == 3ms", &shared(150), true),
            (&slow[..], "p50 == 3ms", &shared(300), false),
            (&failing[..], "error_rate == 0", &ten, true),
            (&failing[..], "error_rate < 2%", &shared(400), true),
            (&failing[..], "error_rate < 2%", &shared(600), false),
            (&failing[..], "error_rate < 2%", &ten, false),
            (&slow[..], "rate >= 1000/s", &even, true),
            (&slow[..], "rate >= 101/s", &even, true),
            (&slow[..], "rate >= 150/s", &ten, false),
            (&slow[..], "rate < 5/s", &ten, false),
        ];
        for (rows, objective, model, expected) in cases {
            assert_eq!(lost(rows, objective, &plan(&[(0, model.clone())])), expected, "{objective} of {model:?}");
        }
    }

    #[test]
    fn the_speed_of_users_is_reckoned_only_once_it_has_been_seen() {
        let plan = plan(&[(0, timed(1, 10))]);
        let slow: Vec<LoadSecond> = (0..6).map(|at| second(at, 100, 0, 50)).collect();
        for (objective, expected) in [("rate >= 300/s", true), ("rate >= 150/s", false), ("p50 < 20ms", false)] {
            assert!(!lost(&slow[..4], objective, &plan), "{objective}");
            assert_eq!(lost(&slow[..5], objective, &plan), expected, "{objective}");
        }
        // 600 slow ones, at most 801 more.
        assert!(lost(&slow, "p90 < 20ms", &plan));
        let silent: Vec<LoadSecond> = (0..9).map(|at| second(at, 0, 0, 1)).collect();
        assert!(!lost(&silent, "rate >= 100/s", &plan), "no request has ended, so no speed is known");
    }

    #[test]
    fn a_ramp_is_judged_by_all_the_users_and_arrivals_that_it_will_have() {
        let stage = |target| Stage { duration: Duration::from_secs(10), target, shape: StageShape::Linear };
        let few: Vec<LoadSecond> = (0..8).map(|at| second(at, 10, 0, 50)).collect();
        let of_users = |most| plan(&[(0, LoadModel::RampingVus { start_vus: 1, stages: vec![stage(1), stage(most)] })]);
        // 80 slow ones; 12 seconds of 1 or of 100 users are left.
        assert!(lost(&few, "p90 < 20ms", &of_users(1)));
        assert!(!lost(&few, "p90 < 20ms", &of_users(100)));
        let stage = |target| RateStage { duration: Duration::from_secs(10), target, shape: StageShape::Linear };
        let of_rate = |target| {
            let stages = vec![stage(10.0), stage(target)];
            plan(&[(
                0,
                LoadModel::RampingArrivalRate { start_rate: 10.0, stages, vus_max: 9, arrivals: Arrivals::Uniform },
            )])
        };
        // 80 slow ones of 200, or of 1,200.
        assert!(lost(&few, "p90 < 20ms", &of_rate(10.0)));
        assert!(!lost(&few, "p90 < 20ms", &of_rate(210.0)));
    }

    #[test]
    fn each_objective_is_judged_by_the_scenarios_that_it_covers() {
        let plan = plan(&[(0, shared(100)), (0, open(1_000.0, 60, Arrivals::Uniform))]);
        let rows = [of("a", "", 0, 60, 0, 50), of("b", "", 0, 1_000, 0, 1)];
        assert!(lost(&rows, "a: p50 < 20ms", &plan));
        assert!(!lost(&rows, "b: p50 < 20ms", &plan));
        assert!(!lost(&rows, "p50 < 20ms", &plan), "the requests of the other scenario may be fast");
        assert!(!lost(&rows, "c: p50 < 20ms", &plan), "of a scenario that is not there nothing is measured");
    }

    #[test]
    fn a_request_ends_once_in_an_iteration_and_a_flow_several_times() {
        let mut plan = plan(&[(0, shared(100))]);
        let steps = &mut plan.scenarios[0].flows[0].steps;
        steps[0].name = "x".into();
        steps.push(Step { name: "y".into(), ..steps[0].clone() });
        let rows = [of("a", "x", 0, 55, 0, 50), of("a", "y", 0, 55, 0, 50)];
        assert!(lost(&rows, "a/x: p50 < 20ms", &plan));
        assert!(lost(&rows, "p50 < 20ms", &plan));
        let rows = [of("a", "x", 0, 60, 0, 50), of("a", "y", 0, 30, 0, 50)];
        assert!(lost(&rows, "a/x: p50 < 20ms", &plan));
        assert!(!lost(&rows, "p50 < 20ms", &plan), "90 of 200");
        assert!(!lost(&rows, "a/y: p50 < 20ms", &plan));
    }

    #[test]
    fn random_arrivals_may_be_more_than_planned() {
        let rows: Vec<LoadSecond> = (0..2).map(|at| second(at, 60, 0, 50)).collect();
        let of = |arrivals| plan(&[(0, open(60.0, 4, arrivals))]);
        assert!(lost(&rows, "rate > 61/s", &of(Arrivals::Uniform)));
        assert!(!lost(&rows, "rate > 61/s", &of(Arrivals::Poisson)));
    }

    #[test]
    fn dropped_iterations_are_compared_with_all_that_will_be_due() {
        let dropping = |dropped| LoadSecond { due: 100, dropped, ..second(0, 100 - dropped, 0, 1) };
        let plan = plan(&[(0, open(100.0, 10, Arrivals::Uniform))]);
        assert!(lost(&[dropping(1)], "dropped_rate == 0", &plan));
        assert!(!lost(&[dropping(9)], "dropped_rate < 1%", &plan));
        assert!(lost(&[dropping(11)], "dropped_rate < 1%", &plan));
        assert!(!lost(&[second(0, 1, 0, 1)], "dropped_rate == 0", &self::plan(&[(0, shared(5))])));
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let plan = plan(&[(2, timed(1, 9))]);
        let mut rows = vec![second(0, 9, 9, 1), second(1, 9, 9, 1)];
        assert!(!lost(&rows, "error_rate == 0", &plan));
        rows.push(second(2, 7, 0, 1));
        assert!(!lost(&rows, "error_rate == 0", &plan));
        rows.push(second(3, 7, 1, 1));
        assert!(lost(&rows, "error_rate == 0", &plan));
    }

    #[test]
    fn a_load_is_over_with_its_time_and_its_iterations() {
        let is_over = |rows: &[LoadSecond], scenarios: &[(u64, LoadModel)]| {
            let mut outlook = Outlook::new([], &plan(scenarios));
            outlook.add(rows);
            outlook.is_over()
        };
        let rows = [second(0, 10, 0, 1), second(1, 10, 0, 1)];
        for (scenarios, expected) in [
            (vec![(0, timed(1, 2))], true),
            (vec![(1, timed(1, 2))], false),
            (vec![(0, shared(20))], true),
            (vec![(0, shared(21))], false),
            (vec![(0, timed(1, 2)), (0, timed(1, 9))], false),
        ] {
            assert_eq!(is_over(&rows, &scenarios), expected, "{scenarios:?}");
        }
    }
}
