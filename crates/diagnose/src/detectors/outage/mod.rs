//! `outage`: a replica was down while the load ran, and requests failed or were not answered until the load was as before.
//!
//! When a replica was up is what the run wrote down, because an experiment killed, paused or restarted it or because it
//! ended by itself. What came of it is counted in the load's seconds (`recovery`). An outage that the load did not feel
//! is none. Whose fault the failures are is asked of the traces too: of the calls that failed meanwhile, those with no
//! failed call below them should have gone to the replica's service.

use std::collections::{HashMap, HashSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::load::{ErrorCounts, Recovery, RecoveryEnd, recovery};
use narrows_model::series::{Series, names};
use narrows_model::trace::{Span, SpanId, SpanKind, Trace};
use narrows_model::units;

use crate::Detector;
use crate::calls::went_wrong;
use crate::periods::period_of;
use crate::reading::Reading;
use crate::words::{EXEMPLARS_MAX, exemplar};

/// See the module.
#[derive(Debug)]
pub struct Outage;

/// Spells that are told one by one.
const TOLD_MAX: usize = 5;
/// How far up the parents of a failed call are followed.
const DEPTH_MAX: usize = 64;

impl Detector for Outage {
    fn kind(&self) -> FindingKind {
        FindingKind::Outage
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let trial = reading.trial;
        let replicas = trial.series.iter().filter(|series| series.key.name == names::REPLICA_UP);
        let cases = replicas.filter_map(|series| Case::new(reading, series));
        cases.map(|case| case.finding(self)).collect()
    }
}

/// A time in which a replica was down, with what the load felt of it.
struct Spell {
    from_ns: i64,
    /// None when it stayed down.
    to_ns: Option<i64>,
    came: Recovery,
}

/// One replica that was down.
struct Case<'a> {
    reading: &'a Reading<'a>,
    service: &'a str,
    replica: u32,
    /// Those that the load felt, none within what came of another; at least one.
    spells: Vec<Spell>,
    end_ns: i64,
}

impl<'a> Case<'a> {
    /// None when the load did not feel it, or not while it counted.
    fn new(reading: &'a Reading<'a>, up: &'a Series) -> Option<Self> {
        let trial = reading.trial;
        let end_ns = trial.windows.last()?.end_ns;
        let counts_from_ns = trial.counted_windows().next()?.start_ns;
        let mut spells: Vec<Spell> = Vec::new();
        for (from_ns, to_ns) in down(up) {
            let came = recovery(&trial.seconds, from_ns);
            let is_counted = came.until_ns > counts_from_ns && from_ns < end_ns;
            let is_told = spells.last().is_some_and(|before| from_ns < before.came.until_ns);
            if is_felt(&came) && is_counted && !is_told {
                spells.push(Spell { from_ns, to_ns, came });
            }
        }
        let (service, replica) = (up.key.service.as_str(), up.key.replica);
        (!spells.is_empty()).then_some(Self { reading, service, replica, spells, end_ns })
    }

