//! The settings of tests that kill a process again and again: how many rounds, and which moments are drawn.

use std::hash::{BuildHasher, RandomState};

use crate::Chance;

/// The number of rounds, `NARROWS_TORTURE_ROUNDS` or `rounds`, and random numbers from `NARROWS_TORTURE_SEED` or from a new
/// seed. Both are printed, so that a failure can be repeated.
///
/// # Panics
/// If a variable is no number.
#[allow(clippy::print_stderr, reason = "the seed is to be known when it fails")]
pub fn torture(rounds: u64) -> (u64, Chance) {
    let seed = setting("NARROWS_TORTURE_SEED", RandomState::new().hash_one(0));
    let rounds = setting("NARROWS_TORTURE_ROUNDS", rounds);
    eprintln!("NARROWS_TORTURE_SEED={seed} NARROWS_TORTURE_ROUNDS={rounds}");
    (rounds, Chance::new(seed))
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}
