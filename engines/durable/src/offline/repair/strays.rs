//! Whole frames that stand behind a damage: they cannot be applied, but they say which instances they are about.

use std::collections::{BTreeSet, HashMap};

use crate::codec::{Skip, read_frame};
use crate::ids::InstanceId;
use crate::partition::Partition;

/// Handles and identifiers in frames that are lost.
#[derive(Default)]
pub(super) struct Strays {
    created: HashMap<u64, InstanceId>,
    touched: BTreeSet<u64>,
    frames: u64,
}

impl Strays {
    pub(super) fn add(&mut self, frame: &[u8]) {
        self.frames += 1;
        // One that cannot be read any further is left at that: its content is lost in any case.
        let _ = read_frame(frame, &mut Skip, &mut |_, entry| {
            if let crate::codec::Entry::Created { handle, id, .. } = &entry {
                self.created.extend(InstanceId::parse(id).ok().map(|id| (*handle, id)));
            }
            self.touched.extend(entry.handle());
            Ok(())
        });
    }

    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// The instances that the frames are about, as far as their identifiers are known.
    pub(super) fn instances(&self, partition: &Partition) -> BTreeSet<InstanceId> {
        let known = partition.identifiers().filter(|(handle, _)| self.touched.contains(handle)).map(|(_, id)| id);
        known.chain(self.created.values()).cloned().collect()
    }
}
