//! Seconds that several sources report of one load, joined into one stream: each second once, in order.
//!
//! A source is a load thread, or a process that runs a part of the load. A second is handed over when every source has
//! reported it or reports no more. One that a source reports again is ignored, so that nothing counts twice.

use std::collections::BTreeMap;

use narrows_model::counting::{Phase, Tally};
use narrows_model::evidence::LoadTotals;
use narrows_model::load::LoadBatch;

use crate::windows::WindowsUnderWay;

/// See the module.
#[derive(Debug)]
pub struct MergedSeconds {
    /// For each source the first second it has not reported.
    reported: Vec<u64>,
    pending: BTreeMap<u64, LoadBatch>,
    windows: WindowsUnderWay,
    totals: LoadTotals,
    counted: Tally,
}

/// Sums of the seconds of a load.
#[derive(Debug, Clone)]
pub struct MergedTotals {
    /// Sum of all seconds, without their length.
    pub whole: LoadTotals,
    /// Sum of those in windows that count.
    pub counted: LoadTotals,
}

impl MergedSeconds {
    /// The seconds of a load with these windows, from so many sources.
    pub fn new(sources: usize, windows: WindowsUnderWay) -> Self {
        Self {
            reported: vec![0; sources],
            pending: BTreeMap::new(),
            windows,
            totals: LoadTotals::default(),
            counted: Tally::default(),
        }
    }

    /// Adds a source that reports seconds from one on, and gives its number.
    pub fn join(&mut self, from_second: u64) -> usize {
        self.reported.push(from_second);
        self.reported.len() - 1
    }

    /// Adds a second of a source, unless the source has reported it before. Seconds of one source come in order; those that it
    /// leaves out are never waited for.
    pub fn add(&mut self, source: usize, number: u64, batch: LoadBatch) {
        let Some(next) = self.reported.get_mut(source).filter(|next| number >= **next) else { return };
        *next = number + 1;
        let pending = self.pending.entry(number).or_default();
        pending.samples.extend(batch.samples);
        if pending.seconds.is_empty() {
            pending.seconds = batch.seconds;
        } else {
            pending.seconds.iter_mut().zip(&batch.seconds).for_each(|(sum, row)| sum.merge(row));
        }
    }

    /// Notes that a source reports no more.
    pub fn end(&mut self, source: usize) {
        if let Some(next) = self.reported.get_mut(source) {
            *next = u64::MAX;
        }
    }

    /// The first second that a source has not reported.
    pub fn next_of(&self, source: usize) -> u64 {
        self.reported.get(source).copied().unwrap_or(u64::MAX)
    }

    /// The next second that no source adds to any more, if there is one. It counts in the totals from now on.
    pub fn take_next(&mut self) -> Option<LoadBatch> {
        let complete = self.reported.iter().copied().min().unwrap_or(u64::MAX);
        let batch = self.pending.first_entry().filter(|entry| *entry.key() < complete)?.remove();
        for row in &batch.seconds {
            self.totals.add(row, Phase::Sending);
            if let Some(phase) = self.windows.counts(row) {
                self.counted.add(row, phase);
            }
        }
        Some(batch)
    }

    /// The sums of the seconds handed over.
    pub fn into_totals(self) -> MergedTotals {
        MergedTotals { whole: self.totals, counted: self.counted.into_totals() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::load::LoadSecond;

    fn second(number: u64, sent: u64) -> LoadBatch {
        let row = LoadSecond { vus: 1, sent, start_ns: number as i64, ..LoadSecond::default() };
        LoadBatch { seconds: vec![row], samples: Vec::new() }
    }

    fn all(merged: &mut MergedSeconds) -> Vec<(i64, u32, u64)> {
        let rows = std::iter::from_fn(|| merged.take_next()).flat_map(|batch| batch.seconds);
        rows.map(|row| (row.start_ns, row.vus, row.sent)).collect()
    }

    #[test]
    fn seconds_wait_for_every_source_and_come_once_in_order() {
        let mut merged = MergedSeconds::new(2, WindowsUnderWay::default());
        for (source, number, sent) in [(0, 0, 1), (0, 1, 10), (1, 0, 100), (0, 2, 5), (1, 0, 1_000)] {
            merged.add(source, number, second(number, sent));
        }
        assert_eq!(all(&mut merged), [(0, 2, 101)]);
        assert_eq!((merged.next_of(0), merged.next_of(1)), (3, 1));
        assert_eq!(merged.into_totals().whole.sent, 101);
    }

    #[test]
    fn a_source_that_has_ended_is_not_waited_for_and_adds_nothing() {
        let mut merged = MergedSeconds::new(2, WindowsUnderWay::default());
        merged.add(1, 0, second(0, 7));
        merged.end(1);
        merged.add(1, 1, second(1, 100));
        merged.add(0, 0, second(0, 1));
        merged.add(0, 1, second(1, 2));
        assert_eq!(all(&mut merged), [(0, 2, 8), (1, 1, 2)]);
    }

    #[test]
    fn one_that_joins_later_is_waited_for_from_its_first_second_on() {
        let mut merged = MergedSeconds::new(1, WindowsUnderWay::default());
        let late = merged.join(1);
        merged.add(0, 0, second(0, 1));
        merged.add(0, 1, second(1, 2));
        assert_eq!(all(&mut merged), [(0, 1, 1)]);
        merged.add(late, 0, second(0, 50));
        merged.add(late, 1, second(1, 5));
        assert_eq!(all(&mut merged), [(1, 2, 7)]);
    }
}
