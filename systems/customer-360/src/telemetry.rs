//! Spans and metrics to OTLP over HTTP, set up from the standard `OTEL_…` variables.
//!
//! The exporters have threads and HTTP clients of their own, so that they neither wait for the service nor hold it up;
//! those clients carry no spans and take no proxy from the environment. What cannot be exported is dropped by the SDK
//! without a word: a collector that is away must not disturb a service. Without an endpoint there is neither a span
//! nor a metric, but trace context still goes from hop to hop.

use std::time::Duration;

use opentelemetry::Key;
use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider};

use crate::Error;

/// Spans that wait for export unless `OTEL_BSP_MAX_QUEUE_SIZE` says otherwise: two seconds at 8,000 a second.
const QUEUED_SPANS_MAX: usize = 16_384;
/// Spans in one export unless `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` says otherwise.
const EXPORTED_SPANS_MAX: usize = 2_048;
/// How often metrics are exported unless `OTEL_METRIC_EXPORT_INTERVAL` says otherwise.
const METRICS_INTERVAL: Duration = Duration::from_secs(1);
/// How long one export may take: the specification's default.
const EXPORT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the last exports may take when the service ends.
const FLUSH_PATIENCE: Duration = Duration::from_secs(3);
const SCOPE: &str = "narrows-customer-360";

/// Where a service's spans and metrics go, if anywhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct Telemetry {
    traces: Option<(SdkTracerProvider, SdkTracer)>,
    metrics: Option<SdkMeterProvider>,
}

impl Telemetry {
    /// As the environment says; `service` is the service's name where the environment gives none.
    pub(crate) fn from_env(service: &'static str) -> Result<Self, Error> {
        let is_wanted = |signal: &str| {
            is_set("OTEL_EXPORTER_OTLP_ENDPOINT") || is_set(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))
        };
        let mut telemetry = Self::default();
        if is_wanted("TRACES") {
            let provider = SdkTracerProvider::builder().with_resource(resource(service));
            telemetry = Self::of(provider.with_span_processor(processor()?).build());
        }
        if is_wanted("METRICS") {
            let reader = reader()?;
            telemetry.metrics =
                Some(SdkMeterProvider::builder().with_resource(resource(service)).with_reader(reader).build());
        }
        Ok(telemetry)
    }

    /// Spans alone, to `provider`.
    pub(crate) fn of(provider: SdkTracerProvider) -> Self {
        let tracer = provider.tracer(SCOPE);
        Self { traces: Some((provider, tracer)), metrics: None }
    }

    pub(crate) fn tracer(&self) -> Option<&SdkTracer> {
        self.traces.as_ref().map(|(_, tracer)| tracer)
    }

    pub(crate) fn meter(&self) -> Option<Meter> {
        self.metrics.as_ref().map(|provider| provider.meter(SCOPE))
    }

    /// Sends what is left. The SDK blocks while it does, hence the thread.
    pub(crate) async fn flush(self) {
        let flushing = tokio::task::spawn_blocking(move || {
            // What a collector does not take is lost; there is nobody to tell.
            if let Some((provider, _)) = self.traces {
                let _ = provider.shutdown_with_timeout(FLUSH_PATIENCE);
            }
            if let Some(provider) = self.metrics {
                let _ = provider.shutdown_with_timeout(FLUSH_PATIENCE);
            }
        });
        let _ = flushing.await;
    }
}

fn resource(service: &'static str) -> Resource {
    let from_env = Resource::builder().build();
    let name = from_env.get(&Key::from_static_str("service.name")).map(|name| name.to_string());
    let is_named = name.is_some_and(|name| !name.starts_with("unknown_service"));
    if is_named { from_env } else { Resource::builder().with_service_name(service).build() }
}

fn processor() -> Result<BatchSpanProcessor, Error> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client()?)
        .build()
        .map_err(|error| Error::Telemetry(error.to_string()))?;
    let mut batches = BatchConfigBuilder::default();
    if !is_set("OTEL_BSP_MAX_QUEUE_SIZE") {
        batches = batches.with_max_queue_size(QUEUED_SPANS_MAX);
    }
    if !is_set("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") {
        batches = batches.with_max_export_batch_size(EXPORTED_SPANS_MAX);
    }
    Ok(BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build())
}

fn reader() -> Result<PeriodicReader<MetricExporter>, Error> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_http_client(client()?)
        .build()
        .map_err(|error| Error::Telemetry(error.to_string()))?;
    let reader = PeriodicReader::builder(exporter);
    let is_told = is_set("OTEL_METRIC_EXPORT_INTERVAL");
    Ok(if is_told { reader.build() } else { reader.with_interval(METRICS_INTERVAL).build() })
}

/// A blocking client. It is built on a thread of its own because it must not be built within a runtime.
fn client() -> Result<reqwest::blocking::Client, Error> {
    let build = || reqwest::blocking::Client::builder().no_proxy().timeout(EXPORT_PATIENCE).build();
    let built = std::thread::spawn(build).join();
    let built = built.map_err(|_| Error::Telemetry("building its HTTP client panicked".to_owned()))?;
    built.map_err(|error| Error::Telemetry(error.to_string()))
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
