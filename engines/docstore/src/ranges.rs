//! The physical partitions of a container at one time: which part of the hash space each of them has.
//!
//! A value never changes: a split makes a new one, so a request sees one state of the container from its start to its end.
//! Ids are never used again, so a reader can tell a range that was split from one that never was.

use std::sync::Arc;

use crate::effective_key::KeySpan;
use crate::partition::Partition;
use crate::storage::{Mark, RangeRecord, RangesRecord};

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

    /// The ranges of `record`, each with the partition that `partition` makes of its id; the error says what cannot be.
    pub(crate) fn restored(record: &RangesRecord, partition: impl Fn(u32) -> Partition) -> Result<Self, String> {
        let RangesRecord { current, retired, next_id } = record;
        if let Some(range) = current.iter().chain(retired).find(|range| range.id >= *next_id) {
            return Err(format!("range {} is not below {next_id}", range.id));
        }
        let (first, last) = (current.first(), current.last());
        let is_whole = first.is_some_and(|range| range.span.min() == 0)
            && last.is_some_and(|range| range.span.is_last())
            && current.windows(2).all(|pair| pair[0].span.end() == pair[1].span.min());
        if !is_whole {
            return Err("the ranges leave a gap".to_owned());
        }
        let range = |record: &RangeRecord| Range {
            id: record.id,
            span: record.span,
            parents: record.parents.clone(),
            partition: Arc::new(partition(record.id)),
        };
        let retired: Vec<Range> = retired.iter().map(range).collect();
        retired.iter().for_each(|range| range.partition.retire());
        Ok(Self { current: current.iter().map(range).collect(), retired, next_id: *next_id })
    }

    /// The ranges as plain data.
    pub(crate) fn record(&self) -> RangesRecord {
        let record = |range: &Range| RangeRecord { id: range.id, span: range.span, parents: range.parents.clone() };
        let records = |ranges: &[Range]| ranges.iter().map(record).collect();
        RangesRecord { current: records(&self.current), retired: records(&self.retired), next_id: self.next_id }
    }

    /// The ranges that came from splitting range `id`, with how far they are.
    pub(crate) fn halves_of(&self, id: u32) -> Vec<(u32, Mark)> {
        let halves = self.current.iter().filter(|range| range.parents.last() == Some(&id));
        halves.map(|range| (range.id, range.partition.mark())).collect()
    }

    /// The ranges after range `id` was split at `at`, with a partition that `partition` makes for each half.
    pub(crate) fn split(&self, id: u32, at: u128, partition: impl Fn(u32) -> Partition) -> Option<Self> {
        let index = self.current.iter().position(|range| range.id == id)?;
        let parent = &self.current[index];
        let spans = parent.span.split(at)?;
        let parents: Vec<u32> = parent.parents.iter().copied().chain([id]).collect();
        let halves = [self.next_id, self.next_id + 1].map(|id| Arc::new(partition(id)));
        parent.partition.split(at, [&halves[0], &halves[1]]);
        let halves = (self.next_id..).zip(spans).zip(halves).map(|((id, span), partition)| Range {
            id,
            span,
            parents: parents.clone(),
            partition,
        });
        let mut split = self.clone();
        split.retired.push(parent.clone());
        split.current.splice(index..=index, halves);
        split.next_id += 2;
        Some(split)
    }

    /// The range with the widest span.
    pub(crate) fn widest(&self) -> &Range {
        let mut widest = &self.current[0];
        for range in &self.current {
            if range.span.width() > widest.span.width() {
                widest = range;
            }
        }
        widest
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

    /// The ranges that were split, for the count of use.
    pub(crate) fn retired(&self) -> std::slice::Iter<'_, Range> {
        self.retired.iter()
    }

    /// Distinguishes this state of the container from those before.
    pub(crate) fn etag(&self) -> String {
        format!("\"{}\"", self.next_id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::{Budget, Phase};
    use crate::charge::Charge;
    use crate::definition::Definition;
    use crate::partition::Stamp;
    use crate::partition_key::KeyDefinition;
    use crate::resource_id::ContainerId;
    use crate::storage::Journal;

    fn partition(range: u32) -> Partition {
        let budget = Budget::new(Charge::ZERO, Phase::ZERO);
        let container = ContainerId { database: 0, container: 0 };
        let definition = Arc::new(Definition::plain("c", KeyDefinition::of_property("k")));
        Partition::new(budget, definition, Stamp { container, range, next_number: Arc::default() }, Journal::none(), 0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_key_has_one_range_before_and_after_splits(
            count in 1_u32..=20,
            splits in proptest::collection::vec((any::<u32>(), 0..1_u128 << 126), 0..30),
            places in proptest::collection::vec(0..1_u128 << 126, 1..20),
        ) {
            let mut ranges = Ranges::equal(count, partition);
            let mut ids: Vec<u32> = (0..count).collect();
            for (which, at) in splits {
                let range = &ranges.current[which as usize % ranges.current.len()];
                let (id, inside) = (range.id, range.span.contains(at));
                let at = if inside { at } else { range.span.middle() };
                let Some(split) = ranges.split(id, at, partition) else { continue };
                ids.retain(|&kept| kept != id);
                ids.extend([ranges.next_id, ranges.next_id + 1]);
                ranges = split;
                prop_assert!(ranges.is_gone(id) && ranges.get(id).is_none());
            }
            let mut current: Vec<u32> = ranges.iter().map(|range| range.id).collect();
            current.sort_unstable();
            ids.sort_unstable();
            prop_assert_eq!(current, ids);
            prop_assert_eq!(ranges.current[0].span.min_inclusive(), "");
            prop_assert_eq!(ranges.current.last().unwrap().span.max_exclusive(), "FF");
            for pair in ranges.current.windows(2) {
                prop_assert_eq!(pair[0].span.end(), pair[1].span.min());
            }
            for place in places {
                let holders: Vec<u32> =
                    ranges.iter().filter(|range| range.span.contains(place)).map(|range| range.id).collect();
                prop_assert_eq!(holders, [ranges.holding(place).id]);
            }
        }
    }
}
