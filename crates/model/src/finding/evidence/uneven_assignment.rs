//! Evidence of `uneven-assignment`.

use serde::{Deserialize, Serialize};

use super::cpu::{CpuLimit, Proof};
use super::load::LoadLevel;

/// How the partitions of a service are assigned to its replicas, and what that costs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UnevenAssignment {
    /// The metric that reports how many partitions a replica has.
    pub metric: String,
    /// Partitions of all replicas, from 1.
    pub partitions: usize,
    /// Replicas, from 2.
    pub replicas: usize,
    /// The replicas that have the most partitions.
    pub most: Group,
    /// The replicas that have the fewest; there may be others in between.
    pub fewest: Group,
    /// CPU limit of the replicas that have the most.
    pub limit: CpuLimit,
    /// Share of the capacity that lies idle, counted in partitions: 1 − mean ÷ most, 0 to 1.
    pub idle_by_count: f64,
    /// The interval in which this was measured, for people.
    pub interval: String,
    /// The load at that time.
    pub load: LoadLevel,
    /// Successful responses per second at that time.
    pub rate: f64,
    /// Proof that the load is no longer carried; `None` without one.
    pub proof: Option<Proof>,
}

/// Replicas that have equally many partitions.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Group {
    /// Partitions of each, from 0.
    pub partitions: usize,
    /// How many such replicas there are, from 1.
    pub replicas: usize,
    /// Median of the share of its CPU limit that each uses, 0 to about 1.
    pub busy: f64,
}

impl UnevenAssignment {
    /// The largest number of partitions that a replica must have at this number of replicas.
    pub fn most_needed(&self) -> usize {
        self.partitions.div_ceil(self.replicas.max(1))
    }

    /// The next lower number of replicas with equal shares, when no replica would have more partitions than now.
    pub fn fewer_replicas(&self) -> Option<usize> {
        let is_no_worse = |count: &usize| self.is_shared_by(*count) && self.partitions / count <= self.most.partitions;
        (1..self.replicas).rev().find(is_no_worse)
    }

    /// The next higher number of replicas with equal shares, up to twice as many as now.
    pub fn more_replicas(&self) -> Option<usize> {
        (self.replicas + 1..=2 * self.replicas).find(|count| self.is_shared_by(*count) && *count <= self.partitions)
    }

    fn is_shared_by(&self, replicas: usize) -> bool {
        self.partitions.is_multiple_of(replicas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_with_equal_shares_are_the_next_ones() {
        // Partitions, replicas, the most that one has; then fewer replicas, more replicas, the most that one needs.
        let cases = [
            (12, 8, 2, Some(6), Some(12), 2),
            (10, 4, 3, None, Some(5), 3),
            (7, 4, 2, None, Some(7), 2),
            (4, 6, 1, Some(4), None, 1),
            (1, 2, 1, Some(1), None, 1),
            (8, 3, 4, Some(2), Some(4), 3),
            (13, 2, 7, None, None, 7),
        ];
        for (partitions, replicas, most, fewer, more, needed) in cases {
            let most = Group { partitions: most, ..Group::default() };
            let evidence = UnevenAssignment { partitions, replicas, most, ..UnevenAssignment::default() };
            let found = (evidence.fewer_replicas(), evidence.more_replicas(), evidence.most_needed());
            assert_eq!(found, (fewer, more, needed), "{partitions} over {replicas}");
        }
    }
}
