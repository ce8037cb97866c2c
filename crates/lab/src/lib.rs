//! The lab: reads an experiment file, starts what it describes, puts it under load and keeps everything in a run file.
//!
//! This is the one place where load, telemetry and diagnosis meet. Everything here runs on the caller's thread, which
//! must live as long as the run (a service is killed by the kernel when the thread that started it dies). The lab
//! prints nothing: what happens is told to a [`progress::Progress`].

mod adoption;
pub mod agents;
pub mod attach;
pub mod capacity;
mod cgroup;
pub mod change;
mod cluster;
pub mod comparison;
mod comparison_plan;
mod components;
pub mod conclude;
pub mod containers;
mod counting;
pub mod doctor;
pub mod environment;
pub mod error;
pub mod experiment;
pub mod guard;
mod judgement;
pub mod kept_predictions;
pub mod kubernetes;
mod leftovers;
mod measured_parameters;
pub mod outlook;
mod plan;
mod ports;
mod processes;
mod programs;
pub mod progress;
pub mod resolve;
pub mod run;
mod setup;
mod trial;

pub use components::language;
pub use error::Error;
