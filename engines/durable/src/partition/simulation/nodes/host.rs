//! A process with a node, and the partitions that it runs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::hub::{Fence, Term, Tick};
use crate::ids::{Epoch, PartitionId, Position, Time};
use crate::node::NodeOptions;
use crate::node::record::Identity;
use crate::node::steward::Steward;
use crate::partition::Partition;
use crate::partition::input::{Input, TaskKey};
use crate::partition::simulation::node::{Frame, Node};
use crate::partition::snapshot::FinishedSnapshot;
use crate::program::ActivityCall;
use crate::store::{Owner, StoreError};

/// Short, so that much happens within one.
pub(super) const LEASE: Duration = Duration::from_millis(500);
/// When it all begins, in microseconds.
pub(super) const BEGIN_US: u64 = 1_000_000_000_000_000;

/// A partition that runs on a node, or ran there as far as the node knows.
pub(super) struct Host {
    pub(super) epoch: Epoch,
    /// Of the node's lease, when it was taken.
    pub(super) term: Term,
    pub(super) node: Node,
    /// Result of the append that is under way, once the store has seen it.
    pub(super) written: Option<Result<(), StoreError>>,
    /// Where the log ends, as far as this owner has written it.
    pub(super) end: Position,
    /// Why it does nothing more.
    pub(super) failed: Option<StoreError>,
    /// It takes nothing more in and ends.
    pub(super) is_closing: bool,
}

impl Host {
    pub(super) fn new(id: PartitionId, epoch: Epoch, term: Term, partition: Partition) -> Self {
        let end = partition.position();
        let node = Node::new(id, partition);
        Self { epoch, term, node, written: None, end, failed: None, is_closing: false }
    }

    /// Whether it takes inputs in.
    pub(super) fn is_open(&self) -> bool {
        self.failed.is_none() && !self.is_closing
    }

    /// Whether all that has come in is durable.
    pub(super) fn is_drained(&self) -> bool {
        let nothing_waits = self.node.waiting.is_empty() && self.node.under_way.is_empty() && self.written.is_none();
        self.node.inbox.is_empty() && nothing_waits && self.node.end_seen == self.node.partition.position()
    }
}

/// Where the thread of a node is: a call to the store begins, arrives there, and its result comes back, each at a time of
/// its own.
pub(super) enum Phase {
    Idle,
    Saying { begun: Time },
    Said { begun: Time, said: Vec<(String, Vec<u8>)> },
    Looking,
    Looked(Vec<Owner>),
}

/// A move, each by its own thread.
pub(super) enum MoveState {
    Taking(Owner, Term),
    Taken(PartitionId, Term, Result<Epoch, StoreError>),
    Leaving(PartitionId),
    Releasing(PartitionId, Epoch),
    Released(PartitionId),
}

/// Tasks of the thread for snapshots.
pub(super) enum Chore {
    Keep(String, Vec<u8>),
    Finish(PartitionId, Epoch, Box<FinishedSnapshot>),
}

/// An append that was under way when its owner was lost. It may still arrive.
pub(super) struct Stray {
    pub(super) run: u64,
    pub(super) partition: PartitionId,
    pub(super) epoch: Epoch,
    pub(super) end: Position,
    pub(super) frames: Vec<Frame>,
}

/// An activity that is to run, and for which tenure of which partition.
pub(super) type Task = (PartitionId, Epoch, TaskKey, ActivityCall);

/// A process.
pub(super) struct Process {
    pub(super) run: u64,
    pub(super) identity: Identity,
    /// Its identity, as the store knows it.
    pub(super) name: String,
    /// How fast its monotonic clock is, in thousandths.
    rate: u64,
    /// Its monotonic clock at the beginning, in microseconds.
    offset_us: u64,
    /// By how many microseconds its wall clock is wrong.
    wrong_by_us: i64,
    base: Instant,
    pub(super) steward: Steward,
    pub(super) fence: Fence,
    pub(super) beats: u64,
    pub(super) phase: Phase,
    pub(super) moves: Vec<MoveState>,
    pub(super) hosts: BTreeMap<PartitionId, Host>,
    pub(super) tasks: Vec<Task>,
    pub(super) chores: VecDeque<Chore>,
    pub(super) has_news: bool,
    pub(super) is_paused: bool,
    pub(super) was_paused: bool,
    pub(super) is_leaving: bool,
    /// Whether it has said that it is leaving.
    pub(super) has_announced: bool,
}

