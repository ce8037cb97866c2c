//! Receives OpenTelemetry's protocol over HTTP, and is the only place that knows protobuf.
//!
//! `POST /v1/traces`, `/v1/metrics` and `/v1/logs` take `application/x-protobuf`, plain or gzip. What arrives is turned
//! into the model's nouns ([`convert`]) and handed to the [`Store`]; a sender hears "accepted" only after the store's
//! receipt resolved. A full store is answered with 503 and `Retry-After`, which every SDK understands as "again later";
//! what a trial's ceiling refuses and what makes no sense is counted and said in `partial_success`.
//!
//! Everything a sender decides is bounded: connections, requests in flight, bytes before and after inflation, bytes of
//! a record, records of a request, and the time a body may take. Inflating and converting happen on the runtime's
//! threads, so no more than [`THREADS`] inflated bodies exist at once.
//!
//! Not here: gRPC, OTLP/JSON, TLS and authentication. Bind to loopback.

mod answer;
mod body;
mod connections;
pub mod convert;
mod routes;
mod stats;
mod weights;
mod wire;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::Store;

pub use stats::ReceiverStats;
pub use weights::Weights;
pub use wire::Malformed;

/// Worker threads of the receiver, named `otlp-0` and `otlp-1`.
pub const THREADS: usize = 2;

/// How long [`Receiver::stop`] waits for requests in flight.
const STOP_PATIENCE: Duration = Duration::from_millis(1500);

/// Why a receiver could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is taken, not ours, or not allowed.
    #[error("cannot listen for OTLP on {address}")]
    Listen {
        /// As it was asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// No threads or no epoll to be had.
    #[error("cannot start the OTLP receiver's {THREADS} threads")]
    Threads(#[source] std::io::Error),
}

/// A listening OTLP/HTTP endpoint. Dropping it stops it.
#[derive(Debug)]
pub struct Receiver {
    local_addr: SocketAddr,
    stats: Arc<stats::Counters>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    stopped: mpsc::Receiver<()>,
}

impl Receiver {
    /// Listens on `address` (port 0 for any free one) and hands everything to `store`. Spans are weighed by `weights`,
    /// which may be changed while the receiver runs.
    pub fn start(address: SocketAddr, store: Arc<dyn Store>, weights: Weights) -> Result<Self, Error> {
        let listen = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        let local_addr = listener.local_addr().map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let runtime = start_runtime().map_err(Error::Threads)?;
        let listener = {
            let _context = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(listen)?
        };
        let stats = Arc::new(stats::Counters::default());
        let router = routes::router(store, weights, Arc::clone(&stats));
        let (stop, stop_asked) = oneshot::channel();
        let (has_stopped, stopped) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            let asked = async move { drop(stop_asked.await) };
            let serving = axum::serve(connections::Bounded::new(listener), router).with_graceful_shutdown(asked);
            // axum's server ends with no other outcome than having been stopped.
            drop(serving.await);
            // Nobody waits when `stop` lost its patience.
            let _ = has_stopped.send(());
        });
        Ok(Self { local_addr, stats, running: Some(Running { runtime, stop, stopped }) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// What arrived so far.
    pub fn stats(&self) -> ReceiverStats {
        self.stats.read()
    }

    /// Takes no new connection, lets requests in flight end for at most 1.5 seconds, ends the threads, and says what
    /// arrived since the start.
    pub fn stop(mut self) -> ReceiverStats {
        self.end();
        self.stats()
    }

    fn end(&mut self) {
        let Some(running) = self.running.take() else { return };
        let _ = running.stop.send(());
        // A time-out means that requests still wait for the store; their senders see the connection close and retry.
        let _ = running.stopped.recv_timeout(STOP_PATIENCE);
        running.runtime.shutdown_background();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.end();
    }
}

fn start_runtime() -> std::io::Result<Runtime> {
    let next = AtomicUsize::new(0);
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(1)
        .thread_name_fn(move || format!("otlp-{}", next.fetch_add(1, Ordering::Relaxed)))
        .enable_io()
        .enable_time()
        .build()
}

#[cfg(test)]
mod tests;
