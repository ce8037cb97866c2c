//! A query that has been sent, which keeps its place until its result is there, whoever still waits for it.
//!
//! A client may go away and a caller may time out, but the database goes on with the query. It
//! is waited for in the background, so that places count the queries that the database really has. Where nothing comes in
//! the end, the connection is given up.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::rows::Rows;
use super::session::Session;
use super::slot::Turn;
use super::statement::Query;

/// How much longer than a caller's timeout a result is waited for before its connection is given up.
const GRACE: Duration = Duration::from_secs(1);

type Outcome = Result<Result<Rows, String>, tokio_postgres::Error>;
type Work = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A query under way.
pub(super) struct RunningQuery {
    work: Option<Work>,
    session: Arc<Session>,
}

impl RunningQuery {
    pub(super) fn begin(session: Arc<Session>, query: Query, turn: Turn, place: OwnedSemaphorePermit) -> Self {
        let on = Arc::clone(&session);
        let work = Box::pin(async move {
            let outcome = on.run(&query).await;
            drop((turn, place));
            outcome
        });
        Self { work: Some(work), session }
    }
}

impl Future for RunningQuery {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        // It is not polled again after its end.
        let Some(work) = &mut self.work else { return Poll::Pending };
        let outcome = std::task::ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(outcome)
    }
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        let session = Arc::clone(&self.session);
        // Without a runtime the process ends, and the connection with it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if tokio::time::timeout(GRACE, work).await.is_err() {
                    session.cut();
                }
            });
        }
    }
}
