//! Spans and metrics to OTLP over HTTP, set up from the standard `OTEL_…` variables.
//!
//! The exporters have threads and HTTP clients of their own, so that they neither wait for the service nor hold it up;
//! those clients carry no spans and take no proxy from the environment. What cannot be exported is dropped by the SDK
//! without a word: a collector that is away must not disturb a service. Without an endpoint nothing is exported, but
//! trace context is still taken from the caller.

use std::time::Duration;

use opentelemetry::Key;
use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider};

use crate::Error;

/// Spans that wait for export unless `OTEL_BSP_MAX_QUEUE_SIZE` says otherwise: four seconds at 4,000 a second.
const QUEUED_SPANS_MAX: usize = 16_384;
/// Spans in one export unless `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` says otherwise.
const EXPORTED_SPANS_MAX: usize = 2_048;
/// How long one export may take: the specification's default.
const EXPORT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the last export of each signal may take when the service ends.
const FLUSH_PATIENCE: Duration = Duration::from_secs(2);
const SCOPE: &str = "narrows-hello-cities";
const SERVICE: &str = "hello-cities";

/// Where a service's spans and metrics go.
#[derive(Debug, Clone)]
pub(crate) struct Telemetry {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

impl Telemetry {
    /// As the environment says.
    pub(crate) fn from_env() -> Result<Self, Error> {
        let resource = resource();
        let traces = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .with_resource(resource.clone());
        let traces = match goes_somewhere("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
            true => traces.with_span_processor(processor()?).build(),
            false => traces.build(),
        };
        let metrics = SdkMeterProvider::builder().with_resource(resource);
        let metrics = match goes_somewhere("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") {
            true => metrics.with_reader(reader()?).build(),
            false => metrics.build(),
        };
        Ok(Self { traces, metrics })
    }

    #[cfg(test)]
    pub(crate) fn of(traces: SdkTracerProvider) -> Self {
        Self { traces, metrics: SdkMeterProvider::default() }
    }

    pub(crate) fn tracer(&self) -> SdkTracer {
        self.traces.tracer(SCOPE)
    }

    pub(crate) fn meter(&self) -> Meter {
        self.metrics.meter(SCOPE)
    }

    /// Sends the metrics as they are now, and spans that have ended. The SDK blocks while it does, hence the thread.
    pub(crate) async fn export(&self) {
        let (traces, metrics) = (self.traces.clone(), self.metrics.clone());
        let exporting = tokio::task::spawn_blocking(move || {
            // What a collector does not take is lost; there is nobody to tell.
            let _ = metrics.force_flush();
            let _ = traces.force_flush();
        });
        let _ = exporting.await;
    }

    /// Sends what is left. The SDK blocks while it does, hence the thread.
    pub(crate) async fn flush(self) {
        let flushing = tokio::task::spawn_blocking(move || {
            // What a collector does not take is lost; there is nobody to tell.
            let _ = self.traces.shutdown_with_timeout(FLUSH_PATIENCE);
            let _ = self.metrics.shutdown_with_timeout(FLUSH_PATIENCE);
        });
        let _ = flushing.await;
    }
}

fn resource() -> Resource {
    let from_env = Resource::builder().build();
    let name = from_env.get(&Key::from_static_str("service.name")).map(|name| name.to_string());
    let is_named = name.is_some_and(|name| !name.starts_with("unknown_service"));
    if is_named { from_env } else { Resource::builder().with_service_name(SERVICE).build() }
}

fn processor() -> Result<BatchSpanProcessor, Error> {
    let exporter = SpanExporter::builder().with_http().with_http_client(client()?).build().map_err(refused)?;
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
    let exporter = MetricExporter::builder().with_http().with_http_client(client()?).build().map_err(refused)?;
    Ok(PeriodicReader::builder(exporter).build())
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::Telemetry(error.to_string())
}

/// A blocking client. It is built on a thread of its own because it must not be built within a runtime.
fn client() -> Result<reqwest::blocking::Client, Error> {
    let build = || reqwest::blocking::Client::builder().no_proxy().timeout(EXPORT_PATIENCE).build();
    let built = std::thread::spawn(build).join();
    let built = built.map_err(|_| Error::Telemetry("building its HTTP client panicked".to_owned()))?;
    built.map_err(Error::Client)
}

/// Whether the signal has an endpoint, of its own or the one of all signals.
fn goes_somewhere(own: &str) -> bool {
    is_set(own) || is_set("OTEL_EXPORTER_OTLP_ENDPOINT")
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
