//! Throughput that each physical partition uses, exported over OTLP (http/protobuf) in cumulative sums.
//!
//! The instruments observe the counts that partitions keep anyway, once per export and never per request. The exporter
//! has its own thread: an endpoint that is down or slow loses points, not time of the store, and the SDK's own
//! log is compiled out, so nothing is said about it either. A cumulative sum that was lost is in the next one.
//!
//! Deliberately absent: traces (a managed store sends none), histograms of latency (the client measures those), and
//! any export without an endpoint in the environment.

use std::sync::Arc;
use std::time::Duration;

use narrows_serving::export;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, AsyncInstrumentBuilder, Meter, MeterProvider};
use opentelemetry_sdk::metrics::{Instrument, SdkMeterProvider, Stream};
use tokio::sync::oneshot;

use crate::Error;
use crate::partition::Usage;
use crate::store::Store;
use crate::usage::{self, METRICS, Metric, Value};

const INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
/// How long one export may take; longer would hold up the next ones and the end of the process.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the last export may take, with one that is under way.
const FINISH_TIMEOUT: Duration = Duration::from_millis(1_200);
/// Series of one instrument: a bound far above those of a store on one machine.
const SERIES_MAX: usize = 100_000;
const SERVICE_NAME_DEFAULT: &str = "docstore";
const SCOPE: &str = "narrows-docstore";

/// Where metrics go and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The whole address, path included.
    pub(crate) endpoint: String,
    pub(crate) interval: Duration,
}

impl Settings {
    /// Reads the environment through `variable`, as OpenTelemetry's specification of OTLP exporters has it: an empty
    /// variable counts as none, the signal's endpoint is taken as it is, the general one is a base for `v1/metrics`.
    /// `None` without an endpoint, and if telemetry is disabled.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| export::is_true(&value)) {
            return None;
        }
        let under_base = |base: String| format!("{}/v1/metrics", base.trim_end_matches('/'));
        let endpoint = variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
            .or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(under_base))?;
        let interval_ms = variable("OTEL_METRIC_EXPORT_INTERVAL").and_then(|value| value.parse().ok());
        let interval = interval_ms.filter(|&ms| ms > 0).map_or(INTERVAL_DEFAULT, Duration::from_millis);
        Some(Self { endpoint, interval })
    }
}

/// A running export.
#[derive(Debug)]
pub(crate) struct Export {
    provider: SdkMeterProvider,
}

impl Export {
    /// Exports the usage of every partition of `store` from now on.
    pub(crate) fn start(settings: &Settings, store: &Arc<Store>) -> Result<Self, Error> {
        let provider = SdkMeterProvider::builder()
            .with_resource(export::resource(SERVICE_NAME_DEFAULT))
            .with_view(|_: &Instrument| Stream::builder().with_cardinality_limit(SERIES_MAX).build().ok());
        let Settings { endpoint, interval } = settings;
        let provider = export::reading_to(provider, endpoint, *interval, EXPORT_TIMEOUT)
            .map_err(|source| Error::Metrics { endpoint: endpoint.clone(), source: source.into() })?
            .build();
        observe(&provider.meter(SCOPE), store);
        Ok(Self { provider })
    }

    /// Sends the last metrics, unless that takes longer than [`FINISH_TIMEOUT`].
    pub(crate) async fn finish(self) {
        let (done, finished) = oneshot::channel();
        // The SDK waits for its thread, up to seconds: not on a thread of the runtime, which the process would wait for.
        let finishing = std::thread::Builder::new().name("metrics-finish".to_owned()).spawn(move || {
            // An export that fails is lost like any other; the receiver of `done` is gone after the timeout.
            let _ = self.provider.shutdown();
            let _ = done.send(());
        });
        if finishing.is_ok() {
            // Whether it succeeded or timed out, there is nothing left to do.
            let _ = tokio::time::timeout(FINISH_TIMEOUT, finished).await;
        }
    }
}

fn observe(meter: &Meter, store: &Arc<Store>) {
    for metric in METRICS {
        let name = metric.name;
        match metric.value {
            Value::Sum(value) => drop(observed(meter.f64_observable_counter(name), &metric, store, value).build()),
            Value::Count(value) => drop(observed(meter.u64_observable_counter(name), &metric, store, value).build()),
            Value::Gauge(value) => drop(observed(meter.f64_observable_gauge(name), &metric, store, value).build()),
        }
    }
}

/// The instrument of a metric, ready to be built.
fn observed<'m, I, T: 'static>(
    instrument: AsyncInstrumentBuilder<'m, I, T>,
    metric: &Metric,
    store: &Arc<Store>,
    value: fn(&Usage) -> T,
) -> AsyncInstrumentBuilder<'m, I, T> {
    let described = instrument.with_unit(metric.unit).with_description(metric.description);
    described.with_callback(observing(store, value))
}

/// A callback that observes `value` of each partition there is or was.
fn observing<T: 'static>(
    store: &Arc<Store>,
    value: fn(&Usage) -> T,
) -> impl Fn(&dyn AsyncInstrument<T>) + Send + Sync + 'static {
    let store = Arc::clone(store);
    move |observer: &dyn AsyncInstrument<T>| {
        usage::read(&store, |database, container, partitions| {
            let database = KeyValue::new("db.namespace", database.name.clone());
            let container = KeyValue::new("db.collection.name", container.name.clone());
            for partition in partitions {
                let range = KeyValue::new("db.partition.id", partition.range.to_string());
                observer.observe(value(&partition.usage), &[database.clone(), container.clone(), range]);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<Settings> {
        let found = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Settings::read(found)
    }

    #[test]
    fn without_an_endpoint_or_disabled_nothing_is_exported() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", ""), ("OTEL_METRIC_EXPORT_INTERVAL", "100")]), None);
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        assert_eq!(read(&[endpoint, ("OTEL_SDK_DISABLED", "True")]), None);
        assert!(read(&[endpoint, ("OTEL_SDK_DISABLED", "false")]).is_some());
    }

    #[test]
    fn the_environment_is_read_as_the_specification_has_it() {
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");
        let signal = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://127.0.0.1:9/here");
        let interval = |value| ("OTEL_METRIC_EXPORT_INTERVAL", value);
        let cases = [
            (vec![general], "http://127.0.0.1:4318/v1/metrics", 1_000),
            (vec![general, signal], "http://127.0.0.1:9/here", 1_000),
            (vec![signal, interval("250")], "http://127.0.0.1:9/here", 250),
            (vec![signal, interval("5000")], "http://127.0.0.1:9/here", 5_000),
            (vec![signal, interval("0")], "http://127.0.0.1:9/here", 1_000),
            (vec![signal, interval("soon")], "http://127.0.0.1:9/here", 1_000),
        ];
        for (variables, endpoint, interval_ms) in cases {
            let expected = Settings { endpoint: endpoint.to_owned(), interval: Duration::from_millis(interval_ms) };
            assert_eq!(read(&variables), Some(expected), "{variables:?}");
        }
    }
}
