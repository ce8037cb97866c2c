//! The HTTP client of an exporter: its own thread, on which its connections live between exports.
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;

    use opentelemetry::metrics::MeterProvider as _;
    use opentelemetry_sdk::metrics::SdkMeterProvider;

    use super::*;

    /// Long enough for any machine.
    const LONG: Duration = Duration::from_secs(60);

    /// Reads a request; gives its first line and how long its body is.
    fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, usize)> {
        let mut first = String::new();
        stream.read_line(&mut first).unwrap();
        let mut length = 0;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        stream.read_exact(&mut vec![0; length]).unwrap();
        Some((first.trim_end().to_owned(), length))
    }

    /// A provider with one instrument, whose exporter calls this address.
    fn provider(listener: &TcpListener, timeout: Duration) -> SdkMeterProvider {
        let endpoint = format!("http://{}/v1/metrics", listener.local_addr().unwrap());
        let builder = crate::export::reading_to(SdkMeterProvider::builder(), &endpoint, LONG, timeout).unwrap();
        let provider = builder.build();
        provider.meter("test").u64_counter("calls").build().add(1, &[]);
        provider
    }

    #[test]
    fn exports_go_on_after_the_server_closed_a_connection_and_end_within_a_runtime() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let provider = provider(&listener, LONG);
        let (sender, requests) = mpsc::sync_channel(16);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                if let Some(request) = request(&mut stream) {
                    let _ = sender.try_send(request);
                    stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                }
            }
        });
        for export in 0..3 {
            // A report of a connection's end may come after the next export has begun: that one is lost.
            while provider.force_flush().is_err() {}
            let (first, length) = requests.recv_timeout(LONG).unwrap();
            assert_eq!(first, "POST /v1/metrics HTTP/1.1", "export {export}");
            assert!(length > 0);
        }
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { drop(provider) });
    }

    #[test]
    fn a_silent_server_costs_an_export_no_more_than_its_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let provider = provider(&listener, Duration::from_millis(50));
        assert!(provider.force_flush().is_err());
    }
}
