//! Whole hubs simulated from a seed: partitions, their disk, their messages, their clients and the time.
//!
//! One seed is one schedule, byte for byte. The partitions are the real state machines; around them everything that a
//! hub leaves to threads and to the machine is drawn: when a commit begins and ends, what a crash leaves of it, how
//! long a message takes and whether it comes twice, when activities run, what time it is, when a partition stops, when
//! all memory is lost. What clients request is drawn too, and so are the bounds of the engine, small enough to be met.
//!
//! In some schedules partitions run on several nodes: messages between them are lost, and partitions move one by one.
//!
//! What the engine says to the outside is held against an [`audit`] of the durable log. In the end all comes to rest,
//! and the [`verdict`] looks at what is there.
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
mod trace;
mod verdict;
mod workload;
mod world;

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use super::verdict::Tally;
    use super::world::World;

    /// Seeds that are tried by default.
    const SEEDS: u64 = 300;
    /// Steps that a failure shows; of a single seed, all that matter.
    const STEPS_SHOWN: usize = 60;
    const STEPS_SHOWN_OF_ONE: usize = 20_000;

    pub(super) fn setting(name: &str) -> Option<u64> {
        std::env::var(name).ok().map(|text| text.parse().expect("a number"))
    }

    /// Runs the schedule of a seed to its verdict.
    fn run(seed: u64, shown: usize) -> (u64, Tally) {
        let mut world = World::new(seed, shown);
        let judged = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..world.setting.steps {
                world.step();
            }
            world.rest();
            world.judge()
        }));
        match judged {
            Ok(tally) => (world.trace.hash(), tally),
            Err(panic) => {
                eprintln!("the last steps:\n{}\nNARROWS_SIM_SEED={seed} repeats it", world.trace.last());
                resume_unwind(panic)
            }
        }
    }

    #[test]
    fn no_schedule_breaks_a_promise() {
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
    fn one_seed_is_one_schedule() {
        let first: Vec<u64> = (0..12).map(|seed| run(seed, 0).0).collect();
        let again: Vec<u64> = (0..12).map(|seed| run(seed, 0).0).collect();
        assert_eq!(first, again);
        let different: std::collections::BTreeSet<u64> = first.into_iter().collect();
        assert_eq!(different.len(), 12);
    }
}
