//! Whole hubs simulated from a seed: partitions, their disk, their messages, their clients and the time.
//!
//! One seed is one schedule, byte for byte. The partitions are the real state machines; around them everything that a
//! hub leaves to threads and to the machine is drawn: when a commit begins and ends, what a crash leaves of it, how
//! long a message takes and whether it comes twice, when activities run, what time it is, when a partition stops, when
//! all memory is lost. What clients request is drawn too, and so are the bounds of the engine, small enough to be met.
//!
//! In some schedules partitions run on several nodes: messages between them are lost, and partitions move one by one.
//!
//! The engine's responses are compared with an [`audit`] of the durable log. In the end all comes to rest,
//! and the [`verdict`] checks the final state.
//!
//! `NARROWS_SIM_SEEDS` says how many seeds are tried, `NARROWS_SIM_SEED` repeats one.

mod audit;
mod code;
mod damage;
mod digest;
mod disk;
mod moves;
mod node;
mod nodes;
mod outside;
mod schedule;
mod trace;
mod verdict;
mod workload;
mod world;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::schedule::{Seeds, Simulated, hashes};
    use super::trace::Trace;
    use super::verdict::Tally;
    use super::world::World;

    /// Seeds that are tried by default.
    const SEEDS: u64 = 300;

    impl Simulated for World {
        type Tally = Tally;

        fn begin(seed: u64, shown: usize) -> Self {
            Self::new(seed, shown)
        }

        fn judged(&mut self) -> Tally {
            for _ in 0..self.setting.steps {
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
    fn no_schedule_breaks_a_promise() {
        let seeds = Seeds::wanted(SEEDS);
        let all = seeds.run::<World>().fold(Tally::default(), Tally::and);
        eprintln!("{all:#?}");
        assert!(seeds.is_one() || all.has_met_everything(), "these schedules leave something out: {all:#?}");
    }

    #[test]
    fn one_seed_is_one_schedule() {
        let first = hashes::<World>(12);
        assert_eq!(first, hashes::<World>(12));
        let different: BTreeSet<u64> = first.into_iter().collect();
        assert_eq!(different.len(), 12);
    }
}
