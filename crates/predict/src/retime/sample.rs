//! The traces of a trial, with the time that depends on the load taken out.
//!
//! A trace shows a request as it was under the load of its moment. Part of the own time of a service was spent waiting for
//! a processor; the queueing model says how much, and the own time in each trace shrinks by that share. What remains is
//! what the request takes alone, to which the model adds the waits of the load that is predicted.

use std::collections::HashMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::trace::Trace;

use super::schedule::lengths_ns;
use super::timed_tree::TimedTree;
use super::treatment::Treatment;
use super::{Names, drop_refused};
use crate::intervals::quantile;
use crate::system::{Level, QuietTime};

/// Traces read at most; of more, an even choice.
const TRACES_MAX: usize = 2_000;
/// The least share of own time that remains.
const OWN_SHARE_MIN: f64 = 0.05;
/// Shares of the spans of a kind, the shortest ones, that wait for hardly anything. Nearly all spans may wait in a full system, so
/// that the smaller share gives the least time. Of a smaller one than the larger, times that merely vary would count as waits.
const QUIET_SHARES: [f64; 2] = [0.1, 0.5];

/// Treatment of each span of a trace by a change, given the lengths that they have without it.
pub(crate) type Edit<'e> = dyn Fn(&SampledTrace<'_>, &[f64]) -> Vec<Treatment> + 'e;

/// Traces of counted time, each with its level of the load.
#[derive(Debug)]
pub(crate) struct Sample<'a> {
    pub(crate) traces: Vec<SampledTrace<'a>>,
    pub(crate) names: Names,
}

/// One trace.
#[derive(Debug)]
pub(crate) struct SampledTrace<'a> {
    pub(crate) tree: TimedTree<'a>,
    /// The level of the load it began in, by its place; none between levels.
    pub(crate) level: Option<usize>,
    /// Requests that it stands for.
    pub(crate) weight: f64,
    /// The factor on each span's own time.
    own: Vec<f64>,
}

/// Time of a request alone, as it is and with a change, without and with refused attempts and the waits after them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RetimedTrace {
    pub(crate) level: Option<usize>,
    pub(crate) weight: f64,
    pub(crate) old_ns: f64,
    pub(crate) new_ns: f64,
    /// How much longer it takes because calls are refused.
    pub(crate) old_refused_ns: f64,
    pub(crate) new_refused_ns: f64,
}

