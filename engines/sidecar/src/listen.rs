//! Listeners: where they listen, and what becomes of a caller's connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use narrows_listener::{Connection, Places, Serving};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsStream;

use crate::config::Protocol;
use crate::fault::Fault;
use crate::hop::Hop;
use crate::stop::Stop;
use crate::wire::Wire;
use crate::{http_hop, tcp_hop};

/// Connections that may wait in the kernel to be accepted.
const BACKLOG: u32 = 1_024;

/// A listener that others of this process may not have had a moment ago.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of an earlier process that are winding up must not keep the port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Takes callers until the sidecar stops, then lets them finish, but not for longer than the drain may take.
pub(crate) fn serve(hop: Arc<Hop>, listener: TcpListener, mut stop: Stop) -> Serving {
    Box::pin(async move {
        let places = Places::new(hop.limits.of_listener());
        let of_connections = stop.clone();
        let serve_one = |stream, connection| one(Arc::clone(&hop), stream, connection, of_connections.clone());
        narrows_listener::serve(listener, &places, stop.wait(), serve_one).await;
    })
}

async fn one(hop: Arc<Hop>, stream: TcpStream, connection: Arc<Connection>, stop: Stop) {
    let Some(wire) = shake_hands(&hop, stream).await else {
        hop.counts.fault(Fault::CallerTls);
        return;
    };
    let _open = ConnectionCount::count(&hop);
    match hop.protocol {
        Protocol::Http => http_hop::serve(hop, wire, connection).await,
        Protocol::Tcp => {
            // Its bytes are not looked at, so nothing shows when it waits.
            let _in_progress = connection.begin();
            tcp_hop::serve(hop, wire, stop).await;
        }
    }
}

async fn shake_hands(hop: &Hop, stream: TcpStream) -> Option<Wire> {
    let Some(acceptor) = &hop.acceptor else { return Some(Wire::Plain(stream)) };
    let stream = timeout(hop.limits.connect_timeout(), acceptor.accept(stream)).await.ok()?.ok()?;
    Some(Wire::Tls(Box::new(TlsStream::Server(stream))))
}

/// An open connection, counted until this is dropped, also when it is cut.
struct ConnectionCount(Arc<Hop>);

impl ConnectionCount {
    fn count(hop: &Arc<Hop>) -> Self {
        hop.counts.connections.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(hop))
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.counts.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
