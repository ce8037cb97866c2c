//! Receives OpenTelemetry's protocol, and is the only place that knows protobuf.
//!
//! Every address serves what an exporter may be set to: OTLP/HTTP (`POST /v1/traces`, `/v1/metrics`, `/v1/logs`) in
//! protobuf or JSON (`http`), and OTLP/gRPC (`grpc`), plain or gzip; which of them it is, the connection and its
//! content type say (`serve`). What arrives is turned into the model's nouns ([`convert`]) and handed to the [`Store`]
//! (`export`); a sender gets "accepted" only after the store's receipt resolved. When the store is full, the response
//! is the protocol's "try again later"; what a trial's ceiling refuses and what makes no sense is counted and said in
//! `partial_success`.
//!
//! Everything a sender decides is bounded: connections, requests in flight, bytes before and after inflation, bytes of
//! a record, records of a request, and the time a body may take. Inflating and converting happen on the runtime's
//! threads, so no more than [`THREADS`] inflated bodies exist at once.
//!
//! Connections without a request cannot keep senders out: `narrows_listener` closes them. An address may require a
//! [`Token`], which every address beyond loopback should.
//!
//! Not here: profiles and TLS.

mod body;
pub mod convert;
pub(crate) mod encode;
mod export;
mod grpc;
mod http;
mod json;
pub(crate) mod numbers;
mod request;
mod response;
mod rpc;
mod serve;
mod stats;
mod weights;
mod wire;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use narrows_listener::Limits;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use self::serve::Guarded;
use crate::Store;

pub use narrows_listener::{Exposed, Guard, Listen, NotAToken, Token, advice, is_loopback};
pub use request::{Format, MalformedRequest};
pub use stats::ReceiverStats;
pub use weights::Weights;

/// Worker threads of the receiver, named `otlp-0` and `otlp-1`.
pub const THREADS: usize = 2;

/// How long [`Receiver::stop`] waits for requests in flight.
const STOP_TIMEOUT: Duration = Duration::from_millis(1500);

/// Why a receiver could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing to listen on.
    #[error("cannot receive OTLP: no address to listen on was given")]
    NoAddress,
    /// The address is taken, not ours, or not allowed.
    #[error("cannot listen for OTLP on {address}")]
    Listen {
        /// As it was requested.
        address: SocketAddr,
        /// Error of the system.
        source: std::io::Error,
    },
    /// No threads or no epoll to be had.
    #[error("cannot start the OTLP receiver's {THREADS} threads")]
    Threads(#[source] std::io::Error),
}

/// Listening OTLP endpoints. Dropping it stops them.
#[derive(Debug)]
pub struct Receiver {
    local_addr: SocketAddr,
    local_addrs: Vec<SocketAddr>,
    stats: Arc<stats::Counters>,
    running: Option<ServerHandle>,
}

#[derive(Debug)]
struct ServerHandle {
    runtime: Runtime,
    stop: watch::Sender<()>,
    stopped: mpsc::Receiver<()>,
}

impl Receiver {
    /// Listens on each of `addresses` (port 0 for any free one) and hands everything to `store`. Spans are weighed by
    /// `weights`, which may be changed while the receiver runs.
    ///
    /// # Errors
    /// When one of the addresses cannot be listened on: it is all of them or none.
    pub fn start(addresses: &[SocketAddr], store: Arc<dyn Store>, weights: Weights) -> Result<Self, Error> {
        let open: Vec<_> = addresses.iter().map(|address| (*address, None)).collect();
        Self::start_guarded(&open, store, weights)
    }

    /// The same, but senders to an address with a token have to show it: `Authorization: Bearer TOKEN`.
    ///
    /// # Errors
    /// When one of the addresses cannot be listened on: it is all of them or none.
    pub fn start_guarded(
        addresses: &[(SocketAddr, Option<Token>)],
        store: Arc<dyn Store>,
        weights: Weights,
    ) -> Result<Self, Error> {
        Self::start_within(serve::LIMITS, addresses, store, weights)
    }

    fn start_within(
        limits: Limits,
        addresses: &[Guarded<SocketAddr>],
        store: Arc<dyn Store>,
        weights: Weights,
    ) -> Result<Self, Error> {
        let bound = addresses.iter().map(|(address, _)| bind(*address)).collect::<Result<Vec<_>, _>>()?;
        let (listeners, local_addrs): (Vec<TcpListener>, Vec<SocketAddr>) = bound.into_iter().unzip();
        let local_addr = *local_addrs.first().ok_or(Error::NoAddress)?;
        let runtime = start_runtime().map_err(Error::Threads)?;
        let listeners = {
            let _context = runtime.enter();
            let registered = listeners.into_iter().zip(addresses).map(|(listener, (address, token))| {
                let failed = |source| Error::Listen { address: *address, source };
                let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
                Ok((listener, token.clone()))
            });
            registered.collect::<Result<Vec<_>, _>>()?
        };
        let stats = Arc::new(stats::Counters::default());
        let exporter = Arc::new(export::Exporter::new(store, weights, Arc::clone(&stats)));
        let (stop, stop_asked) = watch::channel(());
        let (has_stopped, stopped) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            serve::serve(listeners, limits, exporter, stop_asked).await;
            // After `stop` timed out there is no receiver.
            let _ = has_stopped.send(());
        });
        Ok(Self { local_addr, local_addrs, stats, running: Some(ServerHandle { runtime, stop, stopped }) })
    }

    /// Where it listens, the first if there are several.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Everywhere it listens, in the order requested.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.local_addrs
    }

    /// Counts so far.
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
        drop(running.stop);
        // A time-out means that requests still wait for the store; their senders see the connection close and retry.
        let _ = running.stopped.recv_timeout(STOP_TIMEOUT);
        running.runtime.shutdown_background();
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.end();
    }
}

fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let local_addr = listener.local_addr().map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok((listener, local_addr))
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
