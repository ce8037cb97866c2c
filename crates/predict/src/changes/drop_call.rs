//! `drop-call=CALLEE`: calls to a service, to a dependency, or with a span of this name are no longer made.
//!
//! The time that the caller takes before a call stays. The callee's CPU follows the number of calls to it.

use narrows_model::prediction::{Assumption, Change, ChangeKind};

use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::retime::{Group, Traced, Treatment};
use crate::system::System;

pub(crate) struct DropCall;

impl Method for DropCall {
    fn kind(&self) -> ChangeKind {
        ChangeKind::DropCall
    }

    fn usage(&self) -> &'static str {
        "CALLEE"
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let target = change.target.as_str();
        let is_gone = |traced: &Traced<'_>, group: &Group<'_>, at: usize| {
            group.callee == target || traced.tree.span(at).name == target
        };
        let gone_of = |traced: &Traced<'_>| {
            let groups = scene.calls(traced);
            let gone =
                |group: &Group<'_>| group.attempts().filter(|at| is_gone(traced, group, *at)).collect::<Vec<_>>();
            groups.iter().map(|group| (group.callee.to_owned(), gone(group))).collect::<Vec<_>>()
        };
        let edit = |traced: &Traced<'_>, _: &[f64]| {
            let mut treatments = traced.untreated();
            gone_of(traced).iter().flat_map(|(_, gone)| gone).for_each(|at| treatments[*at] = Treatment::gone());
            treatments
        };
        let retimed = scene.retimed(self.kind(), &edit)?;
        let mut gone: std::collections::BTreeMap<String, f64> = std::collections::BTreeMap::new();
        for traced in &scene.sample.traces {
            for (callee, attempts) in gone_of(traced).into_iter().filter(|(_, attempts)| !attempts.is_empty()) {
                *gone.entry(callee).or_default() += traced.weight * attempts.len() as f64;
            }
        }
        if gone.is_empty() {
            return Err(scene.unknown(change, scene.places()));
        }
        let share = |(callee, gone): (&String, &f64)| {
            let all = scene.attempts(|group| group.callee == callee.as_str(), |_, _| 1.0);
            (callee.clone(), (1.0 - gone / all).clamp(0.0, 1.0))
        };
        let left: Vec<(String, f64)> = gone.iter().map(share).collect();
        let assumptions =
            left.iter().map(|(callee, _)| Assumption::CpuFollowsCalls { callee: callee.clone() }).collect();
        let adjust = move |system: &mut System| left.iter().for_each(|(callee, left)| system.scale_cpu(callee, *left));
        Ok(Effect { cases: vec![Case::new(adjust, retimed)], assumptions, ..Effect::default() })
    }
}
