//! Where a schedule comes from, and what is left of it: random numbers from the seed, and a trace that is hashed.

use std::collections::VecDeque;

/// Random numbers: SplitMix64.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 on, below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    /// True once in so many times.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// The place of a weight, drawn in proportion to it. Not all of them are 0.
    pub(super) fn weighed(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (at, weight) in weights.iter().enumerate() {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return at,
            }
        }
        0
    }
}

/// What a schedule did: a hash over all of it, and its last steps in words.
pub(super) struct Trace {
    /// Steps that are kept.
    shown: usize,
    hash: u64,
    steps: u64,
    last: VecDeque<String>,
}

impl Trace {
    pub(super) fn new(shown: usize) -> Self {
        Self { shown, hash: 0, steps: 0, last: VecDeque::new() }
    }

    pub(super) fn step(&mut self, text: String) {
        self.bytes(text.as_bytes());
        self.steps += 1;
        self.last.push_back(format!("{:>6} {text}", self.steps));
        if self.last.len() > self.shown {
            self.last.pop_front();
        }
    }

    /// Takes bytes into the hash: 64-bit FNV-1a.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn last(&self) -> String {
        Vec::from_iter(self.last.iter().map(String::as_str)).join("\n")
    }
}
