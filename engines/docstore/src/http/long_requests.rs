//! Long requests, for which other requests cannot wait: each runs on a separate thread, a few at a time.
//!
//! The threads that serve connections keep one core for themselves. A request waits for a free slot as long as its
//! client waits for the response, and stops soon after the client has left.

use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::Semaphore;

use super::response::Failure;
use super::route::Route;
use super::{CompleteRequest, RequestOutcome};
use crate::moment::Moment;
use crate::sql::Watch;
use crate::storage::Ticket;
use crate::store::Store;

/// The slots for long requests.
pub(super) struct LongRequests {
    turns: Arc<Semaphore>,
    #[cfg(test)]
    count: usize,
}

impl LongRequests {
    /// One slot per core, less one.
    pub(super) fn new() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        let count = cores.saturating_sub(1).max(1);
        Self {
            turns: Arc::new(Semaphore::new(count)),
            #[cfg(test)]
            count,
        }
    }

    /// Number of requests that hold a slot.
    #[cfg(test)]
    pub(super) fn running(&self) -> usize {
        self.count - self.turns.available_permits()
    }

    /// Runs a request once a slot is free.
    pub(super) async fn run(&self, store: &Arc<Store>, asked: CompleteRequest) -> RequestOutcome {
        // The semaphore is never closed.
        let Ok(turn) = Arc::clone(&self.turns).acquire_owned().await else { return RequestOutcome::too_long() };
        let (watch, _waiter) = Watch::start();
        let store = Arc::clone(store);
        let running = tokio::task::spawn_blocking(move || {
            let responded = match Route::parse(asked.head.uri.path()) {
                Ok(route) => asked.run(&store, &route, Moment::long(store.now(), watch)),
                Err(failure) => Some(RequestOutcome { result: Err(failure), seen: Ticket::default() }),
            };
            drop(turn);
            responded.unwrap_or_else(RequestOutcome::too_long)
        });
        match running.await {
            Ok(responded) => responded,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => RequestOutcome::too_long(),
            },
        }
    }
}

impl RequestOutcome {
    fn too_long() -> Self {
        Self { result: Err(Failure::too_much_work()), seen: Ticket::default() }
    }
}
