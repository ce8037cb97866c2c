//! A partition whose receiver does not respond: its memory and the messages it hands over are bounded.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::Error;
use crate::ids::{InstanceId, Name, PartitionId, Position, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::options::HubOptions;
use crate::partition::testing::{Scripts, id, number};
use crate::partition::{Effect, Input, Partition, Request, RequestKind};
use crate::store::{MemoryStore, Store};

const THERE: PartitionId = PartitionId(1);

/// Orchestrations here, each with a sub-orchestration there.
fn parents() -> impl Iterator<Item = InstanceId> {
    let lives = |id: &InstanceId, home: u16| id.partition(2).0 == home;
    let ids = (0..).map(|n| id(&format!("n{n}")));
    ids.filter(move |parent| lives(parent, 0) && lives(&id(&format!("{parent}-0")), 1))
}

fn partition() -> Partition {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let options = HubOptions::default();
    let mut partition = Partition::new(PartitionId(0), 2, Arc::new(Scripts), Arc::clone(&store), &options);
    partition.recover(&*store).expect("a new partition");
    partition
}

fn start(to: InstanceId) -> Input {
    let name = Name::Static("Nest");
    let kind =
        MessageKind::Start { name, version: None, input: number(1), parent: None, at: None, reuse: Reuse::Never };
    let (reply, _) = oneshot::channel();
    Input::Request(Request { kind: RequestKind::Deliver(Message { to, kind }), reply })
}

/// Takes inputs, makes the log durable and returns what then leaves.
fn take(partition: &mut Partition, inputs: impl IntoIterator<Item = Input>) -> Vec<Effect> {
    partition.turn(&mut inputs.into_iter(), Time(1));
    partition.confirm(Position(u64::MAX));
    partition.effects().drain(..).collect()
}

/// The numbers of the messages that were handed over.
fn handed_over(effects: &[Effect]) -> Vec<u64> {
    let sent = |effect: &Effect| match effect {
        Effect::Send { to: THERE, first, messages } => (*first..).take(messages.len()).collect(),
        _ => Vec::new(),
    };
    effects.iter().flat_map(sent).collect()
}

fn response(effects: Vec<Effect>) -> Result<(), Error> {
    let responses = effects.into_iter().filter_map(|effect| match effect {
        Effect::Respond(_, response) => Some(response.map(drop)),
        _ => None,
    });
    responses.last().expect("a response")
}

fn acknowledged(up_to: u64) -> Input {
    Input::Acknowledged { by: THERE, up_to }
}

#[test]
fn a_receiver_is_handed_no_more_than_the_window_before_it_has_confirmed() {
    let mut partition = partition();
    partition.outbox.window = 3;
    assert_eq!(handed_over(&take(&mut partition, parents().take(10).map(start))), [1, 2, 3]);
    assert!(handed_over(&take(&mut partition, [])).is_empty());
    assert_eq!(handed_over(&take(&mut partition, [acknowledged(2)])), [4, 5]);
    assert_eq!(partition.outbox.open(), 8);
    assert_eq!(handed_over(&take(&mut partition, [acknowledged(5)])), [6, 7, 8]);
}

#[test]
fn messages_that_are_not_confirmed_count_against_new_starts() {
    let mut partition = partition();
    let mut parents = parents();
    take(&mut partition, parents.by_ref().take(10).map(start));
    assert!(partition.outbox.bytes() > 0);
    partition.settings.bytes_max = partition.held_bytes();
    let mut try_start = |partition: &mut Partition| {
        let start = start(parents.next().expect("there are more"));
        response(take(partition, [start]))
    };
    let refused = try_start(&mut partition);
    assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
    take(&mut partition, [acknowledged(10)]);
    assert!(try_start(&mut partition).is_ok(), "there is room again");
}
