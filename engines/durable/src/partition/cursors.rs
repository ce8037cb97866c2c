//! Orchestrations in the middle of their code, kept ready to go on.
//!
//! A bound in bytes; beyond it those that have not been used since the hand last passed are given up (the clock
//! algorithm) and will be replayed. The hand looks at each slot at most twice per call.

use std::collections::HashMap;

use crate::program::Cursor;

/// The cursors of a partition, by the handle of the instance.
pub(super) struct Cursors {
    slots: Vec<Option<Slot>>,
    places: HashMap<u64, usize, std::hash::BuildHasherDefault<HandleHasher>>,
    free: Vec<usize>,
    hand: usize,
    bytes: usize,
    bytes_max: usize,
    /// How often a cursor was there, and was not.
    pub(super) hits: u64,
    pub(super) misses: u64,
}

struct Slot {
    handle: u64,
    cursor: Box<dyn Cursor>,
    bytes: usize,
    is_fresh: bool,
}

impl Cursors {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            slots: Vec::new(),
            places: HashMap::default(),
            free: Vec::new(),
            hand: 0,
            bytes: 0,
            bytes_max,
            hits: 0,
            misses: 0,
        }
    }

    /// The cursor of an instance, if it is here.
    pub(super) fn get(&mut self, handle: u64) -> Option<&mut dyn Cursor> {
        let place = self.places.get(&handle)?;
        let slot = self.slots[*place].as_mut()?;
        slot.is_fresh = true;
        Some(&mut *slot.cursor)
    }

    pub(super) fn put(&mut self, handle: u64, cursor: Box<dyn Cursor>) {
        self.remove(handle);
        let bytes = cursor.bytes();
        self.bytes += bytes;
        let slot = Some(Slot { handle, cursor, bytes, is_fresh: true });
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        self.places.insert(handle, place);
    }

    pub(super) fn remove(&mut self, handle: u64) {
        if let Some(place) = self.places.remove(&handle) {
            self.vacate(place);
        }
    }

    /// Takes note of a cursor's size, which changes as it goes on.
    pub(super) fn measure(&mut self, handle: u64) {
        // The step may have ended its orchestration.
        let Some(slot) = self.places.get(&handle).and_then(|place| self.slots[*place].as_mut()) else { return };
        let bytes = slot.cursor.bytes();
        self.bytes = self.bytes + bytes - slot.bytes;
        slot.bytes = bytes;
    }

    /// Gives cursors up until the bound is kept.
    pub(super) fn shrink(&mut self) {
        let mut looks = self.slots.len() * 2;
        while self.bytes > self.bytes_max && looks > 0 {
            looks -= 1;
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            let Some(slot) = &mut self.slots[self.hand] else { continue };
            if slot.is_fresh {
                slot.is_fresh = false;
                continue;
            }
            let handle = slot.handle;
            self.places.remove(&handle);
            self.vacate(self.hand);
        }
    }

    fn vacate(&mut self, place: usize) {
        if let Some(slot) = self.slots[place].take() {
            self.bytes -= slot.bytes;
            self.free.push(place);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Handles are counted up by the partition itself, so one multiplication spreads them well enough.
#[derive(Default)]
pub(super) struct HandleHasher(u64);

impl std::hash::Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, EventKind};
    use crate::failure::Failure;
    use crate::program::Progress;

    struct SizedCursor(usize);

    impl Cursor for SizedCursor {
        fn feed(&mut self, _: &Event, _: &mut Vec<EventKind>) -> Progress {
            Progress::Ignored
        }

        fn replay(&mut self, _: &mut dyn Iterator<Item = Result<Event, Failure>>) -> Result<Progress, Failure> {
            Ok(Progress::Waiting)
        }

        fn bytes(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn the_bound_is_kept_and_the_last_used_stays() {
        let mut cursors = Cursors::new(250);
        for handle in 0..3 {
            cursors.put(handle, Box::new(SizedCursor(100)));
        }
        cursors.shrink();
        assert_eq!(cursors.bytes(), 200);
        let left: Vec<u64> = (0..3).filter(|handle| cursors.places.contains_key(handle)).collect();
        assert!(cursors.get(left[0]).is_some());
        cursors.put(9, Box::new(SizedCursor(100)));
        cursors.shrink();
        assert_eq!(cursors.bytes(), 200);
        assert!(cursors.get(left[0]).is_some(), "the one used last was given up");
    }

    #[test]
    fn one_that_is_larger_than_the_bound_is_given_up() {
        let mut cursors = Cursors::new(10);
        cursors.put(1, Box::new(SizedCursor(11)));
        cursors.shrink();
        cursors.shrink();
        assert!(cursors.get(1).is_none());
        assert_eq!(cursors.bytes(), 0);
    }
}
