//! The order of a trial's findings, which of them is the narrow place, and which are only symptoms of others.
//!
//! Findings are reported in this order, see [`Role`]: what makes the trial's figures invalid; what is in the way now, a
//! limit that is hit or a structure that makes requests wait; what only spends more than needed; what says how far the
//! trial can be read. Within a role cost decides, but what is in the way with low confidence comes after what is so
//! with more. A cause absorbs its symptoms by the table of [`rules`] and takes the best place of them all, so that one
//! problem is one finding. A cause of low confidence absorbs nothing that is surer than itself.
//!
//! The narrow place is the first finding that is in the way. Where none is, it is the first that costs more than needed
//! with medium or high confidence: a guess that nothing waits for is not where a system is narrow. What costs next to
//! nothing, as a share or in a request's time, is not the bottleneck either, and hides no other finding. A finding about the experiment
//! is never it.

mod bonds;
pub(crate) mod of_run;
mod paths;
mod rules;

use std::cmp::Ordering;

use narrows_model::finding::FindingKind::{
    FewClients, HotPartition, InstrumentationGap, NotSteady, Outage, RetrogradeThroughput, SlowDependency,
};
use narrows_model::finding::{Confidence, Evidence, Finding, Mechanism, Precedence, Relation, Role};

use crate::detectors::cpu_saturation::HOST;
use crate::detectors::detector_of;
use crate::read::Reading;
use crate::thresholds::Thresholds;
use bonds::Bonds;
use rules::{CAUSES, ORDER, Rule, Tie};

/// Puts findings in order, each below its cause, and says what each is to the trial.
pub(crate) fn ranked(mut findings: Vec<Finding>, reading: &Reading<'_>) -> Vec<Finding> {
    let bonds = Bonds::new(reading);
    let least = Least::of(reading.thresholds);
    for (number, finding) in (0..).zip(&mut findings) {
        (finding.number, finding.role) = (number, role(finding, least));
    }
    drop_explained_gaps(&mut findings);
    drop_doubled_artefacts(&mut findings);
    drop_explained_unrest(&mut findings);
    drop_needless_locks(&mut findings);
    drop_explained_dependencies(&mut findings, &bonds);
    findings.sort_by(by_place);
    let mut findings = absorbed(findings, &bonds);
    findings.sort_by(by_place);
    for rule in ORDER {
        put_first(rule, &mut findings, &bonds);
    }
    mark_narrow_place(&mut findings, least);
    findings
}

/// Minimum cost of a finding that is in the way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Least {
    share: f64,
    /// Of one request's time, nanoseconds.
    request_ns: f64,
}

impl Least {
    pub(crate) fn of(thresholds: &Thresholds) -> Self {
        Self { share: thresholds.narrow_place_share, request_ns: thresholds.narrow_place_ns }
    }

    /// True if a finding costs less.
    fn exceeds(self, finding: &Finding) -> bool {
        finding.cost_share < self.share || request_ns(finding).is_some_and(|cost_ns| cost_ns < self.request_ns)
    }
}

/// Time that a finding costs one request, nanoseconds; `None` for other findings, and if spans take no time because their
/// clock is too coarse.
fn request_ns(finding: &Finding) -> Option<f64> {
    detector_of(finding.kind()).request_cost_ns(finding).filter(|cost_ns| *cost_ns > 0.0)
}

/// Role of a finding alone: one that costs next to nothing is not in the way.
fn role(finding: &Finding, least: Least) -> Role {
    match detector_of(finding.kind()).role(finding) {
        Role::InTheWay if least.exceeds(finding) => Role::CostsMore,
        role => role,
    }
}

