//! The way of packets to other nodes: a queue and a thread for each of them, so that one that is slow holds up no other.
//!
//! Packets that do not fit into a queue are dropped. Messages and requests are repeated until acknowledged, so that
//! costs time and nothing else.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::directory::Directory;
use crate::codec::Packet;
use crate::hub::Away;
use crate::ids::PartitionId;
use crate::message::Message;
use crate::partition::{Input, room};
use crate::store::Line;

/// Bytes that may wait for one node.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// About how many bytes of messages go into one packet, if it is not a single message.
const PACKET_BYTES: usize = 4 << 20;
/// Longer packets go in parts.
const PART_BYTES: usize = 32 << 20;

#[derive(Default)]
struct PacketBacklog {
    packets: VecDeque<Bytes>,
    bytes: usize,
    is_closed: bool,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<PacketBacklog>,
    bell: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, PacketBacklog> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all parts of a packet, or none.
    fn push(&self, parts: Vec<Bytes>) {
        let mut waiting = self.lock();
        if waiting.bytes > WAITING_BYTES_MAX || waiting.is_closed {
            return;
        }
        waiting.bytes += parts.iter().map(Bytes::len).sum::<usize>();
        waiting.packets.extend(parts);
        drop(waiting);
        self.bell.notify_one();
    }

    fn next(&self) -> Option<Bytes> {
        let waiting = self.lock();
        let is_quiet = |waiting: &mut PacketBacklog| waiting.packets.is_empty() && !waiting.is_closed;
        let mut waiting = self.bell.wait_while(waiting, is_quiet).unwrap_or_else(PoisonError::into_inner);
        if waiting.is_closed {
            return None;
        }
        let packet = waiting.packets.pop_front()?;
        waiting.bytes -= packet.len();
        Some(packet)
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.bell.notify_one();
    }
}

/// All ways to other nodes.
pub(super) struct Exchange {
    run: u64,
    directory: Arc<Directory>,
    line: Mutex<Option<Arc<dyn Line>>>,
    queues: Mutex<Queues>,
}

#[derive(Default)]
struct Queues {
    by_address: HashMap<String, Arc<Queue>>,
    parted: u64,
    is_closed: bool,
}

impl Exchange {
    pub(super) fn new(run: u64, directory: Arc<Directory>) -> Self {
        Self { run, directory, line: Mutex::default(), queues: Mutex::default() }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything goes over this line from now on.
    pub(super) fn connect(&self, line: Box<dyn Line>) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::from(line));
    }

    fn line(&self) -> Option<Arc<dyn Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where other nodes reach this one.
    pub(super) fn address(&self) -> String {
        self.line().map(|line| line.address().to_owned()).unwrap_or_default()
    }

    /// Sends a packet, which may be lost.
    pub(super) fn send(&self, address: &str, packet: &Packet) {
        let bytes = packet.encode();
        let Some(queue) = self.queue(address) else { return };
        if bytes.len() <= PART_BYTES {
            return queue.push(vec![bytes.into()]);
        }
        let mut queues = self.queues();
        queues.parted += 1;
        let number = queues.parted;
        drop(queues);
        let parts = bytes.chunks(PART_BYTES);
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let part = |(at, bytes): (u32, &[u8])| {
            Packet::Fragment { of: self.run, number, at, count, bytes: bytes.to_vec() }.encode().into()
        };
        queue.push((0..).zip(parts).map(part).collect());
    }

    /// Tells all nodes that a partition has changed hands.
    pub(super) fn announce(&self) {
        let own = self.address();
        for peer in self.directory.peers().iter().filter(|peer| peer.address != own) {
            self.send(&peer.address, &Packet::News);
        }
    }

    fn queue(&self, address: &str) -> Option<Arc<Queue>> {
        let line = self.line()?;
        let mut queues = self.queues();
        if queues.is_closed {
            return None;
        }
        if let Some(queue) = queues.by_address.get(address) {
            return Some(Arc::clone(queue));
        }
        let (queue, to) = (Arc::<Queue>::default(), address.to_owned());
        let waiting = Arc::clone(&queue);
        let send = move || {
            while let Some(packet) = waiting.next() {
                // A lost packet is sent again by the node that waits for its acknowledgement.
                let _ = line.send(&to, packet);
            }
        };
        // Without a thread nothing is sent now; the next packet tries again.
        std::thread::Builder::new().name("bus".to_owned()).spawn(send).ok()?;
        queues.by_address.insert(address.to_owned(), Arc::clone(&queue));
        Some(queue)
    }

    /// Gives up the ways to nodes that are not alive.
    pub(super) fn prune(&self) {
        let peers = self.directory.peers();
        self.queues().by_address.retain(|address, queue| {
            let is_alive = peers.iter().any(|peer| peer.address == *address);
            if !is_alive {
                queue.close();
            }
            is_alive
        });
    }

    /// Sends and receives nothing more.
    pub(super) fn close(&self) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let mut queues = self.queues();
        queues.is_closed = true;
        queues.by_address.drain().for_each(|(_, queue)| queue.close());
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
