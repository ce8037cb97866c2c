//! The tests of this crate from outside, in one binary, which compiles and links once.

#![allow(clippy::unwrap_used, reason = "what fails in a test's surroundings fails the test")]

mod bad_http2;
mod bad_responses;
mod engine;
mod open;
mod running;
mod secure;
mod server;
mod sessions;
mod tls_http2;
