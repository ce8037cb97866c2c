//! `join-queries=OPERATION`: queries or calls for one item each become one for all.
//!
//! What the one call takes is not in the traces. It does at least the work of the longest call it replaces and at most that
//! of all, so two cases are computed, and the interval spans both.

use narrows_model::prediction::{Assumption, Change, ChangeKind};

use super::fan_out::FanOut;
use super::parallelize::few_traces;
use super::sharing::with_gain_of_others;
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::retime::{Group, Length, Retimed, Traced, Treatment};
use crate::system::System;

pub(crate) struct JoinQueries;

impl Method for JoinQueries {
    fn kind(&self) -> ChangeKind {
        ChangeKind::JoinQueries
    }

    fn usage(&self) -> &'static str {
        "OPERATION"
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let calls = FanOut::of(change, scene)?;
        let left = calls.calls_left(scene);
        let retimed = |length: fn(&[f64]) -> f64| -> Result<Vec<Retimed>, Cannot> {
            let edit = |traced: &Traced<'_>, lengths: &[f64]| {
                let mut treatments = traced.untreated();
                for group in calls.groups(traced, scene) {
                    let ns = length(&group.lengths_ns(&traced.tree, lengths));
                    one_call(&group, ns, &mut treatments);
                }
                treatments
            };
            scene.retimed(self.kind(), &edit)
        };
        let longest = |lengths: &[f64]| lengths.iter().copied().fold(0.0, f64::max);
        let sum = |lengths: &[f64]| lengths.iter().sum::<f64>();
        let (least, most) = (retimed(longest)?, retimed(sum)?);
        let others = [&least, &most].map(|retimed| with_gain_of_others(&calls, scene, retimed));
        let mut assumptions = vec![
            Assumption::OneCallForAll { calls: calls.calls },
            Assumption::CpuFollowsCalls { callee: calls.callee.clone() },
        ];
        assumptions.extend(others[0].as_ref().map(|_| Assumption::OthersMayWait));
        let [least_of_others, most_of_others] = others;
        let with_less_cpu = |retimed| {
            let callee = calls.callee.clone();
            Case::new(move |system: &mut System| system.scale_cpu(&callee, left), retimed)
        };
        let least = std::iter::once(least).chain(least_of_others).map(with_less_cpu);
        let most = std::iter::once(most).chain(most_of_others).map(|retimed| Case::new(|_| {}, retimed));
        Ok(Effect {
            cases: least.chain(most).collect(),
            assumptions,
            doubts: few_traces(calls.traces),
            ..Effect::default()
        })
    }
}

/// The first attempt of the first call stands for all.
fn one_call(group: &Group<'_>, ns: f64, treatments: &mut [Treatment]) {
    let mut attempts = group.attempts();
    if let Some(first) = attempts.next() {
        treatments[first].length = Length::Fixed(ns);
    }
    attempts.for_each(|at| treatments[at] = Treatment::gone_with_gap());
}
