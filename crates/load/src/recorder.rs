//! Records of one load thread: the current second of each scenario, and figures of the whole load.
//!
//! A second that is over goes to the collector, empty or not, so that every thread reports every second in order.
//! Nothing is kept per request but the bounded sample. However the thread ends, also by a panic, the collector hears that
//! no second follows.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use narrows_model::load::{ErrorKind, LoadSecond, Sample};

use crate::outcome::Phases;
use crate::random::Random;
use crate::sampling::{FinishedRequest, Sampler};

pub(crate) const SECOND_NS: i64 = 1_000_000_000;
const STATUSES: usize = 1000;
/// The most different causes that a thread distinguishes; what goes beyond is counted as [`OTHER_CAUSES`].
const CAUSES_MAX: usize = 100;
const OTHER_CAUSES: Cause = Cause::Text("other");

/// A thread's word to the collector.
#[derive(Debug)]
pub(crate) enum Message {
    /// A second is over.
    Second(ThreadSecond),
    /// The thread has reported its last second.
    Finished {
        /// Its number.
        thread: usize,
    },
}

/// Counts of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowName {
    pub(crate) scenario: String,
    /// See `LoadSecond::request`.
    pub(crate) request: String,
}

/// One second as one thread saw it.
#[derive(Debug)]
pub(crate) struct ThreadSecond {
    pub(crate) thread: usize,
    /// The second's number, from 0.
    pub(crate) number: u64,
    /// One row per step, as [`crate::flows`] numbers them.
    pub(crate) rows: Vec<LoadSecond>,
    pub(crate) samples: Vec<Sample>,
}

/// Figures of one thread over the whole load.
#[derive(Debug)]
pub(crate) struct ThreadTotals {
    /// Complete responses by status.
    pub(crate) statuses: Vec<u64>,
    pub(crate) causes: BTreeMap<(ErrorKind, Cause), u64>,
    pub(crate) phases: Phases,
    pub(crate) body_bytes: u64,
    pub(crate) ticks_missed: u64,
    /// Requests that failed because the drain ended.
    pub(crate) undrained: u64,
    /// When the last request ended, in Unix nanoseconds; 0 when none did.
    pub(crate) last_done_ns: i64,
}

/// Cause of an error: the kernel's error number, the engine's words, or words that repeat the plan's or the
/// server's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    Os(i32),
    Text(&'static str),
    Said(Arc<str>),
}

impl From<rustix::io::Errno> for Cause {
    fn from(errno: rustix::io::Errno) -> Self {
        Cause::Os(errno.raw_os_error())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Os(number) => write!(f, "{}", std::io::Error::from_raw_os_error(*number)),
            Cause::Text(text) => f.write_str(text),
            Cause::Said(text) => f.write_str(text),
        }
    }
}

/// The line to the collector, which ends with [`Message::Finished`].
struct Line<'run> {
    thread: usize,
    out: SyncSender<Message>,
    /// Stops the other threads.
    deserted: &'run AtomicBool,
}

impl Line<'_> {
    fn send(&self, message: Message) {
        // The collector outlives the load threads; if it is gone all the same, nothing can receive this.
        let _ = self.out.send(message);
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.deserted.store(true, Ordering::Relaxed);
        }
        self.send(Message::Finished { thread: self.thread });
    }
}

/// Boundaries of seconds: one per second of the load, and the boundaries of its windows. All threads use the same ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds<'run> {
    /// The load's first instant.
    pub(crate) start_ns: i64,
    /// The instants at which windows begin and end, in order.
    pub(crate) of_windows: &'run [i64],
    /// Number of the first second that is recorded, from 0.
    pub(crate) first: u64,
}

impl Bounds<'_> {
    /// The first boundary after an instant.
    pub(crate) fn after(&self, ns: i64) -> i64 {
        let second_ns = self.start_ns + ((ns - self.start_ns).div_euclid(SECOND_NS) + 1) * SECOND_NS;
        let next = self.of_windows.partition_point(|bound| *bound <= ns);
        self.of_windows.get(next).map_or(second_ns, |bound| second_ns.min(*bound))
    }

    /// The beginning of the first second that is recorded.
    pub(crate) fn begin_ns(&self) -> i64 {
        (0..self.first).fold(self.start_ns, |ns, _| self.after(ns))
    }
}

/// See the module.
pub(crate) struct Recorder<'run> {
    line: Line<'run>,
    bounds: Bounds<'run>,
    number: u64,
    second_start_ns: i64,
    /// Looked at more often than anything else here.
    second_end_ns: i64,
    names: Vec<RowName>,
    rows: Vec<LoadSecond>,
    /// A second that is over and not handed over yet; see [`Self::hold_second`].
    held: Option<ThreadSecond>,
    samplers: Vec<Sampler>,
    random: Random,
    pub(crate) totals: ThreadTotals,
}

