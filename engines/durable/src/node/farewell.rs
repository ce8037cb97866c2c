//! Farewell of a node that leaves in order, so that no request of other nodes is lost.
//!
//! Responses are on their way, or may be lost and asked for again, when its last partition has left, and requests may come
//! from nodes that do not know yet that it has left. So the node says farewell to each of the others, again and again, and
//! stays until they have heard it: each then sends it nothing new, and says so once it waits for no response any more.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::Shared;
use crate::codec::Packet;

/// How long a node stays for others that do not respond. What they wait for is then lost, as in a crash.
pub(super) const LONGEST: Duration = Duration::from_secs(2);
/// How long it waits for responses before it says farewell again.
const AGAIN: Duration = Duration::from_millis(50);

/// The runs of nodes that have heard it.
#[derive(Default)]
pub(super) struct Farewell {
    heard: Mutex<BTreeSet<u64>>,
    bell: Condvar,
}

impl Farewell {
    /// A run of a node has heard it.
    pub(super) fn heard(&self, by: u64) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).insert(by);
        self.bell.notify_one();
    }

    /// Says farewell to those that have not heard it and waits a little for a response. Says whether there were any.
    pub(super) fn say(&self, shared: &Shared) -> bool {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let peers = shared.directory.peers();
        let is_open = |run: u64| run != shared.run && !heard.contains(&run);
        let open: Vec<&str> = peers.iter().filter(|peer| is_open(peer.run)).map(|peer| peer.address.as_str()).collect();
        let farewell = Packet::Farewell { from: shared.run, address: shared.exchange.address() };
        open.iter().for_each(|address| shared.exchange.send(address, &farewell));
        if !open.is_empty() {
            drop(self.bell.wait_timeout(heard, AGAIN));
        }
        !open.is_empty()
    }
}
