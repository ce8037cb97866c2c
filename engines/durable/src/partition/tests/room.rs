//! Everything that a partition holds for orchestrations under way counts against new requests.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::Error;
use crate::ids::{InstanceId, Name, PartitionId, Position, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::options::HubOptions;
use crate::partition::testing::{EmptyProgram, Scripts, id, number};
use crate::partition::{Effect, Input, Partition, Request, RequestKind, TaskKey};
use crate::payload::Payload;
use crate::program::Program;
use crate::store::{MemoryStore, Store};

const COUNT: usize = 50;

/// A partition that runs one activity at a time.
fn partition(program: impl Program) -> Partition {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let options = HubOptions { activities_running_max: 1, ..HubOptions::default() };
    let mut partition = Partition::new(PartitionId(0), 1, Arc::new(program), Arc::clone(&store), &options);
    partition.recover(&*store).expect("a new partition");
    partition
}

fn tell(to: InstanceId, kind: MessageKind) -> Input {
    let (reply, _) = oneshot::channel();
    Input::Request(Request { kind: RequestKind::Deliver(Message { to, kind }), reply })
}

fn start(to: InstanceId, name: &'static str) -> Input {
    let (name, input) = (Name::Static(name), number(1));
    tell(to, MessageKind::Start { name, version: None, input, parent: None, at: None, reuse: Reuse::Never })
}

fn raise(to: InstanceId) -> Input {
    let data = Payload::encode(&"x".repeat(1_000)).expect("a text");
    tell(to, MessageKind::Raise { name: Name::Static("go"), data })
}

/// Takes inputs, makes the log durable and returns what then leaves.
fn take(partition: &mut Partition, inputs: impl IntoIterator<Item = Input>) -> Vec<Effect> {
    partition.turn(&mut inputs.into_iter(), Time(1));
    partition.confirm(Position(u64::MAX));
    partition.effects().drain(..).collect()
}

/// The response to the only request among the effects.
fn response(effects: Vec<Effect>) -> Result<(), Error> {
    let responses = effects.into_iter().filter_map(|effect| match effect {
        Effect::Respond(_, response) => Some(response.map(drop)),
        _ => None,
    });
    responses.last().expect("a response")
}

/// Leaves room for what instances and the outbox hold, and a byte.
fn leave_room_for_instances(partition: &mut Partition) {
    partition.settings.bytes_max = partition.table.bytes + partition.outbox.bytes() + 1;
}

fn running(effects: &[Effect]) -> Option<TaskKey> {
    effects.iter().find_map(|effect| if let Effect::Run(key, _) = effect { Some(*key) } else { None })
}

#[test]
fn activities_that_wait_count_against_new_starts() {
    let mut partition = partition(Scripts);
    let mut effects = take(&mut partition, (0..COUNT).map(|n| start(id(&format!("n{n}")), "Cities")));
    leave_room_for_instances(&mut partition);
    let refused = response(take(&mut partition, [start(id("more"), "Cities")]));
    assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
    for _ in 0..COUNT {
        let task = running(&effects).expect("one activity runs");
        effects = take(&mut partition, [Input::TaskDone { task, result: Ok(number(1)) }]);
    }
    leave_room_for_instances(&mut partition);
    assert!(response(take(&mut partition, [start(id("more"), "Cities")])).is_ok(), "there is room again");
}

#[test]
fn messages_kept_for_parked_orchestrations_count_against_new_events() {
    let mut partition = partition(EmptyProgram);
    let waiting = id("waiting");
    take(&mut partition, [start(waiting.clone(), "Wait")]);
    leave_room_for_instances(&mut partition);
    partition.settings.bytes_max += 2_000 * COUNT as u64;
    let taken =
        (0..10 * COUNT).take_while(|_| response(take(&mut partition, [raise(waiting.clone())])).is_ok()).count();
    assert!((COUNT..2 * COUNT).contains(&taken), "{taken}");
    let refused = response(take(&mut partition, [raise(waiting.clone())]));
    assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
    let reason = "room is needed".to_owned();
    assert!(response(take(&mut partition, [tell(waiting, MessageKind::Terminate { reason })])).is_ok());
    assert!(response(take(&mut partition, [start(id("other"), "Wait")])).is_ok(), "there is room again");
}

#[test]
fn starts_that_wait_for_their_moment_count_against_new_ones() {
    let mut partition = partition(Scripts);
    let later = |n: usize| {
        let (name, input) = (Name::Static("Wait"), Payload::encode(&"x".repeat(1_000)).expect("a text"));
        let at = Some(Time(1_000_000));
        let kind = MessageKind::Start { name, version: None, input, parent: None, at, reuse: Reuse::Never };
        tell(id(&format!("n{n}")), kind)
    };
    take(&mut partition, (0..COUNT).map(later));
    leave_room_for_instances(&mut partition);
    let refused = response(take(&mut partition, [later(COUNT)]));
    assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
}
