//! Several nodes simulated from a seed: processes that share a store and take partitions from each other.
//!
//! What decides is real: each node's [`Steward`](crate::node::steward::Steward) and lease, the partitions, and the epochs
//! of a store in memory. Drawn are the threads of a node, one step at a time, and all around them: calls to the store that
//! arrive late, nodes that stand still for longer than their lease, crash, or leave, clocks that are wrong and, in half of
//! the schedules, faster or slower than others, and messages that are lost, late or doubled. A node that stands still may
//! have a write on its way, and goes on later as if nothing had been.
//!
//! The [`audit`](super::audit) and the [`verdict`](super::verdict) are those of single processes. On top, no write of an
//! epoch may reach a log after another node has taken the partition, and with clocks that are equally fast, no node may
//! take a partition from one that may still act.
//!
//! Left out are requests of clients that go from node to node (`node/calls.rs`, `node/serve.rs`), activities that are
//! lent, and all that belongs to threads; `node/tests_of_chaos.rs` and `tests/torture` have these.
//!
//! `NARROWS_SIM_SEEDS` and `NARROWS_SIM_SEED` are as for single processes.

mod cluster;
mod host;
mod keeping;
mod rest;

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::super::tests::setting;
    use super::cluster::{Cluster, Tally};

    const SEEDS: u64 = 1_000;
    const STEPS_SHOWN: usize = 80;
    const STEPS_SHOWN_OF_ONE: usize = 20_000;

    fn run(seed: u64, shown: usize) -> (u64, Tally) {
        let mut cluster = Cluster::new(seed, shown);
        let judged = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..cluster.steps {
                cluster.step();
            }
            cluster.rest();
            cluster.judge()
        }));
        match judged {
            Ok(tally) => (cluster.trace.hash(), tally),
            Err(panic) => {
                eprintln!("the last steps:\n{}\nNARROWS_SIM_SEED={seed} repeats it", cluster.trace.last());
                resume_unwind(panic)
            }
        }
    }

    #[test]
    fn no_schedule_of_nodes_breaks_a_promise() {
        let seeds = match setting("NARROWS_SIM_SEED") {
            Some(seed) => seed..seed + 1,
            None => 0..setting("NARROWS_SIM_SEEDS").unwrap_or(SEEDS),
        };
        let is_one = seeds.end - seeds.start == 1;
        let shown = if is_one { STEPS_SHOWN_OF_ONE } else { STEPS_SHOWN };
        let all = seeds.map(|seed| run(seed, shown).1).fold(Tally::default(), Tally::and);
        eprintln!("{all:#?}");
        assert!(is_one || all.has_met_everything(), "these schedules leave something out: {all:#?}");
    }

    #[test]
    fn one_seed_is_one_schedule_of_nodes() {
        let hashes = || (0..6).map(|seed| run(seed, 0).0).collect::<Vec<u64>>();
        assert_eq!(hashes(), hashes());
    }
}
