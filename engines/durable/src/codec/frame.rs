//! Frames: what one turn of a partition's loop changed.

use super::input::Input;
use super::message::message;
use super::{CodecError, FORMAT, Fetch, Spill, output, put_message};
use crate::event::Caller;
use crate::ids::{PartitionId, Time};
use crate::message::Message;
use crate::payload::Payload;

/// Kind of the entry that follows. Its number is stored.
mod tag {
    pub(super) const CREATED: u8 = 1;
    pub(super) const APPENDED: u8 = 2;
    pub(super) const RESTARTED: u8 = 3;
    pub(super) const ENTITY: u8 = 4;
    pub(super) const SENT: u8 = 5;
    pub(super) const CONSUMED: u8 = 6;
    pub(super) const ACKNOWLEDGED: u8 = 7;
    pub(super) const DEFERRED: u8 = 8;
    pub(super) const UNDEFERRED: u8 = 9;
    pub(super) const PURGED: u8 = 10;
    pub(super) const NEXT_HANDLE: u8 = 11;
    pub(super) const NUMBERED: u8 = 12;
    pub(super) const NEXT_GENERATION: u8 = 13;
    pub(super) const PARKED: u8 = 14;
    pub(super) const DROPPED: u8 = 15;
}

/// Changed bytes in the middle of a state; those before and behind them stay.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// Bytes before that stay.
    pub front: u64,
    /// Bytes behind that stay.
    pub back: u64,
    /// The new bytes between them.
    pub middle: Payload,
}

impl Patch {
    /// The patch from `before` to `after`, if it is much smaller than `after`.
    #[must_use]
    pub fn between(before: &Payload, after: &Payload) -> Option<Self> {
        const WORTH: usize = 4;
        let (one, other) = (before.as_bytes(), after.as_bytes());
        let front = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        let rest = one[front..].iter().rev().zip(other[front..].iter().rev());
        let back = rest.take_while(|(one, other)| one == other).count();
        let middle = &other[front..other.len() - back];
        (middle.len() < other.len() / WORTH).then(|| Self {
            front: front as u64,
            back: back as u64,
            middle: Payload::from_bytes(middle.to_vec()),
        })
    }

    /// The state after the change; `None` if `before` is too short to be the one before it.
    #[must_use]
    pub fn apply(&self, before: &Payload) -> Option<Payload> {
        let bytes = before.as_bytes();
        let (front, back) = (usize::try_from(self.front).ok()?, usize::try_from(self.back).ok()?);
        let behind = bytes.len().checked_sub(back).filter(|behind| front <= *behind)?;
        Some(Payload::from_bytes([&bytes[..front], self.middle.as_bytes(), &bytes[behind..]].concat()))
    }
}

/// Change of an entity.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct EntityDelta {
    /// When.
    pub time: Time,
    /// Its new state: none is unchanged, `Some(None)` is gone.
    pub state: Option<Option<Payload>>,
    /// Change in the middle of its state, in place of a new one.
    pub patch: Option<Patch>,
    /// How many messages were taken from the front of its queue.
    pub popped: u32,
    /// Messages put at the end of its queue, after that.
    pub pushed: Vec<Message>,
    /// The new owner of its lock: `None` leaves it unchanged, `Some(None)` frees it.
    pub lock: Option<Option<Caller>>,
}

/// The time of messages that are kept for parked orchestrations: they never fall due.
pub const KEPT: Time = Time(u64::MAX);

/// One change of a frame.
#[derive(Clone, PartialEq, Debug)]
pub enum Entry<'a> {
    /// An instance or entity got its handle.
    Created {
        /// The number that stands for it in this partition's records.
        handle: u64,
        /// When.
        time: Time,
        /// Its identifier.
        id: &'a str,
    },
    /// An orchestration that is still to begin is not the first of its identifier.
    Numbered {
        /// Which.
        handle: u64,
        /// The number of the execution that will begin.
        generation: u64,
    },
    /// An orchestration was parked, or is not any more.
    Parked {
        /// Which.
        handle: u64,
        /// Why its code does not fit; `None` if it goes on.
        reason: Option<String>,
    },
    /// A history grew.
    Appended {
        /// Whose.
        handle: u64,
        /// Events, for [`Events`](super::Events).
        events: &'a [u8],
    },
    /// A history began anew.
    Restarted {
        /// Whose.
        handle: u64,
        /// When.
        time: Time,
        /// Events, in place of all it had.
        events: &'a [u8],
    },
    /// An entity changed.
    Entity {
        /// Which.
        handle: u64,
        /// How.
        delta: EntityDelta,
    },
    /// A message to another partition is on its way.
    Sent {
        /// The receiver.
        to: PartitionId,
        /// Its number among the messages to that partition.
        sequence: u64,
        /// Content.
        message: Message,
    },
    /// Messages of a partition were taken.
    Consumed {
        /// The sender.
        from: PartitionId,
        /// The number of the last one.
        up_to: u64,
    },
    /// A partition has taken messages for good.
    Acknowledged {
        /// The receiver.
        to: PartitionId,
        /// The number of the last one.
        up_to: u64,
    },
    /// A message waits for its time.
    Deferred {
        /// Its number among those that wait.
        number: u64,
        /// The time.
        at: Time,
        /// Content.
        message: Message,
    },
    /// A message waits no longer.
    Undeferred {
        /// Its number.
        number: u64,
    },
    /// All messages that were kept for a parked orchestration wait no longer.
    Dropped {
        /// Whose. It is no handle: messages are in another part of a snapshot than their receiver.
        id: &'a str,
    },
    /// An instance or entity is forgotten.
    Purged {
        /// Which.
        handle: u64,
    },
    /// The next handle to give; in snapshots.
    NextHandle {
        /// The number.
        handle: u64,
    },
    /// The number that the first execution of an unused identifier gets from here on.
    NextGeneration {
        /// The number.
        generation: u64,
    },
}

