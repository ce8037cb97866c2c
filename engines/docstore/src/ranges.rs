//! The physical partitions of a container at one time: which part of the hash space each of them has.
//!
//! A value never changes: a split makes a new one, so a request sees one state of the container from its start to its end.
//! Ids are never used again, so a reader can tell a range that was split from one that never was.

use std::sync::Arc;

use crate::effective_key::KeySpan;
use crate::partition::Partition;

/// The ranges of a container, in the order of the hash space.
#[derive(Debug, Clone)]
pub(crate) struct Ranges {
    current: Vec<Range>,
    /// Ranges that were split, with the partitions that keep their count of use.
    retired: Vec<Range>,
    next_id: u32,
}

/// One part of the hash space and its physical partition.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) id: u32,
    pub(crate) span: KeySpan,
    /// The ranges it came from by splits, the oldest first.
    pub(crate) parents: Vec<u32>,
    pub(crate) partition: Arc<Partition>,
}

impl Ranges {
    /// `count` equal ranges, each with the partition that `partition` makes of its id.
    pub(crate) fn equal(count: u32, partition: impl Fn(u32) -> Partition) -> Self {
        let range = |(id, span)| Range { id, span, parents: Vec::new(), partition: Arc::new(partition(id)) };
        let current: Vec<Range> = (0..).zip(KeySpan::equal(count)).map(range).collect();
        Self { next_id: count.max(1), current, retired: Vec::new() }
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Range> {
        self.current.iter()
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.current.len()).unwrap_or(u32::MAX)
    }

    /// The range with this id.
    pub(crate) fn get(&self, id: u32) -> Option<&Range> {
        self.current.iter().find(|range| range.id == id)
    }

    /// Whether there was a range with this id that has been split.
    pub(crate) fn is_gone(&self, id: u32) -> bool {
        self.retired.iter().any(|range| range.id == id)
    }

    /// The range that holds `place`.
    pub(crate) fn holding(&self, place: u128) -> &Range {
        let index = self.current.partition_point(|range| range.span.min() <= place).saturating_sub(1);
        let range = &self.current[index];
        assert!(range.span.contains(place), "ranges have no gap");
        range
    }

    /// Current and retired ranges, for the count of use.
    pub(crate) fn ever(&self) -> impl Iterator<Item = &Range> {
        self.retired.iter().chain(&self.current)
    }

    /// Distinguishes this state of the container from those before.
    pub(crate) fn etag(&self) -> String {
        format!("\"{}\"", self.next_id)
    }
}
