//! Spans and metrics to OTLP over HTTP, set up from the standard `OTEL_…` variables.
//!
//! Exporters have their own threads and client: an endpoint that is down or slow loses telemetry, not time of
//! hops. Without an endpoint there are no spans, and trace context passes through unchanged.

use std::sync::Arc;
use std::time::Duration;

use narrows_serving::export;
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{Instrument, SdkMeterProvider, Stream};
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};

use crate::Error;
use crate::access_log::AccessLog;
use crate::fault::Fault;
use crate::hop::Hop;
use crate::metrics::{Latency, observe};

const SCOPE: &str = "narrows-sidecar";

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
        if !export::is_wanted("TRACES") && !export::is_wanted("METRICS") {
            return Ok(None);
        }
        let resource = export::resource(service);
        // One series for each hop and outcome, and one more so that none is taken for an overflow.
        let series = hops * (Fault::ALL.len() + 2) + 1;
        let meters = SdkMeterProvider::builder()
            .with_resource(resource.clone())
            .with_view(move |_: &Instrument| Stream::builder().with_cardinality_limit(series).build().ok());
        let tracers = export::exporting(tracers(resource))?.build();
        Ok(Some(Self { tracers, meters: export::reading(meters)?.build() }))
    }

    #[cfg(test)]
    pub(crate) fn with_exporter(exporter: impl opentelemetry_sdk::trace::SpanExporter + 'static) -> Self {
        let tracers = tracers(Resource::builder_empty().build()).with_simple_exporter(exporter).build();
        Self { tracers, meters: SdkMeterProvider::default() }
    }

    /// Telemetry of a hop.
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

    /// Sends the rest.
    pub(crate) async fn finish(self) {
        export::flush(Some(self.tracers), Some(self.meters)).await;
    }
}

fn tracers(resource: Resource) -> opentelemetry_sdk::trace::TracerProviderBuilder {
    // Only sampled requests get as far as a span.
    SdkTracerProvider::builder().with_sampler(Sampler::AlwaysOn).with_resource(resource)
}
