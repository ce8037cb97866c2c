//! The thread that writes snapshots and deletes what they make superfluous, beside the logs.
//!
//! A snapshot that cannot be written is given up: the log still has everything, and the next one is tried when the
//! log has grown again.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use crate::hub::log::Log;
use crate::hub::meter::Meter;
use crate::ids::PartitionId;
use crate::partition::Finished;
use crate::store::Store;

/// Parts that may wait to be written; beyond it partitions wait.
pub(super) const WAITING_MAX: usize = 8;

/// The requests of partitions.
pub(super) enum Chore {
    Keep(PartitionId, String, Vec<u8>),
    Finish(PartitionId, Finished),
}

pub(super) type Chores = SyncSender<Chore>;

/// The parts of a partition that the thread uses.
pub(super) struct Kept {
    pub(super) log: Arc<Log>,
    pub(super) meter: Arc<Meter>,
}

/// Does chores until no more are requested.
pub(super) fn keep(store: &dyn Store, chores: &Receiver<Chore>, partitions: &[Kept]) {
    let mut failed: HashSet<PartitionId> = HashSet::new();
    for chore in chores {
        match chore {
            Chore::Keep(partition, name, bytes) => {
                if store.put_blob(&name, &bytes).is_err() {
                    failed.insert(partition);
                }
            }
            Chore::Finish(partition, finished) => {
                let Some(kept) = partitions.get(usize::from(partition.0)) else { continue };
                if failed.remove(&partition) || store.put_blob(&finished.name, &finished.list).is_err() {
                    kept.meter.snapshot_failed();
                    continue;
                }
                kept.meter.snapshot();
                kept.log.cut(finished.before);
                delete(store, &spent(store, &finished));
            }
        }
    }
}

/// Blobs that a snapshot makes superfluous: parts of all other snapshots, also of failed ones, and large payloads that
/// neither it nor the log behind it refers to.
pub(crate) fn spent(store: &dyn Store, finished: &Finished) -> Vec<String> {
    // Names that cannot be listed now are listed after the next snapshot.
    let mut parts = store.list_blobs(&finished.parts).unwrap_or_default();
    parts.retain(|name| *name != finished.name && !finished.parts_kept.contains(name));
    parts.extend(spent_payloads(store, finished));
    parts
}

fn spent_payloads(store: &dyn Store, finished: &Finished) -> Vec<String> {
    let mut names = store.list_blobs(&finished.payloads).unwrap_or_default();
    names.retain(|name| {
        let number: Option<u64> = name.strip_prefix(&finished.payloads).and_then(|number| number.parse().ok());
        number.is_some_and(|number| {
            number < finished.payloads_before && finished.payloads_kept.binary_search(&number).is_err()
        })
    });
    names
}

/// Blobs that cannot be deleted stay; they only cost room.
fn delete(store: &dyn Store, names: &[String]) {
    for name in names {
        if store.delete_blob(name).is_err() {
            break;
        }
    }
}
