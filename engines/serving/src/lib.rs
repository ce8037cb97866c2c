//! The common part of every small server of the engines and the reference systems, in one place and compiled once:
//! take an address, refuse strangers beyond loopback, bound its connections, drain on a signal, call others, and report
//! to OpenTelemetry.
//!
//! It knows none of them. A server's responses, and the names of its spans, stay with the server.

pub mod client;
pub mod connections;
mod error;
pub mod export;
mod export_client;
pub mod problem;
mod server;
pub mod server_span;
mod signals;
mod telemetry;

pub use error::Error;
pub use narrows_listener::{Guard, Listen, Token};
pub use server::{Service, TOKEN_EXPECTED};
pub use signals::stop_signal;
pub use telemetry::Telemetry;
