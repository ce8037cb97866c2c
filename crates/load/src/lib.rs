//! The load engine: models, drivers, pacing, and the validity of the generator itself.
//!
//! A plan goes in ([`narrows_model::load::LoadPlan`]), seconds and samples come out while it runs ([`run`]), a summary
//! when it is over ([`LoadOutcome`]). Each virtual user has one connection and one request at a time. In a closed model
//! it begins again when it is ready; in an open one iterations arrive at a rate, and each takes a user that is free.
//! Every request counts in per-second distributions; only a bounded sample is kept whole.
//!
//! A thread's loop is in `drivers/worker/`, the two ways to send and receive beside it; what responses mean beyond
//! their status is in `session/`.
//!
//! Invariants: nothing allocates per plain request in the steady state; load threads share nothing per request but the
//! counters a plan needs (iterations, sequential data); latency is from the intended send, and the generator's own
//! delay stands beside it; nothing here prints, resolves names or knows about experiments.

mod arrivals;
mod check;
mod clock;
mod collector;
pub mod csv_rows;
mod data;
mod drivers;
mod encoding;
mod error;
mod flows;
pub mod json_rows;
mod merged;
mod models;
mod outcome;
mod part;
mod random;
mod recorder;
mod report;
mod request;
mod run;
mod sampling;
mod schedule;
mod session;
#[cfg(test)]
mod testing;
mod tls;
mod trace_context;
pub mod validity;
mod windows;

pub use check::{RATE_MAX, RATE_MIN, REDIRECTS_MAX, THREADS_MAX, VUS_MAX};
pub use clock::Clock;
pub use error::Error;
pub use merged::{MergedSeconds, MergedTotals};
pub use outcome::{ArrivalTotals, LoadOutcome, Phases, ThreadUse};
pub use part::LoadPart;
pub use report::PartReport;
pub use run::{can_be_taken_over, run, run_part, second_after, second_at, threads};
pub use schedule::arrivals;
pub use windows::{PlannedWindow, WindowsUnderWay, placed, planned_windows};
