//! Work of a partition that has been taken up and not dealt with: in this turn, or put off because a frame was full.

use std::collections::VecDeque;

use crate::error::Error;
use crate::ids::PartitionId;
use crate::message::Message;
use crate::partition::input::Reply;
use crate::partition::size::Measure;

/// The rest of an input that did not fit into the frame of a turn.
#[derive(Debug)]
pub(super) enum InputRest {
    Messages { from: PartitionId, first: u64, messages: VecDeque<Message> },
    Each { messages: VecDeque<Message>, results: Vec<Result<(), Error>>, reply: Reply },
}

/// Queues of work, by its kind.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Messages within the partition that are to be delivered in this turn.
    local: VecDeque<Message>,
    /// Room that they take in the frame if they are not delivered.
    local_bytes: usize,
    /// Room that messages for entities take in the frame if the turn ends before the entities get them.
    arrived_bytes: usize,
    /// Inputs that were taken up and did not fit into the frame.
    pub(super) inputs: VecDeque<InputRest>,
    /// Entities with operations that did not fit into the frame.
    pub(super) backlog: VecDeque<u64>,
    /// Entities that have got messages in this turn.
    pub(super) touched: Vec<u64>,
    /// Executions that continue as new.
    pub(super) restarts: VecDeque<u64>,
    /// Parked orchestrations whose code is to be tried.
    pub(super) retries: VecDeque<u64>,
}

impl Work {
    /// Adds a message within the partition, to be delivered in this turn.
    pub(super) fn push_local(&mut self, message: Message, measure: Measure) {
        self.local_bytes += measure.message(&message);
        self.local.push_back(message);
    }

    pub(super) fn pop_local(&mut self, measure: Measure) -> Option<Message> {
        let message = self.local.pop_front()?;
        self.local_bytes -= measure.message(&message);
        Some(message)
    }

    /// Counts a message that an entity is to get in this turn.
    pub(super) fn add_arrived(&mut self, bytes: usize) {
        self.arrived_bytes += bytes;
    }

    /// Counts a message that its entity has got.
    pub(super) fn remove_arrived(&mut self, bytes: usize) {
        self.arrived_bytes -= bytes;
    }

    /// Room that messages within the partition take in the frame if they are put off.
    pub(super) fn local_bytes(&self) -> usize {
        self.local_bytes
    }

    /// Room that everything taken up takes in the frame if it is put off.
    pub(super) fn bytes(&self) -> usize {
        self.local_bytes + self.arrived_bytes
    }

    /// Adds an entity whose operations did not fit into the frame.
    pub(super) fn put_off_entity(&mut self, handle: u64) {
        if !self.backlog.contains(&handle) {
            self.backlog.push_back(handle);
        }
    }

    /// Whether the next turn has work without any input.
    pub(super) fn has_put_off(&self) -> bool {
        let queues = [&self.restarts, &self.retries, &self.backlog];
        !self.inputs.is_empty() || queues.iter().any(|queue| !queue.is_empty())
    }

    /// Drops the inputs that were put off, and gives the replies of those that clients wait for.
    pub(super) fn drain_replies(&mut self) -> impl Iterator<Item = Reply> + '_ {
        self.inputs.drain(..).filter_map(|rest| match rest {
            InputRest::Each { reply, .. } => Some(reply),
            InputRest::Messages { .. } => None,
        })
    }
}
