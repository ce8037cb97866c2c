//! A part of a load: the threads of it that one process runs, when several share it.
//!
//! Users, arrivals, iterations and rows of data belong to threads by their numbers, so processes that run different threads
//! of one load divide it without speaking to each other, and a load in parts is the same load.

use serde::{Deserialize, Serialize};

/// Threads of a load that run in one process, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPart {
    /// Number of the first of them, from 0.
    pub first: usize,
    /// How many, 1 or more.
    pub threads: usize,
    /// How many the whole load has, `first + threads` or more.
    pub of: usize,
    /// The load's first instant in Unix nanoseconds, on the clock of this process.
    pub start_ns: i64,
    /// The second with which this part begins, counted from 0 as they are reported; above 0 when it takes over from a
    /// process that was lost.
    pub from_second: u64,
}

impl LoadPart {
    /// All threads of a load, from its beginning on.
    pub(crate) fn whole(threads: usize, start_ns: i64) -> Self {
        Self { first: 0, threads, of: threads, start_ns, from_second: 0 }
    }

    /// The numbers of its threads.
    pub(crate) fn numbers(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.threads
    }

    /// How many of `all` things belong to it, of which thing `i` belongs to thread `i` modulo the number of threads.
    pub(crate) fn share(&self, all: u64) -> u64 {
        self.numbers().map(|thread| all.saturating_sub(thread as u64).div_ceil(self.of as u64)).sum()
    }

    /// The number among all things of the one that is number `own` among those that belong to this part.
    pub(crate) fn number_of(&self, own: u64) -> u64 {
        let (threads, of) = (self.threads as u64, self.of as u64);
        (own / threads).saturating_mul(of).saturating_add(self.first as u64 + own % threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn parts_divide_all_things_without_overlap(sizes in proptest::collection::vec(1usize..5, 1..6), all in 0u64..200) {
            let of = sizes.iter().sum();
            let mut first = 0;
            let mut seen = BTreeSet::new();
            for threads in sizes {
                let part = LoadPart { first, threads, of, start_ns: 0, from_second: 0 };
                let own: Vec<u64> = (0..).map(|own| part.number_of(own)).take_while(|number| *number < all).collect();
                prop_assert_eq!(own.len() as u64, part.share(all));
                prop_assert!(own.iter().all(|number| part.numbers().contains(&(*number as usize % of))));
                prop_assert!(own.into_iter().all(|number| seen.insert(number)));
                first += threads;
            }
            prop_assert_eq!(seen.len() as u64, all);
        }
    }
}
