//! Recommended number of nodes of a hub.
//!
//! Partitions are shared out evenly by number, so more nodes help only where the largest share becomes smaller: with 12
//! partitions, 4 nodes have 3 each, 6 have 2, and 8 are no better than 6. Advice goes from one such number to the next.
//! Like the scaling monitor of Netherite, it looks at how long work waits for its partition, not at CPU.

use std::time::Duration;

use super::view::NodeView;
use crate::ids::PartitionId;

/// Inputs that wait as long for their partition are a reason for more nodes.
const SLOW: Duration = Duration::from_millis(100);
/// Where no input waits as long, fewer nodes may do.
const QUICK: Duration = Duration::from_millis(5);

/// How many nodes a hub should have, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    /// How many: 1 to the number of partitions.
    pub nodes: usize,
    /// Why.
    pub reason: AdviceReason,
}

/// The reason for a number of nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AdviceReason {
    /// Work waits for these partitions, on nodes that have others too.
    Slow {
        /// The partitions, in order.
        partitions: Vec<PartitionId>,
        /// The longest wait.
        waited: Duration,
    },
    /// Work waits for these partitions, and each has a node to itself. More nodes do not help.
    SlowAlone {
        /// The partitions, in order.
        partitions: Vec<PartitionId>,
        /// The longest wait.
        waited: Duration,
    },
    /// Nothing has happened since the last beat, and nothing is waiting.
    Idle,
    /// Hardly any work waits for its partition, so that fewer nodes may do.
    Quick,
    /// Work waits neither long nor hardly at all, or there are as few nodes as there can be.
    Fitting,
}

/// The advice for nodes that share so many partitions. Those that are leaving or silent do not count.
///
/// # Panics
/// If there are no partitions; every hub has one.
#[must_use]
pub fn advise(nodes: &[NodeView], partitions: usize) -> Advice {
    assert!(partitions > 0, "a hub has partitions");
    let staying: Vec<&NodeView> = nodes.iter().filter(|node| node.is_staying()).collect();
    let now = staying.len().clamp(1, partitions);
    let loads =
        || staying.iter().flat_map(|node| &node.partitions).filter_map(|owned| owned.load.map(|load| (owned, load)));
    let waited = Duration::from_millis(loads().map(|(_, load)| load.waited_ms).max().unwrap_or(0));
    if waited >= SLOW {
        let is_slow = |waited_ms| Duration::from_millis(waited_ms) >= SLOW;
        let slow: Vec<PartitionId> =
            loads().filter(|(_, load)| is_slow(load.waited_ms)).map(|(owned, _)| owned.partition).collect();
        let shares = |node: &&&NodeView| {
            node.partitions.len() > 1 && node.partitions.iter().any(|owned| slow.contains(&owned.partition))
        };
        let is_shared = staying.iter().any(|node| shares(&node));
        return if is_shared && now < partitions {
            Advice { nodes: more(now, partitions), reason: AdviceReason::Slow { partitions: slow, waited } }
        } else {
            Advice { nodes: now, reason: AdviceReason::SlowAlone { partitions: slow, waited } }
        };
    }
    let is_idle = loads().all(|(_, load)| load.events_per_s == 0.0 && load.pending == 0);
    match now {
        1 => Advice { nodes: 1, reason: if is_idle { AdviceReason::Idle } else { AdviceReason::Fitting } },
        _ if is_idle => Advice { nodes: 1, reason: AdviceReason::Idle },
        _ if waited < QUICK => Advice { nodes: fewer(now, partitions), reason: AdviceReason::Quick },
        _ => Advice { nodes: now, reason: AdviceReason::Fitting },
    }
}

/// The largest share of one node.
fn share(nodes: usize, partitions: usize) -> usize {
    partitions.div_ceil(nodes)
}

/// The fewest nodes with which the largest share is smaller.
fn more(nodes: usize, partitions: usize) -> usize {
    match share(nodes, partitions) {
        1 => nodes,
        share => partitions.div_ceil(share - 1),
    }
}

