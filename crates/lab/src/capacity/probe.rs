//! A probe: the experiment's scenarios at one rate of arrivals, and whether the objectives were kept.
//!
//! Everything here is arithmetic over plans and totals. A probe is kept when every objective is, and the system keeps up:
//! all but a few of the requests of the counted time got their response in it. Failed responses count only where an
//! objective says how many may fail. What the generator did is judged by its own thresholds, apart from the waiting for
//! free users, which a slow system causes.

use std::time::Duration;

use narrows_load::validity::{GeneratorFigures, judge};
use narrows_load::{LoadOutcome, RATE_MAX, RATE_MIN, VUS_MAX};
use narrows_model::comparison::Kept;
use narrows_model::counting::{self, Phase};
use narrows_model::evidence::LoadTotals;
use narrows_model::load::{LoadModel, LoadPlan, LoadSecond, Scenario};
use narrows_model::run::Verdict;
use narrows_model::units;
use serde::Serialize;

use crate::capacity::search::Fate;
use crate::experiment::{Metric, Objective};
use crate::judgement;

/// A share of requests that may have no response at the end, and how many may always be.
const BEHIND: f64 = 0.05;
const BEHIND_MIN: u64 = 10;
/// From this share of iterations on, waiting for a free user shows in the generator's lateness.
const WAITED: f64 = 0.01;
/// Users of a probe: enough for so many seconds of latency at its rate, within these bounds.
const LATENCY_MIN_S: f64 = 1.0;
const USERS: (u32, u32) = (32, 4_000);
/// So many times the longest latency that the objectives allow.
const LATENCY_SPARE: f64 = 2.0;

/// Result of one probe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// Iterations that were to begin, per second.
    pub offered: f64,
    /// Successful responses per second.
    pub achieved: f64,
    /// Mean latency, nanoseconds.
    pub mean_ns: f64,
    /// Median latency, nanoseconds.
    pub p50_ns: u64,
    /// 95 % latency, nanoseconds.
    pub p95_ns: u64,
    /// 99 % latency, nanoseconds.
    pub p99_ns: u64,
    /// Failed requests.
    pub errors: u64,
    /// Failed ÷ ended, 0 to 1.
    pub error_rate: f64,
    /// Outcome.
    pub fate: Fate,
    /// Broken objectives, or reasons why the generator was the limit.
    pub reasons: Vec<Reason>,
}

/// Why a probe was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// In a word or two: `p95`.
    pub what: String,
    /// With its figures: `p95 < 100ms: 134 ms`.
    pub text: String,
}

/// The objectives that a capacity can be judged by, and those it cannot: a least rate is broken by any low rate.
pub(crate) fn judgeable(objectives: &[Objective]) -> (Vec<Objective>, Vec<Objective>) {
    objectives.iter().cloned().partition(|objective| objective.metric != Metric::Rate)
}

/// The experiment's plan at one rate: settled first, then counted.
pub(crate) fn plan_at(
    plan: &LoadPlan,
    rate: f64,
    settle: Duration,
    time: Duration,
    objectives: &[Objective],
) -> Result<LoadPlan, String> {
    let shares = shares(&plan.scenarios)?;
    let scenarios = plan.scenarios.iter().zip(shares).map(|(scenario, share)| {
        let rate = (rate * share).clamp(RATE_MIN, RATE_MAX);
        let limits = scenario.model.limits();
        let vus_max = if scenario.model.is_open() { limits.vus_max } else { users_for(rate, objectives) };
        let arrivals = limits.arrivals.unwrap_or_default();
        let model = LoadModel::ConstantArrivalRate { rate, duration: time, vus_max, arrivals };
        Scenario { model, warmup: settle, pace: None, ..scenario.clone() }
    });
    Ok(LoadPlan { scenarios: scenarios.collect(), ..plan.clone() })
}

/// The experiment's plan as a short closed loop that shows where to begin.
pub(crate) fn closed_look(plan: &LoadPlan, users: u32, time: Duration) -> LoadPlan {
    let closed = |scenario: &Scenario| Scenario {
        model: LoadModel::ConstantVus { vus: closed_users(&scenario.model).unwrap_or(users), duration: time },
        warmup: Duration::ZERO,
        pace: None,
        ..scenario.clone()
    };
    LoadPlan { scenarios: plan.scenarios.iter().map(closed).collect(), ..plan.clone() }
}

