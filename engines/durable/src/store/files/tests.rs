//! The store on a disk that fails, forgets and lies.

use std::path::Path;
use std::sync::Arc;

use super::FileStore;
use super::simulated::{SimulatedDisk, Trouble};
use crate::codec::FORMAT;
use crate::ids::{Epoch, PartitionId, Position};
use crate::store::{FrameBatch, HubShape, Store, StoreError};

const P: PartitionId = PartitionId(0);
const SHAPE: HubShape = HubShape { partitions: 2, format: FORMAT };

fn open(disk: &SimulatedDisk) -> Result<FileStore, StoreError> {
    let store = FileStore::simulated(Arc::new(disk.clone()), Path::new("/hub"), 4096)?;
    store.open_or_create(SHAPE)?;
    Ok(store)
}

fn batch(numbers: std::ops::Range<u64>) -> FrameBatch {
    let mut batch = FrameBatch::default();
    numbers.for_each(|number| batch.push(format!("frame {number} {}", "x".repeat(300)).as_bytes()));
    batch
}

fn append(store: &FileStore, epoch: Epoch, at: u64) -> Result<(), StoreError> {
    store.append(P, epoch, Position(at), &batch(at..at + 3))
}

fn end(store: &FileStore) -> Result<u64, StoreError> {
    store.read(P, Position(0), &mut |_, _| Ok(())).map(|end| end.0)
}

/// A hub whose owner was killed after so many batches of three frames.
fn killed(disk: &SimulatedDisk, batches: u64) {
    let store = open(disk).expect("a store");
    let epoch = store.acquire(P, "victim").expect("taken");
    for at in 0..batches {
        append(&store, epoch, 3 * at).expect("written");
    }
}

#[test]
fn frames_read_after_a_sync_that_failed_are_written_again() {
    for call in 0..12 {
        let disk = SimulatedDisk::new(call);
        killed(&disk, 2);
        let store = open(&disk).expect("a store");
        let epoch = store.acquire(P, "victim").expect("taken");
        assert_eq!(end(&store).expect("read"), 6);
        disk.trouble_after(call, Trouble::Fails);
        let appended = append(&store, epoch, 6);
        disk.no_trouble();
        // The same process, or another one on the same machine, reads what the kernel still shows, and acts on it.
        let _ = store.acquire(P, "heir").expect("taken");
        let seen = end(&store).expect("read");
        assert!(seen >= if appended.is_ok() { 9 } else { 6 });
        disk.lose_power();
        let left = end(&open(&disk).expect("a store")).expect("read");
        assert!(left >= seen, "call {call}: {seen} frames were acted on, {left} are on the disk");
    }
}

#[test]
fn whatever_the_power_leaves_what_was_acknowledged_is_there() {
    for seed in 0..400 {
        let disk = SimulatedDisk::new(seed);
        let mut acknowledged = 0;
        for life in 0..4 {
            disk.trouble_after(seed / 4 % 25 + 7 * life, Trouble::PowerGoes);
            let lived = || -> Result<(), StoreError> {
                let store = open(&disk)?;
                let epoch = store.acquire(P, "victim")?;
                let mut at = end(&store)?;
                assert!(at >= acknowledged, "seed {seed}: {acknowledged} were acknowledged, {at} are there");
                loop {
                    append(&store, epoch, at)?;
                    at += 3;
                    acknowledged = at;
                    if at % 5 == 0 {
                        store.truncate(P, epoch, Position(0))?;
                    }
                }
            };
            let mut lived = lived;
            assert!(matches!(lived(), Err(StoreError::Io { .. })), "seed {seed}");
            disk.lose_power();
        }
    }
}

#[test]
fn a_log_of_a_killed_process_that_was_cut_or_changed_anywhere_is_refused() {
    let disk = SimulatedDisk::new(1);
    killed(&disk, 7);
    let logs: Vec<_> = disk.all_files().into_iter().filter(|path| path.starts_with("/hub/p0/")).collect();
    let segments: Vec<_> = logs.iter().filter(|path| path.to_string_lossy().contains("/log-")).collect();
    assert!(segments.len() > 1, "{logs:?}");
    let refused = |what: &str, damage: &dyn Fn(&SimulatedDisk)| {
        let disk = disk.copy();
        damage(&disk);
        let found = open(&disk).and_then(|store| end(&store));
        let is_refused = matches!(found, Err(StoreError::Damaged { .. } | StoreError::Missing { .. }));
        assert!(is_refused, "{what}: {found:?}");
    };
    for path in &segments {
        refused(&format!("without {}", path.display()), &|disk| disk.take_away(path));
        let mut written = 0;
        disk.copy().damage(path, |bytes| written = bytes.iter().rposition(|byte| *byte != 0).expect("frames"));
        for at in (0..written - super::segment::FRAME_HEAD).step_by(23) {
            refused(&format!("byte {at} of {}", path.display()), &|disk| disk.damage(path, |bytes| bytes[at] ^= 4));
            refused(&format!("{} cut at {at}", path.display()), &|disk| disk.damage(path, |bytes| bytes.truncate(at)));
        }
    }
}

#[test]
fn a_hub_without_its_parts_is_refused() {
    let disk = SimulatedDisk::new(1);
    killed(&disk, 2);
    for (gone, expected) in [
        ("/hub/hub", "/hub/hub is damaged: it is missing, though /hub/p0 is there"),
        ("/hub/p1", "/hub/p1/epoch is damaged: it is missing, and partition 1 of the hub with it"),
        ("/hub/p0/epoch", "/hub/p0/epoch is damaged: it is missing, and partition 0 of the hub with it"),
    ] {
        let disk = disk.copy();
        disk.take_away(Path::new(gone));
        assert_eq!(open(&disk).expect_err("it is refused").to_string(), expected);
    }
}

#[test]
fn a_second_owner_of_another_process_fences_the_first_off() {
    let disk = SimulatedDisk::new(1);
    killed(&disk, 0);
    let (one, other) = (open(&disk).expect("a store"), open(&disk).expect("no lock holds it back"));
    let first = one.acquire(P, "one").expect("taken");
    append(&one, first, 0).expect("written");
    let second = other.acquire(P, "other").expect("taken");
    for refused in [append(&one, first, 3), one.truncate(P, first, Position(0)), one.release(P, first)] {
        assert!(matches!(refused, Err(StoreError::Fenced { ours: 2, theirs: 3, .. })), "{refused:?}");
    }
    assert_eq!(end(&other).expect("read"), 3);
    append(&other, second, 3).expect("written");
    disk.take_away(Path::new("/hub/p0"));
    let error = append(&other, second, 6).expect_err("its folder is gone").to_string();
    assert!(error.contains("/hub/p0/epoch"), "{error}");
}
