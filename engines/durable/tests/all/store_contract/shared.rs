//! Further contract of stores that several nodes open.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use narrows_durable::store::{FrameBatch, HubShape, Owner, SharedStore, StoreError};
use narrows_durable::{Epoch, PartitionId, Position};

use super::stage::Stage;
use super::{P, SHAPE, assert_frames, batch, read};
use crate::servers::WAIT;

const Q: PartitionId = PartitionId(1);

fn owner(partition: PartitionId, epoch: u64, node: Option<&str>) -> Owner {
    Owner { partition, epoch: Epoch(epoch), node: node.map(str::to_owned) }
}

#[test]
fn taking_a_partition_fences_off_its_owner_in_another_process() {
    let stage = Stage::start();
    for subject in stage.shared() {
        let (one, two) = (subject.open_shared(), subject.open_shared());
        assert_eq!(one.owners().unwrap(), [owner(P, 0, None), owner(Q, 0, None)]);
        let first = one.take(P, Epoch(0), "one").unwrap();
        one.append(P, first, Position(0), &batch(0..3, 1)).unwrap();
        assert_eq!(two.owners().unwrap(), [owner(P, 1, Some("one")), owner(Q, 0, None)]);

        let stale = two.take(P, Epoch(0), "two");
        assert!(matches!(stale, Err(StoreError::Fenced { ours: 0, theirs: 1, .. })), "{stale:?}");
        let second = two.take(P, first, "two").unwrap();
        for refused in [
            one.append(P, first, Position(3), &batch(3..4, 1)),
            one.truncate(P, first, Position(2)),
            one.release(P, first),
        ] {
            assert!(matches!(refused, Err(StoreError::Fenced { theirs: 2, .. })), "{:?}: {refused:?}", subject.kind);
        }
        assert_frames(&*two, 0, 3, 1, subject.kind);
        two.append(P, second, Position(3), &batch(3..5, 1)).unwrap();
        assert_frames(&*one, 0, 5, 1, subject.kind);
        // The former owner reads the new end of the log and appends there.
        let late = one.append(P, first, Position(5), &batch(5..6, 1));
        assert!(matches!(late, Err(StoreError::Fenced { theirs: 2, .. })), "{:?}: {late:?}", subject.kind);
        two.release(P, second).unwrap();
        assert_eq!(one.owners().unwrap()[0], owner(P, 2, None));
        assert_eq!(one.take(P, second, "one").unwrap(), Epoch(3));
    }
}