impl<'run> Recorder<'run> {
    pub(crate) fn new(
        thread: usize,
        bounds: Bounds<'run>,
        names: Vec<RowName>,
        random: Random,
        out: SyncSender<Message>,
        deserted: &'run AtomicBool,
    ) -> Self {
        let begin_ns = bounds.begin_ns();
        let mut recorder = Self {
            line: Line { thread, out, deserted },
            bounds,
            number: bounds.first,
            second_start_ns: begin_ns,
            second_end_ns: bounds.after(begin_ns),
            rows: Vec::new(),
            held: None,
            samplers: names.iter().map(|_| Sampler::default()).collect(),
            names,
            random,
            totals: ThreadTotals {
                statuses: vec![0; STATUSES],
                causes: BTreeMap::new(),
                phases: Phases::default(),
                body_bytes: 0,
                ticks_missed: 0,
                undrained: 0,
                last_done_ns: 0,
            },
        };
        recorder.rows = recorder.empty_rows();
        recorder
    }

    /// The current second's first instant, in Unix nanoseconds.
    pub(crate) fn second_start_ns(&self) -> i64 {
        self.second_start_ns
    }

    /// The first instant after the current second.
    pub(crate) fn second_end_ns(&self) -> i64 {
        self.second_end_ns
    }

    /// Counts iterations of an open model that are due, in the scenario's first row.
    pub(crate) fn due(&mut self, row: usize, iterations: u64) {
        self.rows[row].due += iterations;
    }

    /// Counts iterations that found every user busy, in the scenario's first row.
    pub(crate) fn late(&mut self, row: usize, iterations: u64) {
        self.rows[row].late += iterations;
    }

    /// Counts iterations that were given up before they began, in the scenario's first row.
    pub(crate) fn dropped(&mut self, row: usize, iterations: u64) {
        self.rows[row].dropped += iterations;
    }

    /// Counts iterations that were given up because the load's time is over, in the second in which it ended when that
    /// one is held, else in the current one.
    pub(crate) fn given_up(&mut self, row: usize, iterations: u64) {
        let rows = self.held.as_mut().map_or(&mut self.rows, |held| &mut held.rows);
        rows[row].dropped += iterations;
    }

    /// Counts a request that has just been sent.
    pub(crate) fn sent(&mut self, row: usize, lateness_ns: u64) {
        let row = &mut self.rows[row];
        row.sent += 1;
        row.lateness.record(lateness_ns);
    }

    /// Counts a request that has just been repeated.
    pub(crate) fn repeated(&mut self, row: usize) {
        self.rows[row].repeated += 1;
    }

    /// Counts a request that has no response when the load is stopped.
    pub(crate) fn cut(&mut self, row: usize) {
        self.rows[row].cut += 1;
    }

    /// Counts a request that has just ended with a complete response.
    pub(crate) fn completed(&mut self, at: usize, ended: &FinishedRequest) {
        if let Some(count) = self.totals.statuses.get_mut(usize::from(ended.status)) {
            *count += 1;
        }
        self.totals.last_done_ns = ended.done_ns;
        let row = &mut self.rows[at];
        row.bytes += ended.bytes;
        match ended.error {
            None => {
                row.succeeded += 1;
                row.latency.record(ended.latency_ns());
                row.service.record(ended.service_ns());
            }
            Some(kind) => *row.errors.of_mut(kind) += 1,
        }
        self.samplers[at].offer(ended, &mut self.random);
    }

    /// Counts a request that has just ended without a complete response.
    pub(crate) fn failed(&mut self, at: usize, ended: FinishedRequest, kind: ErrorKind, cause: Cause) {
        self.caused(kind, cause);
        self.totals.last_done_ns = ended.done_ns;
        let row = &mut self.rows[at];
        row.bytes += ended.bytes;
        *row.errors.of_mut(kind) += 1;
        self.samplers[at].offer(&FinishedRequest { error: Some(kind), ..ended }, &mut self.random);
    }

    /// Counts why a request failed.
    pub(crate) fn caused(&mut self, kind: ErrorKind, cause: Cause) {
        let causes = &mut self.totals.causes;
        let key = (kind, cause);
        let is_told_apart = causes.len() < CAUSES_MAX || causes.contains_key(&key);
        let key = if is_told_apart { key } else { (kind, OTHER_CAUSES) };
        *causes.entry(key).or_default() += 1;
    }

