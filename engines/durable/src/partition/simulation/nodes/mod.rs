//! Several nodes simulated from a seed: processes that share a store and take partitions from each other.
//!
//! The deciding parts are real: each node's [`Steward`](crate::node::steward::Steward) and lease, the partitions, and
//! the epochs of a store in memory. Drawn are the threads of a node, one step at a time, and all around them: calls to the
//! store that arrive late, nodes that stand still for longer than their lease, crash, or leave, clocks that are wrong and, in half of
//! the schedules, faster or slower than others, and messages that are lost, late or doubled. A node that stands still may
//! have a write on its way, and goes on later as if nothing had been.
//!
//! The [`audit`](super::audit) and the [`verdict`](super::verdict) are those of single processes. On top, no write of an
//! epoch may reach a log after another node has taken the partition, and with clocks that are equally fast, no node may
//! take a partition from one that may still act.
//!
//! Left out are requests of clients that go from node to node (`node/calls.rs`, `node/serve.rs`), activities that are
//! lent, and all that belongs to threads; `node/tests/chaos.rs` and `tests/all/torture` have these.
//!
//! `NARROWS_SIM_SEEDS` and `NARROWS_SIM_SEED` are as for single processes.

mod cluster;
mod effects;
mod host;
mod keeping;
mod rest;
mod tally;

#[cfg(test)]
mod tests {
    use super::cluster::Cluster;
    use super::tally::Tally;
    use crate::partition::simulation::schedule::{Seeds, Simulated, hashes};
    use crate::partition::simulation::trace::Trace;

    /// Seeds that are tried by default.
    const SEEDS: u64 = 1_000;

    impl Simulated for Cluster {
        type Tally = Tally;

        fn begin(seed: u64, shown: usize) -> Self {
            Self::new(seed, shown)
        }

        fn judged(&mut self) -> Tally {
            for _ in 0..self.steps {
                self.step();
            }
            self.rest();
            self.judge()
        }

        fn trace(&self) -> &Trace {
            &self.trace
        }
    }

    #[test]
    fn no_schedule_of_nodes_breaks_a_promise() {
        let seeds = Seeds::wanted(SEEDS);
        let all = seeds.run::<Cluster>().fold(Tally::default(), Tally::and);
        eprintln!("{all:#?}");
        assert!(seeds.is_one() || all.has_met_everything(), "these schedules leave something out: {all:#?}");
    }

    #[test]
    fn one_seed_is_one_schedule_of_nodes() {
        assert_eq!(hashes::<Cluster>(6), hashes::<Cluster>(6));
    }
}
