//! Runs the schedules of seeds, whatever it is that they simulate.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::trace::Trace;

/// The steps that a failure shows; of a single seed, all that matter.
const STEPS_SHOWN: usize = 80;
const STEPS_SHOWN_OF_ONE: usize = 20_000;

/// Something whose schedule follows from a seed.
pub(super) trait Simulated {
    /// Events that a schedule met.
    type Tally;

    /// Before its first step. `shown` is the number of last steps that its trace keeps.
    fn begin(seed: u64, shown: usize) -> Self;

    /// Takes all steps, comes to rest and is judged. Panics when a promise is broken.
    fn judged(&mut self) -> Self::Tally;

    fn trace(&self) -> &Trace;
}

/// The seeds that a test tries.
pub(super) struct Seeds {
    range: Range<u64>,
}

impl Seeds {
    /// The one that `NARROWS_SIM_SEED` names, or as many as `NARROWS_SIM_SEEDS` says, or as many as given here.
    pub(super) fn wanted(otherwise: u64) -> Self {
        let range = match setting("NARROWS_SIM_SEED") {
            Some(seed) => seed..seed + 1,
            None => 0..setting("NARROWS_SIM_SEEDS").unwrap_or(otherwise),
        };
        Self { range }
    }

    pub(super) fn is_one(&self) -> bool {
        self.range.end - self.range.start == 1
    }

    /// Runs the schedule of each.
    pub(super) fn run<S: Simulated>(&self) -> impl Iterator<Item = S::Tally> {
        let shown = if self.is_one() { STEPS_SHOWN_OF_ONE } else { STEPS_SHOWN };
        self.range.clone().map(move |seed| run::<S>(seed, shown).1)
    }
}

/// Hashes of the schedules of the first few seeds.
pub(super) fn hashes<S: Simulated>(seeds: u64) -> Vec<u64> {
    (0..seeds).map(|seed| run::<S>(seed, 0).0).collect()
}

/// Runs the schedule of a seed to its verdict.
fn run<S: Simulated>(seed: u64, shown: usize) -> (u64, S::Tally) {
    let mut simulated = S::begin(seed, shown);
    match catch_unwind(AssertUnwindSafe(|| simulated.judged())) {
        Ok(tally) => (simulated.trace().hash(), tally),
        // The broken rule stands above: the panic has printed it.
        Err(_) => panic!("NARROWS_SIM_SEED={seed} repeats it; the last steps:\n{}", simulated.trace().last()),
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}
