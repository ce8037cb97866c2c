//! Export of a service's spans and metrics, if any: without an endpoint there is neither a span nor a metric, but
//! trace context still goes from hop to hop.

use narrows_serving::export;
use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use crate::Error;

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
        let mut telemetry = Self::default();
        if export::is_wanted("TRACES") {
            telemetry = Self::with_provider(export::tracers(service)?);
        }
        if export::is_wanted("METRICS") {
            telemetry.metrics = Some(export::meters(service)?);
        }
        Ok(telemetry)
    }

    /// Spans alone, to `provider`.
    pub(crate) fn with_provider(provider: SdkTracerProvider) -> Self {
        let tracer = provider.tracer(SCOPE);
        Self { traces: Some((provider, tracer)), metrics: None }
    }

    pub(crate) fn tracer(&self) -> Option<&SdkTracer> {
        self.traces.as_ref().map(|(_, tracer)| tracer)
    }

    pub(crate) fn meter(&self) -> Option<Meter> {
        self.metrics.as_ref().map(|provider| provider.meter(SCOPE))
    }

    /// Sends the rest.
    pub(crate) async fn flush(self) {
        export::flush(self.traces.map(|(traces, _)| traces), self.metrics).await;
    }
}