impl Entry<'_> {
    /// Which instance it is about; `None` if it is about the partition.
    #[must_use]
    pub fn handle(&self) -> Option<u64> {
        match self {
            Self::Created { handle, .. }
            | Self::Numbered { handle, .. }
            | Self::Parked { handle, .. }
            | Self::Appended { handle, .. }
            | Self::Restarted { handle, .. }
            | Self::Entity { handle, .. }
            | Self::Purged { handle } => Some(*handle),
            _ => None,
        }
    }
}

/// Writes frames, one after another, into a buffer that it keeps.
#[derive(Debug, Default)]
pub struct FrameWriter {
    bytes: Vec<u8>,
    head: usize,
}

impl FrameWriter {
    /// A writer that has not begun a frame.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a frame and forgets the one before.
    pub fn begin(&mut self, time: Time) {
        self.bytes.clear();
        self.bytes.push(FORMAT as u8);
        output::time(&mut self.bytes, &time);
        self.head = self.bytes.len();
    }

    /// Whether the frame has no entry yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == self.head
    }

    /// How long the frame is, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The frame.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn entry(&mut self, tag: u8, number: u64) -> &mut Vec<u8> {
        self.bytes.push(tag);
        output::number(&mut self.bytes, number);
        &mut self.bytes
    }

    /// [`Entry::Created`].
    pub fn created(&mut self, handle: u64, time: Time, id: &str) {
        let out = self.entry(tag::CREATED, handle);
        output::time(out, &time);
        output::text(out, id);
    }

    /// [`Entry::Numbered`].
    pub fn numbered(&mut self, handle: u64, generation: u64) {
        output::number(self.entry(tag::NUMBERED, handle), generation);
    }

    /// [`Entry::Parked`].
    pub fn parked(&mut self, handle: u64, reason: Option<&str>) {
        output::optional(self.entry(tag::PARKED, handle), reason, output::text);
    }

    /// [`Entry::Appended`], of events that [`put_event`](super::put_event) has written.
    pub fn appended(&mut self, handle: u64, events: &[u8]) {
        output::bytes(self.entry(tag::APPENDED, handle), events);
    }

    /// [`Entry::Restarted`], of events that [`put_event`](super::put_event) has written.
    pub fn restarted(&mut self, handle: u64, time: Time, events: &[u8]) {
        let out = self.entry(tag::RESTARTED, handle);
        output::time(out, &time);
        output::bytes(out, events);
    }

    /// [`Entry::Entity`].
    pub fn entity(&mut self, handle: u64, delta: &EntityDelta, spill: &mut dyn Spill) {
        let out = self.entry(tag::ENTITY, handle);
        output::time(out, &delta.time);
        output::optional(out, delta.state.as_ref(), |out, state| {
            output::optional(out, state.as_ref(), |out, state| output::payload(out, state, spill));
        });
        output::optional(out, delta.patch.as_ref(), |out, patch| {
            output::number(out, patch.front);
            output::number(out, patch.back);
            output::payload(out, &patch.middle, spill);
        });
        output::number(out, u64::from(delta.popped));
        output::number(out, delta.pushed.len() as u64);
        for message in &delta.pushed {
            put_message(out, message, spill);
        }
        output::optional(out, delta.lock.as_ref(), |out, lock| output::optional(out, lock.as_ref(), output::caller));
    }

    /// [`Entry::Sent`].
    pub fn sent(&mut self, to: PartitionId, sequence: u64, message: &Message, spill: &mut dyn Spill) {
        let out = self.entry(tag::SENT, u64::from(to.0));
        output::number(out, sequence);
        put_message(out, message, spill);
    }

    /// [`Entry::Consumed`].
    pub fn consumed(&mut self, from: PartitionId, up_to: u64) {
        output::number(self.entry(tag::CONSUMED, u64::from(from.0)), up_to);
    }

    /// [`Entry::Acknowledged`].
    pub fn acknowledged(&mut self, to: PartitionId, up_to: u64) {
        output::number(self.entry(tag::ACKNOWLEDGED, u64::from(to.0)), up_to);
    }

    /// [`Entry::Deferred`].
    pub fn deferred(&mut self, number: u64, at: Time, message: &Message, spill: &mut dyn Spill) {
        let out = self.entry(tag::DEFERRED, number);
        output::time(out, &at);
        put_message(out, message, spill);
    }

    /// [`Entry::Undeferred`].
    pub fn undeferred(&mut self, number: u64) {
        self.entry(tag::UNDEFERRED, number);
    }

    /// [`Entry::Dropped`].
    pub fn dropped(&mut self, id: &str) {
        self.bytes.push(tag::DROPPED);
        output::text(&mut self.bytes, id);
    }

    /// [`Entry::Purged`].
    pub fn purged(&mut self, handle: u64) {
        self.entry(tag::PURGED, handle);
    }

    /// [`Entry::NextGeneration`].
    pub fn next_generation(&mut self, generation: u64) {
        self.entry(tag::NEXT_GENERATION, generation);
    }

    /// [`Entry::NextHandle`].
    pub fn next_handle(&mut self, handle: u64) {
        self.entry(tag::NEXT_HANDLE, handle);
    }
}

