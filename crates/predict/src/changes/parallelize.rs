//! `parallelize=OPERATION[,CALLS]`: calls that an operation makes one after another are made at the same time, or so many
//! at a time.
//!
//! In each trace all calls start when the first one did, so the request waits for the longest of its own calls: the mean
//! of the longest, not the longest of the means. With a bound each further call starts when one of those before it ends.
//! CPU and request units stay the same, so a higher throughput uses more. Whether the caller may open more connections than it
//! had is not recorded: that it may not is an end of the interval.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, Doubt, ResourceKind};
use narrows_model::units;

use super::fan_out::FanOut;
use super::sharing::with_gain_of_others;
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::retime::{Group, SampledTrace, Start, Treatment};
use crate::rules::Part;
use crate::suggest::of_operation;
use crate::system::Section;

/// With fewer traces the prediction is doubted.
pub(super) const TRACES_MIN: usize = 30;

/// Share of the calls of a request that is left at least when they are only made at other times.
const CALLS_KEPT_MIN: f64 = 0.7;
/// Share of the time that calls cost one after another that is left at most when they are made at once.
const SERIAL_LEFT_MAX: f64 = 0.5;

pub(crate) struct Parallelize;

impl Method for Parallelize {
    fn kind(&self) -> ChangeKind {
        ChangeKind::Parallelize
    }

    fn usage(&self) -> &'static str {
        "OPERATION[,CALLS]"
    }

    fn description(&self, change: &Change) -> String {
        match change.amount {
            Some(calls) => format!("making {} calls of {} at a time", units::number(calls), change.target),
            None => format!("making the calls of {} at the same time", change.target),
        }
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::SerialFanOut(_) => of_operation(self.kind(), finding),
            _ => None,
        }
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let calls = FanOut::of(change, before.scene).ok()?;
        let (old, new) = (calls.per_request(before.scene)?, calls.per_request(after.scene)?);
        let is_made = new.calls >= CALLS_KEPT_MIN * old.calls && new.serial_ns <= SERIAL_LEFT_MAX * old.serial_ns;
        let amount = calls.bound(after.scene).map(|calls| calls as f64);
        is_made.then(|| Change { amount, ..change.clone() })
    }

    fn part(&self, change: &Change, scene: &Scene<'_>) -> Option<Part> {
        FanOut::of(change, scene).ok()?.part(scene)
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let calls = FanOut::of(change, scene)?;
        let at_once = change.amount.map_or(usize::MAX, |amount| amount.round().max(1.0) as usize);
        let with_pool = |pool: Option<Section>| {
            let calls = calls.clone();
            let edit = move |traced: &SampledTrace<'_>, lengths: &[f64]| {
                let mut treatments = traced.untreated();
                for group in calls.groups(traced, scene) {
                    together(&group, &group.lengths_ns(&traced.tree, lengths), at_once, &mut treatments);
                }
                treatments
            };
            Case::with_edit(move |system| system.sections.extend(pool.clone()), edit, scene.sample)
        };
        let case = with_pool(None);
        let bound = open_connections(&calls, scene).map(|pool| Case { is_bound: true, ..with_pool(Some(pool)) });
        let others = with_gain_of_others(&calls, scene, &case.retimed);
        let mut assumptions = vec![Assumption::BranchesAreIndependent];
        assumptions.extend(others.as_ref().map(|_| Assumption::OthersMayWait));
        let others = others.map(|retimed| Case { retimed, ..Case::new(|_| {}) });
        let cases = std::iter::once(case).chain(others).chain(bound).collect();
        Ok(Effect { cases, assumptions, doubts: few_traces(calls.traces), ..Effect::default() })
    }
}

/// The connections that calls are made over, as a pool that opens no more of them: what calls one after another do not need
/// may be refused to calls at once. `None` if sockets show none, calls share one, or a pool is known.
fn open_connections(calls: &FanOut, scene: &Scene<'_>) -> Option<Section> {
    let caller = calls.caller(scene);
    let is_known = |section: &Section| section.kind == ResourceKind::Connections && section.name == caller;
    let edge = scene.diagnosed.calls?.from(&caller).find(|edge| edge.callee == calls.callee)?;
    let figures = || edge.levels.iter().map(|level| &level.all);
    let is_shared = figures().any(|one| one.requests().low > one.connections);
    let open = figures().map(|one| one.connections - one.one_way).fold(0.0, f64::max);
    if open < 1.0 || is_shared || scene.system.sections.iter().any(is_known) {
        return None;
    }
    let taken_ns = scene.attempts(|group| group.callee == calls.callee, |traced, at| traced.tree.length_ns(at));
    let requests: f64 = scene.sample.traces.iter().map(|traced| traced.weight).sum();
    Some(Section::new(ResourceKind::Connections, caller, taken_ns / requests / 1e9, open.round() as u32))
}

/// A doubt if so few traces show something.
pub(super) fn few_traces(traces: usize) -> Vec<Doubt> {
    (traces < TRACES_MIN).then_some(Doubt::FewTraces { traces }).into_iter().collect()
}

/// The first calls, as many as may be made at once, start with the first; each further one after the one whose place it
/// takes. Further attempts stay behind their own call.
fn together(group: &Group<'_>, lengths: &[f64], at_once: usize, treatments: &mut [Treatment]) {
    let first = group.calls[0][0];
    // When each place is free again, and the last attempt that held it.
    let mut places: Vec<(f64, usize)> = Vec::new();
    for (attempts, length) in group.calls.iter().zip(lengths) {
        for pair in attempts.windows(2) {
            treatments[pair[1]].start = Start::After(pair[0]);
        }
        let last = attempts[attempts.len() - 1];
        if places.len() < at_once {
            if attempts[0] != first {
                treatments[attempts[0]].start = Start::With(first);
            }
            places.push((*length, last));
            continue;
        }
        if let Some(place) = places.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0)) {
            let treatment = &mut treatments[attempts[0]];
            (treatment.start, treatment.gap) = (Start::After(place.1), 0.0);
            *place = (place.0 + length, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{document_query, server};

    use super::*;
    use crate::retime::{Names, Sample};
    use narrows_testkit::trial::TrialBuilder;

    /// The milliseconds that a request with calls of 40, 10, 10, 10 and 10 ms takes with so many at once.
    fn took(at_once: usize) -> f64 {
        let calls = [(0.0, 40.0), (40.0, 10.0), (50.0, 10.0), (60.0, 10.0), (70.0, 10.0)];
        let spans = calls
            .iter()
            .enumerate()
            .map(|(at, (start, length))| document_query("SELECT * FROM c", &at.to_string()).at(*start, *length));
        let trace = server("shop", "GET /").at(0.0, 100.0).children(spans).trace(1);
        let mut trial = TrialBuilder::new("a").build();
        trial.traces = vec![trace];
        let sample = Sample::new(&trial, &[]);
        let names = Names::new(&trial);
        let edit = |traced: &SampledTrace<'_>, lengths: &[f64]| {
            let mut treatments = traced.untreated();
            for group in crate::retime::groups(&traced.tree, traced.tree.root, &names) {
                together(&group, &group.lengths_ns(&traced.tree, lengths), at_once, &mut treatments);
            }
            treatments
        };
        sample.retimed(&edit)[0].new_ns / 1e6
    }

    #[test]
    fn so_many_calls_at_a_time_take_as_long_as_their_places() {
        assert_eq!(took(usize::MAX), 60.0);
        assert_eq!(took(1), 100.0);
        assert_eq!(took(2), 60.0, "four short calls fit beside the long one");
        assert_eq!(took(4), 60.0);
    }
}
