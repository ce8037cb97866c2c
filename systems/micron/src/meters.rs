//! The service's own metrics: the cache, sessions, and transactions that were begun again.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

/// The instruments.
#[derive(Debug, Clone)]
pub(crate) struct Meters {
    cache: Counter<u64>,
    sessions: Counter<u64>,
    retries: Counter<u64>,
}

impl Meters {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |name: &'static str, unit: &'static str, about: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(about).build()
        };
        Self {
            cache: counter("micron.cache.requests", "{request}", "Pages requested from the cache"),
            sessions: counter("micron.session.requests", "{request}", "Requests, by what became of their session"),
            retries: counter("micron.transaction.retries", "{retry}", "Transactions that were begun again"),
        }
    }

    /// A page was requested from the cache.
    pub(crate) fn cached(&self, result: &'static str) {
        self.cache.add(1, &[KeyValue::new("micron.cache.result", result)]);
    }

    /// A request came with a session in this state.
    pub(crate) fn session(&self, state: &'static str) {
        self.sessions.add(1, &[KeyValue::new("micron.session.state", state)]);
    }

    /// A transaction begins again after this.
    pub(crate) fn retried(&self, error_type: String) {
        self.retries.add(1, &[KeyValue::new("error.type", error_type)]);
    }
}