/// A gap that another finding explains hides nothing: one about the same operation, or about a full processor, a full
/// database, a collector of garbage, a blocked loop or a full pool of threads of that service or machine, for which
/// requests wait without a span. Where the gap is only that time grows
/// with the load, throughput that falls in that service says the same.
fn drop_explained_gaps(findings: &mut Vec<Finding>) {
    let explains = |other: &Finding, gap: &Finding| {
        let detector = detector_of(other.kind());
        let is_of_system = !other.role.is_about_experiment() && detector.explains_gaps();
        let is_same_growth = other.kind() == RetrogradeThroughput && gap.period.is_some();
        let is_there = [gap.resource.as_str(), HOST].contains(&&*other.resource);
        let is_same_operation = other.operation.is_some() && other.operation == gap.operation;
        is_of_system && (is_same_operation || is_there && (detector.holds_all_requests() || is_same_growth))
    };
    let is_gap = |finding: &Finding| finding.kind() == InstrumentationGap;
    let is_hidden: Vec<bool> =
        findings.iter().map(|gap| is_gap(gap) && findings.iter().any(|other| explains(other, gap))).collect();
    let mut hidden = is_hidden.into_iter();
    findings.retain(|_| !hidden.next().unwrap_or(false));
}

/// Where the load has too few clients, a replica that is hot because there are few keys is the same finding with less certainty.
fn drop_doubled_artefacts(findings: &mut Vec<Finding>) {
    let uneven: Vec<String> =
        findings.iter().filter(|one| one.kind() == FewClients).map(|one| one.resource.clone()).collect();
    let is_double = |finding: &Finding| {
        let is_unsure = finding.kind() == HotPartition && finding.confidence == Confidence::Low;
        is_unsure && uneven.contains(&finding.resource)
    };
    findings.retain(|finding| !is_double(finding));
}

/// A window that held an outage is not steady because of that, which says more.
fn drop_explained_unrest(findings: &mut Vec<Finding>) {
    let outages: Vec<Finding> = findings.iter().filter(|one| one.kind() == Outage).cloned().collect();
    findings.retain(|one| {
        let is_held = outages.iter().any(|outage| bonds::are_at_one_time(outage, one));
        one.kind() != NotSteady || !is_held
    });
}

/// A slow dependency says least of what can be said of its calls, so it gives way to every finding about it or about calls
/// to it, and to one that makes a caller come late to quick responses.
fn drop_explained_dependencies(findings: &mut Vec<Finding>, bonds: &Bonds<'_, '_>) {
    let explains = |other: &Finding, slow: &Finding| {
        let detector = detector_of(other.kind());
        let is_of_system = !other.role.is_about_experiment() && detector.explains_slow_calls();
        let is_caller = detector.delays_reading_of_responses() && calls_from(slow, &other.resource);
        is_of_system && (is_caller || bonds.tie(&[Tie::SameResource, Tie::FirstCalls], other, slow))
    };
    let is_slow = |finding: &Finding| finding.kind() == SlowDependency;
    let is_explained: Vec<bool> =
        findings.iter().map(|slow| is_slow(slow) && findings.iter().any(|other| explains(other, slow))).collect();
    let mut explained = is_explained.into_iter();
    findings.retain(|_| !explained.next().unwrap_or(false));
}

fn calls_from(slow: &Finding, service: &str) -> bool {
    let Evidence::SlowDependency(evidence) = &slow.evidence else { return false };
    evidence.callers.iter().any(|caller| caller == service)
}

/// Findings that threads take turns, for unknown programs: concluded only because nothing else explains the throughput.
fn drop_needless_locks(findings: &mut Vec<Finding>) {
    let is_guess = |finding: &Finding| matches!(&finding.evidence, Evidence::SerialisedSection(section) if section.computing.is_some());
    if findings.iter().any(|finding| finding.role == Role::InTheWay && !is_guess(finding)) {
        findings.retain(|finding| !is_guess(finding));
    }
}

/// Order of findings: by role, then by confidence when in the way, then by cost.
fn by_place(a: &Finding, b: &Finding) -> Ordering {
    let is_unsure = |finding: &Finding| finding.role == Role::InTheWay && finding.confidence == Confidence::Low;
    let place = |finding: &Finding| (finding.role, is_unsure(finding));
    let cost = |finding: &Finding| {
        let effects = finding.effects.iter().map(|effect| effect.cost_share);
        effects.fold(finding.cost_share, f64::max)
    };
    place(a).cmp(&place(b)).then(cost(b).total_cmp(&cost(a)))
}

