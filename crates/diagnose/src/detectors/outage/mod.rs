//! `outage`: a replica was down under load, and requests failed or got no response until the load recovered.
//!
//! The run records when a replica was up: it goes down because an experiment kills, pauses or restarts it, or because
//! it exits. The effect is counted in the load's seconds (`recovery`). An outage that the load did not feel is not
//! reported. Traces also show the cause of the failures: the failed calls meanwhile that have no failed call below them
//! should be calls to the replica's service.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::outage::{self as evidence, Spell};
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::load::{Recovery, RecoveryEnd, recovery};
use narrows_model::series::{Series, names};
use narrows_model::trace::{Span, SpanKind, Trace};

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, exemplar};
use crate::read::Reading;
use crate::read::calls::went_wrong;
use crate::read::errors::deepest;
use crate::read::periods::period_of;
use crate::thresholds::rule_thresholds;

mod words;

rule_thresholds! {
    /// Share of the failed calls in that time that must have gone to the replica that was down, when only traces show
    /// where they failed.
    outage_call_share: f64 = 0.8;
}

/// See the module.
#[derive(Debug)]
pub struct Outage;

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
        let candidates = replicas.filter_map(|series| Candidate::new(reading, series));
        candidates.map(|candidate| candidate.finding(self)).collect()
    }
}

/// A replica that was down.
struct Candidate<'a> {
    reading: &'a Reading<'a>,
    service: &'a str,
    replica: u32,
    /// Outages that the load felt, without those that began during the recovery from an earlier one; at least one.
    spells: Vec<Spell>,
    end_ns: i64,
}

impl<'a> Candidate<'a> {
    /// Returns `None` if the load did not feel an outage, or not in counted time.
    fn new(reading: &'a Reading<'a>, up: &'a Series) -> Option<Self> {
        let trial = reading.trial;
        let end_ns = trial.windows.last()?.end_ns;
        let counts_from_ns = trial.counted_windows().next()?.start_ns;
        let mut spells: Vec<Spell> = Vec::new();
        for (start_ns, up_ns) in down(up) {
            let recovery = recovery(&trial.seconds, start_ns);
            let is_counted = recovery.until_ns > counts_from_ns && start_ns < end_ns;
            let is_in_previous = spells.last().is_some_and(|before| start_ns < before.recovery.until_ns);
            if is_felt(&recovery) && is_counted && !is_in_previous {
                spells.push(Spell { start_ns, end_ns: up_ns, recovery });
            }
        }
        let (service, replica) = (up.key.service.as_str(), up.key.replica);
        (!spells.is_empty()).then_some(Self { reading, service, replica, spells, end_ns })
    }

    fn trial(&self) -> &'a TrialEvidence {
        self.reading.trial
    }

    fn finding(&self, detector: &Outage) -> Finding {
        let (first, last) = (&self.spells[0], &self.spells[self.spells.len() - 1]);
        let failures = Failures::new(self);
        let evidence = self.evidence(&failures);
        Finding {
            resource: self.service.into(),
            cost_share: evidence.lost_share(),
            confidence: self.confidence(&evidence),
            exemplars: failures.shown.iter().map(|(trace, span)| exemplar(trace, [*span])).collect(),
            caveats: vec![Caveat::MeansIncludeOutage],
            period: period_of(self.trial(), first.start_ns, last.recovery.until_ns),
            ..Finding::new(evidence, detector.version())
        }
    }

    fn evidence(&self, failures: &Failures<'_>) -> evidence::Outage {
        let trial = self.trial();
        let load_start_ns = trial.windows.first().map_or(self.end_ns, |window| window.start_ns);
        evidence::Outage {
            replica: self.replica,
            replicas: trial.services.iter().filter(|instance| instance.service == self.service).count(),
            load_start_ns,
            load_end_ns: self.end_ns,
            spells: self.spells.clone(),
            failed_call_share: failures.share(),
        }
    }

    /// High if the traces attribute the failures to this service, or if the load itself could not reach it.
    fn confidence(&self, evidence: &evidence::Outage) -> Confidence {
        let failed = evidence.failed();
        let unreached = failed.connect + failed.reset;
        let is_its =
            evidence.failed_call_share.is_some_and(|share| share >= self.reading.thresholds.outage.outage_call_share);
        let is_entrance = unreached > 0 && unreached * 2 >= failed.total();
        if is_its || is_entrance { Confidence::High } else { Confidence::Medium }
    }
}

fn is_felt(recovery: &Recovery) -> bool {
    let is_fallen = recovery.usual.is_some_and(|usual| usual > 0.0);
    recovery.end != RecoveryEnd::Unfelt && (is_fallen || recovery.errors.total() > 0)
}

/// Start and end of each time a replica was down; the end is `None` if it stayed down.
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

/// Failed calls while the load felt an outage, without those that failed because of a call below them. Weighted by
/// trace.
struct Failures<'a> {
    all: f64,
    /// Failed calls to the service that was down.
    its: f64,
    /// Examples of failed calls to the service.
    shown: Vec<(&'a Trace, &'a Span)>,
}

impl<'a> Failures<'a> {
    fn new(candidate: &Candidate<'a>) -> Self {
        let mut failures = Self { all: 0.0, its: 0.0, shown: Vec::new() };
        let is_meanwhile = |span: &Span| {
            candidate.spells.iter().any(|spell| (spell.start_ns..spell.recovery.until_ns).contains(&span.end_ns))
        };
        for trace in &candidate.trial().traces {
            for span in deepest(trace, is_failed_call).into_iter().filter(|span| is_meanwhile(span)) {
                failures.all += trace.weight;
                let called = candidate.trial().reached_at(span.facts.server_port);
                if called.is_some_and(|called| called.service == candidate.service) {
                    failures.its += trace.weight;
                    if failures.shown.len() < EXEMPLARS_MAX {
                        failures.shown.push((trace, span));
                    }
                }
            }
        }
        failures
    }

    /// Share of failed calls that went to the service; `None` without failed calls.
    fn share(&self) -> Option<f64> {
        (self.all > 0.0).then(|| self.its / self.all)
    }
}

fn is_failed_call(span: &Span) -> bool {
    span.kind == SpanKind::Client && went_wrong(span)
}

#[cfg(test)]
mod tests;