    fn trial(&self) -> &'a TrialEvidence {
        self.reading.trial
    }

    /// `store`, or `store[1]` of several.
    fn name(&self) -> String {
        let replicas = self.trial().services.iter().filter(|instance| instance.service == self.service).count();
        if replicas > 1 { format!("{}[{}]", self.service, self.replica) } else { self.service.to_owned() }
    }

    fn failed(&self) -> ErrorCounts {
        let mut all = ErrorCounts::default();
        self.spells.iter().for_each(|spell| all.add(spell.came.errors));
        all
    }

    /// How long it was down, all spells together, nanoseconds.
    fn down_ns(&self) -> f64 {
        let of = |spell: &Spell| spell.to_ns.unwrap_or(self.end_ns).saturating_sub(spell.from_ns).max(0);
        self.spells.iter().map(of).sum::<i64>() as f64
    }

    /// How long the load felt it, nanoseconds.
    fn felt_ns(&self) -> f64 {
        self.spells.iter().map(|spell| spell.came.until_ns - spell.from_ns).sum::<i64>() as f64
    }

    /// Of the requests of that time, the share that did not succeed: of those that ended or, where they would have been
    /// more, of as many as before.
    fn share(&self) -> f64 {
        let (mut succeeded, mut expected) = (0.0, 0.0);
        for Spell { from_ns, came, .. } in &self.spells {
            let usual = came.usual.unwrap_or(0.0) * (came.until_ns - from_ns) as f64 / 1e9;
            succeeded += came.ended.saturating_sub(came.errors.total()) as f64;
            expected += usual.max(came.ended as f64);
        }
        if expected > 0.0 { (1.0 - succeeded / expected).clamp(0.0, 1.0) } else { 0.0 }
    }

    fn finding(&self, detector: &Outage) -> Finding {
        let (first, last) = (&self.spells[0], &self.spells[self.spells.len() - 1]);
        let failures = Failures::of(self);
        Finding {
            title: format!("{} was down {}; {}", self.name(), self.how_long(), self.what_came()),
            resource: self.service.into(),
            cost_share: self.share(),
            cost_of: "of the requests of that time, which did not succeed".into(),
            confidence: self.confidence(&failures),
            reasons: self.reasons(&failures),
            numbers: self.numbers(),
            exemplars: failures.shown.iter().map(|(trace, span)| exemplar(trace, [*span])).collect(),
            ruled_out: vec![
                "Usual failures: as many failures in a second as in the worst second before are tolerated.".into(),
            ],
            falsified_by: format!("As many requests fail under the same load while {} stays up.", self.name()),
            advice: self.advice(),
            caveats: vec![
                "Means over the whole window include this time. Times are in whole seconds of the load.".into(),
            ],
            period: period_of(self.trial(), first.from_ns, last.came.until_ns),
            ..detector.finding()
        }
    }

    fn how_long(&self) -> String {
        let time = units::duration(self.down_ns());
        match (&self.spells[..], self.spells.len()) {
            ([Spell { to_ns: None, .. }], _) => format!("to the end of the load, {time}"),
            ([_], _) => format!("for {time}"),
            (_, count) => format!("{count} times, {time} in all"),
        }
    }

    fn what_came(&self) -> String {
        let failed = match self.failed().total() {
            0 => "requests stood still".to_owned(),
            1 => "1 request failed".to_owned(),
            n => format!("{} requests failed", units::count(n)),
        };
        let has_recovered = self.spells.iter().all(|spell| spell.came.end == RecoveryEnd::Recovered);
        match (&self.spells[..], has_recovered) {
            ([spell], true) => {
                let after = units::duration((spell.came.until_ns - spell.from_ns) as f64);
                format!("{failed}, all was as before after {after}")
            }
            (_, true) => failed,
            (_, false) => format!("{failed}, and it was not as before when the load ended"),
        }
    }

    /// High where the traces say that it was this, or where the load itself could not reach it.
    fn confidence(&self, failures: &Failures<'_>) -> Confidence {
        let failed = self.failed();
        let unreached = failed.connect + failed.reset;
        let is_its = failures.share().is_some_and(|share| share >= self.reading.thresholds.outage_call_share);
        let is_entrance = unreached > 0 && unreached * 2 >= failed.total();
        if is_its || is_entrance { Confidence::High } else { Confidence::Medium }
    }

    fn reasons(&self, failures: &Failures<'_>) -> Vec<String> {
        let mut reasons: Vec<String> = self.spells.iter().take(TOLD_MAX).map(|spell| self.told(spell)).collect();
        if self.spells.len() > TOLD_MAX {
            reasons.push(format!("And {} more times.", self.spells.len() - TOLD_MAX));
        }
        reasons.extend(failures.share().map(|share| {
            format!("Of the failed calls in the traces of that time, {} went to it.", units::percent(share))
        }));
        reasons
    }

    fn told(&self, spell: &Spell) -> String {
        let came = &spell.came;
        let began_ns = self.trial().windows.first().map_or(spell.from_ns, |window| window.start_ns);
        let since = |from_ns: i64, to_ns: i64| units::duration((to_ns - from_ns).max(0) as f64);
        let ran = match spell.to_ns {
            Some(to_ns) if to_ns < came.until_ns => {
                format!("; it ran again {} before that", since(to_ns, came.until_ns))
            }
            _ => String::new(),
        };
        let failed = match came.errors.total() {
            0 => "no request failed".to_owned(),
            n => format!("{} failed ({})", units::count(n), came.errors.by_kind()),
        };
        let silent = match came.silent_seconds {
            0 => String::new(),
            n => format!(", none succeeded in {n} s"),
        };
        let end = match (came.end, came.usual) {
            (RecoveryEnd::Recovered, Some(usual)) => format!(
                "until {} succeeded again as before, {} later{ran}",
                units::rate(usual),
                since(spell.from_ns, came.until_ns)
            ),
            _ => "to the end of the load".to_owned(),
        };
        format!("Down {} into the load: {failed}{silent}, {end}.", since(began_ns, spell.from_ns))
    }

    fn numbers(&self) -> Vec<Figure> {
        vec![
            Figure::new("time down", self.down_ns(), "ns"),
            Figure::new("time until all was as before", self.felt_ns(), "ns"),
            Figure::new("requests that failed", self.failed().total() as f64, ""),
        ]
    }

    fn advice(&self) -> String {
        let service = self.service;
        let replicas = self.trial().services.iter().filter(|instance| instance.service == service).count();
        let stand_in = if replicas > 1 {
            format!("Let callers of {service} fail over to another replica when one cannot be reached.")
        } else {
            format!("{service} has one replica: add a second one, or a standby that takes over.")
        };
        format!(
            "{stand_in} Fail fast instead of waiting, retry what is safe to retry, and check that callers reconnect as \
             soon as it runs."
        )
    }
}

