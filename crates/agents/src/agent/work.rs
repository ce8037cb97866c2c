//! A part of a load under way: the thread that sends it, and the task that reports its seconds.
//!
//! Seconds wait in memory, bounded, while no server takes them. When there is no more room, the load is held up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use narrows_load::{Clock, run_part};
use narrows_model::load::LoadPlan;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::framing;
use crate::link::Link;
use crate::messages::{Assignment, Report, Response};
use crate::subjects;

/// Seconds that wait to be reported, beyond those that the load engine holds.
const SECONDS_WAITING_MAX: usize = 600;
/// Seconds between the load engine and what hands them on.
const BATCHES_MAX: usize = 4;

/// See the module.
pub(super) struct Work {
    pub(super) run: String,
    pub(super) trial: i64,
    pub(super) number: usize,
    /// How long it goes on without a sign of life from the coordinator.
    pub(super) alone: Duration,
    shared: Arc<Shared>,
    reporting: JoinHandle<Option<String>>,
}

/// State that the agent, the load and the reports of a part share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Why it was stopped; the first reason counts.
    reason: Mutex<Option<String>>,
    /// Whether the coordinator does not know of it.
    has_left: AtomicBool,
    /// When reports that cannot be sent are given up.
    give_up: Mutex<Option<Instant>>,
    /// The number of the next second.
    next: AtomicU64,
}

impl Shared {
    fn is_given_up(&self) -> bool {
        let at = *self.give_up.lock().unwrap_or_else(PoisonError::into_inner);
        at.is_some_and(|at| Instant::now() >= at)
    }
}

/// A part that is over.
pub(super) struct WorkEnd {
    pub(super) run: String,
    /// Why before its time or without all of its reports, if so.
    pub(super) trouble: Option<String>,
}

impl Work {
    /// Begins to send a part.
    pub(super) fn begin(plan: LoadPlan, assignment: Assignment, clock: Clock, link: Link) -> Response<Self> {
        let Assignment { run, trial, load: id, number, part, alone_ms } = assignment;
        let shared = Arc::new(Shared::default());
        shared.next.store(part.from_second, Ordering::Relaxed);
        let (report, reports) = mpsc::channel(SECONDS_WAITING_MAX);
        let (out, batches) = sync_channel(BATCHES_MAX);
        let numbers = Arc::clone(&shared);
        let load = move || {
            let hand_on = || {
                for batch in batches {
                    let second = numbers.next.fetch_add(1, Ordering::Relaxed);
                    if report.blocking_send(Report::Second { load: id, part: number, number: second, batch }).is_err() {
                        return;
                    }
                }
            };
            let end = std::thread::scope(|scope| {
                let handing_on = scope.spawn(hand_on);
                let end =
                    run_part(&plan, part, clock, &numbers.stop, &out).map(Box::new).map_err(|error| error.to_string());
                drop(out);
                // The end comes after the last second.
                handing_on.join().map_or(Err("a thread of the agent panicked".to_owned()), |()| end)
            });
            let left = numbers.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let _ = report.blocking_send(match left.filter(|_| numbers.has_left.load(Ordering::Relaxed)) {
                Some(reason) => Report::Left { load: id, part: number, reason },
                None => Report::Ended { load: id, part: number, end },
            });
        };
        let begun = Builder::new().name("agent-load".to_owned()).spawn(load);
        begun.map_err(|error| format!("cannot start a thread: {error}"))?;
        let reporter = Reporter { link, run: run.clone(), trial, number, shared: Arc::clone(&shared) };
        let reporting = tokio::spawn(reporter.report_all(reports));
        Ok(Self { run, trial, number, alone: Duration::from_millis(alone_ms), shared, reporting })
    }

    /// Lets no further request be sent, as the coordinator wants it.
    pub(super) fn stop(&self, reason: &str) {
        self.end_early(reason);
    }

    /// Lets no further request be sent, which the coordinator does not know: the rest of the part is missing.
    pub(super) fn leave(&self, reason: &str) {
        self.shared.has_left.store(true, Ordering::Relaxed);
        self.end_early(reason);
    }

    fn end_early(&self, reason: &str) {
        self.shared.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| reason.to_owned());
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Gives reports that cannot be sent only so much more time, counted from the first time that this is said.
    pub(super) fn give_up_reports_within(&self, time: Duration) {
        let mut give_up = self.shared.give_up.lock().unwrap_or_else(PoisonError::into_inner);
        give_up.get_or_insert_with(|| Instant::now() + time);
    }

    /// Gives up all that could not be reported.
    pub(super) fn abandon(&self) {
        self.reporting.abort();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.reporting.is_finished()
    }

    pub(super) fn end(self) -> WorkEnd {
        let stopped = self.shared.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // The task has ended, so its result is there at once.
        let mut reporting = self.reporting;
        let waker = std::task::Waker::noop();
        let result = std::pin::Pin::new(&mut reporting).poll(&mut std::task::Context::from_waker(waker));
        let trouble = if let std::task::Poll::Ready(Ok(trouble)) = result { trouble } else { None };
        WorkEnd { run: self.run, trouble: trouble.or(stopped) }
    }
}

/// Sends the reports of a part, each until it has arrived.
struct Reporter {
    link: Link,
    run: String,
    trial: i64,
    number: usize,
    shared: Arc<Shared>,
}

impl Reporter {
    /// Works until the part's end is reported; the reason if that could not be, or if the load failed.
    async fn report_all(self, mut reports: mpsc::Receiver<Report>) -> Option<String> {
        while let Some(report) = reports.recv().await {
            let failed = match &report {
                Report::Ended { end: Err(reason), .. } => Some(reason.clone()),
                _ => None,
            };
            let is_last = matches!(report, Report::Ended { .. } | Report::Left { .. });
            if let Err(reason) = self.report(report).await {
                self.shared.stop.store(true, Ordering::Relaxed);
                return Some(reason);
            }
            if is_last {
                return failed;
            }
        }
        None
    }

    async fn report(&self, report: Report) -> Result<(), String> {
        let what = match &report {
            Report::Second { number, .. } => number.to_string(),
            _ => "end".to_owned(),
        };
        let pieces = match framing::pieces(&report) {
            Ok(pieces) => pieces,
            Err(bytes) => return Err(format!("a second takes {bytes} bytes, more than can be sent")),
        };
        let subject = subjects::reports(&self.run, self.trial, &self.number.to_string());
        for (at, piece) in pieces.into_iter().enumerate() {
            let id = format!("{}-{what}-{at}", self.number);
            match self.link.report(&subject, &id, piece, || self.shared.is_given_up()).await {
                Ok(Some(_)) => {}
                Ok(None) => return Err("reports are lost, because no server could be reached".to_owned()),
                Err(reason) => return Err(format!("reports are lost: {reason}")),
            }
        }
        Ok(())
    }
}
