//! Counts of hops, and how it is reported to OpenTelemetry.
//!
//! Counts are plain numbers that instruments observe once per export; only the histogram of latency costs something
//! per request.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Histogram, Meter};

use crate::access_log::AccessLog;
use crate::config::Direction;
use crate::fault::Fault;
use crate::hop::Hop;

/// Upper bounds of the buckets of latency, in seconds: the conventions' for HTTP, and finer ones below, where hops are.
const BOUNDS_S: [f64; 18] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0,
    10.0,
];

/// Counts of one hop.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: AtomicU64,
    pub(crate) active: AtomicI64,
    pub(crate) connections: AtomicI64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) faults: [AtomicU64; Fault::ALL.len()],
}

impl Counts {
    /// A request, or a TCP connection, is over.
    pub(crate) fn ended(&self, fault: Option<Fault>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if let Some(fault) = fault {
            self.fault(fault);
        }
    }

    /// Something went wrong.
    pub(crate) fn fault(&self, fault: Fault) {
        self.faults[fault.index()].fetch_add(1, Ordering::Relaxed);
    }
}

/// The latency of one hop's requests.
#[derive(Debug, Clone)]
pub(crate) struct Latency {
    histogram: Histogram<f64>,
    fine: [KeyValue; 1],
    failing: [KeyValue; 2],
    faults: Vec<[KeyValue; 2]>,
}

impl Latency {
    pub(crate) fn new(meter: &Meter, hop: &Hop) -> Self {
        let name = match hop.direction {
            Direction::Inbound => "http.server.request.duration",
            Direction::Outbound => "http.client.request.duration",
        };
        let histogram = meter
            .f64_histogram(name)
            .with_unit("s")
            .with_description("From a request's head to the end of its response")
            .with_boundaries(BOUNDS_S.to_vec())
            .build();
        let error = |word: &'static str| [attribute(hop), KeyValue::new("error.type", word)];
        let faults = Fault::ALL.iter().map(|fault| error(fault.word())).collect();
        Self { histogram, fine: [attribute(hop)], failing: error("5xx"), faults }
    }

    pub(crate) fn record(&self, took: Duration, fault: Option<Fault>, status: u16) {
        let attributes = match fault {
            Some(fault) => &self.faults[fault.index()][..],
            None if status >= 500 => &self.failing[..],
            None => &self.fine[..],
        };
        self.histogram.record(took.as_secs_f64(), attributes);
    }
}

fn attribute(hop: &Hop) -> KeyValue {
    KeyValue::new("sidecar.hop", hop.name.clone())
}

/// Observes the counts of all hops.
pub(crate) fn observe(meter: &Meter, hops: &[(KeyValue, Arc<Counts>)], log: Option<Arc<AccessLog>>) {
    let sum = |name: &'static str, unit: &'static str, value: fn(&Counts) -> &AtomicU64| {
        let hops = hops.to_vec();
        let callback = move |observer: &dyn AsyncInstrument<u64>| {
            for (hop, counts) in &hops {
                observer.observe(value(counts).load(Ordering::Relaxed), std::slice::from_ref(hop));
            }
        };
        meter.u64_observable_counter(name).with_unit(unit).with_callback(callback).build();
    };
    sum("sidecar.requests", "{request}", |counts| &counts.requests);
    sum("sidecar.bytes.received", "By", |counts| &counts.received_bytes);
    sum("sidecar.bytes.sent", "By", |counts| &counts.sent_bytes);
    let level = |name: &'static str, unit: &'static str, value: fn(&Counts) -> &AtomicI64| {
        let hops = hops.to_vec();
        let callback = move |observer: &dyn AsyncInstrument<i64>| {
            for (hop, counts) in &hops {
                observer.observe(value(counts).load(Ordering::Relaxed), std::slice::from_ref(hop));
            }
        };
        meter.i64_observable_gauge(name).with_unit(unit).with_callback(callback).build();
    };
    level("sidecar.active", "{request}", |counts| &counts.active);
    level("sidecar.connections", "{connection}", |counts| &counts.connections);
    observe_faults(meter, hops.to_vec());
    if let Some(log) = log {
        let callback = move |observer: &dyn AsyncInstrument<u64>| observer.observe(log.lost(), &[]);
        meter.u64_observable_counter("sidecar.access_log.lost").with_unit("{line}").with_callback(callback).build();
    }
}

fn observe_faults(meter: &Meter, hops: Vec<(KeyValue, Arc<Counts>)>) {
    let callback = move |observer: &dyn AsyncInstrument<u64>| {
        for (hop, counts) in &hops {
            for (fault, count) in Fault::ALL.iter().zip(&counts.faults) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    observer.observe(count, &[hop.clone(), KeyValue::new("error.type", fault.word())]);
                }
            }
        }
    };
    meter.u64_observable_counter("sidecar.errors").with_unit("{request}").with_callback(callback).build();
}
