//! Bodies on their way through: what the caller sends, and the response it gets.
//!
//! Nothing is collected; a piece is read when the other side has taken the one before. The response's body carries the
//! request's record with it, so that a request is over when its body is, however that comes about.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::exchange::Exchange;
use crate::fault::{Failure, Fault};
use crate::metrics::Counts;
use crate::pool::Lease;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Whether a caller has sent another piece since someone looked.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicBool);

impl Progress {
    fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Looks, and forgets what it saw.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// The body of a request to an upstream.
#[derive(Debug)]
pub(crate) enum RequestBody {
    Empty,
    Caller { body: Incoming, progress: Arc<Progress>, counts: Arc<Counts> },
}

impl RequestBody {
    /// The caller's body, and how it gets on if there is one.
    pub(crate) fn from_caller(body: Incoming, counts: &Arc<Counts>) -> (Self, Option<Arc<Progress>>) {
        if body.is_end_stream() {
            return (Self::Empty, None);
        }
        let progress = Arc::<Progress>::default();
        (Self::Caller { body, progress: Arc::clone(&progress), counts: Arc::clone(counts) }, Some(progress))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Caller { body, progress, counts } => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                progress.note();
                counts.received_bytes.fetch_add(data_bytes(&frame), Ordering::Relaxed);
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Caller { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Caller { body, .. } => body.size_hint(),
        }
    }
}

fn data_bytes(frame: &Option<hyper::Result<Frame<Bytes>>>) -> u64 {
    let Some(Ok(frame)) = frame else { return 0 };
    frame.data_ref().map_or(0, |data| data.len() as u64)
}

/// The body of a response to the caller.
pub(crate) enum ResponseBody {
    /// The hop's own words. The record ends with them.
    Own {
        text: Option<Bytes>,
        _exchange: Exchange,
    },
    Upstream(UpstreamBody),
}

/// An upstream's body on its way to the caller.
pub(crate) struct UpstreamBody {
    body: Incoming,
    /// Until the body has ended.
    lease: Option<Lease>,
    exchange: Exchange,
    timeout: Duration,
    /// Runs while the upstream is silent.
    silence: Option<Pin<Box<Sleep>>>,
}

impl UpstreamBody {
    pub(crate) fn new(body: Incoming, lease: Lease, exchange: Exchange, timeout: Duration) -> Self {
        Self { body, lease: Some(lease), exchange, timeout, silence: None }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else { return self.poll_silence(cx) };
        self.silence = None;
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                self.exchange.sent(frame.data_ref().map_or(0, Bytes::len));
                Some(Ok(frame))
            }
            Some(Err(error)) => Some(Err(self.fail(Failure::caused(Fault::UpstreamBroken, &error)))),
            None => {
                self.end();
                None
            }
        })
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let timeout = self.timeout;
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(silence.as_mut().poll(cx));
        let what = format!("the body stood still for {timeout:?}");
        Poll::Ready(Some(Err(self.fail(Failure::new(Fault::ResponseTimeout, what)))))
    }

    fn fail(&mut self, failure: Failure) -> BoxError {
        self.lease = None;
        let message = failure.detail.clone();
        self.exchange.fail(failure.fault);
        message.into()
    }

    fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.exchange.end();
            self.exchange.hop().pool.give_back(lease);
        }
    }
}

impl Drop for UpstreamBody {
    fn drop(&mut self) {
        // The server drops a body after its last piece without polling for the end.
        if self.body.is_end_stream() {
            self.end();
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Own { text, .. } => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Upstream(relayed) => relayed.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own { text, .. } => text.is_none(),
            Self::Upstream(relayed) => relayed.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own { text, .. } => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
            Self::Upstream(relayed) => relayed.body.size_hint(),
        }
    }
}
