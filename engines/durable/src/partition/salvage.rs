//! Salvage of a partition with a damaged log or snapshot: recovered as far as readable, and made to fit the others again.
//!
//! The result is the state at an earlier moment, or one without the instances of a part that is lost. Each frame is
//! still applied whole or not at all. None of this runs in a hub.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::Status;
use crate::codec::{Events, Skip};
use crate::event::EventKind;
use crate::ids::{InstanceId, PartitionId, Position, Time};
use crate::partition::Partition;
use crate::partition::recover::ReadLog;
use crate::partition::table::{Execution, Instance};
use crate::store::{Store, StoreError};

/// By how much the numbers of executions go up where some may be forgotten: responses that still come for one of those
/// must not reach a later one. Each execution takes more than a byte of log, so no partition has had as many.
const EXECUTIONS_FORGOTTEN: u64 = 1 << 32;

/// The result of reading a snapshot.
#[derive(Debug)]
pub(crate) enum Snapshot {
    /// There is none, or it was read, apart from the parts with these errors.
    Read(Vec<StoreError>),
    /// Nothing of it can be used, nor of the log, which begins where it ends.
    Useless(StoreError),
}

impl Partition {
    /// Recovers the readable data. Must be called once; afterwards the partition has no effects. `read` gives the log as
    /// far as it is whole.
    ///
    /// # Errors
    /// [`StoreError::Io`], and damage that leaves nothing to go on with.
    pub(crate) fn salvage(&mut self, store: &dyn Store, read: &mut ReadLog<'_>) -> Result<Snapshot, StoreError> {
        let mut lost = Vec::new();
        let snapshot = self.recover_snapshot(store, &mut |error| match error {
            StoreError::Io { .. } => Err(error),
            _ => {
                lost.push(error);
                Ok(())
            }
        });
        let parts = match snapshot {
            Ok(parts) => parts,
            Err(error @ StoreError::Io { .. }) => return Err(error),
            Err(error) => return Ok(Snapshot::Useless(error)),
        };
        self.recover_log(parts.as_ref(), read)?;
        self.output.effects.clear();
        Ok(Snapshot::Read(lost))
    }

    /// Goes on at a later position, with numbers of executions that none can have had that is forgotten.
    pub(crate) fn rebase(&mut self, at: Position) {
        self.log.continue_at(at);
        self.generations.raise(self.generations.next() + EXECUTIONS_FORGOTTEN);
    }

    /// Takes over the numbers that another partition has seen: it has taken messages up to `sent`, and was told that
    /// those up to `taken` have been taken here.
    pub(crate) fn agree(&mut self, with: PartitionId, sent: u64, taken: u64) {
        if self.outbox.sent(with) < sent {
            self.outbox.restore_arrived(with, sent);
        }
        if self.outbox.taken(with) < taken {
            self.outbox.restore_taken(with, taken);
        }
    }

    /// The identifiers of all instances, with their handles.
    pub(crate) fn identifiers(&self) -> impl Iterator<Item = (u64, &InstanceId)> {
        self.table.from(0).map(|(handle, instance)| (handle, &instance.id))
    }

    /// Orchestrations that wait for a sub-orchestration, an operation or a lock, and for whose.
    pub(crate) fn open_calls(&self) -> Vec<(InstanceId, BTreeSet<InstanceId>)> {
        self.table.from(0).filter_map(|(_, instance)| open_calls(instance)).collect()
    }
}

fn open_calls(instance: &Instance) -> Option<(InstanceId, BTreeSet<InstanceId>)> {
    let execution = instance.execution()?;
    let is_open = matches!(execution.status, Status::Running | Status::Suspended) && !execution.is_continuing;
    let called = if is_open { called(execution) } else { BTreeSet::new() };
    (!called.is_empty()).then(|| (instance.id.clone(), called))
}

/// The instances whose responses an execution has not got.
fn called(execution: &Execution) -> BTreeSet<InstanceId> {
    let mut open: BTreeMap<u32, Vec<InstanceId>> = BTreeMap::new();
    // A history that cannot be read has refused the recovery before this.
    for event in Events::new(&execution.history, Time(0), &mut Skip).map_while(Result::ok) {
        match event.kind {
            EventKind::SubScheduled { id, instance, awaited: true, .. } => {
                open.insert(id, vec![instance]);
            }
            EventKind::EntityCalled { id, entity, .. } => {
                open.insert(id, vec![entity.instance().clone()]);
            }
            EventKind::LockRequested { id, entities } => {
                open.insert(id, entities.iter().map(|entity| entity.instance().clone()).collect());
            }
            EventKind::SubCompleted { id, .. }
            | EventKind::SubFailed { id, .. }
            | EventKind::OperationCompleted { id, .. }
            | EventKind::OperationFailed { id, .. }
            | EventKind::LockGranted { id } => {
                open.remove(&id);
            }
            _ => {}
        }
    }
    open.into_values().flatten().collect()
}
