//! A bus between the nodes of one process. Each line has a thread that receives, so that a receiver may send.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{Bus, Line, Location, Receive, StoreError};

/// Messages that may wait for one receiver, after which more are refused.
const WAITING_MAX: usize = 16 << 10;

#[derive(Default)]
struct Lines {
    opened: u64,
    senders: HashMap<String, SyncSender<Bytes>>,
}

/// The ends of all lines, by address.
#[derive(Clone, Default)]
pub(super) struct MemoryBus {
    lines: Arc<Mutex<Lines>>,
}

impl std::fmt::Debug for MemoryBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryBus").field("opened", &self.lines().opened).finish_non_exhaustive()
    }
}

impl MemoryBus {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bus for MemoryBus {
    fn open(&self, node: &str, receive: Receive) -> Result<Box<dyn Line>, StoreError> {
        let mut lines = self.lines();
        lines.opened += 1;
        let address = format!("memory:{node}:{}", lines.opened);
        let (sender, messages) = sync_channel(WAITING_MAX);
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        let receive_all = move || {
            for message in messages {
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                receive(message);
            }
        };
        let thread = std::thread::Builder::new().name("bus".to_owned());
        thread.spawn(receive_all).map_err(|error| failed("start a thread for", &address, error.to_string()))?;
        lines.senders.insert(address.clone(), sender);
        Ok(Box::new(MemoryLine { address, bus: self.clone(), is_closed }))
    }
}

struct MemoryLine {
    address: String,
    bus: MemoryBus,
    is_closed: Arc<AtomicBool>,
}

impl Line for MemoryLine {
    fn address(&self) -> &str {
        &self.address
    }

    fn send(&self, address: &str, message: Bytes) -> Result<(), StoreError> {
        let failed = |reason: &str| failed("send to", address, reason.to_owned());
        let lines = self.bus.lines();
        let sender = lines.senders.get(address).ok_or_else(|| failed("no node has this address"))?;
        sender.try_send(message).map_err(|_| failed("too many messages wait already"))
    }
}

impl Drop for MemoryLine {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.bus.lines().senders.remove(&self.address);
    }
}

fn failed(action: &'static str, address: &str, reason: String) -> StoreError {
    StoreError::Io { action, place: Location::File { path: address.into(), offset: None }, reason, is_full: false }
}
