//! The HTTP client of an exporter: one thread of its own, on which its connections live between exports.
//!
//! Exporters call from threads without a runtime, which wait for the result. The client brings its own runtime, so it
//! depends neither on the server's nor on which thread calls.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError, ResponseBodyTooLarge};
use tokio::runtime::{Builder, Runtime};

use crate::client::{CallError, Client};

/// An exporter sends one request at a time.
const IDLE_CONNECTIONS_MAX: usize = 1;

/// A client for one exporter.
pub(crate) struct ExportClient {
    client: Client,
    /// Taken only when it is dropped.
    runtime: Option<Runtime>,
}

impl ExportClient {
    /// A client whose exports may take `timeout` each. Errors when its thread cannot be started.
    pub(crate) fn new(timeout: Duration) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(1)
            .thread_name("otlp-export")
            .enable_all()
            .build()?;
        Ok(Self { client: Client::new(timeout, IDLE_CONNECTIONS_MAX), runtime: Some(runtime) })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = self.runtime.as_ref().ok_or("the client is being dropped")?;
        let client = self.client.clone();
        match runtime.spawn(async move { client.send(request).await }).await? {
            // The exporter knows by the type that sending again would not help.
            Err(CallError::TooLarge) => Err(Box::new(ResponseBodyTooLarge::new())),
            result => Ok(result?),
        }
    }
}

impl HttpClient for ExportClient {
    fn send_bytes<'a, 'out>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'out>>
    where
        'a: 'out,
        Self: 'out,
    {
        Box::pin(self.send(request))
    }
}

impl fmt::Debug for ExportClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportClient").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Drop for ExportClient {
    /// A runtime must not be dropped within another one; this way of ending it may happen anywhere.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
