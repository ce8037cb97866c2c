//! The time budgets are counted by: a monotonic clock, handed in so that tests can hold it still.

use std::time::{Duration, Instant};

/// Reports the time since the store started; never goes back.
pub(crate) trait Clock: Send + Sync + 'static {
    fn now(&self) -> Duration;
}

/// The machine's monotonic clock.
pub(crate) struct Monotonic {
    origin: Instant,
}

impl Monotonic {
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock that stands still until it is moved.
    #[derive(Clone, Default)]
    pub(crate) struct StoredDocument(Arc<AtomicU64>);

    impl StoredDocument {
        pub(crate) fn set_ms(&self, now_ms: u64) {
            self.0.store(now_ms, Ordering::SeqCst);
        }
    }

    impl Clock for StoredDocument {
        fn now(&self) -> Duration {
            Duration::from_millis(self.0.load(Ordering::SeqCst))
        }
    }
}
