//! Timers of orchestrations, and messages that wait for their moment.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::codec::KEPT;
use crate::ids::{InstanceId, Time};
use crate::message::{Message, MessageKind};
use crate::partition::input::TaskKey;
use crate::partition::size::room;
use crate::partition::table::Table;

/// Memory of a timer, and of a message besides its content: places in maps. Bytes.
const PLACE_BYTES: usize = 96;

/// When messages are due that were put off: before all else, whatever the clock says by then.
pub(super) const AT_ONCE: Time = Time(0);

/// Something that is due.
#[derive(Debug)]
pub(super) enum Due {
    /// A timer of an orchestration.
    Timer(TaskKey),
    /// A message that waited.
    Message(u64, Message),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum TimerEntry {
    Message { number: u64 },
    Timer { handle: u64, generation: u64, id: u32 },
}

/// Everything that waits for a moment, in order of time.
#[derive(Debug, Default)]
pub(super) struct Timers {
    pub(super) order: BTreeMap<(Time, TimerEntry), ()>,
    /// By handle, so that an execution's end and a cancelled timer free their memory at once.
    timers: HashMap<u64, Vec<(u32, Time)>>,
    messages: BTreeMap<u64, (Time, Message)>,
    /// About how many bytes the messages take.
    message_bytes: usize,
    next_message: u64,
    /// The numbers of the messages that are kept, by receiver and in order.
    kept: HashMap<InstanceId, VecDeque<u64>>,
    /// Starts that wait, by the handle of the instance.
    starts: HashMap<u64, PendingStart>,
}

/// The start of an instance that exists and is to begin later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PendingStart {
    pub(super) at: Time,
    /// The number of the message that will begin it.
    pub(super) message: u64,
}

