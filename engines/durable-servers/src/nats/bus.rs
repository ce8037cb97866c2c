//! Messages between nodes as NATS messages: each node subscribes to its own subject. Messages to one node that wait at
//! the same time go together, as a bundle; one longer than a NATS message is cut into parts. The servers may drop messages;
//! of a bundle whose parts are not all there, nothing is delivered.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_nats::Client;
use bytes::{Buf as _, BufMut as _, Bytes};
use futures_util::StreamExt as _;
use narrows_durable::store::{Line, Location, Receive, StoreError};
use tokio::sync::mpsc;

use super::Inner;
use super::record::HEAD_BYTES;
use crate::calls::{refused, unique_number};

/// The longest message.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Messages and bytes that may wait to be sent, after which messages are refused.
const WAITING_MAX: usize = 16 << 10;
const WAITING_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;
/// Messages that are bundled at a time.
const TAKEN_MAX: usize = 1024;
/// Nodes whose parts are kept at a time.
const SENDERS_MAX: usize = 256;
/// Parts after which the sender waits until the server has them.
const PARTS_AT_ONCE: u32 = 4;
const PART_HEAD_BYTES: usize = 8 + 8 + 4 + 4;
/// The length of a message, before its bytes in a bundle.
const LENGTH_BYTES: usize = 4;
/// The longest bundle.
const BUNDLE_BYTES_MAX: usize = LENGTH_BYTES + MESSAGE_BYTES_MAX;

/// One node's end.
pub(super) struct NatsLine {
    inner: Arc<Inner>,
    address: String,
    outbox: mpsc::Sender<Outgoing>,
    waiting_bytes: Arc<AtomicUsize>,
    is_closed: Arc<AtomicBool>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

/// A message on its way to a node.
struct Outgoing {
    address: String,
    message: Bytes,
}

impl NatsLine {
    pub(super) fn open(inner: Arc<Inner>, receive: Receive) -> Result<Self, StoreError> {
        let number = unique_number();
        let address = inner.subjects.to(number);
        let is_closed = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let closed = Arc::clone(&is_closed);
        let client = &inner.link.client;
        let subscribed = inner.blocking.run(async {
            let messages = client.subscribe(address.clone()).await.map_err(|error| error.to_string())?;
            // From here on the server knows of it.
            client.flush().await.map_err(|error| error.to_string())?;
            Ok(messages)
        });
        let messages = subscribed.map_err(|reason: String| refused("subscribe to", place(&address), reason))?;
        inner.blocking.spawn(async move {
            let mut stopped = stopped;
            let mut messages = messages;
            let mut joiner = Joiner::default();
            loop {
                let message = tokio::select! {
                    _ = &mut stopped => return,
                    message = messages.next() => message,
                };
                let Some(message) = message else { return };
                let Some(mut bundle) = joiner.push(&message.payload) else { continue };
                while let Some(whole) = next_message(&mut bundle).filter(|_| !closed.load(Ordering::SeqCst)) {
                    receive(whole);
                }
            }
        });
        let (outbox, waiting) = mpsc::channel(WAITING_MAX);
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let sender = Sender {
            client: client.clone(),
            number,
            sent: 0,
            part_bytes: inner.link.body_bytes_max(),
            waiting_bytes: Arc::clone(&waiting_bytes),
        };
        inner.blocking.spawn(sender.run(waiting));
        Ok(Self { inner, address, outbox, waiting_bytes, is_closed, stop: Some(stop) })
    }
}

impl Line for NatsLine {
    fn address(&self) -> &str {
        &self.address
    }

    fn send(&self, address: &str, message: Bytes) -> Result<(), StoreError> {
        let failed = |reason: String| refused("send to", place(address), reason);
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(failed(format!("a message of {} bytes, expected at most {MESSAGE_BYTES_MAX}", message.len())));
        }
        if !address.starts_with(&self.inner.subjects.to(0)[..self.address.len() - 16])
            || address.len() != self.address.len()
        {
            return Err(failed("it is not the address of a node of this hub".to_owned()));
        }
        let waiting = self.waiting_bytes.load(Ordering::Relaxed);
        if waiting > WAITING_BYTES_MAX {
            return Err(failed(format!("{waiting} bytes wait already")));
        }
        let room = self.outbox.try_reserve().map_err(|error| failed(error.to_string()))?;
        self.waiting_bytes.fetch_add(message.len(), Ordering::Relaxed);
        room.send(Outgoing { address: address.to_owned(), message });
        Ok(())
    }
}

