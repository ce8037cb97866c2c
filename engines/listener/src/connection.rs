//! One connection as its server and the accept loop share it: whether it is busy, and since when it waits.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use hyper_util::server::graceful::GracefulConnection;

/// State that all connections of a [`Places`](crate::Places) read.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Ticks since the start.
    now: AtomicU32,
    is_ending: AtomicBool,
}

impl Clock {
    pub(crate) fn now(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, now: u32) {
        self.now.store(now, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }
}

/// An open connection. A server calls [`Connection::begin`] for each request.
#[derive(Debug)]
pub struct Connection {
    clock: Arc<Clock>,
    requests_in_progress: AtomicU32,
    has_served: AtomicBool,
    /// The tick at which it was accepted or its last request ended.
    since: AtomicU32,
    /// Wakes the connection's task, so that it learns of the end.
    task: Mutex<Option<Waker>>,
}

/// State of a waiting connection, with the tick since when it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitState {
    ForFirstRequest { since: u32 },
    ForNextRequest { since: u32 },
}

impl Connection {
    pub(crate) fn new(clock: Arc<Clock>) -> Self {
        let since = AtomicU32::new(clock.now());
        let (requests_in_progress, has_served) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { clock, requests_in_progress, has_served, since, task: Mutex::new(None) }
    }

    /// Marks that a request is complete up to its body. The connection is busy until the returned value is dropped.
    #[must_use = "the request ends when this is dropped"]
    pub fn begin(self: &Arc<Self>) -> InProgress {
        self.requests_in_progress.fetch_add(1, Ordering::AcqRel);
        self.has_served.store(true, Ordering::Relaxed);
        InProgress(Arc::clone(self))
    }

    /// The wait it is in; `None` while it is busy.
    pub(crate) fn waiting(&self) -> Option<WaitState> {
        if self.requests_in_progress.load(Ordering::Acquire) > 0 {
            return None;
        }
        let since = self.since.load(Ordering::Relaxed);
        Some(match self.has_served.load(Ordering::Relaxed) {
            true => WaitState::ForNextRequest { since },
            false => WaitState::ForFirstRequest { since },
        })
    }

    /// Has the connection's task look whether the listener has stopped.
    pub(crate) fn wake(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.iter().for_each(Waker::wake_by_ref);
    }

    fn register(&self, cx: &Context<'_>) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
    }

    fn is_ending(&self) -> bool {
        self.clock.is_ending.load(Ordering::Acquire)
    }
}

/// A request in progress.
#[derive(Debug)]
pub struct InProgress(Arc<Connection>);

impl Drop for InProgress {
    fn drop(&mut self) {
        let connection = &self.0;
        connection.since.store(connection.clock.now(), Ordering::Relaxed);
        let before = connection.requests_in_progress.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "a request ended that had not begun");
    }
}

/// Runs an HTTP connection to its end. Once the listener stops, the connection ends after the requests in progress.
///
/// Must be polled by the task that [`serve`](crate::serve) made of the connection, not by a task within it.
///
/// # Errors
///
/// Those of `http`: the peer broke off or does not speak HTTP.
pub async fn drive<C: GracefulConnection>(connection: &Connection, http: C) -> Result<(), C::Error> {
    let mut http = pin!(http);
    // A task's waker stays the same, so registering it once is enough; every further poll costs one atomic read.
    poll_fn(|cx| {
        connection.register(cx);
        std::task::Poll::Ready(())
    })
    .await;
    let mut is_told = false;
    poll_fn(|cx| {
        if !is_told && connection.is_ending() {
            is_told = true;
            http.as_mut().graceful_shutdown();
        }
        http.as_mut().poll(cx)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_waits_from_the_end_of_its_last_request() {
        let clock = Arc::new(Clock::default());
        clock.set(3);
        let connection = Arc::new(Connection::new(Arc::clone(&clock)));
        assert_eq!(connection.waiting(), Some(WaitState::ForFirstRequest { since: 3 }));
        let (one, two) = (connection.begin(), connection.begin());
        assert_eq!(connection.waiting(), None);
        drop(one);
        assert_eq!(connection.waiting(), None, "the second is still in progress");
        clock.set(7);
        drop(two);
        assert_eq!(connection.waiting(), Some(WaitState::ForNextRequest { since: 7 }));
    }
}