/// How a rate is split over the scenarios: as their own rates or their own users are.
fn shares(scenarios: &[Scenario]) -> Result<Vec<f64>, String> {
    let split = |of: fn(&LoadModel) -> Option<f64>| {
        let parts: Option<Vec<f64>> = scenarios.iter().map(|scenario| of(&scenario.model)).collect();
        let parts = parts?;
        let total: f64 = parts.iter().sum();
        (total > 0.0).then(|| parts.iter().map(|part| part / total).collect())
    };
    let of_users = |model: &LoadModel| closed_users(model).map(f64::from);
    split(|model| model.limits().rate_max).or_else(|| split(of_users)).ok_or_else(|| {
        "some of its scenarios have users and some have a rate, so a rate cannot be split between them".to_owned()
    })
}

/// The users of a closed model; `None` for an open one, whose users are only those that it needs.
fn closed_users(model: &LoadModel) -> Option<u32> {
    (!model.is_open()).then(|| model.limits().vus_max)
}

/// Little's law: users that are busy at a rate, at the longest latency that the objectives allow and more.
fn users_for(rate: f64, objectives: &[Objective]) -> u32 {
    let is_latency =
        |objective: &&Objective| !matches!(objective.metric, Metric::ErrorRate | Metric::DroppedRate | Metric::Rate);
    let longest_s = objectives.iter().filter(is_latency).map(|objective| objective.bound / 1e9).fold(0.0, f64::max);
    let users = rate * (longest_s * LATENCY_SPARE).max(LATENCY_MIN_S);
    (users.ceil() as u32).clamp(USERS.0, USERS.1.min(VUS_MAX))
}

/// Judges a probe by its counted time.
pub(crate) fn judged(
    offered: f64,
    rows: &[(LoadSecond, Phase)],
    outcome: &LoadOutcome,
    objectives: &[Objective],
) -> Probe {
    let totals = counting::totals(by_reference(rows), |_| true);
    let latency = totals.latency();
    let limits = generator_limits(outcome);
    let (fate, reasons) = match limits {
        limits if !limits.is_empty() => (Fate::GeneratorLimited, limits),
        _ => match broken(rows, &totals, objectives) {
            reasons if reasons.is_empty() => (Fate::Kept, reasons),
            reasons => (Fate::Broken, reasons),
        },
    };
    Probe {
        offered,
        achieved: totals.rate(),
        mean_ns: latency.mean_ns,
        p50_ns: latency.p50_ns,
        p95_ns: latency.p95_ns,
        p99_ns: latency.p99_ns,
        errors: totals.errors.total(),
        error_rate: totals.error_rate(),
        fate,
        reasons,
    }
}

fn by_reference(rows: &[(LoadSecond, Phase)]) -> impl Iterator<Item = (&LoadSecond, Phase)> {
    rows.iter().map(|(row, phase)| (row, *phase))
}

fn broken(rows: &[(LoadSecond, Phase)], totals: &LoadTotals, objectives: &[Objective]) -> Vec<Reason> {
    if totals.succeeded == 0 {
        let what = "everything".to_owned();
        return vec![Reason { what, text: "no request succeeded".to_owned() }];
    }
    let missed = objectives.iter().filter_map(|objective| {
        let result = judgement::judged(objective, by_reference(rows));
        let what = result.text.split(['<', '>', '=']).next().unwrap_or_default().trim().to_owned();
        (result.kept != Kept::Yes).then(|| Reason { what, text: format!("{}: {}", result.text, result.measured) })
    });
    let in_time = by_reference(rows).filter(|(_, phase)| *phase == Phase::Sending);
    missed.chain(behind(&counting::totals(in_time, |_| true), objectives)).collect()
}

/// Whether more was sent than came back, or less was sent than asked for.
fn behind(totals: &LoadTotals, objectives: &[Objective]) -> Option<Reason> {
    let may_fail = objectives.iter().any(|objective| objective.metric == Metric::ErrorRate);
    let responses = totals.succeeded + if may_fail { totals.errors.total() } else { 0 };
    let is_far = |missing: u64, of: u64| missing > BEHIND_MIN && missing as f64 > BEHIND * of as f64;
    let pending = totals.sent.saturating_sub(responses);
    if !is_far(pending, totals.sent) && !is_far(totals.dropped, totals.due) {
        return None;
    }
    let mut text = format!("{} of {} requests got a response", units::count(responses), units::count(totals.sent));
    if totals.dropped > 0 {
        let (dropped, due) = (units::count(totals.dropped), units::count(totals.due));
        text.push_str(&format!(", and {dropped} of {due} iterations never began"));
    }
    Some(Reason { what: "the system's pace".to_owned(), text })
}