    /// Hands over the current second, with the users of each row at its end, and begins the next.
    pub(crate) fn close_second(&mut self, vus: &[u32]) {
        let second = self.closed(vus);
        self.line.send(Message::Second(second));
    }

    /// As [`Self::close_second`], but the second waits for what is given up at the end of the load, which is found out only
    /// when it is over. It is handed over before the next one.
    pub(crate) fn hold_second(&mut self, vus: &[u32]) {
        self.held = Some(self.closed(vus));
    }

    /// Ends the current second early, at the end of the load.
    pub(crate) fn end_at(&mut self, ns: i64) {
        self.second_end_ns = ns.clamp(self.second_start_ns, self.second_end_ns);
    }

    fn release(&mut self) {
        if let Some(held) = self.held.take() {
            self.line.send(Message::Second(held));
        }
    }

    fn closed(&mut self, vus: &[u32]) -> ThreadSecond {
        self.release();
        let length_ns = self.second_end_ns - self.second_start_ns;
        self.number += 1;
        self.second_start_ns = self.second_end_ns;
        self.second_end_ns = self.bounds.after(self.second_start_ns);
        let empty = self.empty_rows();
        let mut rows = std::mem::replace(&mut self.rows, empty);
        let mut samples = Vec::new();
        for (at, row) in rows.iter_mut().enumerate() {
            row.length_ns = length_ns;
            row.vus = vus[at];
            samples.append(&mut self.samplers[at].take(&self.names[at]));
        }
        ThreadSecond { thread: self.line.thread, number: self.number - 1, rows, samples }
    }

    /// Whether anything was counted in the current second.
    pub(crate) fn has_counted(&self) -> bool {
        self.rows.iter().any(|row| row.errors.total() > 0 || row.counts().iter().any(|(_, count)| *count > 0))
    }

    /// Reports that no second follows.
    pub(crate) fn finish(mut self) -> ThreadTotals {
        self.release();
        self.totals
    }

    fn empty_rows(&self) -> Vec<LoadSecond> {
        let start_ns = self.second_start_ns;
        let row = |name: &RowName| LoadSecond {
            scenario: name.scenario.clone(),
            request: name.request.clone(),
            start_ns,
            ..LoadSecond::default()
        };
        self.names.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_follow_each_other_and_are_cut_where_windows_begin_and_end(
            mut of_windows in proptest::collection::btree_set(1..6_000_000_000i64, 0..6),
            sent_at in proptest::collection::vec(0..5_000_000_000i64, 0..30),
            start_ns in 0..2_000_000_000i64,
            over_ns in 0..900_000_000i64,
        ) {
            of_windows = of_windows.into_iter().map(|bound| start_ns + bound).collect();
            let bounds_ns: Vec<i64> = of_windows.iter().copied().collect();
            let (out, messages) = sync_channel(64);
            let deserted = AtomicBool::new(false);
            let names = vec![RowName { scenario: "a".into(), request: String::new() }];
            let bounds = Bounds { start_ns, of_windows: &bounds_ns, first: 0 };
            let mut recorder = Recorder::new(0, bounds, names, Random::new(1, 1), out, &deserted);
            let mut sorted = sent_at.clone();
            sorted.sort_unstable();
            for at in &sorted {
                while start_ns + at >= recorder.second_end_ns() {
                    recorder.close_second(&[1]);
                }
                recorder.sent(0, 0);
            }
            let ended_ns = recorder.second_start_ns() + over_ns;
            recorder.end_at(ended_ns);
            recorder.close_second(&[1]);
            recorder.finish();
            let rows: Vec<LoadSecond> = messages
                .iter()
                .filter_map(|message| if let Message::Second(second) = message { Some(second.rows) } else { None })
                .flatten()
                .collect();
            prop_assert_eq!(rows[0].start_ns, start_ns);
            prop_assert!(rows.windows(2).all(|pair| pair[0].end_ns() == pair[1].start_ns));
            prop_assert!(rows.iter().all(|row| (0..=SECOND_NS).contains(&row.length_ns)));
            let cuts = |row: &LoadSecond, bound: &i64| row.start_ns < *bound && *bound < row.end_ns();
            prop_assert!(!rows.iter().any(|row| bounds_ns.iter().any(|bound| cuts(row, bound))));
            prop_assert_eq!(rows.iter().map(|row| row.sent).sum::<u64>(), sent_at.len() as u64);
            for row in &rows {
                let is_in = |at: &&i64| (row.start_ns..row.end_ns().max(row.start_ns + 1)).contains(&(start_ns + **at));
                let is_last = row.start_ns == rows[rows.len() - 1].start_ns;
                prop_assert!(is_last || row.sent == sent_at.iter().filter(is_in).count() as u64);
            }
        }
    }
}
