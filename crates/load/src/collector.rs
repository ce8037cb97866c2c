//! Joins what the load threads report into one stream of seconds, each once, in order.
//!
//! A second is handed over when every thread has reported it or has finished. When nobody listens any more, the
//! threads are stopped and their reports are still added up, so that the totals stay right.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use narrows_model::counting::{Phase, Tally};
use narrows_model::evidence::LoadTotals;
use narrows_model::load::LoadBatch;

use crate::recorder::{Message, ThreadSecond};
use crate::windows::WindowsUnderWay;

/// See the module.
pub(crate) struct Collector<'run> {
    out: &'run SyncSender<LoadBatch>,
    /// Stops the load threads.
    deserted: &'run AtomicBool,
    is_heard: bool,
    /// For each thread the first second it has not reported.
    reported: Vec<u64>,
    pending: BTreeMap<u64, LoadBatch>,
    windows: WindowsUnderWay,
    totals: LoadTotals,
    counted: Tally,
}

/// Sums of the seconds of a load.
#[derive(Debug, Clone)]
pub(crate) struct CollectedTotals {
    /// Sum of all seconds, without their length.
    pub(crate) whole: LoadTotals,
    /// Sum of those in windows that count.
    pub(crate) counted: LoadTotals,
}

impl<'run> Collector<'run> {
    pub(crate) fn new(
        out: &'run SyncSender<LoadBatch>,
        deserted: &'run AtomicBool,
        threads: usize,
        windows: WindowsUnderWay,
    ) -> Self {
        Self {
            out,
            deserted,
            is_heard: true,
            reported: vec![0; threads],
            pending: BTreeMap::new(),
            windows,
            totals: LoadTotals::default(),
            counted: Tally::default(),
        }
    }

    /// Works until every thread has hung up, then gives the sums.
    pub(crate) fn run(mut self, reports: &Receiver<Message>) -> CollectedTotals {
        for message in reports {
            match message {
                Message::Second(second) => self.add(second),
                Message::Finished { thread } => self.reported[thread] = u64::MAX,
            }
            self.hand_over();
        }
        CollectedTotals { whole: self.totals, counted: self.counted.into_totals() }
    }

    fn add(&mut self, second: ThreadSecond) {
        self.reported[second.thread] = second.number + 1;
        let batch = self.pending.entry(second.number).or_default();
        batch.samples.extend(second.samples);
        if batch.seconds.is_empty() {
            batch.seconds = second.rows;
        } else {
            batch.seconds.iter_mut().zip(&second.rows).for_each(|(sum, row)| sum.merge(row));
        }
    }

    fn hand_over(&mut self) {
        let complete = self.reported.iter().copied().min().unwrap_or(u64::MAX);
        while let Some(entry) = self.pending.first_entry().filter(|entry| *entry.key() < complete) {
            let batch = entry.remove();
            for row in &batch.seconds {
                self.totals.add(row, Phase::Sending);
                if let Some(phase) = self.windows.counts(row) {
                    self.counted.add(row, phase);
                }
            }
            if self.is_heard && self.out.send(batch).is_err() {
                self.is_heard = false;
                self.deserted.store(true, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::recorder::{Bounds, Recorder};
    use narrows_model::load::LoadSecond;
    use std::sync::mpsc::sync_channel;

    fn second(thread: usize, number: u64, sent: u64) -> Message {
        let row = LoadSecond { vus: 1, sent, start_ns: number as i64, ..LoadSecond::default() };
        Message::Second(ThreadSecond { thread, number, rows: vec![row], samples: Vec::new() })
    }

    fn collect(messages: Vec<Message>) -> (Vec<(i64, u32, u64)>, u64) {
        let (out, batches) = sync_channel(16);
        let (report, reports) = sync_channel(16);
        messages.into_iter().for_each(|message| report.send(message).unwrap());
        drop(report);
        let deserted = AtomicBool::new(false);
        let totals = Collector::new(&out, &deserted, 2, WindowsUnderWay::default()).run(&reports);
        drop(out);
        let rows = batches.iter().flat_map(|b| b.seconds).map(|s| (s.start_ns, s.vus, s.sent)).collect();
        (rows, totals.whole.sent)
    }

    #[test]
    fn seconds_wait_for_every_thread_and_come_once_in_order() {
        let messages = vec![second(0, 0, 1), second(0, 1, 10), second(1, 0, 100), second(0, 2, 5)];
        assert_eq!(collect(messages), (vec![(0, 2, 101)], 101));
    }

    #[test]
    fn a_finished_thread_is_not_waited_for() {
        let finished = |thread| Message::Finished { thread };
        let messages = vec![second(1, 0, 7), finished(1), second(0, 0, 1), second(0, 1, 2), finished(0)];
        assert_eq!(collect(messages), (vec![(0, 2, 8), (1, 1, 2)], 10));
    }

    #[test]
    fn a_thread_that_panics_ends_the_load_and_holds_no_second_back() {
        let deserted = AtomicBool::new(false);
        let (report, reports) = sync_channel(16);
        let recorder = |thread| {
            Recorder::new(
                thread,
                Bounds { start_ns: 0, of_windows: &[] },
                vec![crate::recorder::RowName { scenario: "a".into(), request: String::new() }],
                Random::new(1, 1),
                report.clone(),
                &deserted,
            )
        };
        let (mut fails, mut works) = (recorder(0), recorder(1));
        drop(report);
        let failed = std::thread::scope(|scope| {
            let panics = move || {
                fails.close_second(&[1]);
                panic!("a defect");
            };
            scope.spawn(panics).join()
        });
        assert!(failed.is_err() && deserted.load(Ordering::Relaxed), "the other threads are told to stop");
        (0..3).for_each(|_| works.close_second(&[2]));
        works.finish();
        let (out, batches) = sync_channel(16);
        Collector::new(&out, &deserted, 2, WindowsUnderWay::default()).run(&reports);
        drop(out);
        let vus: Vec<u32> = batches.iter().flat_map(|batch| batch.seconds).map(|second| second.vus).collect();
        assert_eq!(vus, [3, 2, 2]);
    }

    #[test]
    fn without_a_listener_the_load_is_stopped_and_still_added_up() {
        let (out, batches) = sync_channel(1);
        drop(batches);
        let (report, reports) = sync_channel(16);
        for number in 0..3 {
            report.send(second(0, number, 1)).unwrap();
        }
        drop(report);
        let deserted = AtomicBool::new(false);
        assert_eq!(Collector::new(&out, &deserted, 1, WindowsUnderWay::default()).run(&reports).whole.sent, 3);
        assert!(deserted.load(Ordering::Relaxed));
    }
}