/// Faults of the generator itself; empty if it kept up.
fn generator_limits(outcome: &LoadOutcome) -> Vec<Reason> {
    let counted = &outcome.counted;
    let waited = counted.late as f64 > WAITED * counted.due as f64;
    let busiest_thread = outcome.threads.iter().map(|thread| thread.share()).fold(0.0, f64::max);
    let validity = judge(&GeneratorFigures {
        // Whether anything succeeded is the system's affair.
        ended: 1,
        succeeded: 1,
        lateness_p99_ns: if waited { 0 } else { counted.lateness.quantile_ns(0.99) },
        latency_p99_ns: counted.latency.quantile_ns(0.99),
        busiest_thread,
        arrivals: None,
    });
    if validity.verdict != Verdict::Invalid {
        return Vec::new();
    }
    let reason = |text| Reason { what: "the generator".to_owned(), text };
    validity.reasons.into_iter().map(reason).collect()
}

#[cfg(test)]
mod tests {
    use narrows_load::{ArrivalTotals, Phases, ThreadUse};
    use narrows_model::load::{
        Connections, Cookies, ErrorCounts, Flow, Protocol, RateStage, RequestTemplate, Retry, Stage, StageShape,
        Template,
    };
    use narrows_model::run::Validity;

    use narrows_model::load::Arrivals;

    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: Duration = Duration::from_secs(1);

    fn objectives(texts: &[&str]) -> Vec<Objective> {
        let list: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
        crate::experiment::RecordedExperiment::read(&format!("objectives: [{}]", list.join(", "))).objectives
    }

    fn plan(models: &[LoadModel]) -> LoadPlan {
        let request = RequestTemplate {
            method: "GET".into(),
            path: Template::text("/"),
            headers: Vec::new(),
            body: None,
            host: "h".into(),
        };
        let scenario = |model: &LoadModel| Scenario {
            name: "s".into(),
            model: model.clone(),
            warmup: SECOND,
            flows: vec![Flow::single(request.clone())],
            cookies: Cookies::default(),
            think_time: Duration::ZERO.into(),
            pace: Some(SECOND),
        };
        LoadPlan {
            targets: Vec::new(),
            client_addresses: Vec::new(),
            protocol: Protocol::Http1,
            tls: None,
            scenarios: models.iter().map(scenario).collect(),
            data: Vec::new(),
            tracing: None,
            timeout: SECOND,
            drain: SECOND,
            retry: Retry::Idempotent,
            seed: 1,
            threads: 1,
            connections: Connections::KeepAlive,
        }
    }

    fn closed(vus: u32) -> LoadModel {
        LoadModel::ConstantVus { vus, duration: SECOND }
    }

    fn ramping(target: u32) -> LoadModel {
        let stages = vec![Stage { duration: SECOND, target, shape: StageShape::Linear }];
        LoadModel::RampingVus { start_vus: 1, stages }
    }

    fn open(rate: f64) -> LoadModel {
        LoadModel::ConstantArrivalRate { rate, duration: SECOND, vus_max: 7, arrivals: Arrivals::Poisson }
    }

    /// Rate and users of each scenario of a probe at 100/s.
    fn probed(models: &[LoadModel], texts: &[&str]) -> Result<Vec<(f64, u32)>, String> {
        let plan = plan_at(&plan(models), 100.0, SECOND, SECOND, &objectives(texts))?;
        let of = |scenario: Scenario| match scenario.model {
            LoadModel::ConstantArrivalRate { rate, vus_max, .. } if scenario.pace.is_none() => (rate, vus_max),
            other => panic!("{other:?}"),
        };
        Ok(plan.scenarios.into_iter().map(of).collect())
    }

    #[test]
    fn a_rate_is_split_as_the_scenarios_own_load_is() {
        assert_eq!(probed(&[closed(3)], &[]).unwrap(), [(100.0, 100)]);
        assert_eq!(probed(&[closed(3), ramping(1)], &[]).unwrap(), [(75.0, 75), (25.0, 32)]);
        let stages = vec![RateStage { duration: SECOND, target: 30.0, shape: StageShape::Linear }];
        let ramp = LoadModel::RampingArrivalRate { start_rate: 5.0, stages, vus_max: 9, arrivals: Arrivals::Uniform };
        assert_eq!(probed(&[open(10.0), ramp], &[]).unwrap(), [(25.0, 7), (75.0, 9)]);
        assert!(probed(&[open(10.0), closed(1)], &[]).unwrap_err().contains("a rate cannot be split between them"));
    }

    #[test]
    fn there_are_users_for_the_longest_latency_allowed() {
        assert_eq!(probed(&[closed(1)], &["p95 < 5s", "max < 1s", "error_rate < 1%"]).unwrap(), [(100.0, 1_000)]);
        assert_eq!(probed(&[closed(1)], &["p95 < 1h"]).unwrap(), [(100.0, USERS.1)]);
        let LoadModel::ConstantVus { vus, .. } = closed_look(&plan(&[open(1.0)]), 5, SECOND).scenarios[0].model else {
            panic!("no closed model")
        };
        assert_eq!(vus, 5);
    }

