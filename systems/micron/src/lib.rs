//! Micron: owners and their items, and transfers between items, over one node of MariaDB or several.
//!
//! It is the service of a published case study: six instances behind a proxy, an N+1 query problem, writes that
//! deadlock, and a database that was the narrow place until its load was spread over three nodes. What the case study
//! changed are settings here: how owners come to their items, whether a transaction that was undone is begun again, and
//! how many nodes there are, of which each instance uses one. The rewrite changed one route, the list of owners; all others are the same
//! in every setting.
//!
//! The service knows nothing of Narrows. It speaks OpenTelemetry to whatever `OTEL_EXPORTER_OTLP_ENDPOINT` names.
//! Deliberately absent: authentication (it listens on loopback), and changing to another node when its own is away.

mod cache;
mod command;
mod database;
mod demo;
mod ledger;
mod lookups;
mod meters;
mod owners;
mod proof;
mod rename;
mod retry;
mod routes;
mod service;
mod session;
mod transaction;
mod transfer;

pub use command::Command;
pub use database::Node;
pub use demo::{DEMO, SCHEMA};
pub use narrows_serving::Service;
pub use narrows_system::ServiceError as Error;
pub use owners::Queries;
pub use service::{Config, open};
pub use session::MovedSession;

/// Instrumentation scope of its spans and metrics.
const SCOPE: &str = "narrows-micron";
