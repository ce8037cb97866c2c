//! Changes to a partition that otherwise stands still: its program is not there.
//!
//! A change is one frame, as a turn is, but nothing else happens in it: no timer fires, nothing that has come in is
//! delivered, no code runs. Messages that a change sends wait in the outbox, also those within the partition,
//! until a hub with the program opens the store. The partition must be in [`Mode::PersistFirst`](crate::Mode).

use crate::client::Status;
use crate::error::Error;
use crate::ids::{InstanceId, Time};
use crate::message::{Message, MessageKind};
use crate::partition::purge::PurgeProgress;
use crate::partition::table::{Execution, Instance};
use crate::partition::{Partition, SealedFrame};

/// A change to one instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// End it and the sub-orchestrations it waits for.
    Terminate {
        /// Which.
        id: InstanceId,
        /// Why.
        reason: String,
    },
    /// Keep outside events back from it.
    Suspend {
        /// Which.
        id: InstanceId,
        /// Why.
        reason: String,
    },
    /// Give them to it again, as soon as its program runs.
    Resume {
        /// Which.
        id: InstanceId,
        /// Why.
        reason: String,
    },
    /// Forget it and its sub-orchestrations, if it has ended, or an idle entity.
    Purge {
        /// Which.
        id: InstanceId,
    },
}

impl Change {
    /// The instance that is to change.
    #[must_use]
    pub fn id(&self) -> &InstanceId {
        match self {
            Self::Terminate { id, .. } | Self::Suspend { id, .. } | Self::Resume { id, .. } | Self::Purge { id } => id,
        }
    }
}

impl Partition {
    /// Makes a change and seals it, if there is anything to write. Says how many instances it changed here. A purge that
    /// one frame has no room for [is under way](Partition::is_purging) afterwards, and goes on when it is made again.
    pub(crate) fn maintain(&mut self, change: Change, now: Time) -> (Result<u64, Error>, Option<SealedFrame<'_>>) {
        self.now = self.now.followed_by(now);
        self.log.frame.begin(self.now);
        let changed = match change {
            Change::Terminate { id, reason } => {
                self.tell(Message { to: id, kind: MessageKind::Terminate { reason } }).map(|()| 1)
            }
            Change::Suspend { id, reason } => self.suspend_still(id, reason).map(|()| 1),
            Change::Resume { id, reason } => self.resume_later(id, reason).map(|()| 1),
            Change::Purge { id } => match self.purge(&id) {
                Ok(PurgeProgress { count: 0, is_over: true }) => Err(Error::NotFound(id)),
                purged => purged.map(|purged| purged.count),
            },
        };
        (changed, self.seal())
    }

    /// An execution that is about to continue as new has to begin first, and that takes its code.
    fn suspend_still(&mut self, id: InstanceId, reason: String) -> Result<(), Error> {
        let execution = self.still(&id);
        let waits_to_begin = execution.is_some_and(|found| found.is_continuing && found.status == Status::Running);
        let message = Message { to: id, kind: MessageKind::Suspend { reason } };
        if waits_to_begin {
            self.defer(self.now, message);
            return Ok(());
        }
        self.tell(message)
    }

    /// To give events back is to run code.
    fn resume_later(&mut self, id: InstanceId, reason: String) -> Result<(), Error> {
        if self.still(&id).is_some_and(|execution| execution.status == Status::Suspended) {
            self.defer(self.now, Message { to: id, kind: MessageKind::Resume { reason } });
            return Ok(());
        }
        // It is not there or not suspended: that error is the same as ever.
        self.tell(Message { to: id, kind: MessageKind::Resume { reason } })
    }

    fn still(&self, id: &InstanceId) -> Option<&Execution> {
        self.table.handle(id).and_then(|handle| self.table.get(handle)).and_then(Instance::execution)
    }
}
