//! Two partitions between which packets are lost: the messages sent again, and how often partitions look for lost ones.

use std::collections::VecDeque;
use std::sync::Arc;

use narrows_testing::Chance;
use tokio::sync::oneshot;

use crate::ids::{Epoch, Name, PartitionId, Position, Time};
use crate::message::{Message, MessageKind, Reuse};
use crate::options::HubOptions;
use crate::partition::testing::{Scripts, id, number};
use crate::partition::{Effect, Input, Partition, Request, RequestKind};
use crate::store::{FrameBatch, MemoryStore, Store};

const IDS: [PartitionId; 2] = [PartitionId(0), PartitionId(1)];
/// Sub-orchestrations, about half of which are on the other partition.
const SUBS: u64 = 8_000;
/// Rounds after which a message that has not arrived never will.
const ROUNDS_MAX: usize = 5_000;

/// How messages go from one partition to the other.
#[derive(Clone, Copy, PartialEq)]
enum Packets {
    Lots,
    /// One by one, as over a store that commits each step separately.
    Single,
}

/// Two partitions on different nodes.
struct Pair {
    store: Arc<MemoryStore>,
    epochs: Vec<Epoch>,
    partitions: Vec<Partition>,
    ways: [VecDeque<Input>; 2],
    packets: Packets,
    chance: Chance,
    /// One packet in so many is lost; 0 means none.
    loses_one_in: usize,
    /// Messages that were sent, also again.
    sent: u64,
}

impl Pair {
    fn new(packets: Packets, loses_one_in: usize) -> Self {
        let store = Arc::new(MemoryStore::new());
        let epochs = IDS.iter().map(|id| store.acquire(*id, "it").expect("taken")).collect();
        let partitions = IDS.iter().map(|id| open(*id, &store)).collect();
        let (ways, chance) = (Default::default(), Chance::new(7));
        let mut pair = Self { store, epochs, partitions, ways, packets, chance, loses_one_in, sent: 0 };
        let parent = (0..).map(|n| id(&format!("fan{n}"))).find(|id| id.partition(2) == IDS[0]).expect("there is one");
        let (name, input) = (Name::Static("Fan"), number(SUBS));
        let kind = MessageKind::Start { name, version: None, input, parent: None, at: None, reuse: Reuse::Never };
        let kind = RequestKind::Deliver(Message { to: parent, kind });
        pair.turns(0, vec![Input::Request(Request { kind, reply: oneshot::channel().0 })]);
        pair
    }

    /// Takes inputs, makes the log durable and carries out what then leaves.
    fn turns(&mut self, at: usize, inputs: Vec<Input>) {
        let mut inputs = inputs.into_iter().peekable();
        loop {
            if let Some(sealed) = self.partitions[at].turn(&mut inputs, Time(1)) {
                let mut batch = FrameBatch::default();
                batch.push(sealed.frame);
                self.store.append(IDS[at], self.epochs[at], sealed.position, &batch).expect("appended");
            }
            let partition = &mut self.partitions[at];
            partition.confirm(Position(u64::MAX));
            let is_over = inputs.peek().is_none() && !partition.is_busy();
            let effects: Vec<Effect> = partition.effects().drain(..).collect();
            effects.into_iter().for_each(|effect| self.carry_out(IDS[at], effect));
            if is_over {
                return;
            }
        }
    }

    fn carry_out(&mut self, from: PartitionId, effect: Effect) {
        match effect {
            Effect::Send { to, first, messages } => {
                self.sent += messages.len() as u64;
                match self.packets {
                    Packets::Lots => self.send(to, Input::Messages { from, first, messages }),
                    Packets::Single => (first..).zip(messages).for_each(|(first, message)| {
                        self.send(to, Input::Messages { from, first, messages: vec![message] });
                    }),
                }
            }
            Effect::Acknowledge { to, up_to } => self.send(to, Input::Acknowledged { by: from, up_to }),
            Effect::Probe { to, up_to } => self.send(to, Input::Probe { from, up_to }),
            Effect::Missing { to, first, before } => self.send(to, Input::Missing { by: from, first, before }),
            _ => {}
        }
    }

