//! Stores of the durable engine on servers that several nodes share: PostgreSQL, and NATS with JetStream.
//!
//! Each is a [`SharedStore`](narrows_durable::store::SharedStore) with its own connection text, which [`open_shared`]
//! tells apart.

mod blocking;
mod calls;
mod names;
mod nats;
mod open;
mod postgres;
mod row;
mod tcp_bus;

pub use nats::{NatsStore, NatsStoreOptions};
pub use open::open_shared;
pub use postgres::{PostgresStore, PostgresStoreOptions};
