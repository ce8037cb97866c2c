//! The parts of a trial, the attempts in each, and the location of a storm.

use super::RetriedCall;
use crate::read::Reading;
use crate::thresholds::Thresholds;

/// Number of parts of the counted time.
const PARTS: usize = 12;

/// The counted time in equal parts.
pub(super) struct Parts {
    start_ns: i64,
    length_ns: i64,
}

impl Parts {
    pub(super) fn new(reading: &Reading<'_>) -> Option<Self> {
        let windows = || reading.trial.counted_windows();
        let (start_ns, end_ns) = (windows().map(|w| w.start_ns).min()?, windows().map(|w| w.end_ns).max()?);
        let length_ns = end_ns.saturating_sub(start_ns) / PARTS as i64;
        (length_ns > 0).then_some(Self { start_ns, length_ns })
    }

    pub(super) fn at(&self, instant_ns: i64) -> usize {
        let part = instant_ns.saturating_sub(self.start_ns).max(0) / self.length_ns;
        usize::try_from(part).unwrap_or(0).min(PARTS - 1)
    }

    pub(super) fn bounds(&self, first: usize, last: usize) -> (i64, i64) {
        let at = |part: usize| self.start_ns + self.length_ns * part as i64;
        (at(first), at(last + 1))
    }
}

/// Calls and attempts of a part of the trial.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) seen: usize,
    calls: f64,
    attempts: f64,
}

impl Count {
    pub(super) fn add(&mut self, other: Count) {
        self.seen += other.seen;
        self.calls += other.calls;
        self.attempts += other.attempts;
    }

    /// Attempts per call; 1 without calls.
    pub(super) fn amplification(self) -> f64 {
        if self.calls > 0.0 { self.attempts / self.calls } else { 1.0 }
    }
}

/// Calls and attempts of each part.
pub(super) fn counts(parts: &Parts, seen: &[RetriedCall<'_>]) -> Vec<Count> {
    let mut counts = vec![Count::default(); PARTS];
    for seen in seen {
        let weight = seen.handled.weight();
        let attempts = weight * (1.0 + seen.retries as f64);
        counts[parts.at(seen.call.start_ns())].add(Count { seen: 1, calls: weight, attempts });
    }
    counts
}

/// First and last part of the storm: the run of amplified parts with the most retries. Parts without calls do not
/// interrupt a run.
pub(super) fn storm_in(counts: &[Count], thresholds: &Thresholds) -> Option<(usize, usize)> {
    let mut runs: Vec<(usize, usize, f64)> = Vec::new();
    let mut is_open = false;
    for (part, count) in counts.iter().enumerate().filter(|(_, count)| count.seen > 0) {
        if count.amplification() < thresholds.retry_storm.storm_amplification {
            is_open = false;
            continue;
        }
        let again = count.attempts - count.calls;
        match runs.last_mut().filter(|_| is_open) {
            Some(run) => (run.1, run.2) = (part, run.2 + again),
            None => runs.push((part, part, again)),
        }
        is_open = true;
    }
    runs.into_iter().max_by(|a, b| a.2.total_cmp(&b.2)).map(|(first, last, _)| (first, last))
}
