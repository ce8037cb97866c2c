//! Protocol drivers: each sends a plan's requests in its own way and reports to the same recorder.

pub(crate) mod http1;
