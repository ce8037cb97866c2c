//! The end of a partition's log: the frame being written, payloads kept out of line, and how far the log is durable.

use crate::codec::{EntityDelta, FrameWriter, put_event};
use crate::event::{Event, EventKind};
use crate::ids::{PartitionId, Position, Time};
use crate::message::Message;
use crate::partition::size::Measure;
use crate::partition::spill::Spiller;
use crate::partition::table::Execution;

/// Writer of a partition's log.
pub(super) struct Log {
    /// The position that the frame being written will have.
    pub(super) position: Position,
    /// Frames before this position are durable.
    pub(super) durable: Position,
    pub(super) frame: FrameWriter,
    pub(super) spiller: Spiller,
    /// An event and its decisions, encoded.
    step: Vec<u8>,
    /// Whether a payload of `step` is kept out of line.
    has_spilled: bool,
}

impl Log {
    pub(super) fn new(spiller: Spiller) -> Self {
        Self {
            position: Position(0),
            durable: Position(0),
            frame: FrameWriter::new(),
            spiller,
            step: Vec::new(),
            has_spilled: false,
        }
    }

    /// Continues a log that is durable and ends at this position.
    pub(super) fn continue_at(&mut self, end: Position) {
        self.position = end;
        self.durable = end;
    }

    /// Notes that frames before `durable` are durable, as far as they were written.
    pub(super) fn confirm(&mut self, durable: Position) {
        self.durable = self.durable.max(durable.min(self.position));
    }

    /// Ends the frame. Gives its position.
    pub(super) fn advance(&mut self) -> Position {
        let position = self.position;
        self.position.0 += 1;
        position
    }

    /// Measure of the room that things take in a frame.
    pub(super) fn measure(&self) -> Measure {
        self.spiller.measure()
    }

    /// Writes that a message was sent.
    pub(super) fn sent(&mut self, to: PartitionId, sequence: u64, message: &Message) {
        self.spiller.tighten(self.frame.len());
        self.frame.sent(to, sequence, message, &mut self.spiller);
    }

    /// Writes that a message waits for its moment.
    pub(super) fn deferred(&mut self, number: u64, at: Time, message: &Message) {
        self.spiller.tighten(self.frame.len());
        self.frame.deferred(number, at, message, &mut self.spiller);
    }

    /// Writes what changed in an entity.
    pub(super) fn entity(&mut self, handle: u64, delta: &EntityDelta) {
        self.spiller.tighten(self.frame.len());
        self.frame.entity(handle, delta, &mut self.spiller);
    }

    /// Encodes an event and the decisions it caused, for [`Log::append`]. `previous` is the time of the event before it.
    /// Gives the number of bytes.
    pub(super) fn encode(&mut self, previous: Time, event: &Event, decisions: &[EventKind]) -> usize {
        let next_blob = self.spiller.next();
        self.step.clear();
        self.spiller.tighten(self.frame.len());
        put_event(&mut self.step, previous, event.time, &event.kind, &mut self.spiller);
        for decision in decisions {
            self.spiller.tighten(self.frame.len() + self.step.len());
            put_event(&mut self.step, event.time, event.time, decision, &mut self.spiller);
        }
        self.has_spilled = self.spiller.next() > next_blob;
        self.step.len()
    }

    /// Appends the encoded step to the history of its execution and to the frame.
    pub(super) fn append(&mut self, handle: u64, execution: &mut Execution) {
        execution.has_blobs |= self.has_spilled;
        execution.history.extend_from_slice(&self.step);
        self.frame.appended(handle, &self.step);
    }
}