/// The cause of a finding: its position and the mechanism.
type Cause = (usize, Mechanism);

/// Moves symptoms below their causes. `findings` come dearest first.
fn absorbed(findings: Vec<Finding>, bonds: &Bonds<'_, '_>) -> Vec<Finding> {
    let mut causes: Vec<Option<Cause>> = vec![None; findings.len()];
    for then in 0..findings.len() {
        causes[then] = cause_of(&findings, then, bonds).filter(|(first, _)| origin(&causes, *first) != then);
    }
    let numbers: Vec<u32> = findings.iter().map(|finding| finding.number).collect();
    let origins: Vec<usize> = (0..findings.len()).map(|at| origin(&causes, at)).collect();
    let mut slots: Vec<Option<Finding>> = findings.into_iter().map(Some).collect();
    for at in 0..slots.len() {
        let Some((first, why)) = causes[at] else { continue };
        let Some(mut effect) = slots[at].take() else { continue };
        effect.relations.push(Relation::EffectOf { number: numbers[first], why });
        if let Some(cause) = slots[origins[at]].as_mut() {
            cause.role = cause.role.min(effect.role);
            cause.effects.push(effect);
        }
    }
    slots.into_iter().flatten().collect()
}

/// The finding at the end of a chain of causes. Causes never go round: the last link of a circle is not made.
fn origin(causes: &[Option<Cause>], mut at: usize) -> usize {
    while let Some((first, _)) = causes[at] {
        at = first;
    }
    at
}

/// The first rule that has a cause for this one, and the dearest of its causes.
fn cause_of(findings: &[Finding], then: usize, bonds: &Bonds<'_, '_>) -> Option<Cause> {
    let effect = &findings[then];
    let is_sure_enough = |cause: &Finding| cause.confidence > Confidence::Low || effect.confidence == Confidence::Low;
    let is_cause = |rule: &Rule<Mechanism>, cause: &Finding| {
        rule.first.contains(&cause.kind()) && is_sure_enough(cause) && bonds.tie(rule.ties, cause, effect)
    };
    let rules = CAUSES.iter().filter(|rule| rule.then.contains(&effect.kind()));
    rules.into_iter().find_map(|rule| {
        let first = (0..findings.len()).find(|at| *at != then && is_cause(rule, &findings[*at]))?;
        Some((first, rule.why))
    })
}

/// Each finding that must wait, in order, gets the dearest of those it waits for before it.
fn put_first(rule: &Rule<Precedence>, findings: &mut Vec<Finding>, bonds: &Bonds<'_, '_>) {
    let mut at = 0;
    while at < findings.len() {
        let waiting = &findings[at];
        let is_first = |other: &Finding| rule.first.contains(&other.kind()) && bonds.tie(rule.ties, other, waiting);
        let before = findings.iter().position(is_first).filter(|_| rule.then.contains(&waiting.kind()));
        if let Some(before) = before {
            let number = findings[before].number;
            findings[at].relations.push(Relation::After { number, why: rule.why });
            if before > at {
                let first = findings.remove(before);
                findings.insert(at, first);
                at += 1;
            }
        }
        at += 1;
    }
}

fn mark_narrow_place(findings: &mut [Finding], least: Least) {
    let is_sure = |finding: &Finding| finding.confidence > Confidence::Low && !least.exceeds(finding);
    let in_the_way = findings.iter().position(|finding| finding.role == Role::InTheWay);
    let costly = || findings.iter().position(|finding| finding.role == Role::CostsMore && is_sure(finding));
    if let Some(at) = in_the_way.or_else(costly) {
        findings[at].role = Role::NarrowPlace;
    }
}

#[cfg(test)]
mod tests;
