//! Messages between nodes as NATS messages: each node subscribes to its own subject. One longer than a NATS
//! message is cut into parts. The servers may drop messages; of one whose parts are not all there, none is delivered.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::StreamExt as _;
use narrows_durable::store::{Line, Location, Receive, StoreError};

use super::Inner;
use super::record::HEAD_BYTES;
use crate::calls::{refused, unique_number};

/// The longest message.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Nodes whose parts are kept at a time.
const SENDERS_MAX: usize = 256;
/// Parts after which the sender waits until the server has them.
const PARTS_AT_ONCE: u32 = 4;
const PART_HEAD_BYTES: usize = 8 + 8 + 4 + 4;

/// One node's end.
pub(super) struct NatsLine {
    inner: Arc<Inner>,
    address: String,
    sender: i64,
    sent: AtomicU64,
    is_closed: Arc<AtomicBool>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

impl NatsLine {
    pub(super) fn open(inner: Arc<Inner>, receive: Receive) -> Result<Self, StoreError> {
        let sender = unique_number();
        let address = inner.subjects.to(sender);
        let is_closed = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (client, subject, closed) = (inner.link.client.clone(), address.clone(), Arc::clone(&is_closed));
        let subscribed = inner.blocking.run(async move {
            let messages = client.subscribe(subject).await.map_err(|error| error.to_string())?;
            // From here on the server knows of it.
            client.flush().await.map_err(|error| error.to_string())?;
            Ok(messages)
        });
        let messages = subscribed
            .unwrap_or_else(|| Err("the thread of the client has ended".to_owned()))
            .map_err(|reason: String| refused("subscribe to", place(&address), reason))?;
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
                if let Some(whole) = joiner.push(&message.payload).filter(|_| !closed.load(Ordering::SeqCst)) {
                    receive(whole);
                }
            }
        });
        Ok(Self { inner, address, sender, sent: AtomicU64::new(0), is_closed, stop: Some(stop) })
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
        let number = self.sent.fetch_add(1, Ordering::SeqCst) + 1;
        let (client, subject, sender) = (self.inner.link.client.clone(), address.to_owned(), self.sender);
        let part_bytes = self.inner.link.body_bytes_max();
        let sent = self.inner.blocking.run(async move {
            let parts = u32::try_from(message.len().div_ceil(part_bytes).max(1)).unwrap_or(u32::MAX);
            for part in 0..parts {
                let begin = part as usize * part_bytes;
                let body = &message[begin..message.len().min(begin + part_bytes)];
                let payload = encode(sender, number, part, parts, body);
                client.publish(subject.clone(), payload.into()).await.map_err(|error| error.to_string())?;
                if part % PARTS_AT_ONCE == PARTS_AT_ONCE - 1 {
                    client.flush().await.map_err(|error| error.to_string())?;
                }
            }
            Ok(())
        });
        sent.unwrap_or_else(|| Err("the thread of the client has ended".to_owned())).map_err(failed)
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

/// Messages that have come from one node.
#[derive(Default)]
struct Sender {
    /// The message that is coming, or came last.
    number: u64,
    /// The part that is expected next; none of a message that is whole or lost.
    part: Option<u32>,
    bytes: Vec<u8>,
}

/// Puts messages together.
#[derive(Default)]
struct Joiner {
    senders: HashMap<i64, Sender>,
}

impl Joiner {
    /// Takes a part; the message that it completes, if it does. What is no part is passed over.
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
        if number != from.number || from.part != Some(part) || from.bytes.len() + body.len() > MESSAGE_BYTES_MAX {
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
    fn messages_with_missing_parts_are_dropped_and_old_ones_stay_out() {
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
