//! `raise-rate[=STORE[,FACTOR]]`: a store provides more request units, so that it refuses no call; without a factor, as many
//! as are needed.
//!
//! In each trace refused attempts are gone, and the waits after them. With a factor, the new rate is a limit of the store, and
//! below it some calls are still refused: a simulation of the busiest partition, with both rates, says which share is left.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, Resource, ResourceKind};

use super::{Case, Effect, Method, Scene, Target};
use crate::Cannot;
use crate::queueing::token_bucket::{Refill, TokenBucket};
use crate::recognition::{ReadTrial, grown};
use crate::retime::{SampledTrace, is_refused};
use crate::rules::Part;
use crate::system::{Level, System};

/// Part of the share of refused calls that is left at most when they are no longer refused.
const REFUSED_LEFT_MAX: f64 = 0.1;

pub(crate) struct RaiseRate;

impl Method for RaiseRate {
    fn kind(&self) -> ChangeKind {
        ChangeKind::RaiseRate
    }

    fn usage(&self) -> &'static str {
        "STORE[,FACTOR]"
    }

    fn target(&self) -> Target {
        Target::OneOrAll
    }

    fn description(&self, change: &Change) -> String {
        match change.target.as_str() {
            "" => "a store that refuses no call".to_owned(),
            store => format!("more request units for {store}"),
        }
    }

    fn against(&self, limit: &Resource) -> Option<Change> {
        (limit.kind == ResourceKind::RequestUnits)
            .then(|| Change { amount: Some(2.0), ..Change::new(self.kind(), &limit.name) })
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::Throttling(_) | Evidence::ProvisionedRate(_) => Some(Change::new(self.kind(), &finding.resource)),
            _ => None,
        }
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let target = &change.target;
        let (old, new) = (refused_share(target, before.scene), refused_share(target, after.scene));
        (old > 0.0 && new <= REFUSED_LEFT_MAX * old).then(|| change.clone())
    }

    fn made_in_services(&self, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Vec<Change> {
        grown(self.kind(), &before.services.provisioned, &after.services.provisioned)
    }

    fn part(&self, _change: &Change, scene: &Scene<'_>) -> Option<Part> {
        let all = scene.sample.retimed(&|traced, _| traced.untreated());
        let refused: f64 = all.iter().map(|one| one.weight * one.old_refused_ns).sum();
        let total: f64 = all.iter().map(|one| one.weight * (one.old_refused_ns + one.old_ns)).sum();
        (total > 0.0).then(|| Part { share: refused / total, factor: f64::INFINITY })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let target = change.target.clone();
        scene.require_traces(self.kind())?;
        let retimed = scene.sample.retimed(&|traced: &SampledTrace<'_>, _: &[f64]| traced.untreated());
        let is_store = |name: &str| target.is_empty() || name == target;
        let has_store = scene.system.stores.iter().any(|store| is_store(&store.name));
        let is_refused_at_all = retimed.iter().any(|one| one.old_refused_ns > 0.0);
        if !has_store && !scene.places().iter().any(|name| is_store(name)) {
            let stores = scene.system.stores.iter().map(|store| store.name.clone()).collect();
            return Err(scene.unknown(change, stores));
        }
        if !has_store && !is_refused_at_all {
            return Err(Cannot::NothingRefused { store: target });
        }
        let weight: f64 = retimed.iter().map(|one| one.weight).sum();
        let saved: f64 = retimed.iter().map(|one| one.old_refused_ns * one.weight).sum();
        let factor = change.amount;
        let left = factor.map_or(0.0, |factor| refusals_left(&change.target, factor, saved / weight / 1e9, scene));
        let adjust = move |system: &mut System| {
            for store in system.stores.iter_mut().filter(|store| target.is_empty() || store.name == target) {
                store.provisioned = store.provisioned.zip(factor).map(|(provisioned, factor)| provisioned * factor);
                store.used_share = 1.0 - left * (1.0 - store.used_share);
            }
        };
        let case = Case { refusals_left: Some(left), retimed, ..Case::new(adjust) };
        Ok(Effect {
            cases: vec![case],
            assumptions: vec![Assumption::NoRefusals { gained_ns: (1.0 - left) * saved / weight }],
            ..Effect::default()
        })
    }
}

/// Share of the attempts to call something that are refused, 0 to 1.
fn refused_share(callee: &str, scene: &Scene<'_>) -> f64 {
    let all = scene.attempts(|group| group.callee == callee, |_, _| 1.0);
    let refused = |traced: &SampledTrace<'_>, at: usize| if is_refused(traced.tree.span(at)) { 1.0 } else { 0.0 };
    if all > 0.0 { scene.attempts(|group| group.callee == callee, refused) / all } else { 0.0 }
}

/// Of the time that refused calls take, the share that a rate raised by a factor leaves. Without what the store provides, none.
///
/// Each request makes a call to the busiest partition. Users send their next request sooner when fewer are refused, so the
/// higher rate meets more of them.
fn refusals_left(target: &str, factor: f64, refused_s: f64, scene: &Scene<'_>) -> f64 {
    let mut stores = scene.system.stores.iter().filter(|store| target.is_empty() || store.name == target);
    let Some((charge, provisioned)) = stores.find_map(|store| Some((store.charge, store.provisioned?))) else {
        return 0.0;
    };
    let Some(wait_s) = refusal_s(scene).filter(|_| charge > 0.0) else { return 0.0 };
    let refusals = |provisioned: f64, rate: f64| {
        TokenBucket { provisioned, refill: Refill::EachSecond, charge, wait_s }.refusals(rate)
    };
    let (mut old, mut new) = (0.0, 0.0);
    for level in &scene.system.levels {
        old += level.requests as f64 * refusals(provisioned, level.rate());
        new += level.requests as f64 * refusals(provisioned * factor, rate_without(level, refused_s));
    }
    if old > 0.0 { (new / old).clamp(0.0, 1.0) } else { 0.0 }
}

/// The throughput of a level when requests take this much less time.
fn rate_without(level: &Level, refused_s: f64) -> f64 {
    let mean_s = (level.mean_s() - refused_s).max(0.0);
    level.think_s().map_or(level.rate(), |think_s| f64::from(level.load.users) / (mean_s + think_s).max(1e-9))
}

/// Time that one refusal costs, the attempt and the wait after it, mean; `None` if no attempt is refused.
fn refusal_s(scene: &Scene<'_>) -> Option<f64> {
    let refused = |traced: &SampledTrace<'_>, at: usize| if is_refused(traced.tree.span(at)) { 1.0 } else { 0.0 };
    let count = scene.attempts(|_| true, refused);
    let all = scene.sample.retimed(&|traced, _| traced.untreated());
    let taken_ns: f64 = all.iter().map(|one| one.weight * one.old_refused_ns).sum();
    (count > 0.0 && taken_ns > 0.0).then(|| taken_ns / count / 1e9)
}
