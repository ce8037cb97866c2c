//! Queue of an entity, in order of arrival.
//!
//! Locks, and words that one is not wanted any more, are also found by their owner: a queue may be long, and is not
//! walked for each of them.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::event::Caller;
use crate::ids::EntityId;
use crate::message::{Message, MessageKind};
use crate::partition::size::room;

/// Memory that a lock, or its release, takes besides its message: its place in a map. Bytes.
const PLACE_BYTES: usize = 64;

/// Messages, and how many bytes they are.
#[derive(Debug, Default)]
pub(super) struct Queue {
    messages: VecDeque<Message>,
    bytes: usize,
    /// How many more were taken from the front than put before it: the place of the message at the front.
    front: i64,
    /// The places of locks.
    locks: HashMap<Caller, i64>,
    /// Owners whose locks are not wanted any more.
    given_up: HashSet<Caller>,
}

impl Queue {
    pub(super) fn push(&mut self, message: Message) {
        let place = self.front + self.messages.len() as i64;
        self.note(&message, place);
        self.messages.push_back(message);
    }

    /// Puts messages before all others.
    pub(super) fn push_front(&mut self, messages: impl DoubleEndedIterator<Item = Message>) {
        for message in messages.rev() {
            self.front -= 1;
            self.note(&message, self.front);
            self.messages.push_front(message);
        }
    }

    fn note(&mut self, message: &Message, place: i64) {
        self.bytes += bytes_of(message);
        match &message.kind {
            MessageKind::Lock { owner, .. } => drop(self.locks.insert(owner.clone(), place)),
            MessageKind::Unlock { owner } => drop(self.given_up.replace(owner.clone())),
            _ => {}
        }
    }

    pub(super) fn front(&self) -> Option<&Message> {
        self.messages.front()
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.bytes -= bytes_of(&message);
        match &message.kind {
            MessageKind::Lock { owner, .. } if self.locks.get(owner) == Some(&self.front) => {
                self.locks.remove(owner);
            }
            MessageKind::Unlock { owner } => {
                self.given_up.remove(owner);
            }
            _ => {}
        }
        self.front += 1;
        Some(message)
    }

    /// The entities that an execution had locked before it came to wait for a lock here, if it does.
    pub(super) fn locked_before(&self, owner: &Caller) -> Option<&[EntityId]> {
        let place = self.locks.get(owner)?;
        let at = usize::try_from(place - self.front).expect("what waits is not before the front");
        let MessageKind::Lock { entities, next, .. } = &self.messages[at].kind else { unreachable!("it is a lock") };
        Some(&entities[..entities.len().min(*next as usize)])
    }

    /// Whether a lock that waits is not wanted any more.
    pub(super) fn is_given_up(&self, owner: &Caller) -> bool {
        self.given_up.contains(owner)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn bytes_of(message: &Message) -> usize {
    let place = match &message.kind {
        MessageKind::Lock { owner, .. } | MessageKind::Unlock { owner } => PLACE_BYTES + owner.instance.as_str().len(),
        _ => 0,
    };
    room(message) + place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Name;
    use crate::partition::testing::{id, number};

    fn owner(number: u32) -> Caller {
        Caller { instance: id("owner"), generation: 0, id: number }
    }

    fn entity(name: &str) -> EntityId {
        EntityId::try_from(id(name)).expect("an entity")
    }

    fn message(kind: MessageKind) -> Message {
        Message { to: id("@Sum@second"), kind }
    }

    fn lock(number: u32) -> Message {
        let entities = vec![entity("@Sum@first"), entity("@Sum@second")];
        message(MessageKind::Lock { owner: owner(number), entities, next: 1 })
    }

    fn operation() -> Message {
        let (operation, input) = (Name::Static("add"), number(1));
        message(MessageKind::Operate { operation, input, caller: None, at: None })
    }

    #[test]
    fn locks_are_found_by_their_owner_wherever_they_wait() {
        let mut queue = Queue::default();
        queue.push(operation());
        queue.push(lock(1));
        queue.push(lock(2));
        queue.push(message(MessageKind::Unlock { owner: owner(2) }));
        queue.pop();
        queue.push_front([operation(), operation()].into_iter());
        assert_eq!(queue.locked_before(&owner(2)), Some(&[entity("@Sum@first")][..]));
        assert_eq!((queue.is_given_up(&owner(1)), queue.is_given_up(&owner(2))), (false, true));
        for _ in 0..3 {
            queue.pop();
        }
        assert_eq!(queue.locked_before(&owner(1)), None);
        assert!(queue.locked_before(&owner(2)).is_some() && queue.is_given_up(&owner(2)));
        for _ in 0..2 {
            queue.pop();
        }
        assert!(queue.locked_before(&owner(2)).is_none() && !queue.is_given_up(&owner(2)));
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }
}
