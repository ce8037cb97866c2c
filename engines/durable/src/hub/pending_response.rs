//! Response of a partition of this process that is still to come.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;

use super::Inbox;
use crate::error::Error;
use crate::ids::InstanceId;
use crate::partition::{Input, Request, RequestKind, Response};
use crate::store::StoreError;

/// The response to a request. If the request waits for an instance to end and is dropped before that, the partition drops
/// the wait too: the instance may run for a long time.
pub(crate) struct PendingResponse {
    /// Absent only while it is dropped.
    response: Option<oneshot::Receiver<Result<Response, Error>>>,
    waits: Option<(Arc<Inbox>, InstanceId)>,
}

impl PendingResponse {
    /// A response that somebody else sees to.
    pub(crate) fn of(response: oneshot::Receiver<Result<Response, Error>>) -> Self {
        Self { response: Some(response), waits: None }
    }

    /// Puts a request in.
    ///
    /// # Errors
    /// As [`Inbox::push`].
    pub(crate) fn put(inbox: &Arc<Inbox>, kind: RequestKind) -> Result<Self, Option<StoreError>> {
        let (reply, response) = oneshot::channel();
        let waits = if let RequestKind::Wait(id) = &kind { Some((Arc::clone(inbox), id.clone())) } else { None };
        inbox.push(Input::Request(Request { kind, reply }))?;
        Ok(Self { response: Some(response), waits })
    }
}

impl Future for PendingResponse {
    type Output = Result<Result<Response, Error>, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(response) = &mut self.response else { return Poll::Pending };
        let polled = Pin::new(response).poll(context);
        if polled.is_ready() {
            self.waits = None;
        }
        polled
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        // The partition must find it closed.
        drop(self.response.take());
        if let Some((inbox, id)) = self.waits.take() {
            let (reply, _) = oneshot::channel();
            // A partition that ends forgets all who wait.
            let _ = inbox.push(Input::Request(Request { kind: RequestKind::Forget(id), reply }));
        }
    }
}
