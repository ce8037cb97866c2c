//! Partitions that come to this node and leave it. Each move has its own thread, so that none holds up beats.

use std::sync::Arc;

use super::Shared;
use super::exclusion;
use super::mail::MoveResult;
use crate::error::Error;
use crate::hub::{RecoveringPartition, Tenure, Term, now, thread};
use crate::ids::{Epoch, PartitionId};
use crate::stopped;
use crate::store::{Owner, StoreError};

/// How a partition leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leave {
    /// All that it has taken in becomes durable, and it is free for others at once.
    Orderly,
    /// It stops at once, because it is lost or has failed.
    AtOnce,
}

/// Begins to take a partition from an owner.
pub(super) fn take(shared: &Arc<Shared>, from: Owner) -> Result<(), Error> {
    let (shared, partition) = (Arc::clone(shared), from.partition);
    let run = move || {
        let taken = taken(&shared, &from);
        shared.control.moved(MoveResult::Taken(partition, taken));
        shared.exchange.announce();
    };
    thread(format!("take-{partition}"), run).map(drop)
}

fn taken(shared: &Arc<Shared>, from: &Owner) -> Result<Tenure, Error> {
    let (partition, term) = (from.partition, shared.fence.term());
    let epoch = exclusion::take(&*shared.store, from, &shared.identity.key())?;
    let tenure = recovered(shared, partition, epoch, term);
    if let Err(error) = &tenure {
        if let Error::Store(error) = error {
            stopped::note(&*shared.store, partition, error, now());
        }
        // It is free for who can recover it. Otherwise it is this node's, which tries again.
        let _ = shared.store.release(partition, epoch);
    }
    tenure
}

fn recovered(shared: &Arc<Shared>, partition: PartitionId, epoch: Epoch, term: Term) -> Result<Tenure, Error> {
    let meter = &shared.meters[usize::from(partition.0)];
    let starting = RecoveringPartition::start(&shared.engine, partition, epoch, term, meter)?;
    let recovered = starting.recovered();
    let cleared = recovered.and_then(|recovered| stopped::clear(&*shared.store, partition).map(|()| recovered));
    match cleared {
        Ok(recovered) => {
            starting.admit(&shared.engine);
            starting.go(&shared.engine, recovered.end)
        }
        Err(error) => {
            starting.give_up();
            Err(error.into())
        }
    }
}

/// Begins to end a partition.
pub(super) fn leave(shared: &Arc<Shared>, tenure: Tenure, how: Leave) -> Result<(), Error> {
    let (shared, id) = (Arc::clone(shared), tenure.id);
    let run = move || {
        let left = left(&shared, tenure, how);
        shared.control.moved(MoveResult::Left(id, left));
        shared.exchange.announce();
    };
    thread(format!("leave-{id}"), run).map(drop)
}

fn left(shared: &Arc<Shared>, tenure: Tenure, how: Leave) -> Result<(), StoreError> {
    let (id, epoch) = (tenure.id, tenure.epoch);
    match how {
        Leave::Orderly => tenure.close(),
        Leave::AtOnce => tenure.halt(),
    }
    let failure = tenure.failure();
    let ended = tenure.ended();
    shared.engine.post().put(id, None);
    match (how, failure, ended) {
        (Leave::Orderly, None, None) => shared.store.release(id, epoch),
        // It is taken anew, by whoever is to have it.
        (_, Some(error), _) => Err(error),
        (_, None, Some(Error::Stopped { source, .. })) => Err(source),
        (_, None, _) => Ok(()),
    }
}

/// Begins to give up a partition that does not run here, but is this node's by the store.
pub(super) fn disown(shared: &Arc<Shared>, partition: PartitionId, epoch: Epoch) -> Result<(), Error> {
    let shared = Arc::clone(shared);
    let run = move || {
        let left = shared.store.release(partition, epoch);
        shared.control.moved(MoveResult::Left(partition, left));
        shared.exchange.announce();
    };
    thread(format!("leave-{partition}"), run).map(drop)
}
