//! `speed-up=WHAT[,FACTOR]`: a service, one of its operations, or a dependency takes a part of its time; half without a
//! factor.
//!
//! In each trace its own time shrinks by the factor, wherever it passes: time in parallel to something longer gains
//! nothing. Its CPU shrinks as much; of an operation, its share of the service's own time does. Without traces the wait of a
//! request for it shrinks, as sockets show it.
//!
//! A later trial shows the factor by own time in traces, or by the wait for a call.

use narrows_model::finding::evidence::database_saturation::SaturationSign;
use narrows_model::finding::evidence::straggler_branch::Branch;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind};
use narrows_model::trace::Span;
use narrows_model::units;

use super::waits::shrink;
use super::{Case, Effect, Method, Scene, scale_all_cpu};
use crate::Cannot;
use crate::call_waits::calls;
use crate::recognition::{GROWTH_MIN, ReadTrial, wait_factor};
use crate::retime::{SampledTrace, is_entry_of};
use crate::rules::{Part, own_share};
use crate::system::{System, Wait, WaitCause};

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
            Evidence::DatabaseSaturation(database) => matches!(database.sign, SaturationSign::Queries { .. })
                .then(|| Change::new(self.kind(), &finding.resource)),
            Evidence::StragglerBranch(straggler) => {
                branch(&straggler.branch, &finding.resource).map(|target| Change::new(self.kind(), target))
            }
            _ => None,
        }
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let target = &change.target;
        // Own time of a service of the run also shrinks where fewer requests queue for it.
        if before.scene.system.program(target).is_some() && after.suggests(change) {
            return None;
        }
        let in_traces = || Some(before.scene.own_ns_of(target)? / after.scene.own_ns_of(target)?);
        let factor = in_traces().or_else(|| wait_factor(before, after, target))?;
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
        if shares.is_empty() {
            return without_traces(change, factor, scene);
        }
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

/// The target that a branch is: a callee with the request to it, where that tells it from others, or a span of the service.
/// `None` for one partition of a callee.
fn branch(branch: &Branch, service: &str) -> Option<String> {
    match branch {
        Branch::Work { name } => Some(format!("{service} {name}")),
        Branch::Call { partition: Some(_), .. } => None,
        Branch::Call { callee, request: Some(request), .. } => Some(format!("{callee} {request}")),
        Branch::Call { callee, .. } => Some(callee.clone()),
    }
}

/// Effect of a service or a dependency that no trace shows: on its CPU, and on the wait for it that is no CPU.
fn without_traces<'s>(change: &Change, factor: f64, scene: &Scene<'_>) -> Result<Effect<'s>, Cannot> {
    let target = change.target.clone();
    let wait_s = calls(scene.diagnosed, None, Some(&target)).map_or(0.0, |all| all.request_s());
    let program = scene.system.program(&target);
    if program.is_none() && wait_s <= 0.0 {
        return Err(scene.unknown(change, scene.places()));
    }
    let demand_s = program.map_or(0.0, |program| program.demand_s);
    let left = 1.0 / factor;
    let adjust = move |system: &mut System| {
        scale_all_cpu(system, &target, left);
        let is_meant = |wait: &Wait| wait.cause == WaitCause::Callee && wait.callee == target;
        shrink(system, is_meant, (wait_s - demand_s).max(0.0), left);
    };
    Ok(Effect {
        cases: vec![Case::new(adjust)],
        assumptions: vec![Assumption::AllOwnTime { factor }],
        ..Effect::default()
    })
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
        place == target || is_of_operation() || is_branch(tree.span(at), place, target)
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

/// Whether a span is a branch that a text names: work of a service by its name, or the request to a callee.
fn is_branch(span: &Span, place: &str, target: &str) -> bool {
    let Some(name) = target.strip_prefix(place).and_then(|rest| rest.strip_prefix(' ')) else { return false };
    let facts = &span.facts;
    let is_request = || {
        let (method, path) = name.split_once(' ').unwrap_or(("", name));
        facts.http_method.as_deref().unwrap_or_default() == method
            && facts.url.as_deref().and_then(url_path).is_some_and(|own| own == path)
    };
    span.name == name || is_request()
}

/// Path of an address, without its query.
fn url_path(url: &str) -> Option<&str> {
    let path = url.split_once("://").map_or(Some(url), |(_, rest)| rest.find('/').map(|at| &rest[at..]))?;
    path.split(['?', '#']).next()
}
