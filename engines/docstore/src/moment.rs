//! One request: the time it is booked at, and how much of what it saw the disk still has to take.
//!
//! Writes can be seen as soon as they are made, before the disk has them. A response therefore leaves only once the disk has
//! everything that the request saw, be it its own write or another's, so no response tells of what is then lost.

use std::cell::Cell;
use std::time::Duration;

use crate::storage::Ticket;

/// The time of a request on the store's clock, and the last of the changes it saw.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) now: Duration,
    seen: Cell<Ticket>,
}

impl Moment {
    pub(crate) fn at(now: Duration) -> Self {
        Self { now, seen: Cell::default() }
    }

    /// Notes that the request saw the change with this ticket, and so all before it.
    pub(crate) fn saw(&self, ticket: Ticket) {
        self.seen.set(self.seen.get().max(ticket));
    }

    /// The last change the request saw.
    pub(crate) fn seen(&self) -> Ticket {
        self.seen.get()
    }
}
