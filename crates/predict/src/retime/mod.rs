//! Effect of a change on single requests: sampled traces with spans that end sooner, calls that start together, and
//! calls that are gone. What else the request waits for keeps its place behind them.
//!
//! `tree.rs` puts a trace's spans into one another, `treatment.rs` says what can happen to a span, `schedule.rs`
//! computes when the request then ends, `calls.rs` names what is called and finds calls that belong together,
//! `refused.rs` takes out refused attempts, and `sample.rs` holds the traces of a trial with the part of their time that depends on the load taken out.

mod calls;
mod refused;
mod sample;
mod schedule;
mod timed_tree;
mod treatment;

pub(crate) use calls::{Group, Names, groups, is_database, is_entry_of, is_refused};
use refused::drop_refused;
pub(crate) use sample::{Edit, RetimedTrace, Sample, SampledTrace};
pub(crate) use treatment::{Length, Start, Treatment};
