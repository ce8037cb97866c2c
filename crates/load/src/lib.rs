//! The load engine: models, drivers, pacing, and the validity of the generator itself.
//!
//! A plan goes in ([`narrows_model::load::LoadPlan`]), seconds and samples come out while it runs ([`run`]), a summary
//! when it is over ([`LoadOutcome`]). Virtual users form a closed model: each has one connection and one request at a
//! time, and sends again when it is ready. Every request counts in per-second distributions; only a bounded sample is
//! kept whole.
//!
//! Invariants: nothing allocates per request in the steady state; load threads share nothing per request but the
//! counters a plan asks for (iterations, sequential data); latency is from the intended send, and the generator's own
//! delay stands beside it; nothing here prints, resolves names or knows about experiments.

mod check;
mod clock;
mod collector;
pub mod csv_rows;
mod data;
mod drivers;
mod encoding;
mod error;
mod flows;
mod models;
mod outcome;
mod random;
mod recorder;
mod request;
mod run;
mod sampling;
mod schedule;
#[cfg(test)]
mod testing;
mod trace_context;
pub mod validity;
mod windows;

pub use check::{THREADS_MAX, VUS_MAX};
pub use clock::Clock;
pub use error::Error;
pub use models::ALL as MODELS;
pub use outcome::{LoadOutcome, Phases, ThreadUse};
pub use run::run;
pub use windows::{PlannedWindow, planned_windows};
