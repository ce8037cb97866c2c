//! Messages between nodes over TCP, for stores whose server does not carry messages.
//!
//! Each node listens; who sends to it keeps one connection. A connection begins with a head (magic, the hub's secret,
//! who sends, how many connections that one made before), then come messages: length, CRC-32, bytes. What waits for a
//! node that cannot be reached is dropped, and so is what an older connection still holds when a newer one has begun:
//! order is kept, loss is possible, as with every [`Bus`]. The secret keeps out strangers; nothing is encrypted.

mod head;
mod inbound;
mod outbound;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use narrows_durable::store::{Bus, Line, Location, Receive, StoreError};

use self::head::Head;
use self::inbound::Listener;
use self::outbound::Peer;
use crate::calls::{refused, unique_number};

/// The longest message.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Nodes that one node sends to.
const PEERS_MAX: usize = 256;
/// How long making a connection or moving a part of a message may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Connections between the nodes of one hub.
#[derive(Clone, Debug)]
pub(crate) struct TcpBus {
    ip: IpAddr,
    secret: String,
}

impl TcpBus {
    /// Nodes listen at `ip`, where others must be able to reach them, each on its own port. Who does not know
    /// `secret`, of which the first 255 bytes count, cannot send.
    #[must_use]
    pub(crate) fn new(ip: IpAddr, secret: &str) -> Self {
        Self { ip, secret: secret.to_owned() }
    }
}

impl Bus for TcpBus {
    fn open(&self, _node: &str, receive: Receive) -> Result<Box<dyn Line>, StoreError> {
        let listener = Listener::start(self.ip, &self.secret, receive)
            .map_err(|error| refused("listen at", place(&self.ip.to_string()), error.to_string()))?;
        let head = Head { secret: self.secret.clone(), sender: unique_number().unsigned_abs(), connection: 0 };
        Ok(Box::new(TcpLine { listener, head, peers: Mutex::default() }))
    }
}

/// One node's connections.
struct TcpLine {
    listener: Listener,
    head: Head,
    peers: Mutex<HashMap<String, Arc<Peer>>>,
}

impl TcpLine {
    fn peer(&self, address: &str) -> Result<Arc<Peer>, StoreError> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = peers.get(address) {
            return Ok(Arc::clone(peer));
        }
        // Nodes that are gone leave idle places.
        if peers.len() >= PEERS_MAX {
            peers.retain(|_, peer| !peer.close_if_idle());
        }
        if peers.len() >= PEERS_MAX {
            let reason = format!("{PEERS_MAX} nodes are being sent to already");
            return Err(refused("send to", place(address), reason));
        }
        let peer = Peer::start(address, self.head.clone())
            .map_err(|error| refused("start a thread for", place(address), error.to_string()))?;
        peers.insert(address.to_owned(), Arc::clone(&peer));
        Ok(peer)
    }
}

impl Line for TcpLine {
    fn address(&self) -> &str {
        self.listener.address()
    }

    fn send(&self, address: &str, message: Bytes) -> Result<(), StoreError> {
        if message.len() > MESSAGE_BYTES_MAX {
            let reason = format!("a message of {} bytes, expected at most {MESSAGE_BYTES_MAX}", message.len());
            return Err(refused("send to", place(address), reason));
        }
        self.peer(address)?.send(message).map_err(|reason| refused("send to", place(address), reason))
    }
}

impl Drop for TcpLine {
    fn drop(&mut self) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(|peer| peer.close());
    }
}

fn place(address: &str) -> Location {
    Location::Remote { server: address.to_owned(), what: "the node".to_owned() }
}
