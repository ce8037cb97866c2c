//! Spans and metrics to OTLP over HTTP, set up from the standard `OTEL_…` variables.
//!
//! Exporters have threads and a client of their own: an endpoint that is down or slow loses telemetry, not time of
//! hops. Without an endpoint there are no spans, and trace context passes through unchanged.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{Instrument, PeriodicReader, SdkMeterProvider, Stream, Temporality};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider};

use crate::Error;
use crate::access_log::AccessLog;
use crate::fault::Fault;
use crate::hop::Hop;
use crate::metrics::{Latency, observe};

/// How often metrics are exported unless `OTEL_METRIC_EXPORT_INTERVAL` says otherwise.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
/// Spans that wait for export unless `OTEL_BSP_MAX_QUEUE_SIZE` says otherwise.
const QUEUED_SPANS_MAX: usize = 16_384;
/// Spans in one export unless `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` says otherwise.
const EXPORTED_SPANS_MAX: usize = 2_048;
/// How long one export may take.
const EXPORT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the last exports may take.
const FINISH_PATIENCE: Duration = Duration::from_secs(3);
const SCOPE: &str = "narrows-sidecar";

type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// A hop's ends of the exporters.
#[derive(Debug, Clone)]
pub(crate) struct HopTelemetry {
    pub(crate) tracer: SdkTracer,
    latency: Latency,
}

impl HopTelemetry {
    pub(crate) fn latency(&self, took: Duration, fault: Option<Fault>, status: u16) {
        self.latency.record(took, fault, status);
    }
}

/// Running exporters.
#[derive(Debug)]
pub(crate) struct Telemetry {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
}

impl Telemetry {
    /// As the environment says; none without an endpoint. `service` is the name where the environment gives none.
    pub(crate) fn from_env(service: &str, hops: usize) -> Result<Option<Self>, Error> {
        if !is_set("OTEL_EXPORTER_OTLP_ENDPOINT") {
            return Ok(None);
        }
        let client = client().map_err(Error::Telemetry)?;
        let resource = named(Resource::builder().build(), service);
        let spans = SpanExporter::builder().with_http().with_http_client(client.clone());
        let spans =
            spans.with_protocol(Protocol::HttpBinary).build().map_err(|error| Error::Telemetry(error.into()))?;
        let points = MetricExporter::builder().with_http().with_http_client(client);
        let points = points.with_protocol(Protocol::HttpBinary).with_temporality(Temporality::Cumulative).build();
        let points = points.map_err(|error| Error::Telemetry(error.into()))?;
        // One series for each hop and outcome, and one more so that none is taken for an overflow.
        let series = hops * (Fault::ALL.len() + 2) + 1;
        let meters = SdkMeterProvider::builder()
            .with_resource(resource.clone())
            .with_reader(PeriodicReader::builder(points).with_interval(interval()).build())
            .with_view(move |_: &Instrument| Stream::builder().with_cardinality_limit(series).build().ok())
            .build();
        let tracers = tracers(resource).with_span_processor(batches(spans)).build();
        Ok(Some(Self { tracers, meters }))
    }

    #[cfg(test)]
    pub(crate) fn of(exporter: impl opentelemetry_sdk::trace::SpanExporter + 'static) -> Self {
        let tracers = tracers(Resource::builder_empty().build()).with_simple_exporter(exporter).build();
        Self { tracers, meters: SdkMeterProvider::default() }
    }

    /// What a hop needs to be seen.
    pub(crate) fn of_hop(&self, hop: &Hop) -> HopTelemetry {
        let latency = Latency::new(&self.meters.meter(SCOPE), hop);
        HopTelemetry { tracer: self.tracers.tracer(SCOPE), latency }
    }

    /// Observes the counts of all hops from now on.
    pub(crate) fn observe(&self, hops: &[Arc<Hop>], log: Option<Arc<AccessLog>>) {
        let named = |hop: &Arc<Hop>| (KeyValue::new("sidecar.hop", hop.name.clone()), Arc::clone(&hop.counts));
        let counts: Vec<_> = hops.iter().map(named).collect();
        observe(&self.meters.meter(SCOPE), &counts, log);
    }

    /// Sends what is left. The SDK blocks while it does, hence the thread.
    pub(crate) async fn finish(self) {
        let finishing = tokio::task::spawn_blocking(move || {
            // What a receiver does not take is lost; there is nobody to tell.
            let _ = self.tracers.shutdown_with_timeout(FINISH_PATIENCE);
            let _ = self.meters.shutdown_with_timeout(FINISH_PATIENCE);
        });
        let _ = finishing.await;
    }
}

fn tracers(resource: Resource) -> opentelemetry_sdk::trace::TracerProviderBuilder {
    // Only sampled requests get as far as a span.
    SdkTracerProvider::builder().with_sampler(Sampler::AlwaysOn).with_resource(resource)
}

fn batches(exporter: SpanExporter) -> BatchSpanProcessor {
    let mut batches = BatchConfigBuilder::default();
    if !is_set("OTEL_BSP_MAX_QUEUE_SIZE") {
        batches = batches.with_max_queue_size(QUEUED_SPANS_MAX);
    }
    if !is_set("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") {
        batches = batches.with_max_export_batch_size(EXPORTED_SPANS_MAX);
    }
    BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build()
}

/// A blocking client, which must not be built within a runtime. A receiver on loopback is behind no proxy.
fn client() -> Result<reqwest::blocking::Client, Trouble> {
    let build = || reqwest::blocking::Client::builder().no_proxy().timeout(EXPORT_PATIENCE).build();
    Ok(std::thread::spawn(build).join().map_err(|_| "building the HTTP client panicked")??)
}

fn interval() -> Duration {
    let value = std::env::var("OTEL_METRIC_EXPORT_INTERVAL").ok().and_then(|value| value.parse().ok());
    value.filter(|&ms| ms > 0).map_or(INTERVAL_DEFAULT, Duration::from_millis)
}

/// What was detected of this process, with the configuration's name where that gives none.
fn named(detected: Resource, service: &str) -> Resource {
    let name = detected.get(&Key::from_static_str("service.name")).map(|name| name.to_string());
    let is_named = name.is_some_and(|name| !name.starts_with("unknown_service"));
    if is_named { detected } else { Resource::builder().with_service_name(service.to_owned()).build() }
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
