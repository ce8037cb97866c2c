//! Evidence in a few words, for tests: traces from a span tree, trials from loads and CPU curves.
//!
//! The builders give plain `model` data with fixed ids and times, so that a test that fails once fails always.
//! Nothing here starts a process, opens a socket or reads a clock. The tests of this crate keep the house tidy: they
//! read the manifests and the source of all others.

pub mod generated;
pub mod operations;
pub mod outline;
pub mod random;
pub mod recorded;
pub mod simulator;
pub mod spans;
pub mod tally;
pub mod trial;

/// The instant at which every built trial begins: 14 November 2023, 22:13:20 UTC.
pub const TRIAL_START_NS: i64 = 1_700_000_000_000_000_000;
