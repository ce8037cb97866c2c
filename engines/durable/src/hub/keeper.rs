//! The thread that writes snapshots and deletes blobs that they make superfluous.
//!
//! A snapshot that cannot be written is given up: the log still has everything, and the next one is tried when the
//! log has grown again.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use crate::hub::log::Log;
use crate::hub::meter::Meter;
use crate::ids::PartitionId;
use crate::partition::FinishedSnapshot;
use crate::store::Store;

/// Parts that may wait to be written; beyond it partitions wait.
pub(super) const WAITING_MAX: usize = 8;

/// The requests of partitions.
pub(super) enum Chore {
    Keep(PartitionId, String, Vec<u8>),
    Finish(PartitionId, FinishedSnapshot, SnapshotOwner),
}

pub(super) type Chores = SyncSender<Chore>;

/// The parts of a partition that the thread uses.
pub(super) struct SnapshotOwner {
    pub(super) log: Arc<Log>,
    pub(super) meter: Arc<Meter>,
}

/// Does chores until no more are requested.
pub(super) fn keep(store: &dyn Store, chores: &Receiver<Chore>) {
    let mut failed: HashSet<PartitionId> = HashSet::new();
    for chore in chores {
        match chore {
            Chore::Keep(partition, name, bytes) => {
                if store.put_blob(&name, &bytes).is_err() {
                    failed.insert(partition);
                }
            }
            Chore::Finish(partition, finished, kept) => {
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
pub(crate) fn spent(store: &dyn Store, finished: &FinishedSnapshot) -> Vec<String> {
    // Names that cannot be listed now are listed after the next snapshot.
    let mut parts = finished.spent_parts(store.list_blobs(&finished.parts).unwrap_or_default());
    parts.extend(spent_payloads(store, finished));
    parts
}

fn spent_payloads(store: &dyn Store, finished: &FinishedSnapshot) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::ids::Position;
    use crate::store::{Fault, FaultyStore, MemoryStore};

    const OURS: PartitionId = PartitionId(0);
    const PARTS: &str = "p0/snapshot/";

    fn part(base: u64, number: u64) -> String {
        format!("{PARTS}{base}-{number}")
    }

    /// Writes a snapshot of two parts into a store, and says whether it was finished.
    fn snapshot(store: &dyn Store, base: u64) -> bool {
        let (chores, due) = sync_channel(WAITING_MAX);
        let parts_kept = vec![part(base, 0), part(base, 1)];
        for name in &parts_kept {
            chores.send(Chore::Keep(OURS, name.clone(), b"part".to_vec())).expect("room");
        }
        let finished = FinishedSnapshot {
            name: format!("{PARTS}list"),
            list: base.to_string().into_bytes(),
            before: Position(base),
            parts: PARTS.to_owned(),
            epoch: None,
            parts_kept,
            payloads: "p0/payload/".to_owned(),
            payloads_before: 0,
            payloads_kept: Vec::new(),
        };
        let meter = Arc::new(Meter::default());
        let kept = SnapshotOwner { log: Arc::default(), meter: Arc::clone(&meter) };
        chores.send(Chore::Finish(OURS, finished, kept)).expect("room");
        drop(chores);
        keep(store, &due);
        meter.read().snapshots == 1
    }

    #[test]
    fn the_next_snapshot_removes_the_parts_of_one_that_failed() {
        for at in 0..3 {
            let store = Arc::new(MemoryStore::new());
            assert!(snapshot(&*store, 1));
            assert!(!snapshot(&FaultyStore::new(Arc::clone(&store), at, Fault::All), 2), "write {at} failed");
            let list = store.get_blob("p0/snapshot/list").expect("read");
            if at < 2 {
                assert_eq!(list.as_deref(), Some(b"1".as_slice()), "the list refers to the last one that is whole");
            }
            assert!(store.get_blob(&part(1, 1)).expect("read").is_some(), "and its parts are kept");
            assert!(snapshot(&*store, 3));
            let names = store.list_blobs(PARTS).expect("listed");
            assert_eq!(names, [part(3, 0), part(3, 1), format!("{PARTS}list")]);
        }
    }
}
