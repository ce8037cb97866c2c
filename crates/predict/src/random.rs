//! Chance that repeats: draws from a fixed seed, so that a prediction is the same each time.

use narrows_model::random::SplitMix64;
use narrows_model::trace::Trace;

/// The seed of every prediction.
const SEED: u64 = 0x6e61_7272_6f77_7331;

/// Numbers that look random.
#[derive(Debug, Clone)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new() -> Self {
        Self(SplitMix64::new(SEED))
    }

    /// Other numbers for each trace, the same each time.
    pub(crate) fn of_trace(trace: &Trace) -> Self {
        let id = trace.spans.first().map_or(0, |span| u64::from_le_bytes(span.span_id));
        Self(SplitMix64::new(SEED ^ id))
    }

    /// Evenly from 0 up to but not 1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// So many places of a list of this length, each as likely as any other; none of an empty list.
    pub(crate) fn picks(&mut self, count: usize, length: usize) -> Vec<usize> {
        (0..if length == 0 { 0 } else { count }).map(|_| (self.unit() * length as f64) as usize).collect()
    }

    /// From an exponential distribution with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}
