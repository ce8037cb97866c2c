//! The way of packets to other nodes.
//!
//! Packets for which the bus has no room are lost. Messages and requests are repeated until acknowledged, so that costs
//! time and nothing else.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::directory::Directory;
use crate::codec::Packet;
use crate::hub::Away;
use crate::ids::PartitionId;
use crate::message::Message;
use crate::partition::{Input, room};
use crate::store::Line;

/// About how many bytes of messages go into one packet, if it is not a single message.
const PACKET_BYTES: usize = 4 << 20;
/// Longer packets go in parts.
const PART_BYTES: usize = 32 << 20;

/// All ways to other nodes.
pub(super) struct Exchange {
    run: u64,
    directory: Arc<Directory>,
    /// `None` before the bus is opened, and after it is closed.
    line: RwLock<Option<Arc<dyn Line>>>,
    /// How many packets went in parts. It is locked while one does, so that its parts come one after another.
    parted: Mutex<u64>,
}

impl Exchange {
    pub(super) fn new(run: u64, directory: Arc<Directory>) -> Self {
        Self { run, directory, line: RwLock::default(), parted: Mutex::default() }
    }

    /// Everything goes over this line from now on.
    pub(super) fn connect(&self, line: Box<dyn Line>) {
        *self.line.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::from(line));
    }

    fn line(&self) -> Option<Arc<dyn Line>> {
        self.line.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where other nodes reach this one.
    pub(super) fn address(&self) -> String {
        self.line().map(|line| line.address().to_owned()).unwrap_or_default()
    }

    /// Sends a packet, which may be lost: it is sent again until it is acknowledged.
    pub(super) fn send(&self, address: &str, packet: &Packet) {
        let Some(line) = self.line() else { return };
        let bytes = packet.encode();
        if bytes.len() <= PART_BYTES {
            let _ = line.send(address, bytes.into());
            return;
        }
        let mut parted = self.parted.lock().unwrap_or_else(PoisonError::into_inner);
        *parted += 1;
        let parts = bytes.chunks(PART_BYTES);
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        for (at, bytes) in (0..).zip(parts) {
            let part = Packet::Fragment { of: self.run, number: *parted, at, count, bytes: bytes.to_vec() };
            if line.send(address, part.encode().into()).is_err() {
                return;
            }
        }
    }

    /// Tells all nodes that a partition has changed hands.
    pub(super) fn announce(&self) {
        let own = self.address();
        for peer in self.directory.peers().iter().filter(|peer| peer.address != own) {
            self.send(&peer.address, &Packet::News);
        }
    }

    /// Sends and receives nothing more.
    pub(super) fn close(&self) {
        *self.line.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Away for Exchange {
    fn send(&self, to: PartitionId, input: Input) {
        let Some(peer) = self.directory.home(to).filter(|peer| peer.run != self.run) else { return };
        match input {
            Input::Messages { from, first, messages } => {
                for (first, messages) in lots(first, messages) {
                    self.send(&peer.address, &Packet::Messages { from, to, first, messages });
                }
            }
            Input::Acknowledged { by, up_to } => self.send(&peer.address, &Packet::Acknowledged { by, to, up_to }),
            Input::Probe { from, up_to } => self.send(&peer.address, &Packet::Probe { from, to, up_to }),
            Input::Missing { by, first, before } => {
                self.send(&peer.address, &Packet::Missing { by, to, first, before });
            }
            // Nothing else goes from one partition to another.
            Input::TaskDone { .. } | Input::Repeat { .. } | Input::Request(_) => {}
        }
    }
}

/// Splits messages so that no packet grows too large, with the number of the first of each.
fn lots(mut first: u64, messages: Vec<Message>) -> Vec<(u64, Vec<Message>)> {
    let (mut lots, mut lot, mut bytes) = (Vec::new(), Vec::new(), 0);
    for message in messages {
        bytes += room(&message);
        lot.push(message);
        if bytes >= PACKET_BYTES {
            let full = std::mem::take(&mut lot);
            let next = first + full.len() as u64;
            lots.push((first, full));
            (first, bytes) = (next, 0);
        }
    }
    if !lot.is_empty() {
        lots.push((first, lot));
    }
    lots
}
