//! Reader of a hub's store, without its program.
//!
//! Each partition is read at its own moment, into about as much memory as a hub needs for it. Where the store is
//! read beside a hub that writes, what fails is read again: only what fails twice in the same way is wrong.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Display;
use std::sync::Arc;

use crate::client::{Filter, InstanceView};
use crate::error::Error;
use crate::event::Event;
use crate::ids::{InstanceId, PartitionId, Time};
use crate::partition::{Partition, RequestKind, Response, Values};
use crate::stopped::{self, StoppedPartition};
use crate::store::Store;

/// How often a partition is read before its store counts as wrong.
const READINGS_MAX: usize = 16;
/// Instances that are looked at in one go.
const PAGE: usize = 1024;

/// A hub that is looked at. Nothing is written, and no code runs.
pub struct HubReader {
    partitions: Vec<Partition>,
    stopped: Vec<StoppedPartition>,
}

/// The place of an instance among all, newest first.
type Rank = (Time, InstanceId);

impl HubReader {
    /// Reads all partitions.
    ///
    /// # Errors
    /// [`Error::Store`] if there is no hub, or it is damaged.
    pub fn open(store: &Arc<dyn Store>) -> Result<Self, Error> {
        let shape = super::shape(&**store)?;
        let read = |partition| again(|| super::recovered(store, PartitionId(partition), shape));
        let partitions = (0..shape.partitions).map(read).collect::<Result<_, _>>()?;
        let stopped = (0..shape.partitions).filter_map(|id| stopped::read(&**store, PartitionId(id))).collect();
        Ok(Self { partitions, stopped })
    }

    /// Reads all partitions and runs a query. Both are done again as long as the store changes under them: large
    /// payloads are read only when they are requested, and may be gone by then.
    ///
    /// # Errors
    /// Those of [`HubReader::open`] and of `query`.
    pub fn read<T>(store: &Arc<dyn Store>, query: impl Fn(&Self) -> Result<T, Error>) -> Result<T, Error> {
        again(|| query(&Self::open(store)?))
    }

    /// How many partitions the hub has.
    #[must_use]
    pub fn partitions(&self) -> u16 {
        u16::try_from(self.partitions.len()).unwrap_or(u16::MAX)
    }

    /// Partitions that have stopped since the hub was last opened and could note it, in order.
    #[must_use]
    pub fn stopped(&self) -> &[StoppedPartition] {
        &self.stopped
    }

    fn home(&self, id: &InstanceId) -> &Partition {
        &self.partitions[usize::from(id.partition(self.partitions()).0)]
    }

    /// An instance, with its values; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Store`] if a large payload cannot be read.
    pub fn get(&self, id: &InstanceId) -> Result<Option<InstanceView>, Error> {
        match self.home(id).look(&RequestKind::Get(id.clone()))? {
            Response::View(view) => Ok(view.map(|view| *view)),
            _ => Ok(None),
        }
    }

    /// The history of an orchestration's present execution; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Store`] if a large payload cannot be read.
    pub fn history(&self, id: &InstanceId) -> Result<Option<Vec<Event>>, Error> {
        match self.home(id).look(&RequestKind::History(id.clone()))? {
            Response::Events(events) => Ok(events),
            _ => Ok(None),
        }
    }

    /// Gives every instance that passes to `each`, without values, partition by partition in the order of acceptance.
    ///
    /// # Errors
    /// [`Error::Store`] if an instance cannot be read.
    pub fn each(&self, filter: &Filter, mut each: impl FnMut(InstanceView)) -> Result<(), Error> {
        for partition in &self.partitions {
            let mut from = Some(0);
            while let Some(place) = from {
                let query =
                    RequestKind::Query { filter: filter.clone(), limit: PAGE, values: Values::Without, from: place };
                let Response::Page(views, next) = partition.look(&query)? else { break };
                views.into_iter().for_each(&mut each);
                from = next;
            }
        }
        Ok(())
    }

    /// The instances that pass and `wanted` takes, newest first, at most `limit`; only those behind `after`, which need
    /// not pass.
    ///
    /// # Errors
    /// [`Error::NotFound`] for `after`; [`Error::Store`] if an instance cannot be read.
    pub fn newest(
        &self,
        filter: &Filter,
        limit: usize,
        after: Option<&InstanceId>,
        wanted: impl Fn(&InstanceView) -> bool,
    ) -> Result<Vec<InstanceView>, Error> {
        let bound = after.map(|id| self.rank(id)).transpose()?;
        let mut kept: BinaryHeap<Reverse<RankedView>> = BinaryHeap::new();
        self.each(filter, |view| {
            let ranked = RankedView(view);
            let is_behind = bound.as_ref().is_none_or(|bound| ranked.rank() < (bound.0, &bound.1));
            if !is_behind || !wanted(&ranked.0) {
                return;
            }
            kept.push(Reverse(ranked));
            if kept.len() > limit {
                kept.pop();
            }
        })?;
        Ok(kept.into_sorted_vec().into_iter().map(|Reverse(RankedView(view))| view).collect())
    }

    fn rank(&self, id: &InstanceId) -> Result<Rank, Error> {
        let view = self.get(id)?.ok_or_else(|| Error::NotFound(id.clone()))?;
        Ok((view.created, view.id))
    }
}

/// A view, in the order of its rank.
struct RankedView(InstanceView);

impl RankedView {
    fn rank(&self) -> (Time, &InstanceId) {
        (self.0.created, &self.0.id)
    }
}

impl PartialEq for RankedView {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for RankedView {}

impl PartialOrd for RankedView {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedView {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// Reads until it succeeds or fails twice running in the same way.
fn again<T, E: Display>(read: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let mut found = read();
    for _ in 1..READINGS_MAX {
        let Err(before) = found else { break };
        found = read();
        if found.as_ref().is_err_and(|error| error.to_string() == before.to_string()) {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::store::{Location, StoreError};

    fn damaged(position: u64) -> StoreError {
        StoreError::Damaged {
            place: Location::Frame { partition: PartitionId(0), position },
            what: "it is torn".into(),
        }
    }

    #[test]
    fn reads_that_fail_at_different_places_are_repeated() {
        let readings = Cell::new(0);
        let read = || {
            readings.set(readings.get() + 1);
            if readings.get() < 4 { Err(damaged(readings.get())) } else { Ok(()) }
        };
        assert!(again(read).is_ok());
        assert_eq!(readings.get(), 4);
    }

    #[test]
    fn reads_that_fail_twice_in_the_same_way_are_damage() {
        let readings = Cell::new(0);
        let read = || -> Result<(), StoreError> {
            readings.set(readings.get() + 1);
            Err(damaged(7))
        };
        assert!(again(read).is_err());
        assert_eq!(readings.get(), 2);
    }
}
