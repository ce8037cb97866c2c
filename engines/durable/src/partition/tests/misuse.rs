//! Messages that programs other than [`Registry`](crate::Registry) could send: they are refused, and the partition works
//! on.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::event::Caller;
use crate::ids::{EntityId, InstanceId, Name, PartitionId, Position, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::options::HubOptions;
use crate::partition::testing::{EmptyProgram, Scripts, id, number};
use crate::partition::{Effect, Input, Partition, Request, RequestKind};
use crate::store::{MemoryStore, Store};

fn deliver(partition: &mut Partition, to: InstanceId, kind: MessageKind) -> Result<(), String> {
    let (reply, _) = oneshot::channel();
    let request = Request { kind: RequestKind::Deliver(Message { to, kind }), reply };
    partition.turn(&mut std::iter::once(Input::Request(request)), Time(1));
    partition.confirm(Position(u64::MAX));
    let responses = partition.effects().drain(..).filter_map(|effect| match effect {
        Effect::Respond(_, response) => Some(response.map(drop).map_err(|error| error.to_string())),
        _ => None,
    });
    responses.last().expect("a response")
}

#[test]
fn entities_are_not_started_and_orchestrations_have_no_operations() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let options = HubOptions::default();
    let mut partition = Partition::new(PartitionId(0), 1, Arc::new(Scripts), Arc::clone(&store), &options);
    partition.recover(&*store).expect("a new partition");
    let start = || MessageKind::Start {
        name: Name::Static("Wait"),
        version: None,
        input: number(1),
        parent: None,
        at: None,
        reuse: Reuse::Never,
    };
    let operate = || MessageKind::Operate { operation: Name::Static("add"), input: number(1), caller: None, at: None };
    let refused = deliver(&mut partition, id("@Sum@x"), start());
    assert!(
        refused.as_ref().is_err_and(|error| error.starts_with("\"@Sum@x\" cannot be an identifier")),
        "{refused:?}"
    );
    assert_eq!(deliver(&mut partition, id("w"), operate()), Err("there is no instance w".to_owned()));
    assert_eq!(deliver(&mut partition, id("w"), start()), Ok(()));
    assert_eq!(deliver(&mut partition, id("w"), operate()), Err("there is no instance w".to_owned()));
    assert_eq!(deliver(&mut partition, id("@Sum@x"), operate()), Ok(()));
    assert_eq!(partition.identifiers().count(), 2);
}

#[test]
fn a_lock_for_an_execution_that_is_gone_is_freed_though_its_successor_is_parked() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let options = HubOptions::default();
    let mut partition = Partition::new(PartitionId(0), 1, Arc::new(EmptyProgram), Arc::clone(&store), &options);
    partition.recover(&*store).expect("a new partition");
    let start = || MessageKind::Start {
        name: Name::Static("Wait"),
        version: None,
        input: number(1),
        parent: None,
        at: None,
        reuse: Reuse::Terminate,
    };
    // The second takes the place of the first.
    assert_eq!(deliver(&mut partition, id("w"), start()), Ok(()));
    assert_eq!(deliver(&mut partition, id("w"), start()), Ok(()));
    let entities = vec![EntityId::try_from(id("@Sum@x")).expect("an entity")];
    let owner = |generation| Caller { instance: id("w"), generation, id: 0 };
    let lock = |generation| MessageKind::Lock { owner: owner(generation), entities: entities.clone(), next: 0 };
    assert_eq!(deliver(&mut partition, id("@Sum@x"), lock(0)), Ok(()));
    assert_eq!(partition.table.handle(&id("@Sum@x")), None, "it is free, and nothing is left of it");
    assert_eq!(deliver(&mut partition, id("@Sum@x"), lock(1)), Ok(()));
    assert!(partition.table.handle(&id("@Sum@x")).is_some(), "the word of its lock is kept for the second");
}
