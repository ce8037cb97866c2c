//! One request: the time it is booked at, and the last change it saw that the disk must have before the response.
//!
//! Writes can be seen as soon as they are made, before the disk has them. A response therefore leaves only once the disk has
//! everything that the request saw, be it its own write or another's, so no response tells of what is then lost.

use std::cell::Cell;
use std::time::Duration;

use crate::sql::Watch;
use crate::storage::Ticket;

/// The time of a request on the store's clock, and the last of the changes it saw.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) now: Duration,
    seen: Cell<Ticket>,
    pace: Pace,
    is_deferred: Cell<bool>,
}

/// The kind of thread that runs a request.
#[derive(Debug)]
pub(crate) enum Pace {
    /// A thread for which other requests wait: the request must be short.
    Brief,
    /// A separate thread, until the watch ends.
    Long(Watch),
}

impl Moment {
    pub(crate) fn at(now: Duration) -> Self {
        Self { now, seen: Cell::default(), pace: Pace::Brief, is_deferred: Cell::new(false) }
    }

    /// The moment of a request on a separate thread.
    pub(crate) fn long(now: Duration, watch: Watch) -> Self {
        Self { pace: Pace::Long(watch), ..Self::at(now) }
    }

    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Marks the request as too long for its thread; none of it has been done.
    pub(crate) fn defer(&self) {
        self.is_deferred.set(true);
    }

    /// Whether the request must run again on a separate thread.
    pub(crate) fn is_deferred(&self) -> bool {
        self.is_deferred.get()
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
