//! The tests of this crate from outside, in one binary, which compiles and links once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod by_finding;
mod recorded;
mod refusals;
mod simulated;
