//! `speed-up=WHAT[,FACTOR]`: a service, one of its operations, or a dependency takes a part of its time; half without a
//! factor.
//!
//! In each trace its own time shrinks by the factor, wherever it passes: time in parallel to something longer gains
//! nothing. Its CPU shrinks as much; of an operation, its share of the service's own time does.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind};
use narrows_model::units;

use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::{GROWTH_MIN, ReadTrial};
use crate::retime::{SampledTrace, is_entry_of};
use crate::rules::{Part, own_share};
use crate::system::System;

/// Half the time.
const FACTOR: f64 = 2.0;

pub(crate) struct SpeedUp;

impl Method for SpeedUp {
    fn kind(&self) -> ChangeKind {
        ChangeKind::SpeedUp
    }

    fn usage(&self) -> &'static str {
        "SERVICE|OPERATION|DEPENDENCY[,FACTOR]"
    }

    fn description(&self, change: &Change) -> String {
        format!("making {} {} times as fast", change.target, units::number(change.amount.unwrap_or(FACTOR)))
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::SlowDependency(_) | Evidence::SlowQuery(_) => Some(Change::new(self.kind(), &finding.resource)),
            _ => None,
        }
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let target = &change.target;
        let factor = before.scene.own_ns_of(target)? / after.scene.own_ns_of(target)?;
        (factor >= GROWTH_MIN).then(|| Change { amount: Some(factor), ..change.clone() })
    }

    fn part(&self, change: &Change, scene: &Scene<'_>) -> Option<Part> {
        let share = own_share(scene, |name| name == change.target)?;
        Some(Part { share, factor: change.amount.unwrap_or(FACTOR) })
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let factor = change.amount.unwrap_or(FACTOR);
        let target = change.target.as_str();
        let name = change.target.clone();
        let edit = move |traced: &SampledTrace<'_>, _: &[f64]| {
            let mut treatments = traced.untreated();
            for at in traced.tree.order.iter().filter(|at| scene.is_own_time_of(traced, **at, &name)) {
                treatments[*at].own = 1.0 / factor;
            }
            treatments
        };
        let shares = scene.own_shares(target);
        if shares.is_empty() && scene.system.program(target).is_none() {
            return Err(scene.unknown(change, scene.places()));
        }
        let shares = if shares.is_empty() { vec![(target.to_owned(), 1.0)] } else { shares };
        let left = move |share: f64| 1.0 - share * (1.0 - 1.0 / factor);
        let adjust = move |system: &mut System| {
            shares.iter().for_each(|(service, share)| system.scale_cpu(service, left(*share)));
        };
        Ok(Effect {
            cases: vec![Case::with_edit(adjust, edit, scene.sample)],
            assumptions: vec![Assumption::AllOwnTime { factor }],
            ..Effect::default()
        })
    }
}

impl Scene<'_> {
    /// Whether a span's own time is that of a service, a dependency or an operation.
    fn is_own_time_of(&self, traced: &SampledTrace<'_>, at: usize, target: &str) -> bool {
        let tree = &traced.tree;
        let place = self.sample.names.place(tree, at);
        let is_of_operation = || {
            let entry = tree.entry(at).map(|entry| tree.span(entry));
            entry.is_some_and(|entry| entry.service == place && is_entry_of(entry, target))
        };
        place == target || is_of_operation()
    }

    /// Own time of the target in a request, mean; `None` if no trace shows it.
    pub(crate) fn own_ns_of(&self, target: &str) -> Option<f64> {
        let (mut own_ns, mut weight) = (0.0, 0.0);
        for traced in &self.sample.traces {
            let meant = traced.tree.order.iter().filter(|at| self.is_own_time_of(traced, **at, target));
            own_ns += traced.weight * meant.map(|at| traced.tree.own_ns(*at)).sum::<f64>();
            weight += traced.weight;
        }
        (own_ns > 0.0).then(|| own_ns / weight)
    }

    /// For each service with own time of the target, the share of its own time that this is.
    fn own_shares(&self, target: &str) -> Vec<(String, f64)> {
        let mut sums: std::collections::BTreeMap<&str, (f64, f64)> = std::collections::BTreeMap::new();
        for traced in &self.sample.traces {
            for at in &traced.tree.order {
                let own = traced.weight * traced.tree.own_ns(*at);
                let sum = sums.entry(self.sample.names.place(&traced.tree, *at)).or_default();
                *sum = (sum.0 + if self.is_own_time_of(traced, *at, target) { own } else { 0.0 }, sum.1 + own);
            }
        }
        let share = |(place, (meant, all)): (&str, (f64, f64))| (meant > 0.0).then(|| (place.to_owned(), meant / all));
        sums.into_iter().filter_map(share).collect()
    }
}