impl Drop for NatsLine {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        if let Some(stop) = self.stop.take() {
            // The task may have ended with the connection.
            let _ = stop.send(());
        }
    }
}

/// Sends what waits, until the line is dropped.
struct Sender {
    client: Client,
    /// Its own number, and that of its last bundle.
    number: i64,
    sent: u64,
    part_bytes: usize,
    waiting_bytes: Arc<AtomicUsize>,
}

impl Sender {
    async fn run(mut self, mut waiting: mpsc::Receiver<Outgoing>) {
        let mut taken = Vec::new();
        while waiting.recv_many(&mut taken, TAKEN_MAX).await > 0 {
            let bytes = taken.iter().map(|outgoing: &Outgoing| outgoing.message.len()).sum();
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            for (address, bundle) in bundles(taken.drain(..), self.part_bytes) {
                // Messages that cannot be sent are lost, and sent again as those are that the servers drop.
                let _ = self.send(address, &bundle).await;
            }
        }
    }

    async fn send(&mut self, address: String, bundle: &[u8]) -> Result<(), async_nats::Error> {
        self.sent += 1;
        let parts = u32::try_from(bundle.len().div_ceil(self.part_bytes)).unwrap_or(u32::MAX);
        for (part, body) in (0..).zip(bundle.chunks(self.part_bytes)) {
            let payload = encode(self.number, self.sent, part, parts, body);
            self.client.publish(address.clone(), payload.into()).await?;
            if part % PARTS_AT_ONCE == PARTS_AT_ONCE - 1 {
                self.client.flush().await?;
            }
        }
        Ok(())
    }
}

/// Messages in bundles, which are no longer than `bytes_max` unless they are of a single message.
fn bundles(messages: impl Iterator<Item = Outgoing>, bytes_max: usize) -> Vec<(String, Vec<u8>)> {
    let mut bundles: Vec<(String, Vec<u8>)> = Vec::new();
    let mut last: HashMap<String, usize> = HashMap::new();
    for Outgoing { address, message } in messages {
        let has_room = |at: &usize| bundles[*at].1.len() + LENGTH_BYTES + message.len() <= bytes_max;
        let at = last.get(&address).copied().filter(has_room).unwrap_or_else(|| {
            last.insert(address.clone(), bundles.len());
            bundles.push((address, Vec::new()));
            bundles.len() - 1
        });
        let bundle = &mut bundles[at].1;
        bundle.put_u32_le(u32::try_from(message.len()).unwrap_or(u32::MAX));
        bundle.extend_from_slice(&message);
    }
    bundles
}

/// Takes the next message out of a bundle. What is no message is passed over.
fn next_message(bundle: &mut Bytes) -> Option<Bytes> {
    let length = bundle.try_get_u32_le().ok()? as usize;
    (length <= bundle.len()).then(|| bundle.split_to(length))
}

fn place(address: &str) -> Location {
    Location::Remote { server: address.to_owned(), what: "the node".to_owned() }
}

