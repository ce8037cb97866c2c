//! The figures of the last workload as metrics.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Gauge, Meter};

use crate::Figures;

/// The instruments.
#[derive(Debug, Clone)]
pub(crate) struct Meters {
    time: Gauge<f64>,
    events: Gauge<f64>,
    peak: Gauge<f64>,
    orchestrations: Gauge<f64>,
    log_bytes: Gauge<f64>,
}

impl Meters {
    pub(crate) fn new(meter: &Meter) -> Self {
        let gauge = |name: &'static str, unit: &'static str, about: &'static str| {
            meter.f64_gauge(name).with_unit(unit).with_description(about).build()
        };
        Self {
            time: gauge("hello_cities.time", "s", "From the earliest creation to the latest completion"),
            events: gauge("hello_cities.events_per_second", "{event}/s", "Events by this time"),
            peak: gauge(
                "hello_cities.events_per_second_peak",
                "{event}/s",
                "Events by time in the busiest tenth of it",
            ),
            orchestrations: gauge(
                "hello_cities.orchestrations_per_second",
                "{orchestration}/s",
                "Orchestrations by this time",
            ),
            log_bytes: gauge("hello_cities.log_bytes_per_event", "By", "Bytes of log that were committed, by events"),
        }
    }

    /// A workload has ended.
    pub(crate) fn ended(&self, figures: &Figures) {
        let labels = [KeyValue::new("hello_cities.workload", figures.workload)];
        self.time.record(figures.seconds, &labels);
        self.events.record(figures.events_per_second, &labels);
        if let Some(rate) = figures.events_per_second_peak {
            self.peak.record(rate, &labels);
        }
        if let Some(rate) = figures.orchestrations_per_second {
            self.orchestrations.record(rate, &labels);
        }
        if let Some(bytes) = figures.log_bytes_per_event {
            self.log_bytes.record(bytes, &labels);
        }
    }
}