fn is_felt(came: &Recovery) -> bool {
    let is_fallen = came.usual.is_some_and(|usual| usual > 0.0);
    came.end != RecoveryEnd::Unfelt && (is_fallen || came.errors.total() > 0)
}

/// From when to when a replica was down.
fn down(up: &Series) -> Vec<(i64, Option<i64>)> {
    let (mut spells, mut since) = (Vec::new(), None);
    for point in &up.points {
        match (since, point.value >= 0.5) {
            (None, false) => since = Some(point.time_ns),
            (Some(from_ns), true) => {
                spells.push((from_ns, Some(point.time_ns)));
                since = None;
            }
            _ => {}
        }
    }
    spells.extend(since.map(|from_ns| (from_ns, None)));
    spells
}

/// The calls that failed while the load felt an outage, without those that failed because of one below them.
struct Failures<'a> {
    all: f64,
    /// Of them, those to the service that was down.
    its: f64,
    /// Some of its.
    shown: Vec<(&'a Trace, &'a Span)>,
}

impl<'a> Failures<'a> {
    fn of(case: &Case<'a>) -> Self {
        let mut failures = Self { all: 0.0, its: 0.0, shown: Vec::new() };
        let is_meanwhile =
            |span: &Span| case.spells.iter().any(|spell| (spell.from_ns..spell.came.until_ns).contains(&span.end_ns));
        for trace in &case.trial().traces {
            for span in deepest(trace).into_iter().filter(|span| is_meanwhile(span)) {
                failures.all += trace.weight;
                let called = case.trial().reached_at(span.facts.server_port);
                if called.is_some_and(|called| called.service == case.service) {
                    failures.its += trace.weight;
                    if failures.shown.len() < EXEMPLARS_MAX {
                        failures.shown.push((trace, span));
                    }
                }
            }
        }
        failures
    }

    /// None without any.
    fn share(&self) -> Option<f64> {
        (self.all > 0.0).then(|| self.its / self.all)
    }
}

/// The failed calls of a trace that have no failed call below them.
fn deepest(trace: &Trace) -> Vec<&Span> {
    let is_call = |span: &&Span| span.kind == SpanKind::Client && went_wrong(span);
    let failed: Vec<&Span> = trace.spans.iter().filter(is_call).collect();
    if failed.len() < 2 {
        return failed;
    }
    let parents: HashMap<SpanId, SpanId> =
        trace.spans.iter().filter_map(|span| Some((span.span_id, span.parent_id?))).collect();
    let above = |span: &Span| std::iter::successors(span.parent_id, |at| parents.get(at).copied()).take(DEPTH_MAX);
    let around: HashSet<SpanId> = failed.iter().flat_map(|span| above(span)).collect();
    failed.into_iter().filter(|span| !around.contains(&span.span_id)).collect()
}

#[cfg(test)]
mod tests;
