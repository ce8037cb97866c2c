//! Listeners: who may come in, how many at a time, and what becomes of them when the sidecar stops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsStream;

use crate::config::Protocol;
use crate::fault::Fault;
use crate::hop::Hop;
use crate::stop::Stop;
use crate::wire::Wire;
use crate::{http_hop, tcp_hop};

/// Connections that may wait in the kernel to be accepted.
const BACKLOG: u32 = 1_024;
/// How long accepting rests when the process is out of file descriptors.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(20);

/// A listener that others of this process may not have had a moment ago.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of an earlier process that are winding up must not keep the port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Takes callers until the sidecar stops, then lets them finish, but not for longer than the drain may take.
pub(crate) async fn serve(hop: Arc<Hop>, listener: TcpListener, mut stop: Stop) {
    let places = Arc::new(Semaphore::new(hop.limits.connections_max));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.wait() => break,
            accepted = accept(&listener, &places) => {
                connections.spawn(connection(Arc::clone(&hop), accepted.0, accepted.1, stop.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    // What has not ended by now is cut.
    let _ = timeout(hop.limits.drain(), drained).await;
    connections.shutdown().await;
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed, so there always is a permit in the end.
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) if is_of_one_connection(&error) => {}
            Err(_) => sleep(EXHAUSTED_PAUSE).await,
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(hop: Arc<Hop>, stream: TcpStream, place: Option<OwnedSemaphorePermit>, stop: Stop) {
    // A peer that is gone already cannot take the option; reading will say so.
    let _ = stream.set_nodelay(true);
    let Some(wire) = shake_hands(&hop, stream).await else {
        hop.counts.fault(Fault::CallerTls);
        return;
    };
    hop.counts.connections.fetch_add(1, Ordering::Relaxed);
    let open = Open { hop: Arc::clone(&hop), _place: place };
    match hop.protocol {
        Protocol::Http => http_hop::serve(hop, wire, stop).await,
        Protocol::Tcp => tcp_hop::serve(hop, wire, stop).await,
    }
    drop(open);
}

async fn shake_hands(hop: &Hop, stream: TcpStream) -> Option<Wire> {
    let Some(acceptor) = &hop.acceptor else { return Some(Wire::Plain(stream)) };
    let stream = timeout(hop.limits.connect_timeout(), acceptor.accept(stream)).await.ok()?.ok()?;
    Some(Wire::Tls(Box::new(TlsStream::Server(stream))))
}

/// An open connection: counted, and in its place, until it is dropped, also when it is cut.
struct Open {
    hop: Arc<Hop>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.hop.counts.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
