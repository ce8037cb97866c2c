//! Customer 360: three services in a chain over PostgreSQL, made to be fast enough that what is put around them shows.
//!
//! It is the system of a published benchmark of sidecars. [`customer`] calls [`person`], which calls `name`, which
//! queries the database for five rows; each wraps what it got. Each service is its own process with one thread.
//! Routes and responses are the original's, field by field.
//!
//! A request that nobody samples costs no telemetry: its trace context goes from hop to hop as it came. HTTP is spoken
//! by hyper directly, without a framework, and a call's connection is driven by the task that waits for the response.
//!
//! The same services in Spring Boot, as the benchmark had them, are in `spring/`; [`Command`] builds and starts them too.
//!
//! The services know nothing of Narrows. They speak OpenTelemetry to whatever `OTEL_EXPORTER_OTLP_ENDPOINT` names, and
//! W3C trace context to each other. Deliberately absent: authentication (they listen on loopback), TLS (that is what
//! sidecars are for), and caches, which would leave nothing to measure.

mod base_url;
mod command;
mod demo;
mod error;
mod name;
mod payload;
mod response;
mod server;
mod spring;
mod telemetry;
#[cfg(test)]
mod testing;
mod trace;
mod upstream;

pub mod customer;
pub mod person;

pub use base_url::BaseUrls;
pub use command::Command;
pub use demo::DEMO;
pub use error::Error;
pub use name::Config as NameConfig;
pub use name::open as open_name;
pub use server::Service;
pub use upstream::{Choice, Config as UpstreamConfig};
