//! Latencies of single requests, for the 95 % latency.
//!
//! To what a request takes alone comes a wait, drawn from an exponential distribution with the mean of the model. The same
//! draws are used on both sides, so their difference is the change's.

use crate::changes::Case;
use crate::intervals::quantile;
use crate::random::Random;
use crate::retime::RetimedTrace;

/// A level with fewer traces uses those of all levels.
const LEVEL_TRACES_MIN: usize = 20;

/// A value as it is, and with the change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OldNew {
    pub(crate) old: f64,
    pub(crate) new: f64,
}

/// Latencies of single requests, seconds with weights: as the model has them now, and with a change.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    old: Vec<(f64, f64)>,
    new: Vec<(f64, f64)>,
}

impl Tail {
    pub(crate) fn of_level(case: &Case<'_>, requests: &[RetimedTrace], level: usize, waits_s: OldNew) -> Self {
        let mut random = Random::new();
        let of_level = requests.iter().filter(|one| one.level == Some(level)).count();
        let is_meant = |one: &&RetimedTrace| of_level < LEVEL_TRACES_MIN || one.level == Some(level);
        let mut tail = Self::default();
        for one in requests.iter().filter(is_meant) {
            let wait = random.exponential();
            let new_refused_ns = case.refusals_left.map_or(one.new_refused_ns, |left| left * one.old_refused_ns);
            tail.old.push(((one.old_ns + one.old_refused_ns) / 1e9 + waits_s.old * wait, one.weight));
            tail.new.push(((one.new_ns + new_refused_ns) / 1e9 + waits_s.new * wait, one.weight));
        }
        tail
    }

    /// Adds those of a level, which stand for so many requests now and with the change, put right by these factors.
    pub(crate) fn take(&mut self, other: Tail, requests: OldNew, righting: OldNew) {
        let add = |to: &mut Vec<(f64, f64)>, from: Vec<(f64, f64)>, requests: f64, righting: f64| {
            let weight: f64 = from.iter().map(|(_, weight)| weight).sum();
            to.extend(from.into_iter().map(|(value, of)| (value * righting, of / weight * requests)));
        };
        add(&mut self.old, other.old, requests.old, righting.old);
        add(&mut self.new, other.new, requests.new, righting.new);
    }

    /// The 95 % latency with the change ÷ that without; `None` without requests.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (old, new) = (quantile(&self.old, 0.95)?, quantile(&self.new, 0.95)?);
        (old > 0.0).then(|| new / old)
    }
}
