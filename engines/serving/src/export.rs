//! Exporters of spans and metrics to OTLP over HTTP, set up from the standard `OTEL_…` variables.
//!
//! Each has its own thread and HTTP client, so that it neither waits for the server nor holds it up; that client
//! carries no spans and takes no proxy from the environment. What cannot be exported is dropped by the SDK without a
//! word: a collector that is away must not disturb a server.

use std::time::Duration;

use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{MeterProviderBuilder, PeriodicReader, SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, TracerProviderBuilder,
};

use crate::Error;
use crate::export_client::ExportClient;

/// Spans that wait for export unless `OTEL_BSP_MAX_QUEUE_SIZE` says otherwise: four seconds at 4,000 a second.
const QUEUED_SPANS_MAX: usize = 16_384;
/// Spans in one export unless `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` says otherwise.
const EXPORTED_SPANS_MAX: usize = 2_048;
/// How often metrics are exported unless `OTEL_METRIC_EXPORT_INTERVAL` says otherwise.
const METRICS_INTERVAL: Duration = Duration::from_secs(1);
/// How long one export may take: the specification's default.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last export of each signal may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether `signal`, such as `TRACES`, has an endpoint, its own or the one of all signals, and telemetry is not disabled.
#[must_use]
pub fn is_wanted(signal: &str) -> bool {
    let has_endpoint =
        is_set("OTEL_EXPORTER_OTLP_ENDPOINT") || is_set(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
    has_endpoint && !std::env::var("OTEL_SDK_DISABLED").is_ok_and(|value| is_true(&value))
}

/// Whether a variable's value is true, by OpenTelemetry's specification of environment variables.
#[must_use]
pub fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true")
}

/// The detected resource of this process, named `service` unless a name was detected.
#[must_use]
pub fn resource(service: &str) -> Resource {
    named(&Resource::builder().build(), service)
}

fn named(detected: &Resource, service: &str) -> Resource {
    let name = detected.get(&Key::from_static_str("service.name")).map(|name| name.to_string());
    if name.is_some_and(|name| !name.starts_with("unknown_service")) {
        return detected.clone();
    }
    let attributes = detected.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    Resource::builder_empty().with_attributes(attributes).with_service_name(service.to_owned()).build()
}

/// A maker of spans of `service`, sampled as their caller's are, and exported where there is an endpoint.
///
/// # Errors
///
/// [`Error::Telemetry`] if the exporter cannot be built from the environment.
pub fn tracers(service: &str) -> Result<SdkTracerProvider, Error> {
    let builder = SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
        .with_resource(resource(service));
    Ok(if is_wanted("TRACES") { exporting(builder)?.build() } else { builder.build() })
}

/// `builder` with batches of spans that go to the endpoint of the environment.
///
/// # Errors
///
/// [`Error::Telemetry`] if the exporter cannot be built.
pub fn exporting(builder: TracerProviderBuilder) -> Result<TracerProviderBuilder, Error> {
    let exporter =
        SpanExporter::builder().with_http().with_http_client(client(EXPORT_TIMEOUT)?).build().map_err(refused)?;
    let mut batches = BatchConfigBuilder::default();
    if !is_set("OTEL_BSP_MAX_QUEUE_SIZE") {
        batches = batches.with_max_queue_size(QUEUED_SPANS_MAX);
    }
    if !is_set("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") {
        batches = batches.with_max_export_batch_size(EXPORTED_SPANS_MAX);
    }
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build();
    Ok(builder.with_span_processor(processor))
}

/// A maker of metrics of `service`, exported where there is an endpoint.
///
/// # Errors
///
/// [`Error::Telemetry`] if the exporter cannot be built from the environment.
pub fn meters(service: &str) -> Result<SdkMeterProvider, Error> {
    let builder = SdkMeterProvider::builder().with_resource(resource(service));
    Ok(if is_wanted("METRICS") { reading(builder)?.build() } else { builder.build() })
}

/// `builder` with a reader that sends cumulative points to the endpoint of the environment.
///
/// # Errors
///
/// [`Error::Telemetry`] if the exporter cannot be built.
pub fn reading(builder: MeterProviderBuilder) -> Result<MeterProviderBuilder, Error> {
    let exporter = points(None, EXPORT_TIMEOUT)?;
    let reader = PeriodicReader::builder(exporter);
    let is_told = is_set("OTEL_METRIC_EXPORT_INTERVAL");
    Ok(builder.with_reader(if is_told { reader.build() } else { reader.with_interval(METRICS_INTERVAL).build() }))
}

/// `builder` with a reader that sends cumulative points to `endpoint`, the whole address, whatever the environment says.
///
/// # Errors
///
/// [`Error::Telemetry`] if the exporter cannot be built, such as for an endpoint that is no address.
pub fn reading_to(
    builder: MeterProviderBuilder,
    endpoint: &str,
    interval: Duration,
    timeout: Duration,
) -> Result<MeterProviderBuilder, Error> {
    let exporter = points(Some(endpoint), timeout)?;
    Ok(builder.with_reader(PeriodicReader::builder(exporter).with_interval(interval).build()))
}

/// Cumulative points to `endpoint`, or to that of the environment.
fn points(endpoint: Option<&str>, timeout: Duration) -> Result<MetricExporter, Error> {
    let exporter = MetricExporter::builder().with_http().with_http_client(client(timeout)?);
    let exporter = exporter.with_protocol(Protocol::HttpBinary).with_temporality(Temporality::Cumulative);
    let exporter = match endpoint {
        Some(endpoint) => exporter.with_endpoint(endpoint).with_timeout(timeout),
        None => exporter,
    };
    exporter.build().map_err(refused)
}

/// Sends the rest of both. The SDK blocks while it does, hence the thread.
pub async fn flush(traces: Option<SdkTracerProvider>, metrics: Option<SdkMeterProvider>) {
    let flushing = tokio::task::spawn_blocking(move || {
        // Telemetry that a collector refuses is lost; there is no caller to report it to.
        let _ = traces.map(|traces| traces.shutdown_with_timeout(FLUSH_TIMEOUT));
        let _ = metrics.map(|metrics| metrics.shutdown_with_timeout(FLUSH_TIMEOUT));
    });
    let _ = flushing.await;
}

fn client(timeout: Duration) -> Result<ExportClient, Error> {
    ExportClient::new(timeout).map_err(|error| refused(format_args!("no thread for its HTTP client: {error}")))
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::Telemetry(error.to_string())
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_a_name_gets_one_and_keeps_what_else_is_known() {
        let name_of = |name: &'static str| {
            let place = KeyValue::new("place", "here");
            let detected = Resource::builder_empty().with_service_name(name).with_attribute(place).build();
            let resource = named(&detected, "shop");
            let text = |key| resource.get(&Key::from_static_str(key)).map(|value| value.to_string());
            (text("service.name"), text("place"))
        };
        let here = || Some("here".to_owned());
        assert_eq!(name_of("unknown_service:narrows"), (Some("shop".to_owned()), here()));
        assert_eq!(name_of("store"), (Some("store".to_owned()), here()));
    }
}