impl Timers {
    /// The earliest moment that something is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.order.first_key_value().map(|((at, _), ())| *at)
    }

    /// When the earliest timer of an instance is due.
    #[cfg(test)]
    pub(super) fn due_of(&self, handle: u64) -> Option<Time> {
        self.timers.get(&handle)?.iter().map(|(_, at)| *at).min()
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// About how many bytes all take.
    pub(super) fn bytes(&self) -> u64 {
        (self.message_bytes + self.order.len() * PLACE_BYTES) as u64
    }

    pub(super) fn add(&mut self, key: TaskKey, at: Time) {
        let TaskKey { handle, generation, id } = key;
        self.order.insert((at, TimerEntry::Timer { handle, generation, id }), ());
        self.timers.entry(handle).or_default().push((id, at));
    }

    pub(super) fn cancel(&mut self, key: TaskKey) {
        let TaskKey { handle, generation, id } = key;
        // It may have fired already.
        let Some(open) = self.timers.get_mut(&handle) else { return };
        if let Some(at) = open.iter().position(|(open_id, _)| *open_id == id) {
            let (_, time) = open.swap_remove(at);
            self.order.remove(&(time, TimerEntry::Timer { handle, generation, id }));
        }
        if open.is_empty() {
            self.timers.remove(&handle);
        }
    }

    /// Forgets all timers of an execution that has ended.
    pub(super) fn forget(&mut self, handle: u64, generation: u64) {
        for (id, at) in self.timers.remove(&handle).unwrap_or_default() {
            self.order.remove(&(at, TimerEntry::Timer { handle, generation, id }));
        }
    }

    /// Keeps a message until its moment, under its own number.
    pub(super) fn defer(&mut self, at: Time, message: Message) -> u64 {
        let number = self.next_message;
        self.restore(number, at, message);
        number
    }

    /// Keeps a message under a number it has already.
    pub(super) fn restore(&mut self, number: u64, at: Time, message: Message) {
        // A log that is not the engine's own may say it twice.
        self.undefer(number);
        self.next_message = self.next_message.max(number + 1);
        self.order.insert((at, TimerEntry::Message { number }), ());
        self.message_bytes += room(&message);
        if at == KEPT {
            self.kept.entry(message.to.clone()).or_default().push_back(number);
        }
        self.messages.insert(number, (at, message));
    }

    /// Takes a message back before its moment.
    pub(super) fn undefer(&mut self, number: u64) -> Option<Message> {
        let (at, message) = self.messages.remove(&number)?;
        self.order.remove(&(at, TimerEntry::Message { number }));
        self.message_bytes -= room(&message);
        if at == KEPT
            && let Some(kept) = self.kept.get_mut(&message.to)
        {
            match kept.front() {
                Some(first) if *first == number => {
                    kept.pop_front();
                }
                _ => kept.retain(|kept| *kept != number),
            }
            if kept.is_empty() {
                self.kept.remove(&message.to);
            }
        }
        Some(message)
    }

    /// The numbers of the messages kept for an instance, in order. From now on they are as others.
    pub(super) fn take_kept(&mut self, id: &InstanceId) -> VecDeque<u64> {
        self.kept.remove(id).unwrap_or_default()
    }

    /// Forgets the messages kept for an instance. Says whether there were any.
    pub(super) fn drop_kept(&mut self, id: &InstanceId) -> bool {
        let kept = self.take_kept(id);
        kept.iter().for_each(|number| drop(self.undefer(*number)));
        !kept.is_empty()
    }

    pub(super) fn message(&self, number: u64) -> Option<&Message> {
        self.messages.get(&number).map(|(_, message)| message)
    }

    /// Notes that a message is the start of an instance.
    pub(super) fn set_start(&mut self, handle: u64, start: PendingStart) {
        self.starts.insert(handle, start);
    }

    /// The start that an instance waits for.
    pub(super) fn start(&self, handle: u64) -> Option<PendingStart> {
        self.starts.get(&handle).copied()
    }

    /// The message that will begin an instance.
    pub(super) fn start_message(&self, handle: u64) -> Option<&Message> {
        self.message(self.starts.get(&handle)?.message)
    }

    /// Forgets that an instance waits for its start.
    pub(super) fn take_start(&mut self, handle: u64) -> Option<PendingStart> {
        self.starts.remove(&handle)
    }

    /// Forgets that an instance waits for its start, if this message is that.
    pub(super) fn start_delivered(&mut self, handle: u64, number: u64) {
        if self.starts.get(&handle).is_some_and(|start| start.message == number) {
            self.starts.remove(&handle);
        }
    }

    /// Finds the starts among the messages that recovery has restored.
    pub(super) fn restore_starts(&mut self, table: &Table) {
        for (number, (at, message)) in &self.messages {
            if matches!(message.kind, MessageKind::Start { .. })
                && let Some(handle) = table.handle(&message.to)
            {
                self.starts.insert(handle, PendingStart { at: *at, message: *number });
            }
        }
    }

    /// Makes a message that was kept due at once.
    pub(super) fn hurry(&mut self, number: u64, table: &Table) {
        let message = self.undefer(number).expect("what was kept waits until now");
        if let Some(handle) = table.handle(&message.to)
            && let Some(start) = self.starts.get_mut(&handle).filter(|start| start.message == number)
        {
            start.at = AT_ONCE;
        }
        self.restore(number, AT_ONCE, message);
    }

    #[cfg(test)]
    pub(super) fn starts(&self) -> impl Iterator<Item = (&u64, &PendingStart)> {
        self.starts.iter()
    }

    /// All messages that wait.
    pub(super) fn messages(&self) -> impl Iterator<Item = (u64, Time, &Message)> {
        self.messages.iter().map(|(number, (at, message))| (*number, *at, message))
    }

    /// The next thing that is due at `now`.
    pub(super) fn pop(&mut self, now: Time) -> Option<Due> {
        let ((at, what), ()) = self.order.first_key_value()?;
        if *at > now {
            return None;
        }
        match *what {
            TimerEntry::Message { number } => self.undefer(number).map(|message| Due::Message(number, message)),
            TimerEntry::Timer { handle, generation, id } => {
                let key = TaskKey { handle, generation, id };
                self.cancel(key);
                Some(Due::Timer(key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(handle: u64, id: u32) -> TaskKey {
        TaskKey { handle, generation: 0, id }
    }

    #[test]
    fn timers_fire_in_order_of_time() {
        let mut timers = Timers::default();
        timers.add(key(1, 0), Time(30));
        timers.add(key(2, 0), Time(10));
        assert_eq!(timers.next(), Some(Time(10)));
        assert!(timers.pop(Time(9)).is_none());
        assert!(matches!(timers.pop(Time(30)), Some(Due::Timer(found)) if found == key(2, 0)));
        assert!(matches!(timers.pop(Time(30)), Some(Due::Timer(found)) if found == key(1, 0)));
        assert!(timers.pop(Time(30)).is_none());
    }

    #[test]
    fn cancelled_and_forgotten_timers_leave_nothing_behind() {
        let mut timers = Timers::default();
        timers.add(key(1, 0), Time(30));
        timers.add(key(1, 1), Time(40));
        timers.cancel(key(1, 0));
        assert_eq!(timers.len(), 1);
        timers.forget(1, 0);
        assert_eq!((timers.len(), timers.timers.len()), (0, 0));
    }
}
