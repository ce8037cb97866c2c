//! Note in the store with the reason why a partition has stopped, for readers outside of the hub.
//!
//! The note is written if the store allows it: a store without room has no room for the note either. It is
//! removed when the hub is next opened.

use serde::{Deserialize, Serialize};

use crate::ids::{PartitionId, Time};
use crate::store::{Store, StoreError};

/// The longest reason, in characters.
const REASON_MAX: usize = 2_000;

/// A partition that has stopped since its hub was last opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoppedPartition {
    /// Which.
    pub partition: u16,
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// Why.
    pub reason: String,
}

fn name(partition: PartitionId) -> String {
    format!("p{partition}/stopped")
}

/// Notes that a partition has stopped, unless another process has taken it: that one knows better.
pub(crate) fn note(store: &dyn Store, partition: PartitionId, error: &StoreError, now: Time) {
    if matches!(error, StoreError::Fenced { .. }) {
        return;
    }
    let reason = error.to_string().chars().take(REASON_MAX).collect();
    let stopped = StoppedPartition { partition: partition.0, at_us: now.0, reason };
    if let Ok(bytes) = serde_json::to_vec(&stopped) {
        // The store has just failed; the program itself reports the reason to its callers.
        let _ = store.put_blob(&name(partition), &bytes);
    }
}

/// Removes the note of a partition that is opened, if there is one.
pub(crate) fn clear(store: &dyn Store, partition: PartitionId) -> Result<(), StoreError> {
    match store.get_blob(&name(partition)) {
        Ok(None) => Ok(()),
        _ => store.delete_blob(&name(partition)),
    }
}

/// The note of a partition. One that cannot be read is none: it is no part of the hub's state.
pub(crate) fn read(store: &dyn Store, partition: PartitionId) -> Option<StoppedPartition> {
    let bytes = store.get_blob(&name(partition)).ok().flatten()?;
    serde_json::from_slice(&bytes).ok()
}
