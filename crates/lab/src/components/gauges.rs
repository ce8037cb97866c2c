//! Figures of a server, read once a second while it is under load.
//!
//! One thread for each replica that has gauges. A server whose state at an instant says something is sampled several
//! times between two readings. A query without a response is left out, counted and reported as a caveat; the next one is
//! sent in its turn, so that a server which comes back is heard again.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use narrows_model::caveat::TrialCaveat;
use narrows_model::series::{Point, SeriesKey};
use narrows_telemetry::Store;

use crate::Error;
use crate::environment::now_ns;

const INTERVAL: Duration = Duration::from_secs(1);

/// The longest that a question may take; longer ones count as unanswered.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// One value, as it is now.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gauge {
    /// The metric's name, OpenTelemetry's where it has one.
    pub(crate) name: &'static str,
    /// UCUM unit.
    pub(crate) unit: &'static str,
    /// Mark that distinguishes it from its sisters.
    pub(crate) labels: BTreeMap<String, String>,
    /// The value.
    pub(crate) value: f64,
}

impl Gauge {
    /// A value without labels.
    pub(crate) fn new(name: &'static str, unit: &'static str, value: f64) -> Self {
        Self { name, unit, labels: BTreeMap::new(), value }
    }

    /// The same with a label.
    pub(crate) fn with(mut self, label: &str, value: &str) -> Self {
        self.labels.insert(label.to_owned(), value.to_owned());
        self
    }
}

/// Reader of a server's figures.
pub(crate) trait Gauges: Send {
    /// Number of calls of [`Gauges::sample`] between two readings.
    fn samples(&self) -> u32 {
        0
    }

    /// Takes a sample of the server's state for the next reading, within [`TIMEOUT`].
    fn sample(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Asks once, for at most [`TIMEOUT`]. After an error the next call starts anew: the server may be another by then.
    fn read(&mut self) -> Result<Vec<Gauge>, String>;
}

/// A thread that asks one replica. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Poller {
    whose: String,
    asked: Arc<Mutex<GaugeReadings>>,
    /// Its end is the sign to stop.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct GaugeReadings {
    times: u64,
    unanswered: u64,
    reason: String,
}

impl Poller {
    /// Begins to ask. Errors when no thread is to be had.
    pub(crate) fn start(
        service: &str,
        replica: u32,
        gauges: Box<dyn Gauges>,
        store: Arc<dyn Store>,
    ) -> Result<Self, Error> {
        let (stop, asked_to_stop) = sync_channel(0);
        let asked = Arc::new(Mutex::new(GaugeReadings::default()));
        let (service, shared) = (service.to_owned(), Arc::clone(&asked));
        let whose = service.clone();
        let name = format!("gauges-{service}");
        let ask = move || ask(&service, replica, gauges, &*store, &shared, &asked_to_stop);
        let failed = |error: std::io::Error| Error::Component {
            service: whose.clone(),
            what: format!("no thread for its gauges: {error}"),
            last_lines: Vec::new(),
        };
        let thread = std::thread::Builder::new().name(name).spawn(ask).map_err(failed)?;
        Ok(Self { whose, asked, stop: Some(stop), thread: Some(thread) })
    }

    /// Ends the queries. Returns a caveat on those without a response.
    pub(crate) fn finish(mut self) -> Option<TrialCaveat> {
        self.end();
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let GaugeReadings { times, unanswered, reason } = &*asked;
        (*unanswered > 0).then(|| TrialCaveat::MetricsNotReported {
            replica: self.whose.clone(),
            failed: *unanswered,
            queries: *times,
            error: reason.clone(),
        })
    }

    fn end(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.end();
    }
}

fn ask(
    service: &str,
    replica: u32,
    mut gauges: Box<dyn Gauges>,
    store: &dyn Store,
    asked: &Mutex<GaugeReadings>,
    stop: &Receiver<()>,
) {
    let mut start = Instant::now();
    loop {
        let read = gauges.read();
        // Points that the store refuses are counted there.
        note(asked, read.map(|read| drop(store.points(points(service, replica, read)))));
        let end = (start + INTERVAL).max(Instant::now());
        let samples = gauges.samples();
        for number in 0..samples {
            if is_stopped_before(sample_time(start, number, samples), stop) {
                return;
            }
            let sampled = gauges.sample();
            let is_down = sampled.is_err();
            note(asked, sampled);
            if is_down || Instant::now() >= end {
                break;
            }
        }
        if is_stopped_before(end, stop) {
            return;
        }
        start = end;
    }
}

