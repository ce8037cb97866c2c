//! Repairs of a hub in a shared store, here one in memory.

use std::sync::Arc;

use super::{OURS, PARTITIONS, code, work};
use crate::error::Error;
use crate::hub::Hub;
use crate::ids::Position;
use crate::offline::repair::HubRepair;
use crate::offline::repair::place::{Place, SharedPlace};
use crate::options::HubOptions;
use crate::store::{MemoryStore, SharedStore as _, Store as _, StoreError};

fn open(store: &Arc<MemoryStore>) -> Result<Hub, Error> {
    let options = HubOptions { partitions: PARTITIONS, activity_threads: 1, ..HubOptions::default() };
    Hub::open(Arc::clone(store) as _, code(), options)
}

fn repair(store: &Arc<MemoryStore>) -> HubRepair {
    HubRepair::open_shared(Arc::clone(store) as _).expect("looked")
}

/// A hub whose partition has lost the second half of its log, and the original length of the log.
fn cut() -> (Arc<MemoryStore>, u64) {
    let store = Arc::new(MemoryStore::new());
    let hub = open(&store).expect("a hub");
    work(&hub, "a");
    hub.close().expect("closed");
    let end = store.read(OURS, Position(0), &mut |_, _| Ok(())).expect("read").0;
    store.tear(OURS, Position(end / 2));
    (store, end)
}

#[test]
fn a_log_that_lost_its_end_goes_on_behind_the_messages_that_others_have_seen() {
    let (store, end) = cut();
    let error = open(&store).err().expect("it is damaged").to_string();
    assert!(error.contains("is damaged"), "{error}");
    let looked = repair(&store);
    let [damage] = &looked.findings().damages[..] else { panic!("{:?}", looked.findings()) };
    assert_eq!((damage.partition, damage.frames.start), (OURS, end / 2));
    assert!(damage.messages_taken + damage.messages_sent > 0, "{damage:?}");
    assert_eq!(looked.accept().expect("repaired").as_deref(), Some("blobs damaged-1/"));
    let copied = store.list_blobs(&format!("damaged-1/p{OURS}/log/")).expect("listed");
    assert_eq!(copied.len() as u64, end / 2);
    assert!(repair(&store).findings().is_sound(), "it is still damaged");
    let hub = open(&store).expect("it is repaired");
    work(&hub, "b");
    hub.close().expect("closed");
}

#[test]
fn a_repair_that_was_cut_short_is_repeated() {
    let (store, end) = cut();
    let place = SharedPlace::open(Arc::clone(&store) as _).expect("looked");
    let mut part = crate::offline::repair::Part::read(&place, OURS, PARTITIONS).expect("read");
    part.partition.rebase(Position(end + 1));
    place.put_snapshot(OURS, &part.partition.snapshot_at_once()).expect("written");
    drop(place);
    let error = open(&store).err().expect("its log ends before its snapshot").to_string();
    assert!(error.contains("its snapshot was taken before"), "{error}");
    repair(&store).accept().expect("repaired");
    open(&store).expect("it is repaired").close().expect("closed");
}

#[test]
fn a_log_is_begun_anew_only_by_its_owner() {
    let (store, end) = cut();
    let (first, second) = (store.acquire(OURS, "a").expect("taken"), store.acquire(OURS, "b").expect("taken"));
    let refused = store.restart(OURS, first, Position(end));
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
    store.restart(OURS, second, Position(end)).expect("begun");
    assert_eq!(store.read(OURS, Position(end), &mut |_, _| Ok(())).expect("read"), Position(end));
}