/// Gives every entry of a frame to `visit`, with the frame's time.
///
/// # Errors
/// With the place, if the bytes are no frame of this format; the first error of `visit`.
pub fn read_frame<'a>(
    bytes: &'a [u8],
    fetch: &mut dyn Fetch,
    visit: &mut dyn FnMut(Time, Entry<'a>) -> Result<(), CodecError>,
) -> Result<(), CodecError> {
    let mut input = Input::new(bytes);
    let format = input.byte()?;
    if u16::from(format) != FORMAT {
        return Input::wrong(0, format!("a frame of format {format}, expected {FORMAT}"));
    }
    let time = input.time()?;
    while !input.is_at_end() {
        let entry = entry(&mut input, fetch)?;
        visit(time, entry)?;
    }
    Ok(())
}

fn entry<'a>(input: &mut Input<'a>, fetch: &mut dyn Fetch) -> Result<Entry<'a>, CodecError> {
    let began = input.at();
    Ok(match input.byte()? {
        tag::CREATED => Entry::Created { handle: input.number()?, time: input.time()?, id: input.instance_text()? },
        tag::NUMBERED => Entry::Numbered { handle: input.number()?, generation: input.number()? },
        tag::PARKED => Entry::Parked { handle: input.number()?, reason: input.optional(Input::string)? },
        tag::APPENDED => Entry::Appended { handle: input.number()?, events: input.slice()? },
        tag::RESTARTED => Entry::Restarted { handle: input.number()?, time: input.time()?, events: input.slice()? },
        tag::ENTITY => Entry::Entity { handle: input.number()?, delta: entity_delta(input, fetch)? },
        tag::SENT => {
            Entry::Sent { to: PartitionId(input.small()?), sequence: input.number()?, message: message(input, fetch)? }
        }
        tag::CONSUMED => Entry::Consumed { from: PartitionId(input.small()?), up_to: input.number()? },
        tag::ACKNOWLEDGED => Entry::Acknowledged { to: PartitionId(input.small()?), up_to: input.number()? },
        tag::DEFERRED => {
            Entry::Deferred { number: input.number()?, at: input.time()?, message: message(input, fetch)? }
        }
        tag::UNDEFERRED => Entry::Undeferred { number: input.number()? },
        tag::DROPPED => Entry::Dropped { id: input.instance_text()? },
        tag::PURGED => Entry::Purged { handle: input.number()? },
        tag::NEXT_HANDLE => Entry::NextHandle { handle: input.number()? },
        tag::NEXT_GENERATION => Entry::NextGeneration { generation: input.number()? },
        other => return Input::wrong(began, format!("{other}, expected the kind of an entry")),
    })
}

fn entity_delta(input: &mut Input<'_>, fetch: &mut dyn Fetch) -> Result<EntityDelta, CodecError> {
    Ok(EntityDelta {
        time: input.time()?,
        state: input.optional(|input| input.optional(|input| input.payload(fetch)))?,
        patch: input.optional(|input| {
            Ok(Patch { front: input.number()?, back: input.number()?, middle: input.payload(fetch)? })
        })?,
        popped: input.small()?,
        pushed: input.list(|input| message(input, fetch))?,
        lock: input.optional(|input| input.optional(Input::caller))?,
    })
}
