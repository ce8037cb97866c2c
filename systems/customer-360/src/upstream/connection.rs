//! One kept HTTP/1.1 connection, driven by the task that waits for its response.
//!
//! hyper splits a connection into a sender and a driver that usually has its own task, which costs each call two
//! changes of task. Here the task that calls polls both. A connection that nobody uses is not driven either: whether
//! its peer has closed it shows when it is next used, and such a call is made again on a fresh one.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::failure::CallFailure;
use crate::base_url::Authority;

/// The largest response that is read.
pub(super) const RESPONSE_BYTES_MAX: usize = 4 << 20;
/// A response's head may be this long.
const HEAD_BYTES_MAX: usize = 64 << 10;

type Body = Empty<Bytes>;
type Driver = http1::Connection<TokioIo<TcpStream>, Body>;

/// A connection that is open as far as is known.
pub(super) struct Connection {
    sender: SendRequest<Body>,
    driver: Driver,
}

/// Result of a call, and whether its connection can be used again.
pub(super) struct CallOutcome {
    pub(super) result: Result<Response<Bytes>, CallFailure>,
    pub(super) kept: Option<Connection>,
}

impl Connection {
    pub(super) async fn open(authority: &Authority) -> Result<Self, CallFailure> {
        let stream = TcpStream::connect((authority.host.as_str(), authority.port)).await;
        let stream = stream.map_err(|error| CallFailure::Connection(error.to_string()))?;
        // A peer that is gone already cannot take the option; writing will say so.
        let _ = stream.set_nodelay(true);
        let handshake = http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream)).await;
        let (sender, driver) = handshake.map_err(|error| CallFailure::Connection(error.to_string()))?;
        Ok(Self { sender, driver })
    }

    /// Sends `request` and reads the response to its end.
    pub(super) async fn exchange(mut self, request: Request<Body>) -> CallOutcome {
        let Self { sender, driver } = &mut self;
        let result = DrivenCall { work: pin!(send(sender, request)), driver, is_open: true }.await;
        let is_kept = result.as_ref().is_ok_and(|(_, is_open)| *is_open) && !self.sender.is_closed();
        CallOutcome { result: result.map(|(response, _)| response), kept: is_kept.then_some(self) }
    }
}

async fn send(sender: &mut SendRequest<Body>, request: Request<Body>) -> Result<Response<Bytes>, CallFailure> {
    let broken = |error: hyper::Error| CallFailure::from_hyper(&error);
    sender.ready().await.map_err(broken)?;
    let response: Response<Incoming> = sender.send_request(request).await.map_err(broken)?;
    let (head, body) = response.into_parts();
    match Limited::new(body, RESPONSE_BYTES_MAX).collect().await {
        Ok(body) => Ok(Response::from_parts(head, body.to_bytes())),
        Err(error) => Err(match error.downcast::<hyper::Error>() {
            Ok(error) => CallFailure::from_hyper(&error),
            Err(_) => CallFailure::TooLarge,
        }),
    }
}

/// A call and the driver of its connection as one future: ready with the call's result, and whether the connection
/// is still open then.
struct DrivenCall<'a, W> {
    work: Pin<&'a mut W>,
    driver: &'a mut Driver,
    is_open: bool,
}

impl<W: Future<Output = Result<Response<Bytes>, CallFailure>>> Future for DrivenCall<'_, W> {
    type Output = Result<(Response<Bytes>, bool), CallFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Only the driver brings the call on, and it is polled right here: the call has nobody to wake.
        let mut deaf = Context::from_waker(Waker::noop());
        if let Poll::Ready(result) = self.work.as_mut().poll(&mut deaf) {
            return Poll::Ready(result.map(|response| (response, self.is_open)));
        }
        // The call learns as well why the driver ended.
        self.is_open = Pin::new(&mut *self.driver).poll(cx).is_pending();
        match self.work.as_mut().poll(&mut deaf) {
            Poll::Ready(result) => Poll::Ready(result.map(|response| (response, self.is_open))),
            Poll::Pending if self.is_open => Poll::Pending,
            Poll::Pending => Poll::Ready(Err(CallFailure::Connection("it was closed".to_owned()))),
        }
    }
}
