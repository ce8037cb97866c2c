//! `join-queries=OPERATION`: queries or calls for one item each become one for all.
//!
//! The time of the one call is not in the traces, but its bounds are (`one_call.rs`): as long as one of the calls, and
//! for each further item from nothing up to the most that was measured. Two cases are computed, and the interval spans both.
//! The caller's own time between the calls is gone, and its CPU with it.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind};

use super::fan_out::{CALLS_LEFT_MAX, FanOut};
use super::one_call::{OneCall, mean};
use super::parallelize::few_traces;
use super::sharing::with_gain_of_others;
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::retime::{Group, Length, SampledTrace, Treatment};
use crate::rules::Part;
use crate::suggest::of_operation;
use crate::system::System;

pub(crate) struct JoinQueries;

impl Method for JoinQueries {
    fn kind(&self) -> ChangeKind {
        ChangeKind::JoinQueries
    }

    fn usage(&self) -> &'static str {
        "OPERATION"
    }

    fn description(&self, change: &Change) -> String {
        format!("one call in place of the repeated ones of {}", change.target)
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::NPlusOne(_) | Evidence::ChattyHttp(_) | Evidence::DuplicateQuery(_) => {
                of_operation(self.kind(), finding)
            }
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
        let one_call = OneCall::of(&calls, scene);
        let left = calls.calls_left(scene);
        let item_share = item_cpu_share(&calls, &one_call, scene);
        let callers = calls.callers_cpu_left(scene);
        // Without any work for a further item, and with the most that was measured.
        let case = |items: f64| {
            let of_group = calls.clone();
            let edit = move |traced: &SampledTrace<'_>, lengths: &[f64]| {
                let mut treatments = traced.untreated();
                for group in of_group.groups(traced, scene) {
                    let further = group.calls.len() as f64 - 1.0;
                    let item_ns = items * one_call.item_ns_max(traced, &group, lengths, scene);
                    let ns = mean(&group.lengths_ns(&traced.tree, lengths)) + further * item_ns;
                    as_one(&group, ns, &mut treatments);
                    group.company(&traced.tree).iter().for_each(|at| treatments[*at] = Treatment::gone_with_gap());
                }
                treatments
            };
            let (callee, callers) = (calls.callee.clone(), callers.clone());
            let adjust = move |system: &mut System| {
                system.scale_cpu(&callee, left + (1.0 - left) * items * item_share);
                callers.iter().for_each(|(service, left)| system.scale_cpu(service, *left));
            };
            Case::with_edit(adjust, edit, scene.sample)
        };
        let sure = [case(0.0), case(1.0)];
        let others = [0, 1].map(|at| with_gain_of_others(&calls, scene, &sure[at].retimed));
        let mut assumptions = vec![
            Assumption::OneCallForAll { calls: calls.calls },
            Assumption::CpuFollowsCalls { callee: calls.callee.clone() },
        ];
        assumptions.extend(others[0].as_ref().map(|_| Assumption::OthersMayWait));
        let guesses: Vec<Case<'s>> = others
            .into_iter()
            .zip([0.0, 1.0])
            .filter_map(|(retimed, items)| Some(Case { retimed: retimed?, edit: None, ..case(items) }))
            .collect();
        Ok(Effect {
            cases: sure.into_iter().chain(guesses).collect(),
            assumptions,
            doubts: few_traces(calls.traces),
            ..Effect::default()
        })
    }
}

/// The share of a call's CPU in its callee that a further item needs at most, mean over requests.
fn item_cpu_share(calls: &FanOut, one_call: &OneCall, scene: &Scene<'_>) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for traced in &scene.sample.traces {
        let lengths: Vec<f64> = (0..traced.tree.trace.spans.len()).map(|at| traced.tree.length_ns(at)).collect();
        for group in calls.groups(traced, scene) {
            let items = traced.weight * (group.calls.len() as f64 - 1.0);
            sum += items * one_call.item_cpu_share(one_call.item_ns_max(traced, &group, &lengths, scene));
            weight += items;
        }
    }
    if weight > 0.0 { sum / weight } else { 1.0 }
}

/// The first attempt of the first call stands for all.
fn as_one(group: &Group<'_>, ns: f64, treatments: &mut [Treatment]) {
    let mut attempts = group.attempts();
    if let Some(first) = attempts.next() {
        treatments[first].length = Length::Fixed(ns);
    }
    attempts.for_each(|at| treatments[at] = Treatment::gone_with_gap());
}
