//! A place for one connection, which is made again whenever it ends.
//!
//! While there is none, its reason is at hand, so that queries fail at once. Attempts come at growing distances, never
//! more than one at a time for each place; they go on for as long as the service does, as the database may come back
//! at any time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::session::Session;

/// The distance between the first attempts, doubled with each that fails.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest distance between attempts.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A place for a connection.
#[derive(Debug)]
pub(super) struct Slot {
    session: Mutex<Result<Arc<Session>, Arc<str>>>,
    queries: AtomicUsize,
}

impl Default for Slot {
    fn default() -> Self {
        Self { session: Mutex::new(Err("not connected yet".into())), queries: AtomicUsize::new(0) }
    }
}

impl Slot {
    /// The connection, or why there is none.
    pub(super) fn session(&self) -> Result<Arc<Session>, Arc<str>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, session: Result<Arc<Session>, Arc<str>>) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    /// Queries under way on the connection.
    pub(super) fn queries(&self) -> usize {
        self.queries.load(Ordering::Relaxed)
    }

    /// Counts a query until the returned guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Turn {
        self.queries.fetch_add(1, Ordering::Relaxed);
        Turn(Arc::clone(self))
    }

    /// Connects, waits for the end, and connects again, for ever.
    pub(super) async fn keep(self: Arc<Self>, config: tokio_postgres::Config) {
        let mut pause = PAUSE_MIN;
        loop {
            match Session::open(&config).await {
                Ok((session, ended)) => {
                    self.set(Ok(Arc::new(session)));
                    pause = PAUSE_MIN;
                    let reason = ended.await.unwrap_or_else(|_| "it did not respond and was given up".to_owned());
                    self.set(Err(reason.into()));
                }
                Err(reason) => self.set(Err(reason.into())),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// A query under way.
#[derive(Debug)]
pub(super) struct Turn(Arc<Slot>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.queries.fetch_sub(1, Ordering::Relaxed);
    }
}