fn encode(sender: i64, number: u64, part: u32, parts: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PART_HEAD_BYTES + body.len());
    bytes.extend_from_slice(&sender.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&part.to_le_bytes());
    bytes.extend_from_slice(&parts.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Bundles that have come from one node.
#[derive(Default)]
struct Arriving {
    /// The bundle that is coming, or came last.
    number: u64,
    /// The part that is expected next; `None` if the bundle is whole or lost.
    part: Option<u32>,
    bytes: Vec<u8>,
}

/// Puts bundles together.
#[derive(Default)]
struct Joiner {
    senders: HashMap<i64, Arriving>,
}

impl Joiner {
    /// Takes a part; the bundle that it completes, if it does. What is no part is passed over.
    fn push(&mut self, payload: &Bytes) -> Option<Bytes> {
        let (head, _) = payload.split_at_checked(PART_HEAD_BYTES)?;
        let sender = i64::from_le_bytes(head[..8].try_into().ok()?);
        let number = u64::from_le_bytes(head[8..16].try_into().ok()?);
        let part = u32::from_le_bytes(head[16..20].try_into().ok()?);
        let parts = u32::from_le_bytes(head[20..].try_into().ok()?);
        if !self.senders.contains_key(&sender) && self.senders.len() >= SENDERS_MAX {
            // Nodes come and go; those that are here begin anew with their next message.
            self.senders.clear();
        }
        let from = self.senders.entry(sender).or_default();
        if part == 0 && number > from.number {
            (from.number, from.part) = (number, Some(0));
            from.bytes.clear();
        }
        let body = payload.slice(PART_HEAD_BYTES..);
        if number != from.number || from.part != Some(part) || from.bytes.len() + body.len() > BUNDLE_BYTES_MAX {
            if number == from.number {
                (from.part, from.bytes) = (None, Vec::new());
            }
            return None;
        }
        if part + 1 < parts {
            from.bytes.extend_from_slice(&body);
            from.part = Some(part + 1);
            return None;
        }
        from.part = None;
        if part == 0 {
            return Some(body);
        }
        let mut bytes = std::mem::take(&mut from.bytes);
        bytes.extend_from_slice(&body);
        Some(bytes.into())
    }
}

const _: () = assert!(PART_HEAD_BYTES <= HEAD_BYTES, "`body_bytes_max` leaves room for it");

#[cfg(test)]
mod tests {
    use super::*;

    fn push(joiner: &mut Joiner, number: u64, part: u32, parts: u32, body: &[u8]) -> Option<Bytes> {
        joiner.push(&encode(1, number, part, parts, body).into())
    }

    #[test]
    fn messages_to_one_node_go_together_in_their_order() {
        let to = |address: &str, message: &'static [u8]| Outgoing {
            address: address.to_owned(),
            message: Bytes::from_static(message),
        };
        let waiting = [to("a", b"one"), to("b", b""), to("a", b"two"), to("a", b"the third"), to("b", b"other")];
        let bundles = bundles(waiting.into_iter(), 2 * (LENGTH_BYTES + 3));
        assert_eq!(bundles.iter().map(|(address, _)| address.as_str()).collect::<Vec<_>>(), ["a", "b", "a"]);
        let open = |bundle: &[u8]| {
            let mut bundle = Bytes::copy_from_slice(bundle);
            std::iter::from_fn(|| next_message(&mut bundle)).collect::<Vec<_>>()
        };
        let opened: Vec<Vec<Bytes>> = bundles.iter().map(|(_, bundle)| open(bundle)).collect();
        assert_eq!(opened, [vec!["one", "two"], vec!["", "other"], vec!["the third"]]);
        assert_eq!(open(&bundles[0].1[..5]), Vec::<Bytes>::new(), "cut short");
    }

    #[test]
    fn bundles_with_missing_parts_are_dropped_and_old_ones_stay_out() {
        let mut joiner = Joiner::default();
        assert_eq!(push(&mut joiner, 1, 0, 1, b"one").as_deref(), Some(&b"one"[..]));
        assert_eq!(push(&mut joiner, 1, 0, 1, b"one"), None, "twice");
        assert_eq!(push(&mut joiner, 2, 0, 2, b"tw"), None);
        assert_eq!(push(&mut joiner, 2, 1, 2, b"o").as_deref(), Some(&b"two"[..]));
        assert_eq!(push(&mut joiner, 3, 0, 3, b"th"), None);
        assert_eq!(push(&mut joiner, 3, 2, 3, b"ree"), None, "the part between is missing");
        assert_eq!(push(&mut joiner, 3, 1, 3, b"re"), None);
        assert_eq!(push(&mut joiner, 4, 1, 2, b"ur"), None, "without its beginning");
        assert_eq!(push(&mut joiner, 5, 0, 1, b"five").as_deref(), Some(&b"five"[..]));
        assert_eq!(push(&mut joiner, 4, 0, 1, b"four"), None, "older than the last");
        assert_eq!(joiner.push(&Bytes::from_static(b"short")), None);
    }
}
