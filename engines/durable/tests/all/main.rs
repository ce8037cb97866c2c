//! The tests of this crate from outside, in one binary, which compiles and links once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod api;
mod bad_input;
mod conformance;
mod depth;
mod servers;
mod store_contract;
mod torture;
mod watermark;
