//! The service's own metrics: the cache, sessions, and transactions that were begun again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use crate::cache::Source;

/// Pages since the start, for the ratio of those that came from the cache.
#[derive(Debug, Default)]
struct Pages {
    requested: AtomicU64,
    loaded: AtomicU64,
}

impl Pages {
    /// The share that needed no load of its own; none before the first page.
    fn hit_ratio(&self) -> Option<f64> {
        let [requested, loaded] = [&self.requested, &self.loaded].map(|count| count.load(Ordering::Relaxed) as f64);
        (requested > 0.0).then(|| 1.0 - loaded / requested)
    }
}

/// The instruments.
#[derive(Debug, Clone)]
pub(crate) struct Meters {
    cache: Counter<u64>,
    pages: Arc<Pages>,
    sessions: Counter<u64>,
    retries: Counter<u64>,
}

impl Meters {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |name: &'static str, unit: &'static str, about: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(about).build()
        };
        let pages = Arc::new(Pages::default());
        let reported = Arc::clone(&pages);
        meter
            .f64_observable_gauge("micron.cache.hit_ratio")
            .with_unit("1")
            .with_description("Share of the pages since the start that needed no load of their own")
            .with_callback(move |gauge| {
                if let Some(ratio) = reported.hit_ratio() {
                    gauge.observe(ratio, &[]);
                }
            })
            .build();
        Self {
            pages,
            cache: counter("micron.cache.requests", "{request}", "Pages requested from the cache"),
            sessions: counter("micron.session.requests", "{request}", "Requests, by what became of their session"),
            retries: counter("micron.transaction.retries", "{retry}", "Transactions that were begun again"),
        }
    }

    /// A page was requested from the cache.
    pub(crate) fn cached(&self, source: Source) {
        self.cache.add(1, &[KeyValue::new("micron.cache.result", source.name())]);
        self.pages.requested.fetch_add(1, Ordering::Relaxed);
        if source == Source::Loaded {
            self.pages.loaded.fetch_add(1, Ordering::Relaxed);
        }
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

#[cfg(test)]
mod tests {
    use opentelemetry::metrics::{MeterProvider as _, NoopMeterProvider};

    use super::*;

    #[test]
    fn a_hit_is_a_page_without_a_load_of_its_own() {
        let meters = Meters::new(&NoopMeterProvider::new().meter("test"));
        assert_eq!(meters.pages.hit_ratio(), None);
        for source in [Source::Loaded, Source::Kept, Source::Kept, Source::Shared] {
            meters.cached(source);
        }
        assert_eq!(meters.pages.hit_ratio(), Some(0.75));
    }
}
