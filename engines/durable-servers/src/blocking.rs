//! A small runtime of a store's own. A call waits for it without entering it, so that callers may themselves be
//! threads of a runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Runtime};

/// Runs futures on its own thread for callers that wait.
#[derive(Debug)]
pub(crate) struct BlockingRuntime {
    runtime: Option<Runtime>,
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

    /// Result of the future; `None` if it panicked.
    pub(crate) fn run<F>(&self, future: F) -> Option<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let result = Arc::new(Mutex::new(None));
        let place = Arc::clone(&result);
        let (done, ended) = sync_channel::<()>(1);
        self.spawn(async move {
            let output = future.await;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
            drop(done);
        });
        // An error: the sender is dropped when the future has ended or has panicked.
        let _ = ended.recv();
        result.lock().unwrap_or_else(PoisonError::into_inner).take()
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
    use super::*;

    #[tokio::test]
    async fn a_call_may_come_from_a_thread_of_another_runtime() {
        let blocking = BlockingRuntime::start("test").expect("started");
        assert_eq!(blocking.run(async { 7 }), Some(7));
    }

    #[test]
    fn a_future_that_panics_gives_nothing() {
        let blocking = BlockingRuntime::start("test").expect("started");
        let is_there = std::hint::black_box(false);
        assert_eq!(blocking.run(async move { assert!(is_there, "made to fail") }), None);
        assert_eq!(blocking.run(async { 1 }), Some(1), "and the next call is served");
    }
}
