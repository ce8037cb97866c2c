//! `outage`: a replica was down while the load ran, and requests failed or got no response until the load was as
//! before.
//!
//! When a replica was up is what the run wrote down, because an experiment killed, paused or restarted it or because it
//! ended by itself. What came of it is counted in the load's seconds (`recovery`). An outage that the load did not feel
//! is none. The traces show too whose fault the failures are: of the calls that failed meanwhile, those with no failed
//! call below them should have gone to the replica's service.

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

mod words;

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

/// One replica that was down.
struct Candidate<'a> {
    reading: &'a Reading<'a>,
    service: &'a str,
    replica: u32,
    /// Those that the load felt, none within what came of another; at least one.
    spells: Vec<Spell>,
    end_ns: i64,
}

impl<'a> Candidate<'a> {
    /// None when the load did not feel it, or not while it counted.
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

    /// High where the traces say that it was this, or where the load itself could not reach it.
    fn confidence(&self, evidence: &evidence::Outage) -> Confidence {
        let failed = evidence.failed();
        let unreached = failed.connect + failed.reset;
        let is_its = evidence.failed_call_share.is_some_and(|share| share >= self.reading.thresholds.outage_call_share);
        let is_entrance = unreached > 0 && unreached * 2 >= failed.total();
        if is_its || is_entrance { Confidence::High } else { Confidence::Medium }
    }
}

fn is_felt(recovery: &Recovery) -> bool {
    let is_fallen = recovery.usual.is_some_and(|usual| usual > 0.0);
    recovery.end != RecoveryEnd::Unfelt && (is_fallen || recovery.errors.total() > 0)
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

    /// None without any.
    fn share(&self) -> Option<f64> {
        (self.all > 0.0).then(|| self.its / self.all)
    }
}

fn is_failed_call(span: &Span) -> bool {
    span.kind == SpanKind::Client && went_wrong(span)
}

#[cfg(test)]
mod tests;
