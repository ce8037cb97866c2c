//! Reassembly of packets that came in parts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The longest packet, in bytes: more than the largest payload.
const PACKET_BYTES_MAX: usize = 1 << 30;

struct PartialPacket {
    number: u64,
    next: u32,
    bytes: Vec<u8>,
}

/// The packet of each sender that has begun. The parts of a packet come one after another, or not at all.
#[derive(Default)]
pub(super) struct Reassembly {
    begun: Mutex<HashMap<u64, PartialPacket>>,
}

impl Reassembly {
    /// Takes a part in, and gives the packet if this was the last.
    pub(super) fn take(&self, of: u64, number: u64, at: u32, count: u32, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if at == 0 {
            begun.insert(of, PartialPacket { number, next: 0, bytes: Vec::new() });
        }
        let packet = begun.get_mut(&of)?;
        if (packet.number, packet.next) != (number, at) || packet.bytes.len() + bytes.len() > PACKET_BYTES_MAX {
            // A part was lost.
            begun.remove(&of);
            return None;
        }
        packet.next += 1;
        packet.bytes.extend_from_slice(bytes);
        if packet.next < count { None } else { begun.remove(&of).map(|packet| packet.bytes) }
    }

    /// Forgets senders that are not alive.
    pub(super) fn prune(&self, is_alive: impl Fn(u64) -> bool) {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).retain(|of, _| is_alive(*of));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_whole_or_not_there() {
        let parts = Reassembly::default();
        assert_eq!(parts.take(1, 5, 0, 2, b"he"), None);
        assert_eq!(parts.take(2, 5, 1, 2, b"no"), None, "its beginning was lost");
        assert_eq!(parts.take(1, 5, 1, 2, b"llo").as_deref(), Some(&b"hello"[..]));
        assert_eq!(parts.take(1, 6, 0, 3, b"a"), None);
        assert_eq!(parts.take(1, 6, 2, 3, b"c"), None, "the middle was lost");
        assert_eq!(parts.take(1, 7, 0, 1, b"x").as_deref(), Some(&b"x"[..]));
    }
}
