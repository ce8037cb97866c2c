//! Connections to an upstream that are kept between requests.
//!
//! A request takes the connection used last, so that those not needed grow old and are closed. A new one is made only
//! when none is free, hence connections in use and kept together never exceed the bound. Each connection is driven by a
//! task of its own, which ends when the connection is let go of.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::body::RequestBody;
use crate::config::Limits;
use crate::fault::{Failure, Fault};
use crate::upstream::Upstream;

/// Largest head of a response, in bytes.
const HEAD_MAX: usize = 64 << 10;
/// How long a kept connection may take to be done with its last request before another is made instead.
const SETTLING: Duration = Duration::from_millis(100);

/// The connections of one hop.
pub(crate) struct Pool {
    upstream: Upstream,
    places: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    wait: Duration,
    idle_timeout: Duration,
}

struct Idle {
    sender: SendRequest<RequestBody>,
    since: Instant,
}

/// A connection in use.
pub(crate) struct Lease {
    pub(crate) sender: SendRequest<RequestBody>,
    /// Whether it has carried a request before: its upstream may be closing it just now.
    pub(crate) is_reused: bool,
    place: OwnedSemaphorePermit,
}

/// Which connection will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionChoice {
    Any,
    New,
}

impl Pool {
    pub(crate) fn new(upstream: Upstream, limits: &Limits) -> Self {
        Self {
            upstream,
            places: Arc::new(Semaphore::new(limits.upstream_connections_max)),
            idle: Mutex::default(),
            wait: limits.pool_wait(),
            idle_timeout: limits.idle_timeout(),
        }
    }

    pub(crate) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// A connection for one request. Waits for a place, but not longer than a request may.
    pub(crate) async fn lease(&self, wanted: ConnectionChoice) -> Result<Lease, Failure> {
        let place = self.place().await?;
        while wanted == ConnectionChoice::Any
            && let Some(mut sender) = self.take()
        {
            if sender.is_ready() || matches!(timeout(SETTLING, sender.ready()).await, Ok(Ok(()))) {
                return Ok(Lease { sender, is_reused: true, place });
            }
        }
        let wire = self.upstream.connect().await?;
        let shake = Builder::new().max_buf_size(HEAD_MAX).handshake(TokioIo::new(wire)).await;
        let (sender, connection) = shake.map_err(|error| Failure::caused(Fault::UpstreamBroken, &error))?;
        // How a connection ends is reported to the request it carries; a kept one that ends is found closed.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Lease { sender, is_reused: false, place })
    }

    /// Keeps a connection whose request is over.
    pub(crate) fn give_back(&self, lease: Lease) {
        let Lease { sender, place, .. } = lease;
        if !sender.is_closed() {
            self.lock().push(Idle { sender, since: Instant::now() });
        }
        drop(place);
    }

    /// Closes what has been kept for too long, and forgets what its upstream closed.
    pub(crate) fn purge(&self) {
        let oldest = Instant::now().checked_sub(self.idle_timeout);
        self.lock().retain(|idle| oldest.is_none_or(|oldest| idle.since > oldest) && !idle.sender.is_closed());
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let full = || {
            let what = format!("all connections to {} were in use for {:?}", self.upstream.address, self.wait);
            Failure::new(Fault::PoolFull, what)
        };
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => Ok(place),
            Err(_) => {
                let acquired = timeout(self.wait, Arc::clone(&self.places).acquire_owned()).await;
                acquired.ok().and_then(Result::ok).ok_or_else(full)
            }
        }
    }

    fn take(&self) -> Option<SendRequest<RequestBody>> {
        let mut idle = self.lock();
        loop {
            let last = idle.pop()?;
            if !last.sender.is_closed() && last.since.elapsed() < self.idle_timeout {
                return Some(last.sender);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
