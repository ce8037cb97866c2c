//! Spans to OTLP over HTTP, set up from the standard `OTEL_…` variables.
//!
//! The exporter has a thread and an HTTP client of its own, so that it neither waits for the service nor holds it up;
//! that client carries no spans and takes no proxy from the environment. What cannot be exported is dropped by the
//! SDK without a word: a collector that is away must not disturb a service. Without an endpoint nothing is exported,
//! but trace context still goes from hop to hop.

use std::time::Duration;

use opentelemetry::Key;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider};

use crate::Error;

/// Spans that wait for export unless `OTEL_BSP_MAX_QUEUE_SIZE` says otherwise: eight seconds at 2,000 a second.
const QUEUED_SPANS_MAX: usize = 16_384;
/// Spans in one export unless `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` says otherwise.
const EXPORTED_SPANS_MAX: usize = 2_048;
/// How long one export may take: the specification's default.
const EXPORT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the last export may take when the service ends.
const FLUSH_PATIENCE: Duration = Duration::from_secs(3);
const SCOPE: &str = "narrows-drone-delivery";

/// Where a service's spans go.
#[derive(Debug, Clone)]
pub(crate) struct Telemetry {
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// As the environment says; `service` is the service's name where the environment gives none.
    pub(crate) fn from_env(service: &'static str) -> Result<Self, Error> {
        let builder = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .with_resource(resource(service));
        let endpoints = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
        let provider = match endpoints.into_iter().any(is_set) {
            true => builder.with_span_processor(processor()?).build(),
            false => builder.build(),
        };
        Ok(Self { provider })
    }

    #[cfg(test)]
    pub(crate) fn of(provider: SdkTracerProvider) -> Self {
        Self { provider }
    }

    pub(crate) fn tracer(&self) -> SdkTracer {
        self.provider.tracer(SCOPE)
    }

    /// Sends what is left. The SDK blocks while it does, hence the thread.
    pub(crate) async fn flush(self) {
        let flushing = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(FLUSH_PATIENCE));
        // Spans that a collector does not take are lost; there is nobody to tell.
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

/// A blocking client. It is built on a thread of its own because it must not be built within a runtime.
fn client() -> Result<reqwest::blocking::Client, Error> {
    let build = || reqwest::blocking::Client::builder().no_proxy().timeout(EXPORT_PATIENCE).build();
    let built = std::thread::spawn(build).join();
    let built = built.map_err(|_| Error::Telemetry("building its HTTP client panicked".to_owned()))?;
    built.map_err(Error::Client)
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