/// Time of a sample: each in a part of the interval of its own, spread so that work which repeats at a fixed pace is not
/// always met in one phase (the additive recurrence of the golden ratio).
fn sample_time(start: Instant, number: u32, samples: u32) -> Instant {
    let phase = (f64::from(number + 1) * 0.618_033_988_75).fract();
    start + INTERVAL.mul_f64((f64::from(number) + phase) / f64::from(samples))
}

fn note(asked: &Mutex<GaugeReadings>, outcome: Result<(), String>) {
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    asked.times += 1;
    if let Err(reason) = outcome {
        asked.unanswered += 1;
        asked.reason = reason;
    }
}

/// Waits until then; true if the poller was asked to stop meanwhile.
fn is_stopped_before(time: Instant, stop: &Receiver<()>) -> bool {
    let waited = stop.recv_timeout(time.saturating_duration_since(Instant::now()));
    !matches!(waited, Err(RecvTimeoutError::Timeout))
}

fn points(service: &str, replica: u32, gauges: Vec<Gauge>) -> Vec<(SeriesKey, Point)> {
    let time_ns = now_ns();
    let point = |gauge: Gauge| {
        let (name, unit) = (gauge.name.to_owned(), gauge.unit.to_owned());
        let key = SeriesKey { name, unit, service: service.to_owned(), replica, labels: gauge.labels };
        (key, Point { time_ns, value: gauge.value })
    };
    gauges.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::Span;
    use narrows_telemetry::{KeptCounts, Receipt};

    use super::*;

    /// Keeps points.
    #[derive(Default)]
    struct Points(Mutex<Vec<(SeriesKey, Point)>>);

    fn kept() -> Receipt {
        let (sender, receipt) = tokio::sync::oneshot::channel();
        let _ = sender.send(Ok(KeptCounts::default()));
        receipt
    }

    impl Store for Points {
        fn spans(&self, _: Vec<Span>) -> Receipt {
            kept()
        }
        fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
            self.0.lock().unwrap().extend(points);
            kept()
        }
        fn logs(&self, _: Vec<narrows_model::series::LogLine>) -> Receipt {
            kept()
        }
    }

    /// Responds the first time, then no more, and says when it was queried.
    struct Once(SyncSender<()>, bool);

    impl Gauges for Once {
        fn read(&mut self) -> Result<Vec<Gauge>, String> {
            let _ = self.0.try_send(());
            match std::mem::replace(&mut self.1, true) {
                false => Ok(vec![Gauge::new("a.b", "{c}", 2.0).with("d", "e")]),
                true => Err("nobody is there".to_owned()),
            }
        }
    }

    #[test]
    fn responses_are_kept_under_the_replica_and_missing_ones_are_reported() {
        let (sender, asked) = sync_channel(1024);
        let store = Arc::new(Points::default());
        let shared: Arc<dyn Store> = Arc::<Points>::clone(&store);
        let poller = Poller::start("db", 3, Box::new(Once(sender, false)), shared).unwrap();
        asked.recv().unwrap();
        asked.recv().unwrap();
        let caveat = poller.finish().unwrap();
        let is_it = |replica: &str, error: &str| replica == "db" && error == "nobody is there";
        assert!(
            matches!(&caveat, TrialCaveat::MetricsNotReported { replica, error, .. } if is_it(replica, error)),
            "{caveat:?}"
        );
        let points = store.0.lock().unwrap();
        let [(key, point)] = &points[..] else { panic!("{points:?}") };
        assert_eq!((key.name.as_str(), key.service.as_str(), key.replica, point.value), ("a.b", "db", 3, 2.0));
        assert_eq!(key.labels["d"], "e");
    }
}
