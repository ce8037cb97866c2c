//! One partition as the hub runs it, without threads: an inbox, the state machine, a writer for its log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use narrows_testing::Chance;

use crate::hub::clock::Clock;
use crate::ids::{PartitionId, Position};
use crate::options::{HubOptions, Mode};
use crate::partition::Partition;
use crate::partition::bounds::Bounds;
use crate::partition::input::Input;
use crate::payload::Payload;
use crate::program::Program;
use crate::store::{Batching, Store};

/// Settings that differ from schedule to schedule.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) partitions: u16,
    /// Whether partitions run on several nodes.
    pub(super) is_shared: bool,
    pub(super) batching: Batching,
    pub(super) options: HubOptions,
    /// Bytes of large payloads, which are kept beside the log; 0 if there are none.
    pub(super) large_bytes: usize,
    pub(super) local_messages: usize,
    pub(super) frame_bytes: usize,
    /// Bytes that one step may add; `None` keeps the engine's bound, far above the scripts' needs.
    pub(super) step_bytes: Option<usize>,
    pub(super) lot: usize,
    pub(super) window: u64,
    pub(super) early_bytes: usize,
    pub(super) part_bytes: usize,
    /// Steps before it is left to come to rest.
    pub(super) steps: usize,
}

impl Setting {
    pub(super) fn draw(chance: &mut Chance) -> Self {
        let batching = if chance.one_in(6) { Batching::EachStep } else { Batching::Group };
        let waits = batching == Batching::EachStep || chance.one_in(5);
        let large_bytes = if chance.one_in(3) { 1_500 } else { 0 };
        let step_bytes = (large_bytes == 0 && chance.one_in(3)).then_some(32 << 10);
        let options = HubOptions {
            mode: if waits { Mode::PersistFirst } else { Mode::Speculative },
            activities_running_max: chance.pick(&[1, 3, 1_000]),
            cursor_cache_bytes: chance.pick(&[0, 4 << 10, 1 << 20]),
            instance_bytes_max: chance.pick(&[24 << 10, 1 << 30, 1 << 30]),
            spill_above_bytes: if large_bytes > 0 { 1024 } else { 1 << 20 },
            snapshot_after_bytes: chance.pick(&[1 << 10, 8 << 10, 1 << 40]),
            ..HubOptions::default()
        };
        Self {
            partitions: 1 + chance.below(4) as u16,
            is_shared: chance.one_in(2),
            batching,
            options,
            large_bytes,
            local_messages: chance.pick(&[1, 4, 10_000]),
            frame_bytes: chance.pick(if step_bytes.is_some() { &[200, 4_000] } else { &[200, 4_000, 4 << 20] }),
            step_bytes,
            lot: chance.pick(&[1, 3, 256]),
            window: chance.pick(&[2, 5, 65_536]),
            early_bytes: chance.pick(&[0, 1_000, 16 << 20]),
            part_bytes: chance.pick(&[300, 3_000, 2 << 20]),
            steps: 100 + chance.below(900),
        }
    }

    /// The bounds of the engine. Scripts that are not let do much in a step do next to nothing.
    fn bounds(&self) -> Bounds {
        let Self { local_messages, frame_bytes, lot, .. } = *self;
        let step_bytes = self.step_bytes.unwrap_or(0);
        Bounds { local_messages, frame_bytes, step_bytes, rest_bytes: 8 << 10, lot, ..Bounds::new(self.batching) }
    }

    /// The longest frame that the store takes.
    pub(super) fn frame_bytes_max(&self) -> usize {
        self.bounds().frame_bytes_max()
    }

    /// A partition that has not been recovered.
    pub(super) fn partition(&self, id: PartitionId, program: &Arc<dyn Program>, store: Arc<dyn Store>) -> Partition {
        let mut partition = Partition::new(id, self.partitions, Arc::clone(program), store, &self.options);
        let step_bytes = self.step_bytes.unwrap_or(partition.settings.bounds.step_bytes);
        partition.settings.bounds = Bounds { step_bytes, ..self.bounds() };
        partition.outbox.window = self.window;
        partition.outbox.early_bytes_max = self.early_bytes;
        partition.snapshots.part_bytes = self.part_bytes;
        partition
    }
}

/// A frame and its large payloads on their way to the disk.
pub(super) struct Frame {
    pub(super) blobs: Vec<(String, Payload)>,
    pub(super) bytes: Vec<u8>,
}

/// A partition and the rest of its process's memory.
pub(super) struct Node {
    pub(super) id: PartitionId,
    pub(super) partition: Partition,
    /// With the number of the request, if it is one.
    pub(super) inbox: VecDeque<(Option<u64>, Input)>,
    pub(super) waiting: Vec<Frame>,
    pub(super) under_way: Vec<Frame>,
    /// How far the partition knows its log to be durable.
    pub(super) end_seen: Position,
    /// Its state as words, by position, where that was written down.
    pub(super) states: BTreeMap<Position, String>,
    pub(super) is_up: bool,
    pub(super) clock: Clock,
}

impl Node {
    pub(super) fn new(id: PartitionId, partition: Partition) -> Self {
        let end_seen = partition.position();
        let (waiting, under_way, states) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self {
            id,
            partition,
            inbox: VecDeque::new(),
            waiting,
            under_way,
            end_seen,
            states,
            is_up: true,
            clock: Clock::default(),
        }
    }

    /// Takes up to `most` inputs for a turn, and gives the numbers of the requests that the turn has taken.
    pub(super) fn feed<T>(
        &mut self,
        most: usize,
        turn: impl FnOnce(&mut Partition, &mut Feed<'_>) -> T,
    ) -> (T, Vec<u64>) {
        let mut feed = Feed { inbox: &mut self.inbox, left: most, requests: Vec::new() };
        let done = turn(&mut self.partition, &mut feed);
        (done, feed.requests)
    }
}

/// The inputs of one turn.
pub(super) struct Feed<'a> {
    inbox: &'a mut VecDeque<(Option<u64>, Input)>,
    left: usize,
    requests: Vec<u64>,
}

impl Iterator for Feed<'_> {
    type Item = Input;

    fn next(&mut self) -> Option<Input> {
        self.left = self.left.checked_sub(1)?;
        let (request, input) = self.inbox.pop_front()?;
        self.requests.extend(request);
        Some(input)
    }
}
