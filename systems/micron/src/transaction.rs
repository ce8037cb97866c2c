//! Transactions of writes: how they end, how often they are retried, and why one may change nothing.

use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt as _;
use tokio::time::sleep;

use crate::database::{Failure, Lease};
use crate::meters::Meters;
use crate::retry::Retries;
use crate::session::random;

/// Reason why a write changed nothing or, with [`NotDone::Unknown`], may have changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotDone {
    #[error("there is no item {0}")]
    NoItem(u32),
    #[error("item {item} has {quantity} left")]
    TooFew { item: u32, quantity: i64 },
    #[error("{failure}")]
    Failed { failure: Failure, retries: u32 },
    /// The database did not report the result of the commit.
    #[error("it is not known whether it was done: {0}")]
    Unknown(Failure),
}

impl From<Failure> for NotDone {
    fn from(failure: Failure) -> Self {
        Self::Failed { failure, retries: 0 }
    }
}

/// Settings of all writes.
pub(crate) struct Writes {
    pub(crate) retries: Retries,
    pub(crate) meters: Meters,
}

impl Writes {
    /// Attempts of one transaction, before the first.
    pub(crate) fn attempts(&self) -> Attempts<'_> {
        Attempts { writes: self, retries: 0 }
    }
}

/// Attempts of one transaction.
pub(crate) struct Attempts<'a> {
    writes: &'a Writes,
    /// Retries so far.
    pub(crate) retries: u32,
}

impl Attempts<'_> {
    /// Pauses before the next attempt.
    ///
    /// # Errors
    ///
    /// [`NotDone::Failed`] if there is no next attempt after this failure.
    pub(crate) async fn pause(&mut self, cx: &Context, failure: Failure) -> Result<(), NotDone> {
        let pause = failure.is_transient().then(|| self.writes.retries.pause(self.retries, random())).flatten();
        let Some(pause) = pause else { return Err(NotDone::Failed { failure, retries: self.retries }) };
        self.writes.meters.retried(failure.error_type());
        cx.span().add_event("transaction.retry", vec![]);
        sleep(pause).await;
        self.retries += 1;
        Ok(())
    }
}

/// Commits a transaction whose statements succeeded and undoes any other. Where the connection takes no more statements it
/// is closed, which undoes the transaction too.
pub(crate) async fn end<T>(cx: &Context, mut database: Lease<'_>, changed: Result<T, NotDone>) -> Result<T, NotDone> {
    let error = match changed {
        Err(error) => error,
        Ok(value) => match database.commit(cx).await {
            Ok(()) => return Ok(value),
            Err(failure) if failure.is_transient() => failure.into(),
            Err(failure) => return Err(NotDone::Unknown(failure)),
        },
    };
    if !matches!(&error, NotDone::Failed { failure, .. } if !failure.spares_the_connection()) {
        let _ = database.roll_back(cx).await;
    }
    Err(error)
}
