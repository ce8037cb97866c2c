//! A request's body with a limit on the time it takes to arrive.
//!
//! The timer is set when the body is first waited for, so that one that arrives with its head costs nothing. It is not
//! set again by what arrives: a peer that sends a byte now and then does not gain time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body that fails with [`TooSlow`] when the wait for it exceeds a limit.
#[derive(Debug)]
pub struct TimelyBody<B> {
    body: B,
    timeout: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

/// The body did not arrive within this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooSlow(pub Duration);

impl std::fmt::Display for TooSlow {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the body did not arrive within {:?}", self.0)
    }
}

impl std::error::Error for TooSlow {}

impl<B> TimelyBody<B> {
    /// `timeout` is for the whole body, from the first wait for it.
    pub fn new(body: B, timeout: Duration) -> Self {
        Self { body, timeout, deadline: None }
    }
}

impl<B> Body for TimelyBody<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let timeout = self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Some(Err(TooSlow(timeout).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http_body_util::{BodyExt, Full};

    /// A byte every so often, for ever.
    struct SlowBytes(tokio::time::Interval);

    impl Body for SlowBytes {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            ready!(self.0.poll_tick(cx));
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_ends_at_the_limit_and_a_whole_one_arrives() {
        let timeout = Duration::from_secs(60);
        let dripping = SlowBytes(tokio::time::interval(Duration::from_secs(7)));
        let began = tokio::time::Instant::now();
        let error = TimelyBody::new(dripping, timeout).collect().await.unwrap_err();
        assert_eq!(error.downcast_ref::<TooSlow>(), Some(&TooSlow(timeout)));
        assert_eq!(began.elapsed().as_secs(), 60);
        let whole = TimelyBody::new(Full::new(Bytes::from_static(b"body")), timeout);
        assert_eq!(whole.collect().await.unwrap().to_bytes(), "body");
    }
}
