//! Export of a server's spans and metrics. Without an endpoint nothing is exported, but trace context is still taken from
//! the caller and handed on.

use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use crate::Error;
use crate::export;

/// Where a server's spans and metrics go.
#[derive(Debug, Clone)]
pub struct Telemetry {
    scope: &'static str,
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
}

impl Telemetry {
    /// As the environment says. `scope` is the instrumentation's name; `service` the service's, where the environment
    /// gives none.
    ///
    /// # Errors
    ///
    /// [`Error::Telemetry`] if an exporter cannot be built.
    pub fn from_env(scope: &'static str, service: &str) -> Result<Self, Error> {
        Ok(Self { scope, traces: export::tracers(service)?, metrics: export::meters(service)? })
    }

    /// Spans to `traces` and no metrics, for tests.
    #[must_use]
    pub fn with_provider(scope: &'static str, traces: SdkTracerProvider) -> Self {
        Self { scope, traces, metrics: SdkMeterProvider::default() }
    }

    /// Maker of spans.
    #[must_use]
    pub fn tracer(&self) -> SdkTracer {
        self.traces.tracer(self.scope)
    }

    /// Maker of metrics.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.metrics.meter(self.scope)
    }

    /// Sends the metrics as they are now, and spans that have ended. The SDK blocks while it does, hence the thread.
    pub async fn export(&self) {
        let (traces, metrics) = (self.traces.clone(), self.metrics.clone());
        let exporting = tokio::task::spawn_blocking(move || {
            // Telemetry that a collector refuses is lost; there is no caller to report it to.
            let _ = metrics.force_flush();
            let _ = traces.force_flush();
        });
        let _ = exporting.await;
    }

    /// Sends the rest.
    pub async fn flush(self) {
        export::flush(Some(self.traces), Some(self.metrics)).await;
    }
}