    fn send(&mut self, to: PartitionId, input: Input) {
        if self.loses_one_in == 0 || !self.chance.one_in(self.loses_one_in) {
            self.ways[usize::from(to.0)].push_back(input);
        }
    }

    /// Delivers until nothing is on its way.
    fn deliver(&mut self) {
        while self.ways.iter().any(|way| !way.is_empty()) {
            for at in 0..2 {
                let inputs = std::mem::take(&mut self.ways[at]);
                self.turns(at, inputs.into());
            }
        }
    }

    fn open_messages(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.counts().outbox).sum()
    }

    fn look_for_losses(&mut self) {
        (0..2).for_each(|at| self.turns(at, vec![Input::Repeat { to: None }]));
    }

    /// How often the partitions have to look for lost messages until all have arrived.
    fn rounds(&mut self) -> usize {
        for round in 0..ROUNDS_MAX {
            self.deliver();
            if self.open_messages() == 0 {
                return round;
            }
            self.look_for_losses();
        }
        panic!("{} messages never arrive", self.open_messages());
    }
}

fn open(id: PartitionId, store: &Arc<MemoryStore>) -> Partition {
    let store: Arc<dyn Store> = Arc::clone(store) as _;
    let mut partition = Partition::new(id, 2, Arc::new(Scripts), Arc::clone(&store), &HubOptions::default());
    partition.recover(&*store).expect("recovered");
    partition
}

/// How many messages there are in all.
fn needed() -> u64 {
    let mut pair = Pair::new(Packets::Lots, 0);
    assert_eq!(pair.rounds(), 0, "nothing is lost");
    pair.sent
}

#[test]
fn only_what_was_lost_is_sent_again() {
    let needed = needed();
    for (packets, loses_one_in, rounds_max) in [
        (Packets::Lots, 30, 6),
        (Packets::Lots, 10, 8),
        (Packets::Lots, 3, 30),
        (Packets::Single, 100, 6),
        (Packets::Single, 30, 6),
        (Packets::Single, 10, 20),
    ] {
        let mut pair = Pair::new(packets, loses_one_in);
        let rounds = pair.rounds();
        let (sent, loses) = (pair.sent, loses_one_in as u64);
        // Each attempt loses the same share; a lot that was sent again and lost again is found only by the next look.
        let most = needed * loses / (loses - 1) * 5 / 4;
        assert!(sent <= most, "1 in {loses} is lost: {needed} messages, {sent} were sent, expected at most {most}");
        assert!(rounds <= rounds_max, "1 in {loses} is lost: {rounds} rounds");
    }
}

#[test]
fn a_receiver_that_is_slow_is_not_sent_everything_again() {
    let mut pair = Pair::new(Packets::Lots, 0);
    let sent = pair.sent;
    for _ in 0..20 {
        pair.look_for_losses();
    }
    assert!(pair.sent - sent <= 20 * 16, "{} were sent again", pair.sent - sent);
    assert_eq!(pair.rounds(), 0);
    assert!(pair.sent <= needed() + 20 * 16, "what came more than once was noticed");
}

#[test]
fn a_new_owner_is_sent_what_the_old_one_had_not_taken() {
    let mut pair = Pair::new(Packets::Lots, 0);
    let (taken, lost) = (5, pair.ways[1].len() - 5);
    assert!(lost > 5, "there is something to lose");
    let first: Vec<Input> = pair.ways[1].drain(..).take(taken).collect();
    pair.turns(1, first);
    // The last messages of the old owner are lost too.
    pair.ways[0].clear();
    pair.partitions[1] = open(IDS[1], &pair.store);
    pair.partitions[1].effects().clear();
    pair.turns(0, vec![Input::Repeat { to: Some(IDS[1]) }]);
    assert_eq!(pair.rounds(), 0);
    let (sent, needed) = (pair.sent, needed());
    let most = needed + lost as u64 * 256 + 16 + needed / 2;
    assert!(sent <= most, "{sent} were sent, {needed} are needed");
}
