//! Two simple rules that a prediction has to beat, each over the same traces and the same load.
//!
//! *Removes its share*: what a fix is about goes, and the mean latency loses that share of itself. *Amdahl's law*: that
//! share takes 1/s of its time, where s is how many times as fast the fix makes it (G. M. Amdahl, AFIPS 1967). Users then
//! send their next request sooner by as much; neither rule knows of queues or limits.

use narrows_model::prediction::{Change, RuleFigures};

use crate::DiagnosedTrial;
use crate::changes::{Scene, method};
use crate::retime::{Sample, SampledTrace, Treatment};
use crate::system::{Level, System};

/// The part of the latency that a change concerns.
pub(crate) struct Part {
    /// Share of the latency, 0 to 1.
    pub(crate) share: f64,
    /// How many times as fast it becomes.
    pub(crate) factor: f64,
}

/// Figures of both rules for a change, the first and Amdahl's; `None` if the traces do not show what the change concerns.
pub(crate) fn rules(
    diagnosed: &DiagnosedTrial<'_>,
    system: &System,
    change: &Change,
) -> Option<(RuleFigures, RuleFigures)> {
    let sample = Sample::new(diagnosed.trial, &system.levels);
    let scene = Scene { diagnosed, system, sample: &sample };
    let part = method(change.kind).part(change, &scene)?;
    let left = (1.0 - part.share).max(0.0);
    Some((figures(system, left), figures(system, left + part.share / part.factor)))
}

/// The share of the latency that is own time of some services.
pub(crate) fn own_share(scene: &Scene<'_>, is_meant: impl Fn(&str) -> bool) -> Option<f64> {
    let without = |traced: &SampledTrace<'_>| {
        let mut treatments = traced.untreated();
        for at in &traced.tree.order {
            if is_meant(scene.sample.names.place(&traced.tree, *at)) {
                treatments[*at].own = 0.0;
            }
        }
        treatments
    };
    share_of(scene, &without)
}

/// The share of the latency that is gone with this treatment; `None` without traces.
pub(crate) fn share_of(scene: &Scene<'_>, without: &dyn Fn(&SampledTrace<'_>) -> Vec<Treatment>) -> Option<f64> {
    let all = scene.sample.retimed(&|traced, _| without(traced));
    let sum = |of: fn(&crate::retime::RetimedTrace) -> f64| all.iter().map(|one| one.weight * of(one)).sum::<f64>();
    let (old, new) = (sum(|one| one.old_ns + one.old_refused_ns), sum(|one| one.new_ns + one.new_refused_ns));
    (old > 0.0).then(|| 1.0 - new / old)
}

/// Each level with this share of its mean latency left, all together.
fn figures(system: &System, left: f64) -> RuleFigures {
    let rate = |level: &Level| match level.think_s() {
        Some(think_s) => f64::from(level.load.users) / (level.mean_s() * left + think_s).max(1e-9),
        None => level.rate(),
    };
    let of_level = |level: &Level| (level.seconds, level.seconds * rate(level), level.mean_s() * left);
    let levels: Vec<(f64, f64, f64)> = system.levels.iter().map(of_level).collect();
    let seconds: f64 = levels.iter().map(|level| level.0).sum();
    let requests: f64 = levels.iter().map(|level| level.1).sum();
    let mean_s = levels.iter().map(|level| level.1 * level.2).sum::<f64>() / requests;
    RuleFigures { rate: requests / seconds, mean_ns: mean_s * 1e9 }
}

#[cfg(test)]
mod tests {
    use narrows_model::prediction::ChangeKind;
    use narrows_testkit::simulator;

    use super::*;

    #[test]
    fn the_rules_take_the_share_of_what_is_changed() {
        let steps = vec![(1, 20), (2, 20)];
        let system = simulator::System { steps, peer_calls: 4, think_ms: 50.0, ..simulator::System::default() };
        let trial = system.run("a");
        let diagnosed = DiagnosedTrial::new(&trial, &[]);
        let read = System::read(&diagnosed).expect("a system");
        let change = Change { kind: ChangeKind::SpeedUp, target: "peer".into(), amount: Some(2.0) };
        let (removed, amdahl) = rules(&diagnosed, &read, &change).expect("the traces show it");
        let now = trial.counted_load();
        assert!(removed.mean_ns < amdahl.mean_ns && amdahl.mean_ns < now.latency.mean_ns(), "{removed:?} {amdahl:?}");
        let halfway = (removed.mean_ns + now.latency.mean_ns()) / 2.0;
        assert!((amdahl.mean_ns / halfway - 1.0).abs() < 0.05, "half of the share: {amdahl:?}, {halfway}");
        assert!(removed.rate > now.rate());
    }
}
