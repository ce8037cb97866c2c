//! Plain data that every part of Narrows shares: runs, load, traces, series, evidence and findings.
//!
//! The nouns are defined here once. An *experiment* (a file) is executed as a *run* (one run file) of
//! *trials* (variant × repetition), each divided into *windows* (the steady part of each load step).
//!
//! This crate does no input or output, starts no thread and reads no clock. What it computes is
//! arithmetic over its own types (quantiles, totals), so that no two rooms of the house compute it twice.
//!
//! Times are nanoseconds since the Unix epoch in fields named `*_ns`; lengths of time are `Duration`.

pub mod baseline;
pub mod breakdown;
pub mod call_graph;
pub mod caveat;
pub mod comparison;
pub mod counting;
pub mod diff;
pub mod evidence;
pub mod finding;
pub mod histogram;
pub mod json;
pub mod limit;
pub mod load;
pub mod messages;
pub mod operation;
pub mod prediction;
pub mod prices;
pub mod printable;
pub mod proof;
pub mod published;
pub mod random;
pub mod run;
pub mod scalability;
pub mod sensitivity;
pub mod series;
mod span_facts;
pub mod stalls;
pub mod table;
pub mod time_range;
pub mod trace;
pub mod units;