/// How the clocks of a node are wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skew {
    pub(super) rate: u64,
    pub(super) offset_us: u64,
    pub(super) wrong_by_us: i64,
}

impl Process {
    pub(super) fn new(run: u64, identity: Identity, partitions: u16, skew: Skew, now: Time) -> Self {
        let options = NodeOptions { name: identity.name.clone(), lease: LEASE, ..NodeOptions::default() };
        let Skew { rate, offset_us, wrong_by_us } = skew;
        let base = Instant::now();
        let since = since(now, rate, offset_us);
        Self {
            run,
            name: identity.key(),
            rate,
            offset_us,
            wrong_by_us,
            base,
            steward: Steward::new(&options, identity.clone(), partitions.into(), base + since),
            identity,
            fence: Fence::new(options.silence()),
            beats: 0,
            phase: Phase::Idle,
            moves: Vec::new(),
            hosts: BTreeMap::new(),
            tasks: Vec::new(),
            chores: VecDeque::new(),
            has_news: false,
            is_paused: false,
            was_paused: false,
            is_leaving: false,
            has_announced: false,
        }
    }

    /// Time of its monotonic clock.
    pub(super) fn since(&self, now: Time) -> Duration {
        since(now, self.rate, self.offset_us)
    }

    pub(super) fn instant(&self, now: Time) -> Instant {
        self.base + self.since(now)
    }

    pub(super) fn tick(&self, now: Time) -> Tick {
        Tick(u64::try_from(self.since(now).as_nanos()).expect("a short time"))
    }

    /// Time of its wall clock.
    pub(super) fn wall(&self, now: Time) -> Time {
        Time(now.0.saturating_add_signed(self.wrong_by_us))
    }

    /// Whether its lease runs, as far as it knows.
    pub(super) fn may_act(&self, now: Time) -> bool {
        self.fence.left_at(self.tick(now)).is_some()
    }

    /// Whether it may act for a partition that it runs.
    pub(super) fn may_act_for(&self, id: PartitionId, now: Time) -> bool {
        self.hosts.get(&id).is_some_and(|host| self.fence.admits(host.term, self.tick(now)))
    }

    /// Gives an input to a partition, if it runs here and takes something in.
    pub(super) fn put(&mut self, to: PartitionId, input: Input) {
        if let Some(host) = self.hosts.get_mut(&to).filter(|host| host.is_open()) {
            host.node.inbox.push_back((None, input));
        }
    }

    /// Makes all its partitions probe a receiver, or look for lost messages.
    pub(super) fn repeat(&mut self, to: Option<PartitionId>) {
        let ids: Vec<PartitionId> = self.hosts.keys().copied().collect();
        for id in ids {
            self.put(id, Input::Repeat { to });
        }
    }
}

fn since(now: Time, rate: u64, offset_us: u64) -> Duration {
    Duration::from_micros((now.0 - BEGIN_US) * rate / 1_000 + offset_us)
}

/// Message from one node to another.
#[derive(Clone)]
pub(super) enum Packet {
    News,
    To(PartitionId, Arc<Letter>),
}

/// An input that goes from one partition to another.
pub(super) enum Letter {
    Messages { from: PartitionId, first: u64, messages: Vec<crate::message::Message> },
    Acknowledged { by: PartitionId, up_to: u64 },
    Probe { from: PartitionId, up_to: u64 },
    Missing { by: PartitionId, first: u64, before: u64 },
}

impl Letter {
    pub(super) fn input(&self) -> Input {
        match self {
            Self::Messages { from, first, messages } => {
                Input::Messages { from: *from, first: *first, messages: messages.clone() }
            }
            Self::Acknowledged { by, up_to } => Input::Acknowledged { by: *by, up_to: *up_to },
            Self::Probe { from, up_to } => Input::Probe { from: *from, up_to: *up_to },
            Self::Missing { by, first, before } => Input::Missing { by: *by, first: *first, before: *before },
        }
    }
}
