//! The run of an activity under its span.

use std::future::Future;
use std::pin::Pin;
use std::task::{Poll, ready};

use opentelemetry::trace::{Status, TraceContextExt};
use opentelemetry::{Context, KeyValue};

use crate::failure::Failure;
use crate::payload::Payload;
use crate::program::ActivityFuture;

/// Spans made by the activity's code are children of its own. Dropped before its end, the span ends then.
pub(super) struct TracedActivity {
    context: Context,
    run: ActivityFuture,
}

impl TracedActivity {
    pub(super) fn start(context: Context, begin: impl FnOnce() -> ActivityFuture) -> ActivityFuture {
        let guard = context.clone().attach();
        let run = begin();
        drop(guard);
        Box::pin(Self { context, run })
    }
}

impl Future for TracedActivity {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let guard = this.context.clone().attach();
        let polled = this.run.as_mut().poll(context);
        drop(guard);
        let result = ready!(polled);
        let span = this.context.span();
        if let Err(failure) = &result {
            span.set_attribute(KeyValue::new("error.type", failure.kind.as_str()));
            span.set_status(Status::error(failure.message.clone()));
        }
        span.end();
        Poll::Ready(result)
    }
}
