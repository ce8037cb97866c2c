//! A hub whose store fails: every write in turn, in every way. What was acknowledged before is there afterwards, once.

use std::sync::Arc;

use super::{TIMEOUT, block, open, options, start};
use crate::client::{Client, Start, Status};
use crate::error::Error;
use crate::hub::Hub;
use crate::ids::{EntityId, Name};
use crate::options::HubOptions;
use crate::partition::testing::{Scripts, id, number};
use crate::payload::Payload;
use crate::store::{Fault, FaultyStore, MemoryStore, Store};

/// Responses that clients got.
#[derive(Default, Debug)]
struct ClientResponses {
    started: Vec<String>,
    raised: u64,
    signalled: u64,
    /// Signals that may or may not have been taken.
    unknown: u64,
}

fn small() -> HubOptions {
    HubOptions { partitions: 2, activity_threads: 1, snapshot_after_bytes: 64 << 10, ..options() }
}

async fn work(client: &Client, told: &mut ClientResponses) {
    let sum = EntityId::new("Sum", "all").expect("an entity");
    for n in 0..2 {
        for name in ["Cities", "Nest", "Again"] {
            let instance = format!("{name}{n}");
            if start(client, name, &instance, 2).await.is_ok() {
                told.started.push(instance);
            }
        }
        // Large enough that snapshots are taken on the way, small enough to stay in the log.
        for size in 1..=3 {
            let instance = format!("Large{n}-{size}");
            let input = Payload::encode(&"x".repeat(40_000 * size / 3 + 20_000)).expect("a text");
            let start = Start::new(Name::Static("Wait")).input(input).id(&instance).expect("an identifier");
            if client.start(start).await.is_ok() {
                told.started.push(instance);
            }
        }
        match client.signal(&sum, "add", number(1)).await {
            Ok(()) => told.signalled += 1,
            Err(_) => told.unknown += 1,
        }
        if client.raise(&id("waits"), "go", Payload::EMPTY).await.is_ok() {
            told.raised += 1;
        }
    }
}

async fn check(client: &Client, told: &ClientResponses) {
    for instance in &told.started {
        let view = client.wait(&id(instance), TIMEOUT).await.expect("acknowledged and lost");
        assert_eq!(view.status, Status::Completed, "{instance}: {:?}", view.output);
    }
    let sum = EntityId::new("Sum", "all").expect("an entity");
    let state = client.entity_state(&sum).await.expect("asked").map_or(0, |state| state.decode().expect("a number"));
    let (least, most) = (told.signalled, told.signalled + told.unknown);
    assert!((least..=most).contains(&state), "{state} signals took effect, {least} to {most} were acknowledged");
    let history = client.history(&id("waits")).await.expect("asked").expect("a history");
    assert!(history.len() as u64 > told.raised, "an event was lost");
}

/// One life that ends with the failing write, and the next one on what the disk then holds. Says how many writes and
/// snapshots the first had.
fn live_through(at: u64, fault: Fault) -> (u64, u64) {
    let disk = Arc::new(MemoryStore::new());
    let hub = open(&disk, small());
    block(start(&hub.client(), "Wait", "waits", 100)).expect("started");
    hub.close().expect("closed");
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&disk), at, fault));
    let mut told = ClientResponses::default();
    let mut snapshots = 0;
    if let Ok(hub) = Hub::open(Arc::clone(&faulty) as Arc<dyn Store>, Scripts, small()) {
        block(work(&hub.client(), &mut told));
        hub.halt();
        snapshots = hub.stats().partitions.iter().map(|partition| partition.snapshots).sum();
    }
    disk.crash();
    let hub = open(&disk, small());
    block(check(&hub.client(), &told));
    hub.close().expect("closed");
    (faulty.writes(), snapshots)
}

#[test]
fn each_write_may_fail_in_every_way_and_nothing_acknowledged_is_lost_or_doubled() {
    let (all, snapshots) = live_through(u64::MAX, Fault::Nothing);
    assert!(all > 20 && snapshots > 0, "{all} writes and {snapshots} snapshots were there to fail");
    for fault in Fault::ALL {
        for at in 0..all {
            live_through(at, fault);
        }
    }
}

#[test]
fn a_partition_whose_log_failed_says_so_to_all_who_ask() {
    let disk = Arc::new(MemoryStore::new());
    let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(Arc::clone(&disk), 3, Fault::Nothing));
    let hub = Hub::open(faulty, Scripts, HubOptions { partitions: 1, ..options() }).expect("a hub");
    let client = hub.client();
    block(async {
        let mut failed = None;
        for n in 0..20 {
            if let Err(error) = start(&client, "Wait", &format!("w{n}"), 1).await {
                failed = Some(error);
                break;
            }
        }
        assert!(matches!(failed, Some(Error::Stopped { .. })), "{failed:?}");
        let asked = client.get(&id("w0")).await;
        assert!(matches!(asked, Err(Error::Stopped { .. })), "{asked:?}");
    });
}
