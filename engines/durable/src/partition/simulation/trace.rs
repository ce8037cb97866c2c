//! Trace of a schedule: a hash over all of it, and its last steps in words.

use std::collections::VecDeque;

/// A hash over all steps of a schedule, and its last steps in words.
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
