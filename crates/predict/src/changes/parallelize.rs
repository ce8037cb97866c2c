//! `parallelize=OPERATION`: calls that an operation makes one after another are made at the same time.
//!
//! In each trace all calls start when the first one did, so the request waits for the longest of its own calls: the mean
//! of the longest, not the longest of the means. CPU and request units stay the same, so a higher throughput uses more.

use narrows_model::prediction::{Assumption, Change, ChangeKind, Doubt};

use super::fan_out::FanOut;
use super::sharing::with_gain_of_others;
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::retime::{Group, Start, Traced, Treatment};

/// With fewer traces the prediction is doubted.
pub(super) const TRACES_MIN: usize = 30;

pub(crate) struct Parallelize;

impl Method for Parallelize {
    fn kind(&self) -> ChangeKind {
        ChangeKind::Parallelize
    }

    fn usage(&self) -> &'static str {
        "OPERATION"
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let calls = FanOut::of(change, scene)?;
        let edit = |traced: &Traced<'_>, _: &[f64]| {
            let mut treatments = traced.untreated();
            calls.groups(traced, scene).iter().for_each(|group| together(group, &mut treatments));
            treatments
        };
        let retimed = scene.retimed(self.kind(), &edit)?;
        let others = with_gain_of_others(&calls, scene, &retimed);
        let mut assumptions = vec![Assumption::BranchesAreIndependent];
        assumptions.extend(others.as_ref().map(|_| Assumption::OthersMayWait));
        let cases = std::iter::once(retimed).chain(others).map(|retimed| Case::new(|_| {}, retimed));
        Ok(Effect { cases: cases.collect(), assumptions, doubts: few_traces(calls.traces), ..Effect::default() })
    }
}

/// A doubt if so few traces show something.
pub(super) fn few_traces(traces: usize) -> Vec<Doubt> {
    (traces < TRACES_MIN).then_some(Doubt::FewTraces { traces }).into_iter().collect()
}

/// All calls start with the first; their further attempts stay behind their own.
fn together(group: &Group<'_>, treatments: &mut [Treatment]) {
    let first = group.calls[0][0];
    for attempts in &group.calls {
        for pair in attempts.windows(2) {
            treatments[pair[1]].start = Start::After(pair[0]);
        }
        if attempts[0] != first {
            treatments[attempts[0]].start = Start::With(first);
        }
    }
}
