//! A bus between the nodes of one process: messages are received at once, by the sending thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{Bus, Line, Location, Receive, StoreError};

#[derive(Default)]
struct Lines {
    opened: u64,
    receivers: HashMap<String, Receive>,
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
        lines.receivers.insert(address.clone(), receive);
        Ok(Box::new(MemoryLine { address, bus: self.clone() }))
    }
}

struct MemoryLine {
    address: String,
    bus: MemoryBus,
}

impl Line for MemoryLine {
    fn address(&self) -> &str {
        &self.address
    }

    fn send(&self, address: &str, message: Bytes) -> Result<(), StoreError> {
        let receiver = self.bus.lines().receivers.get(address).cloned();
        let Some(receive) = receiver else {
            let place = Location::File { path: address.into(), offset: None };
            return Err(StoreError::Io { action: "send to", place, reason: "nobody is there".into(), is_full: false });
        };
        receive(message);
        Ok(())
    }
}

impl Drop for MemoryLine {
    fn drop(&mut self) {
        self.bus.lines().receivers.remove(&self.address);
    }
}