    /// A second in which so many were sent, succeeded in so much time and failed.
    fn second(sent: u64, succeeded: u64, latency_ms: u64, failed: u64) -> LoadSecond {
        let errors = ErrorCounts { status: failed, ..ErrorCounts::default() };
        let mut second = LoadSecond { due: sent, sent, succeeded, errors, ..LoadSecond::default() };
        second.latency.record_n(latency_ms * MS, succeeded);
        second
    }

    fn outcome(busy: f64, lateness_ms: u64, late: u64) -> LoadOutcome {
        let mut totals = LoadTotals { due: 100, late, ..LoadTotals::default() };
        totals.lateness.record_n(lateness_ms * MS, 100);
        totals.latency.record_n(5 * MS, 100);
        LoadOutcome {
            started_ns: 0,
            ended_ns: 1,
            counted: totals.clone(),
            totals,
            arrivals: Some(ArrivalTotals { due: 100, late, dropped: 0, seconds: 1.0 }),
            client_addresses: 1,
            body_bytes: 0,
            statuses: Default::default(),
            causes: Vec::new(),
            phases: Phases::default(),
            ticks_missed: 0,
            undrained: 0,
            threads: vec![ThreadUse { cpu: SECOND.mul_f64(busy), wall: SECOND }],
            validity: Validity::default(),
        }
    }

    #[test]
    fn a_probe_is_kept_when_the_objectives_are_and_the_system_keeps_up() {
        let fine = outcome(0.5, 0, 0);
        let cases: [(&[&str], LoadSecond, Fate, &str); 8] = [
            (&["p95 < 10ms"], second(1000, 1000, 5, 0), Fate::Kept, ""),
            (&["p95 < 10ms"], second(1000, 1000, 15, 0), Fate::Broken, "p95"),
            (&["p95 < 10ms"], second(1000, 960, 5, 0), Fate::Kept, ""),
            (&["p95 < 10ms"], second(1000, 940, 5, 60), Fate::Broken, "the system's pace"),
            (&["p95 < 10ms", "error_rate < 10%"], second(1000, 940, 5, 60), Fate::Kept, ""),
            (&["error_rate < 10%"], second(1000, 800, 5, 200), Fate::Broken, "error_rate"),
            (&["p95 < 10ms"], second(9, 1, 5, 0), Fate::Kept, ""),
            (&["p95 < 10ms"], second(100, 0, 5, 100), Fate::Broken, "everything"),
        ];
        for (texts, second, fate, what) in cases {
            let probe = judged(1000.0, &[(second, Phase::Sending)], &fine, &objectives(texts));
            let first = probe.reasons.first().map_or("", |reason| reason.what.as_str());
            assert_eq!((probe.fate, first), (fate, what), "{texts:?} {:?}", probe.reasons);
        }
    }

    #[test]
    fn iterations_that_never_began_are_the_systems_pace_too() {
        let given_up = LoadSecond { due: 1000, dropped: 200, ..second(800, 800, 5, 0) };
        let judged = |second: LoadSecond| {
            let objectives = objectives(&["p95 < 10ms", "error_rate < 10%"]);
            judged(1000.0, &[(second, Phase::Sending)], &outcome(0.5, 0, 0), &objectives).reasons
        };
        let texts: Vec<String> = judged(given_up).into_iter().map(|reason| reason.text).collect();
        assert_eq!(texts, ["800 of 800 requests got a response, and 200 of 1,000 iterations never began"]);
        let texts: Vec<String> = judged(second(1000, 500, 5, 0)).into_iter().map(|reason| reason.text).collect();
        assert_eq!(texts, ["500 of 1,000 requests got a response"]);
    }

    #[test]
    fn the_generators_limit_is_not_the_systems() {
        let broken = [(second(1000, 1000, 15, 0), Phase::Sending)];
        let fate = |outcome: LoadOutcome| judged(1.0, &broken, &outcome, &objectives(&["p95 < 10ms"])).fate;
        assert_eq!(fate(outcome(0.5, 0, 0)), Fate::Broken);
        assert_eq!(fate(outcome(0.97, 0, 0)), Fate::GeneratorLimited);
        assert_eq!(fate(outcome(0.5, 50, 0)), Fate::GeneratorLimited);
        // An arrival that waits for a free user waits for the system.
        assert_eq!(fate(outcome(0.5, 50, 30)), Fate::Broken);
    }

    #[test]
    fn a_least_rate_is_not_judged() {
        let (judged, left_out) = judgeable(&objectives(&["p95 < 10ms", "rate >= 100/s"]));
        assert_eq!((judged[0].text.as_str(), left_out[0].text.as_str()), ("p95 < 10ms", "rate >= 100/s"));
    }
}
