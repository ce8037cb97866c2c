//! Which traces are not in the file any more, or never were: what comes of them is counted, not kept.
//!
//! Without it a span that comes late would begin its trace anew and stand there without the rest. Two bounded
//! generations of hashes; what is forgotten is recognised by when it began (`passes.rs`), as far as it can be.

use std::collections::HashSet;

/// Most traces of one generation: eight bytes each, and a little.
const GENERATION_MAX: usize = 1 << 16;

/// The traces that went last.
#[derive(Debug, Default)]
pub(super) struct DroppedTraces {
    recent: HashSet<u64>,
    older: HashSet<u64>,
}

impl DroppedTraces {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.recent.is_empty() && self.older.is_empty()
    }

    /// Whether the trace with this hash went not long ago.
    pub(super) fn has(&self, hash: u64) -> bool {
        self.recent.contains(&hash) || self.older.contains(&hash)
    }

    /// Remembers a trace.
    pub(super) fn add(&mut self, hash: u64) {
        if self.recent.len() >= GENERATION_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_last_is_remembered_and_the_memory_is_bounded() {
        let mut gone = DroppedTraces::default();
        let all = 3 * GENERATION_MAX as u64;
        (0..all).for_each(|hash| gone.add(hash));
        assert!(gone.recent.len() + gone.older.len() <= 2 * GENERATION_MAX);
        assert!((all - GENERATION_MAX as u64..all).all(|hash| gone.has(hash)) && !gone.has(0));
    }
}
