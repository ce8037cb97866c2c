//! `route-query=OPERATION`: a query that goes to every partition goes to the one that has its rows.
//!
//! In each trace the call that returned rows stays, or the most expensive one where spans do not show rows, and starts
//! when the first call did; the others are gone, with their charge and their share of the store's CPU. What they cost their
//! caller is not recorded: from nothing up to as much CPU as they cost the store. Both are computed, and the interval spans
//! them.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind};

use super::fan_out::{CALLS_LEFT_MAX, FanOut};
use super::parallelize::few_traces;
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::retime::{Group, SampledTrace, Start, Treatment};
use crate::rules::Part;
use crate::suggest::of_operation;
use crate::system::System;

/// Share of its caller's CPU that is left at least.
const CALLER_LEFT_MIN: f64 = 0.5;

pub(crate) struct RouteQuery;

impl Method for RouteQuery {
    fn kind(&self) -> ChangeKind {
        ChangeKind::RouteQuery
    }

    fn usage(&self) -> &'static str {
        "OPERATION"
    }

    fn description(&self, change: &Change) -> String {
        format!("querying only the partition that is needed in {}", change.target)
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::CrossPartitionQuery(_) => of_operation(self.kind(), finding),
            _ => None,
        }
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let calls = FanOut::of(change, before.scene).ok()?;
        let (old, new) = (calls.per_request(before.scene)?, calls.per_request(after.scene)?);
        (new.calls <= CALLS_LEFT_MAX * old.calls).then(|| change.clone())
    }

    fn part(&self, change: &Change, scene: &Scene<'_>) -> Option<Part> {
        FanOut::of(change, scene).ok()?.part(scene)
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let calls = FanOut::of(change, scene)?;
        let charge = |traced: &SampledTrace<'_>, at: usize| traced.tree.span(at).facts.db_charge.unwrap_or(0.0);
        let all = scene.attempts(|group| group.callee == calls.callee, charge);
        let gone: f64 = scene
            .sample
            .traces
            .iter()
            .map(|traced| {
                let groups = calls.groups(traced, scene);
                let unneeded = |group: &Group<'_>| {
                    let needed = group.calls[needed(traced, group)].clone();
                    group.attempts().filter(|at| !needed.contains(at)).map(|at| charge(traced, at)).sum::<f64>()
                };
                traced.weight * groups.iter().map(unneeded).sum::<f64>()
            })
            .sum();
        let charge_left = if all > 0.0 { 1.0 - gone / all } else { 1.0 };
        let (callee, left) = (calls.callee.clone(), calls.calls_left(scene));
        let (assumed, doubts) =
            (Assumption::CpuFollowsCalls { callee: calls.callee.clone() }, few_traces(calls.traces));
        let caller = calls.caller(scene);
        let case = |caller_share: f64| {
            let (calls, callee, caller) = (calls.clone(), callee.clone(), caller.clone());
            let adjust = move |system: &mut System| {
                let gone_s = (1.0 - left) * system.program(&callee).map_or(0.0, |program| program.demand_s);
                if let Some(own_s) =
                    system.program(&caller).map(|program| program.demand_s).filter(|own_s| *own_s > 0.0)
                {
                    system.scale_cpu(&caller, (1.0 - caller_share * gone_s / own_s).max(CALLER_LEFT_MIN));
                }
                system.scale_cpu(&callee, left);
                // A store reports its own charges; of several stores the spans do not say which one is meant.
                system.stores.iter_mut().for_each(|store| store.charge *= charge_left);
            };
            let edit = move |traced: &SampledTrace<'_>, _: &[f64]| {
                let mut treatments = traced.untreated();
                for group in calls.groups(traced, scene) {
                    only(needed(traced, &group), &group, &mut treatments);
                }
                treatments
            };
            Case::with_edit(adjust, edit, scene.sample)
        };
        Ok(Effect {
            cases: vec![case(0.0), case(1.0)],
            assumptions: vec![Assumption::OnePartition, assumed],
            doubts,
            ..Effect::default()
        })
    }
}

/// The place of the call that is needed.
fn needed(traced: &SampledTrace<'_>, group: &Group<'_>) -> usize {
    let facts = |attempts: &[usize]| attempts.last().map(|at| &traced.tree.span(*at).facts);
    let rows = |attempts: &[usize]| facts(attempts).and_then(|facts| facts.db_rows).unwrap_or(0);
    let charge = |attempts: &[usize]| facts(attempts).and_then(|facts| facts.db_charge).unwrap_or(0.0);
    let by_use = |a: &usize, b: &usize| {
        let (a, b) = (&group.calls[*a], &group.calls[*b]);
        rows(a).cmp(&rows(b)).then(charge(a).total_cmp(&charge(b)))
    };
    (0..group.calls.len()).max_by(by_use).unwrap_or(0)
}

/// One call stays, where the first one was.
fn only(needed: usize, group: &Group<'_>, treatments: &mut [Treatment]) {
    let first = group.calls[0][0];
    for (place, attempts) in group.calls.iter().enumerate() {
        if place != needed {
            attempts.iter().for_each(|at| treatments[*at] = Treatment::gone_with_gap());
        } else if attempts[0] != first {
            treatments[attempts[0]].start = Start::With(first);
        }
    }
    treatments[first].gap = 1.0;
}
