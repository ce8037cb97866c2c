//! How many requests are being answered, so that a service can end when none is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The requests under way, counted, and whether the service is about to end.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    count: AtomicUsize,
    is_ending: AtomicBool,
    none_left: Notify,
}

impl InFlight {
    /// Counts a request until what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Flight {
        self.count.fetch_add(1, Ordering::Relaxed);
        Flight(Arc::clone(self))
    }

    /// Whether connections should be closed after their next answer.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Asks connections to close, and is ready when no request is under way.
    pub(crate) async fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        loop {
            let none_left = self.none_left.notified();
            if self.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            none_left.await;
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Flight(Arc<InFlight>);

impl Drop for Flight {
    fn drop(&mut self) {
        let was_last = self.0.count.fetch_sub(1, Ordering::SeqCst) == 1;
        if was_last && self.0.is_ending() {
            // The waiter may not wait yet: the permit is kept for it.
            self.0.none_left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn the_end_comes_when_the_last_request_is_answered() {
        let in_flight = Arc::new(InFlight::default());
        let flights = [in_flight.begin(), in_flight.begin()];
        let mut end = pin!(in_flight.end());
        let mut look = || end.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(!in_flight.is_ending());
        assert_eq!(look(), Poll::Pending);
        assert!(in_flight.is_ending());
        let [one, two] = flights;
        drop(one);
        assert_eq!(look(), Poll::Pending);
        drop(two);
        assert_eq!(look(), Poll::Ready(()));
    }
}
