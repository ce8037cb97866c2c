//! A process with a store is killed at random moments under load, again and again. Each time its folder is opened again, and
//! every write that was acknowledged must be there. Another process meets a disk that is full.
//!
//! Proved after each kill: every acknowledged write is there, nothing is there that was not written, the documents of a
//! transaction are of the same one, and lists and change feeds have each document once, whatever was split meanwhile.
//!
//! `NARROWS_TORTURE_ROUNDS` and `NARROWS_TORTURE_SEED` set how many rounds there are and which moments are drawn. The
//! moments are drawn from the seed; what the kernel does around them is not.

#![allow(clippy::print_stderr, reason = "what was done is to be known when it fails")]

mod client;
mod slot;
mod worker;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use narrows_testing::{Chance, torture};

use self::client::Client;
use self::slot::Slot;
use self::worker::{Disk, Worker};

const ROUNDS: u64 = 6;
const CLIENTS: u64 = 8;
const SLOTS_OF_CLIENT: usize = 12;
const KILL_AFTER_MS_MAX: usize = 300;

#[test]
fn what_was_acknowledged_survives_kills() {
    if worker::is_wanted() {
        return worker::work();
    }
    let (rounds, mut chance) = torture(ROUNDS);
    let folder = tempfile::tempdir().unwrap();
    let mut slots = new_slots();
    for round in 0..rounds {
        let mut worker = Worker::spawn(folder.path(), round, Disk::Free);
        check(&worker, &mut slots);
        let after = Duration::from_millis(chance.below(KILL_AFTER_MS_MAX) as u64);
        let acknowledged = load(worker.address(), &mut slots, chance.bits(), || {
            std::thread::sleep(after);
            worker.kill();
        });
        eprintln!("round {round}: {acknowledged} acknowledged");
    }
    finish(folder.path(), slots);
}

#[test]
fn a_full_disk_refuses_writes_and_keeps_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    Worker::spawn(folder.path(), 0, Disk::Free).kill();
    let mut slots = new_slots();
    let mut worker = Worker::spawn(folder.path(), 0, Disk::Small);
    // Clients end at the first write that is refused.
    let acknowledged = load(worker.address(), &mut slots, 1, || ());
    assert!(acknowledged > 20, "{acknowledged} were acknowledged before the disk was full");
    let mut client = Client::connect(worker.address()).unwrap();
    for slot in slots.iter().flatten() {
        let (status, body) = slot.write(&mut client, slot.next(), 0).unwrap();
        assert_eq!(status, 503, "{body}");
        assert!(body.contains("takes no more writes until it is started again"), "{body}");
    }
    worker.kill();
    finish(folder.path(), slots);
}

/// The slots of each client.
fn new_slots() -> Vec<Vec<Slot>> {
    let of_client = |client| (0..SLOTS_OF_CLIENT as u64).map(|number| Slot::new(client, number)).collect();
    (0..CLIENTS).map(of_client).collect()
}

/// Opens the folder a last time, on a good disk.
fn finish(folder: &Path, mut slots: Vec<Vec<Slot>>) {
    let mut worker = Worker::spawn(folder, 0, Disk::Free);
    check(&worker, &mut slots);
    worker.kill();
}

/// Clients write, each to its own slots, until they cannot; returns the number of acknowledged writes.
fn load(address: SocketAddr, slots: &mut [Vec<Slot>], seed: u64, meanwhile: impl FnOnce()) -> u64 {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..)
            .zip(slots)
            .map(|(number, slots)| scope.spawn(move || write(address, slots, Chance::new(seed ^ number))))
            .collect();
        meanwhile();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    })
}

fn write(address: SocketAddr, slots: &mut [Slot], mut chance: Chance) -> u64 {
    let Some(mut client) = Client::connect(address) else { return 0 };
    let mut acknowledged = 0;
    loop {
        let slot = &mut slots[chance.below(SLOTS_OF_CLIENT)];
        let next = slot.next();
        slot.attempted = next;
        match slot.write(&mut client, next, chance.below(2_000) as u64) {
            Some((200..=204, _)) => {
                slot.acknowledged = next;
                acknowledged += 1;
            }
            Some((429, _)) => slot.attempted = slot.acknowledged,
            Some((503, _)) | None => return acknowledged,
            Some((status, body)) => panic!("{status} {body}"),
        }
    }
}

/// Compares every slot with the documents found, and the list of documents with the slots.
fn check(worker: &Worker, slots: &mut [Vec<Slot>]) {
    let mut client = Client::connect(worker.address()).unwrap();
    let mut expected = Vec::new();
    for slot in slots.iter_mut().flatten() {
        slot.settle(&mut client);
        expected.extend(slot.present());
    }
    expected.sort_unstable();
    assert_eq!(client.list("docs", None), expected, "the documents in lists");
    assert_eq!(client.list("docs", Some("Incremental Feed")), expected, "the documents in change feeds");
}
