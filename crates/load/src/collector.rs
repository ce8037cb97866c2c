//! Joins what the load threads report into one stream of seconds.
//!
//! When nobody listens any more, the threads are stopped and their reports are still added up, so that the totals stay
//! right.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use narrows_model::load::LoadBatch;

use crate::merged::{MergedSeconds, MergedTotals};
use crate::recorder::Message;

/// See the module.
pub(crate) struct Collector<'run> {
    out: &'run SyncSender<LoadBatch>,
    /// Stops the load threads.
    deserted: &'run AtomicBool,
    is_heard: bool,
    merged: MergedSeconds,
}

impl<'run> Collector<'run> {
    pub(crate) fn new(out: &'run SyncSender<LoadBatch>, deserted: &'run AtomicBool, merged: MergedSeconds) -> Self {
        Self { out, deserted, is_heard: true, merged }
    }

    /// Works until every thread has hung up, then gives the sums.
    pub(crate) fn run(mut self, reports: &Receiver<Message>) -> MergedTotals {
        for message in reports {
            match message {
                Message::Second(second) => {
                    let batch = LoadBatch { seconds: second.rows, samples: second.samples };
                    self.merged.add(second.thread, second.number, batch);
                }
                Message::Finished { thread } => self.merged.end(thread),
            }
            self.hand_over();
        }
        self.merged.into_totals()
    }

    fn hand_over(&mut self) {
        while let Some(batch) = self.merged.take_next() {
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
    use crate::recorder::{Bounds, Recorder, ThreadSecond};
    use crate::windows::WindowsUnderWay;
    use narrows_model::load::LoadSecond;
    use std::sync::mpsc::sync_channel;

    fn merged(threads: usize) -> MergedSeconds {
        MergedSeconds::new(threads, WindowsUnderWay::default())
    }

    #[test]
    fn a_thread_that_panics_ends_the_load_and_holds_no_second_back() {
        let deserted = AtomicBool::new(false);
        let (report, reports) = sync_channel(16);
        let recorder = |thread| {
            Recorder::new(
                thread,
                Bounds { start_ns: 0, of_windows: &[], first: 0 },
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
        Collector::new(&out, &deserted, merged(2)).run(&reports);
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
            let row = LoadSecond { sent: 1, ..LoadSecond::default() };
            let second = ThreadSecond { thread: 0, number, rows: vec![row], samples: Vec::new() };
            report.send(Message::Second(second)).unwrap();
        }
        drop(report);
        let deserted = AtomicBool::new(false);
        assert_eq!(Collector::new(&out, &deserted, merged(1)).run(&reports).whole.sent, 3);
        assert!(deserted.load(Ordering::Relaxed));
    }
}
