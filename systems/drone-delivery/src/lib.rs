//! Drone delivery: a gateway that makes an invoice out of three services, one of them over a partitioned store.
//!
//! It is the system of a published case study on finding the narrow places of a distributed system. Each service is a
//! process of its own: [`gateway`] calls [`delivery`], [`package`] and [`dronescheduler`] in parallel, and only the
//! last of them queries the store. Where the original spends time or processor on things that are not here (the
//! platform's network, JSON in another language, TLS), a service takes that time as a setting and says so.
//!
//! The services know nothing of Narrows. They speak OpenTelemetry to whatever `OTEL_EXPORTER_OTLP_ENDPOINT` names, and
//! W3C trace context to each other. Deliberately absent: authentication (they listen on loopback), writes, and the
//! services of the original that an invoice does not touch.

mod base_url;
mod command;
mod demo;
mod outgoing;
mod period;
mod store;
#[cfg(test)]
mod testing;
mod work;

pub mod delivery;
pub mod dronescheduler;
pub mod gateway;
pub mod package;

pub use base_url::{BaseUrl, BaseUrls};
pub use command::Command;
pub use demo::DEMO;
pub use narrows_serving::Service;
pub use narrows_system::ServiceError as Error;
pub use store::Parallelism;

/// Instrumentation scope of its spans.
const SCOPE: &str = "narrows-drone-delivery";
