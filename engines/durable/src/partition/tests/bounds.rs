//! However much comes in at once, a frame stays below its bound.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::client::Status;
use crate::event::Caller;
use crate::ids::{EntityId, InstanceId, Name, PartitionId, Position, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::options::HubOptions;
use crate::partition::bounds::Bounds;
use crate::partition::testing::{EmptyProgram, Scripts, id, number};
use crate::partition::{Input, Partition, Request, RequestKind};
use crate::payload::Payload;
use crate::store::{Batching, MemoryStore, Store};

const OPERATIONS: usize = 100;

fn bounds() -> Bounds {
    Bounds { frame_bytes: 4_000, step_bytes: 8_000, rest_bytes: 4_000, ..Bounds::new(Batching::Group) }
}

fn partition() -> Partition {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let options = HubOptions::default();
    let mut partition = Partition::new(PartitionId(0), 1, Arc::new(Scripts), Arc::clone(&store), &options);
    partition.settings.bounds = bounds();
    partition.recover(&*store).expect("a new partition");
    partition
}

fn owner(name: &str) -> Caller {
    Caller { instance: id(name), generation: 0, id: 0 }
}

fn entity(number: usize) -> InstanceId {
    id(&format!("@Sum@{number}"))
}

fn tell(to: &InstanceId, kind: MessageKind) -> Input {
    let (reply, _) = oneshot::channel();
    Input::Request(Request { kind: RequestKind::Deliver(Message { to: to.clone(), kind }), reply })
}

fn lock(to: &InstanceId, name: &str) -> Input {
    let entities = vec![EntityId::try_from(to.clone()).expect("an entity")];
    tell(to, MessageKind::Lock { owner: owner(name), entities, next: 0 })
}

/// An operation of about a kilobyte.
fn operation(to: &InstanceId, caller: Option<Caller>) -> Input {
    let input = Payload::encode(&"x".repeat(1_000)).expect("a text");
    tell(to, MessageKind::Operate { operation: Name::Static("add"), input, caller, at: None })
}

/// Takes all inputs, in as many turns as that needs, and gives the longest frame.
fn take(partition: &mut Partition, inputs: impl IntoIterator<Item = Input>) -> usize {
    let (mut inputs, mut longest) = (inputs.into_iter().peekable(), 0);
    for turn in 0.. {
        let bytes = partition.turn(&mut inputs, Time(1)).map_or(0, |sealed| sealed.frame.len());
        partition.confirm(Position(u64::MAX));
        partition.effects().clear();
        longest = longest.max(bytes);
        if bytes == 0 && inputs.peek().is_none() {
            break;
        }
        assert!(turn < 10 * OPERATIONS, "it never comes to rest");
    }
    longest
}

fn state(partition: &Partition, of: &InstanceId) -> Option<Payload> {
    let instance = partition.table.known(partition.table.handle(of).expect("it is there"));
    instance.entity().expect("an entity").state.clone()
}

#[test]
fn operations_of_many_entities_at_once() {
    let mut partition = partition();
    let longest = take(&mut partition, (0..OPERATIONS).map(|number| operation(&entity(number), None)));
    assert!(longest <= bounds().frame_bytes_max(), "{longest}");
    for at in 0..OPERATIONS {
        assert_eq!(state(&partition, &entity(at)), Some(number(0)));
    }
}

#[test]
fn operations_under_locks() {
    let mut partition = partition();
    take(&mut partition, (0..OPERATIONS).map(|number| lock(&entity(number), "owner")));
    let operations = (0..OPERATIONS).map(|number| operation(&entity(number), Some(owner("owner"))));
    let longest = take(&mut partition, operations);
    assert!(longest <= bounds().frame_bytes_max(), "{longest}");
    for at in 0..OPERATIONS {
        assert_eq!(state(&partition, &entity(at)), Some(number(0)));
    }
}

#[test]
fn a_lock_that_is_not_wanted_any_more_with_much_that_waits() {
    let (mut partition, entity) = (partition(), entity(0));
    take(&mut partition, [lock(&entity, "first"), lock(&entity, "second")]);
    take(&mut partition, (0..OPERATIONS).map(|_| operation(&entity, None)));
    let longest = take(&mut partition, [tell(&entity, MessageKind::Unlock { owner: owner("second") })]);
    assert!(longest < 1_000, "{longest}: the queue is written anew");
    let longest = take(&mut partition, [tell(&entity, MessageKind::Unlock { owner: owner("first") })]);
    assert!(longest <= bounds().frame_bytes_max(), "{longest}");
    let handle = partition.table.handle(&entity).expect("it is there");
    let entity = partition.table.known(handle).entity().expect("an entity");
    assert_eq!((&entity.lock, entity.queue.len()), (&None, 0));
    assert_eq!(partition.counts().operations, OPERATIONS as u64);
}

#[test]
fn all_that_was_kept_for_a_parked_orchestration() {
    let (mut partition, waiting) = (partition(), id("waiting"));
    partition.code.program = Arc::new(EmptyProgram);
    let (name, input) = (Name::Static("Wait"), number(OPERATIONS as u64));
    let start = MessageKind::Start { name, version: None, input, parent: None, at: None, reuse: Reuse::Never };
    take(&mut partition, [tell(&waiting, start)]);
    let data = Payload::encode(&"x".repeat(1_000)).expect("a text");
    let go = || MessageKind::Raise { name: Name::Static("go"), data: data.clone() };
    take(&mut partition, (0..OPERATIONS).map(|_| tell(&waiting, go())));
    let handle = partition.table.handle(&waiting).expect("it is there");
    assert!(partition.table.is_parked(handle));

    partition.code.program = Arc::new(Scripts);
    partition.work.retries.push_back(handle);
    let longest = take(&mut partition, []);
    assert!(longest <= bounds().frame_bytes_max(), "{longest}");
    assert_eq!(partition.table.known(handle).status(), Status::Completed);
    assert_eq!(partition.timers.len(), 0);
}

#[test]
fn many_locks_that_are_not_wanted_any_more() {
    const LOCKS: usize = 100_000;
    let (mut partition, entity) = (partition(), entity(0));
    partition.settings.bounds = Bounds::new(Batching::Group);
    let owners: Vec<String> = (0..LOCKS).map(|number| format!("owner{number}")).collect();
    take(&mut partition, owners.iter().map(|name| lock(&entity, name)));
    let unlock = |name: &String| tell(&entity, MessageKind::Unlock { owner: owner(name) });
    take(&mut partition, owners[1..].iter().map(unlock));
    take(&mut partition, [unlock(&owners[0])]);
    // Walking the queue for each of them would take 10¹⁰ steps.
    assert!(partition.table.handle(&entity).is_none(), "nothing is left of it");
}
