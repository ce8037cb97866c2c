//! A receiver over a store in memory.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::Span;
use narrows_telemetry::otlp::{Receiver, ReceiverStats, Weights};
use narrows_telemetry::{KeptCounts, Receipt, Store};
use tokio::sync::oneshot;

/// Telemetry that has arrived when the program has ended.
pub(crate) struct Collection {
    pub(crate) spans: Vec<Span>,
    points: Vec<(SeriesKey, Point)>,
    logs: Vec<LogLine>,
    stats: ReceiverStats,
}

pub(crate) struct Collector {
    receiver: Receiver,
    memory: Arc<Memory>,
}

#[derive(Default)]
struct Memory {
    spans: Mutex<Vec<Span>>,
    points: Mutex<Vec<(SeriesKey, Point)>>,
    logs: Mutex<Vec<LogLine>>,
}

fn keep<T>(kept: &Mutex<Vec<T>>, records: Vec<T>) -> Receipt {
    let (tell, receipt) = oneshot::channel();
    tell.send(Ok(KeptCounts { kept: records.len() as u64, ..KeptCounts::default() })).unwrap();
    kept.lock().unwrap().extend(records);
    receipt
}

impl Store for Memory {
    fn spans(&self, spans: Vec<Span>) -> Receipt {
        keep(&self.spans, spans)
    }

    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        keep(&self.points, points)
    }

    fn logs(&self, lines: Vec<LogLine>) -> Receipt {
        keep(&self.logs, lines)
    }
}

impl Collection {
    pub(crate) fn start() -> Collector {
        let memory = Arc::new(Memory::default());
        let any = "127.0.0.1:0".parse().unwrap();
        let receiver = Receiver::start(&[any], Arc::clone(&memory) as Arc<dyn Store>, Weights::new()).unwrap();
        Collector { receiver, memory }
    }

    /// Nothing that the program sent was refused.
    pub(crate) fn is_whole(&self) {
        let ReceiverStats { refused, malformed_records, malformed_requests, unserved_requests, .. } = self.stats;
        assert_eq!([refused, malformed_records, malformed_requests, unserved_requests], [0; 4], "{:?}", self.stats);
    }

    pub(crate) fn has_points(&self, metric: &str) {
        let names: Vec<&str> = self.points.iter().map(|(key, _)| key.name.as_str()).collect();
        assert!(names.contains(&metric), "{metric} among {names:?}");
    }

    /// A log line with this text belongs to the trace of a span.
    pub(crate) fn has_line_of_a_trace(&self, text: &str) {
        let line = self.logs.iter().find(|line| line.text == text);
        let line = line.unwrap_or_else(|| panic!("{text:?} among {:?}", self.logs));
        assert!(self.spans.iter().any(|span| Some(span.trace_id) == line.trace_id), "{line:?}");
    }

    /// A log record said of an exception what it was.
    pub(crate) fn has_line_of_exception(&self, lines: &str) {
        let is_there = self.logs.iter().any(|line| line.text.contains(lines));
        assert!(is_there, "{lines:?} among {:?}", self.logs);
    }
}

impl Collector {
    pub(crate) fn address(&self) -> SocketAddr {
        self.receiver.local_addr()
    }

    pub(crate) fn end(self) -> Collection {
        let stats = self.receiver.stop();
        let take = |spans: &Mutex<Vec<Span>>| std::mem::take(&mut *spans.lock().unwrap());
        let points = std::mem::take(&mut *self.memory.points.lock().unwrap());
        let logs = std::mem::take(&mut *self.memory.logs.lock().unwrap());
        Collection { spans: take(&self.memory.spans), points, logs, stats }
    }
}