impl<'a> Sample<'a> {
    /// The traces of these levels' trial, their time as it was recorded.
    pub(crate) fn new(trial: &'a TrialEvidence, levels: &[Level]) -> Self {
        let step = trial.traces.len().div_ceil(TRACES_MAX).max(1);
        let traced = |trace: &'a Trace| {
            let tree = TimedTree::new(trace)?;
            let start_ns = tree.times(tree.root).0;
            let level = levels.iter().position(|level| level.contains(start_ns));
            Some(SampledTrace { own: vec![1.0; trace.spans.len()], tree, level, weight: trace.weight })
        };
        let traces = trial.traces.iter().step_by(step).filter_map(traced);
        let mut traces: Vec<SampledTrace<'_>> =
            traces.filter(|traced| traced.tree.length_ns(traced.tree.root) > 0.0).collect();
        // Beside them, services may begin traces of their own: jobs, and what a request leaves to be done later.
        if traces.iter().any(SampledTrace::is_of_load) {
            traces.retain(SampledTrace::is_of_load);
        }
        Self { traces, names: Names::new(trial) }
    }

    /// How long the requests of these traces took, mean; none without traces.
    pub(crate) fn mean_ns(&self) -> Option<f64> {
        let weight: f64 = self.traces.iter().map(|traced| traced.weight).sum();
        let sum: f64 = self.traces.iter().map(|traced| traced.weight * traced.tree.length_ns(traced.tree.root)).sum();
        (weight > 0.0).then(|| sum / weight)
    }

    /// Time of a request of a level in which no span takes longer than the quiet ones of its kind, mean; `None` without traces.
    /// Outside of the traces the shortest requests pass as little time.
    pub(crate) fn quiet(&self, level: &Level) -> Option<QuietTime> {
        let [least_s, most_s] = QUIET_SHARES.map(|share| self.quiet_s(level, share));
        Some(QuietTime { least_s: least_s?, most_s: most_s? })
    }

    fn quiet_s(&self, level: &Level, share: f64) -> Option<f64> {
        let mut own_ns: HashMap<(&str, &str), Vec<(f64, f64)>> = HashMap::new();
        for traced in &self.traces {
            for at in &traced.tree.order {
                let span = traced.tree.span(*at);
                let of_kind = own_ns.entry((&span.service, &span.name)).or_default();
                of_kind.push((traced.tree.own_ns(*at), traced.weight));
            }
        }
        let quiet_ns: HashMap<(&str, &str), f64> =
            own_ns.into_iter().filter_map(|(kind, all)| Some((kind, quantile(&all, share)?))).collect();
        let edit = |traced: &SampledTrace<'_>, _: &[f64]| {
            let mut treatments = traced.untreated();
            for at in &traced.tree.order {
                let span = traced.tree.span(*at);
                let quiet_ns = quiet_ns.get(&(span.service.as_str(), span.name.as_str()));
                let quiet = quiet_ns.map_or(1.0, |quiet_ns| quiet_ns / traced.tree.own_ns(*at));
                treatments[*at].own = if quiet < 1.0 { quiet } else { 1.0 };
            }
            treatments
        };
        let retimed = self.retimed(&edit);
        let weight: f64 = retimed.iter().map(|one| one.weight).sum();
        let sum_ns: f64 = retimed.iter().map(|one| one.weight * (one.new_ns + one.new_refused_ns)).sum();
        let lengths: Vec<(f64, f64)> =
            self.traces.iter().map(|traced| (traced.tree.length_ns(traced.tree.root), traced.weight)).collect();
        let outside_s = level.quantile_s(share) - quantile(&lengths, share)? / 1e9;
        (weight > 0.0).then(|| sum_ns / weight / 1e9 + outside_s.max(0.0))
    }

    /// Takes out the waits of a request at each service, seconds, given for each level by the service's name.
    pub(crate) fn take_out(&mut self, waits_s: &[HashMap<String, f64>]) {
        let shares = self.wait_shares(waits_s);
        for traced in &mut self.traces {
            let Some(shares) = traced.level.and_then(|level| shares.get(level)) else { continue };
            for at in &traced.tree.order {
                let waits: f64 = places(&self.names, &traced.tree, *at).filter_map(|place| shares.get(place)).sum();
                traced.own[*at] = (1.0 - waits).clamp(OWN_SHARE_MIN, 1.0);
            }
        }
    }

    /// The share of own time at each service that is a wait, for each level.
    fn wait_shares(&self, waits_s: &[HashMap<String, f64>]) -> Vec<HashMap<String, f64>> {
        let mut own_ns: Vec<HashMap<&str, f64>> = vec![HashMap::new(); waits_s.len()];
        let mut weights = vec![0.0; waits_s.len()];
        for traced in &self.traces {
            let Some(level) = traced.level else { continue };
            weights[level] += traced.weight;
            for at in &traced.tree.order {
                for place in places(&self.names, &traced.tree, *at) {
                    *own_ns[level].entry(place).or_default() += traced.tree.own_ns(*at) * traced.weight;
                }
            }
        }
        let shares = |level: usize| -> HashMap<String, f64> {
            let of = |(service, wait_s): (&String, &f64)| {
                let own_s = own_ns[level].get(service.as_str())? / weights[level] / 1e9;
                (own_s > 0.0).then(|| (service.clone(), wait_s / own_s))
            };
            waits_s[level].iter().filter_map(of).collect()
        };
        (0..waits_s.len()).map(shares).collect()
    }

    /// All requests, as they are and with a change.
    pub(crate) fn retimed(&self, edit: &Edit<'_>) -> Vec<RetimedTrace> {
        self.traces.iter().map(|traced| traced.retimed(&self.names, edit)).collect()
    }
}

/// Where the own time of a span passes: at its place, and in the sidecars that it passes without a span of theirs.
fn places<'a>(names: &'a Names, tree: &TimedTree<'a>, at: usize) -> impl Iterator<Item = &'a str> {
    std::iter::once(names.place(tree, at)).chain(names.hidden_sidecars(tree, at))
}

impl SampledTrace<'_> {
    /// Whether its request came from outside with the parent of its first span, as those of the load generator do.
    fn is_of_load(&self) -> bool {
        self.tree.span(self.tree.root).parent_id.is_some()
    }

    /// Own time of a span, its waits taken out.
    pub(crate) fn own_ns(&self, at: usize) -> f64 {
        self.tree.own_ns(at) * self.own[at]
    }

    fn retimed(&self, names: &Names, edit: &Edit<'_>) -> RetimedTrace {
        let untreated = self.untreated();
        let old_refused = self.lengths_ns(&untreated);
        let mut changed = edit(self, &old_refused);
        let new_refused = self.lengths_ns(&changed)[self.tree.root];
        let mut kept = untreated;
        drop_refused(&self.tree, names, &mut kept);
        drop_refused(&self.tree, names, &mut changed);
        let old_ns = self.lengths_ns(&kept)[self.tree.root];
        let new_ns = self.lengths_ns(&changed)[self.tree.root];
        RetimedTrace {
            level: self.level,
            weight: self.weight,
            old_ns,
            new_ns,
            old_refused_ns: old_refused[self.tree.root] - old_ns,
            new_refused_ns: new_refused - new_ns,
        }
    }

    /// How long its spans take with these treatments, its waits taken out.
    fn lengths_ns(&self, treatments: &[Treatment]) -> Vec<f64> {
        let alone = |(treatment, own): (&Treatment, &f64)| Treatment { own: treatment.own * own, ..*treatment };
        let treatments: Vec<Treatment> = treatments.iter().zip(&self.own).map(alone).collect();
        lengths_ns(&self.tree, &treatments)
    }

    /// A treatment that leaves everything as it is, for each span.
    pub(crate) fn untreated(&self) -> Vec<Treatment> {
        vec![Treatment::default(); self.tree.trace.spans.len()]
    }
}
