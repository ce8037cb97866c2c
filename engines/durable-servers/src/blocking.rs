//! A small runtime of a store's own, which drives its connections.
//!
//! A call is polled by the thread that waits for it, so that handing it over costs nothing. That thread may itself be one
//! of another runtime.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tokio::runtime::{Builder, Runtime};

/// Runs connections on its own thread, and calls on those of their callers.
#[derive(Debug)]
pub(crate) struct BlockingRuntime {
    runtime: Option<Runtime>,
}

/// A thread that waits for its call.
struct Caller(Thread);

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl BlockingRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    /// Error of the system.
    pub(crate) fn start(name: &str) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs a future next to the calls, until the store is dropped.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            // One type for all futures, because each type of task is compiled with all of the runtime.
            runtime.spawn(Box::pin(future) as Pin<Box<dyn Future<Output = ()> + Send>>);
        }
    }

    /// Waits for a future.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let _entered = self.runtime.as_ref().map(Runtime::enter);
        // A caller may be a task of another runtime, whose budget is not renewed while it waits here.
        let mut future = pin!(tokio::task::unconstrained(future));
        let waker = Waker::from(Arc::new(Caller(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            std::thread::park();
        }
    }
}

impl Drop for BlockingRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_call_may_come_from_a_thread_of_another_runtime() {
        let blocking = BlockingRuntime::start("test").expect("started");
        assert_eq!(blocking.run(async { 7 }), 7);
        let (sent, mut received) = tokio::sync::mpsc::channel(1);
        blocking.spawn(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            // More than a task's budget.
            for number in 0..1000 {
                sent.send(number).await.expect("waited for");
            }
        });
        let last = blocking.run(async {
            let mut last = None;
            while let Some(number) = received.recv().await {
                last = Some(number);
            }
            last
        });
        assert_eq!(last, Some(999));
    }
}