/// Each epoch has one owner, however many try, and whatever they write at once, every position holds one frame.
#[test]
fn of_those_that_race_for_a_partition_one_wins_each_time() {
    const NODES: usize = 4;
    const EPOCHS: u64 = 12;
    let stage = Stage::start();
    for subject in stage.shared() {
        let race = |node: usize, store: Arc<dyn SharedStore>| {
            let mut won = Vec::new();
            loop {
                let seen = store.owners().unwrap()[0].epoch;
                if seen.0 >= EPOCHS {
                    return won;
                }
                let Ok(epoch) = store.take(P, seen, &format!("node-{node}")) else { continue };
                won.push(epoch.0);
                let end = store.read(P, Position(0), &mut |_, _| Ok(())).unwrap();
                for at in end.0..end.0 + 3 {
                    match store.append(P, epoch, Position(at), &batch(at..at + 1, 1)) {
                        Ok(()) => {}
                        Err(StoreError::Fenced { .. }) => break,
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        };
        let stores: Vec<_> = (0..NODES).map(|_| subject.open_shared()).collect();
        let mut won: Vec<u64> = std::thread::scope(|scope| {
            let nodes = stores.iter().cloned().enumerate();
            let threads: Vec<_> = nodes.map(|(node, store)| scope.spawn(move || race(node, store))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        won.sort_unstable();
        assert_eq!(won, (1..=EPOCHS).collect::<Vec<_>>(), "{:?}", subject.kind);
        let end = read(&*stores[0], 0).unwrap().len() as u64;
        assert_frames(&*stores[0], 0, end, 1, subject.kind);
    }
}

#[test]
fn a_partition_that_a_live_process_holds_is_in_use_and_free_once_it_has_ended() {
    let stage = Stage::start();
    for subject in stage.shared() {
        let (one, two) = (subject.open_shared(), subject.open_shared());
        let first = one.acquire(P, "process 17").unwrap();
        let refused = two.acquire(P, "process 18").unwrap_err();
        assert!(matches!(&refused, StoreError::InUse { by, .. } if by == "process 17"), "{refused}");
        one.append(P, first, Position(0), &batch(0..1, 1)).unwrap();
        drop(one);
        assert!(two.acquire(P, "process 18").unwrap() > first, "{:?}", subject.kind);
    }
}

#[test]
fn what_nodes_say_is_heard_until_they_are_forgotten() {
    let stage = Stage::start();
    for subject in stage.shared() {
        let (one, two) = (subject.open_shared(), subject.open_shared());
        let said = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
        assert_eq!(one.say("one", b"first").unwrap(), [said("one", b"first")]);
        assert_eq!(two.say("a-two.x", b"").unwrap(), [said("a-two.x", b""), said("one", b"first")]);
        let long = vec![0xa5; 64 << 10];
        assert_eq!(one.say("one", &long).unwrap(), [said("a-two.x", b""), said("one", &long)]);
        two.forget("one").unwrap();
        two.forget("one").unwrap();
        assert_eq!(two.say("a-two.x", b"2").unwrap(), [said("a-two.x", b"2")]);
        assert_eq!(one.said().unwrap(), [said("a-two.x", b"2")], "who only reads is no member");
        assert_eq!(one.say("one", b"back").unwrap().len(), 2, "who was forgotten is back when it says something");
        for bad in ["", "a/b", "A", "..", &"x".repeat(201)] {
            assert!(matches!(one.say(bad, b""), Err(StoreError::BadName { .. })), "{bad}");
            assert!(matches!(one.forget(bad), Err(StoreError::BadName { .. })), "{bad}");
            assert!(matches!(one.take(P, Epoch(0), bad), Err(StoreError::BadName { .. })), "{bad}");
        }
        let refused = one.say("one", &vec![0; (64 << 10) + 1]).unwrap_err();
        assert!(refused.to_string().contains("expected at most 65536"), "{refused}");
        assert_eq!(subject.open_shared().say("three", b"").unwrap().len(), 3, "it is kept by the store");
    }
}

#[test]
fn the_bus_delivers_in_order_also_large_messages() {
    let stage = Stage::start();
    for subject in stage.shared() {
        let (one, two) = (subject.open_shared(), subject.open_shared());
        let (arrived, messages) = sync_channel(2000);
        let from = one.bus().open("one", Arc::new(|_| ())).unwrap();
        let to = two.bus().open("two", Arc::new(move |message| drop(arrived.try_send(message)))).unwrap();
        assert!((1..=200).contains(&to.address().len()) && to.address().is_ascii());
        // The first ones may be lost while lines are new.
        let begun = std::time::Instant::now();
        loop {
            let _ = from.send(to.address(), Bytes::from_static(b"there?"));
            if messages.recv_timeout(std::time::Duration::from_millis(50)).is_ok() {
                break;
            }
            assert!(begun.elapsed() < WAIT, "{:?}: no message arrived", subject.kind);
        }
        for number in 0..1000_u32 {
            from.send(to.address(), Bytes::copy_from_slice(&number.to_le_bytes())).unwrap();
        }
        let large: Bytes = (0..20 << 20).map(|at: u32| at.to_le_bytes()[1]).collect::<Vec<_>>().into();
        from.send(to.address(), large.clone()).unwrap();
        from.send(to.address(), Bytes::from_static(b"end")).unwrap();
        let next = || loop {
            let message = messages.recv_timeout(WAIT).unwrap();
            if message != "there?" {
                return message;
            }
        };
        for number in 0..1000_u32 {
            assert_eq!(next()[..], number.to_le_bytes(), "{:?}", subject.kind);
        }
        assert!(next() == large, "{:?}", subject.kind);
        assert_eq!(next(), "end");
        let refused = from.send(to.address(), Bytes::from(vec![0; (64 << 20) + 1])).unwrap_err();
        assert!(refused.to_string().contains("expected at most"), "{refused}");
    }
}

#[test]
fn frames_of_every_size_come_back_and_bad_ones_are_refused() {
    let stage = Stage::start();
    for subject in stage.shared() {
        let store = subject.open_shared();
        let epoch = store.take(P, Epoch(0), "one").unwrap();
        let lengths = [1, 700_000, 33, 5 << 20, 1, 32 << 20];
        let mut large = FrameBatch::default();
        lengths.iter().zip(1..).for_each(|(length, byte)| large.push(&vec![byte; *length]));
        // Frames of one byte, in which no rows for people can be found, are no business of the store.
        store.append(P, epoch, Position(0), &large).unwrap();
        let frames = read(&*store, 0).unwrap();
        assert_eq!(frames.iter().map(|(_, frame)| frame.len()).collect::<Vec<_>>(), lengths);
        assert!(frames.iter().zip(1..).all(|((_, frame), byte)| frame.iter().all(|found| *found == byte)));
        assert_eq!(read(&*store, 4).unwrap().len(), 2, "{:?}", subject.kind);
        for length in [0, (32 << 20) + 1] {
            let mut bad = FrameBatch::default();
            bad.push(&vec![0; length]);
            assert!(matches!(store.append(P, epoch, Position(6), &bad), Err(StoreError::Io { .. })), "{length}");
        }
        store.append(P, epoch, Position(6), &FrameBatch::default()).unwrap();
        assert_eq!(read(&*store, 6).unwrap(), []);
    }
}

#[test]
fn nodes_that_create_a_hub_at_once_agree_and_another_number_of_partitions_is_not_taken() {
    let stage = Stage::start();
    for subject in stage.shared() {
        let created: Vec<HubShape> = std::thread::scope(|scope| {
            let create = |partitions| {
                let store = subject.try_open().unwrap();
                scope.spawn(move || store.open_or_create(HubShape { partitions, ..SHAPE }).unwrap())
            };
            let threads: Vec<_> = (3..7).map(create).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(created.iter().all(|shape| *shape == created[0]), "{:?}: {created:?}", subject.kind);
        assert_eq!(subject.open_shared().owners().unwrap().len(), usize::from(created[0].partitions));
        let none = subject.open_shared().take(PartitionId(63), Epoch(0), "one").unwrap_err();
        assert!(none.to_string().contains("no partition of this number"), "{none}");
    }
}
