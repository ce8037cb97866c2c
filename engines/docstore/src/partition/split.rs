//! A partition's split: its documents move to two others, and later requests to it are refused as moved.

use super::state::State;
use super::{Partition, as_locked};
use crate::stored_document::StoredDocument;

impl Partition {
    /// Moves documents whose key lies below `at` to the first of `children` and the others to the second.
    pub(crate) fn split(&self, at: u128, children: [&Self; 2]) {
        let mut state = self.lock();
        let [mut lower, mut upper] = children.map(as_locked);
        lower.follow(&state);
        upper.follow(&state);
        for held in state.drain() {
            let child = if held.entry.effective.place() < at { &mut lower } else { &mut upper };
            child.adopt(held);
        }
        state.is_retired = true;
    }

    /// The key that divides the text of the partition most evenly; `None` if all of it has the same key.
    pub(crate) fn middle(&self) -> Option<u128> {
        let mut state = self.lock();
        let middle = state.middle();
        if middle.is_none() {
            state.indivisible_bytes = state.text_bytes;
        }
        middle
    }
}

impl State {
    fn middle(&self) -> Option<u128> {
        let slots = self.entries.iter().zip(self.documents.iter()).filter(|(_, text)| !text.is_empty());
        let mut sizes: Vec<(u128, usize)> = slots.map(|(entry, text)| (entry.effective.place(), text.len())).collect();
        sizes.sort_unstable();
        let (first, last) = (sizes.first()?.0, sizes.last()?.0);
        let mut below = 0;
        for (place, bytes) in sizes {
            if place > first && below * 2 >= self.text_bytes {
                return Some(place);
            }
            below += bytes;
        }
        // The last key alone has more than half of the text.
        (last > first).then_some(last)
    }

    /// Goes on with the changes of the partition the documents come from.
    fn follow(&mut self, parent: &State) {
        self.ticket = parent.ticket;
        self.go_on(parent.mark());
    }

    fn adopt(&mut self, held: StoredDocument) {
        self.push(held, None);
    }
}