/// The fewest nodes that do as well as one node less.
fn fewer(nodes: usize, partitions: usize) -> usize {
    partitions.div_ceil(share(nodes - 1, partitions))
}

#[cfg(test)]
mod tests {
    use super::super::record::PartitionLoad;
    use super::super::view::OwnedPartition;
    use super::*;
    use crate::ids::Epoch;

    /// Nodes with the waits of their partitions, in milliseconds.
    fn nodes(waits: &[&[u64]]) -> Vec<NodeView> {
        let mut next = 0;
        let mut node = |waits: &&[u64]| {
            let owned = |waited_ms: &u64| {
                let partition = PartitionId(next);
                next += 1;
                let load = PartitionLoad {
                    partition: partition.0,
                    events_per_s: 10.0,
                    waited_ms: *waited_ms,
                    ..Default::default()
                };
                OwnedPartition { partition, epoch: Epoch(1), load: Some(load) }
            };
            NodeView {
                name: "a".to_owned(),
                incarnation: 1,
                is_replaced: false,
                version: String::new(),
                address: String::new(),
                silent: Duration::ZERO,
                lease: Duration::from_secs(5),
                is_leaving: false,
                partitions: waits.iter().map(owned).collect(),
            }
        };
        waits.iter().map(&mut node).collect()
    }

    fn advised(waits: &[&[u64]]) -> usize {
        advise(&nodes(waits), waits.iter().map(|waits| waits.len()).sum()).nodes
    }

    #[test]
    fn slow_partitions_get_as_many_nodes_as_make_the_shares_smaller() {
        assert_eq!(advised(&[&[300, 20, 20], &[20, 20, 20], &[20, 20, 20], &[20, 20, 20]]), 6);
        let eight: [&[u64]; 8] = [&[200, 200], &[200, 200], &[200, 200], &[200, 200], &[9], &[9], &[9], &[9]];
        assert_eq!(advised(&eight), 12, "9 nodes would leave two partitions on some");
        assert_eq!(advised(&[&[150, 10]]), 2);
        let advised = advise(&nodes(&[&[200, 200], &[9]]), 3);
        let slow = [PartitionId(0), PartitionId(1)].to_vec();
        assert_eq!(advised.reason, AdviceReason::Slow { partitions: slow, waited: Duration::from_millis(200) });
    }

    #[test]
    fn a_partition_that_has_a_node_to_itself_gains_nothing_from_more() {
        let advised = advise(&nodes(&[&[500], &[7, 7]]), 3);
        let reason = AdviceReason::SlowAlone { partitions: vec![PartitionId(0)], waited: Duration::from_millis(500) };
        assert_eq!(advised, Advice { nodes: 2, reason });
    }

    #[test]
    fn fewer_nodes_do_where_nothing_waits() {
        let twelve: Vec<&[u64]> = (0..12).map(|_| &[1][..]).collect();
        assert_eq!(advised(&twelve), 6);
        assert_eq!(advised(&[&[1, 1, 1], &[1, 1, 1]]), 1);
        assert_eq!(
            advised(&[&[1, 1, 1], &[1, 1, 1], &[1, 1], &[1, 1], &[1, 1]]),
            4,
            "of 12 partitions, 4 nodes have 3 each as well"
        );
        assert_eq!(advised(&[&[40, 1], &[1, 1]]), 2);
        assert_eq!(advised(&[&[1, 1]]), 1);
    }

    #[test]
    fn an_idle_hub_needs_one_node_and_those_that_leave_do_not_count() {
        let mut idle = nodes(&[&[0, 0], &[0, 0]]);
        for owned in idle.iter_mut().flat_map(|node| &mut node.partitions) {
            owned.load = Some(PartitionLoad::default());
        }
        assert_eq!(advise(&idle, 4), Advice { nodes: 1, reason: AdviceReason::Idle });
        let mut some = nodes(&[&[50], &[50], &[50]]);
        some[2].is_leaving = true;
        some[1].silent = Duration::from_secs(6);
        assert_eq!(advise(&some, 3).nodes, 1);
    }
}
