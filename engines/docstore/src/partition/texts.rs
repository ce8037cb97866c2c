//! The texts of a partition's slots, in chunks that a snapshot shares with the partition.
//!
//! A long query reads a snapshot without the partition's lock. Taking a snapshot copies a pointer for each chunk. A
//! write copies a chunk's pointers only while a snapshot shares the chunk.

use std::ops::Index;
use std::sync::Arc;

/// Number of slots per chunk.
const CHUNK: usize = 256;

/// A text with the number of its document; empty in a vacant slot.
#[derive(Debug, Clone)]
struct Slot {
    number: u64,
    text: Arc<str>,
}

/// The text of each slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    chunks: Vec<Arc<Vec<Slot>>>,
}

impl Texts {
    pub(super) fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, |chunk| chunk.len());
        self.chunks.len().saturating_sub(1) * CHUNK + last
    }

    /// Reserves space for more slots.
    pub(super) fn reserve(&mut self, slots: usize) {
        self.chunks.reserve(slots.div_ceil(CHUNK));
    }

    /// Adds a vacant slot for the document with this number.
    pub(super) fn push(&mut self, number: u64) {
        let slot = Slot { number, text: Arc::default() };
        match self.chunks.last_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => Arc::make_mut(chunk).push(slot),
            None => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(slot);
                self.chunks.push(Arc::new(chunk));
            }
        }
    }

    /// Puts a text into a slot; an empty one vacates it.
    pub(super) fn set(&mut self, position: u32, text: Arc<str>) {
        let position = position as usize;
        Arc::make_mut(&mut self.chunks[position / CHUNK])[position % CHUNK].text = text;
    }

    /// The number and the text of a document; `None` for a vacant slot.
    pub(super) fn document(&self, position: u32) -> Option<(u64, &str)> {
        let position = position as usize;
        let Slot { number, text } = self.chunks.get(position / CHUNK)?.get(position % CHUNK)?;
        (!text.is_empty()).then_some((*number, &**text))
    }

    /// The texts from this slot on.
    pub(super) fn from(&self, position: u32) -> impl Iterator<Item = &Arc<str>> {
        (position as usize..self.len()).map(|position| &self[position])
    }

    /// Every text, in the order of slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|slot| &slot.text)
    }
}

impl Index<usize> for Texts {
    type Output = Arc<str>;

    fn index(&self, position: usize) -> &Arc<str> {
        &self.chunks[position / CHUNK][position % CHUNK].text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_stays_as_it_was() {
        let mut texts = Texts::default();
        for number in 0..600 {
            texts.push(number * 2);
            texts.set(number as u32, format!("{number}").into());
        }
        let snapshot = texts.clone();
        texts.set(300, "changed".into());
        texts.set(301, Arc::default());
        texts.push(1_300);
        assert_eq!((texts.len(), snapshot.len()), (601, 600));
        assert_eq!((texts.document(300), snapshot.document(300)), (Some((600, "changed")), Some((600, "300"))));
        assert_eq!((texts.document(301), snapshot.document(301)), (None, Some((602, "301"))));
        assert_eq!((texts.document(600), snapshot.document(600)), (None, None));
        assert_eq!(snapshot.iter().map(|text| &**text).nth(599), Some("599"));
    }
}
