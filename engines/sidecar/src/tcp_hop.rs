//! A TCP hop: a caller's connection and one of its own to the upstream, bytes both ways until both have ended.
//!
//! There is no bound on silence: connections of databases' pools are silent for as long as they are kept. Bytes are
//! counted as they go by, since such a connection lasts.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};

use crate::access_log::Entry;
use crate::fault::{Failure, Fault};
use crate::hop::Hop;
use crate::stop::Stop;
use crate::wire::Wire;

/// Carries a caller's connection until it ends, or until the sidecar has stopped and drained.
pub(crate) async fn serve(hop: Arc<Hop>, wire: Wire, mut stop: Stop) {
    hop.counts.active.fetch_add(1, Ordering::Relaxed);
    let mut caller = Caller { wire, hop, began: Instant::now(), received_bytes: 0, sent_bytes: 0, fault: None };
    let hop = Arc::clone(&caller.hop);
    let stopped = async {
        stop.wait().await;
        // A TCP stream has no end to wait for; the drain of the whole system ends its users first.
        tokio::time::sleep(hop.limits.drain()).await;
    };
    let carried = tokio::select! {
        biased;
        carried = carry(&hop, &mut caller) => carried,
        () = stopped => Ok(()),
    };
    caller.fault = carried.err().map(|failure| failure.fault);
}

async fn carry(hop: &Hop, caller: &mut Caller) -> Result<(), Failure> {
    let mut upstream = hop.pool.upstream().connect().await?;
    let copied = copy_bidirectional(caller, &mut upstream).await;
    copied.map(drop).map_err(|error| Failure::caused(Fault::UpstreamBroken, &error))
}

/// A caller's connection and its record, which is written when it is dropped.
struct Caller {
    wire: Wire,
    hop: Arc<Hop>,
    began: Instant,
    received_bytes: u64,
    sent_bytes: u64,
    fault: Option<Fault>,
}

impl Caller {
    fn sent(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let bytes = ready!(written)?;
        self.sent_bytes += bytes as u64;
        self.hop.counts.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Poll::Ready(Ok(bytes))
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.hop.counts.active.fetch_sub(1, Ordering::Relaxed);
        self.hop.counts.ended(self.fault);
        let Some(log) = &self.hop.log else { return };
        log.append(&Entry {
            hop: &self.hop.name,
            method: None,
            path: None,
            status: 0,
            received_bytes: Some(self.received_bytes),
            sent_bytes: self.sent_bytes,
            duration_us: self.began.elapsed().as_micros() as u64,
            error: self.fault.map(Fault::word),
        });
    }
}

impl AsyncRead for Caller {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.wire).poll_read(cx, into))?;
        let bytes = (into.filled().len() - before) as u64;
        self.received_bytes += bytes;
        self.hop.counts.received_bytes.fetch_add(bytes, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Caller {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write(cx, from);
        self.sent(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write_vectored(cx, from);
        self.sent(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }
}
