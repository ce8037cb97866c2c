//! HelloCities5 and its sisters: workloads of durable orchestrations, and how many events a second they make.
//!
//! They are those of a published comparison of Netherite with its legacy backend, which counts events and defines
//! throughput as [`Workload::events`] and [`Figures`] do. The hub is embedded: the service's process is the engine, so
//! what is measured has no network in it, unless the store is put at a distance. The store is a setting: `files` is the
//! engine's log, `classic` has each step in its own transaction, as the legacy backend has.
//!
//! The service knows nothing of Narrows. It speaks OpenTelemetry to whatever `OTEL_EXPORTER_OTLP_ENDPOINT` names.
//! Deliberately absent: authentication (it listens on loopback), two workloads at a time, and going on with what an
//! earlier process left in the folder.

mod code;
mod command;
mod demo;
mod error;
mod figures;
mod hub;
mod meters;
mod plan;
mod process;
mod run;
mod service;
mod units;

pub use code::Activities;
pub use command::Command;
pub use demo::{DEMO, DEMO_ON_NODES};
pub use error::Error;
pub use figures::Figures;
pub use hub::{Config, StoreKind};
pub use narrows_serving::Service;
pub use plan::{Launch, Plan, Workload};
pub use service::{once, open};

/// Instrumentation scope of its spans and metrics.
const SCOPE: &str = "narrows-hello-cities";
const SERVICE: &str = "hello-cities";
