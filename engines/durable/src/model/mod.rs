//! The programming model: orchestrations, activities and entities as typed async Rust, behind
//! [`Program`](crate::Program).
//!
//! An orchestration's future is kept as it stands and polled once per event; its awaits write decisions and read
//! results in the state they share with the cursor (`shared`). There is no executor, no task and no waker.

mod activity;
mod awaits;
mod call;
mod chance;
mod client;
mod combine;
mod context;
mod definition;
mod entity;
mod entity_context;
mod execution;
mod mailbox;
mod registry;
mod replay;
mod retry;
mod scope;
mod sentry;
mod shared;
#[cfg(test)]
mod tests;

pub use activity::ActivityContext;
pub use awaits::{EntityCall, EventWait, LockGuard, LockRequest, Timer};
pub use call::{Call, SubCall};
pub use combine::{Either, Join2, Join3, JoinAll, Select2, SelectAll};
pub use context::Ctx;
pub use definition::{Activity, EntityOp, EntityType, ExternalEvent, Orchestration};
pub use entity::EntityBuilder;
pub use entity_context::EntityContext;
pub use registry::Registry;
pub use retry::RetryPolicy;
pub use shared::DECISIONS_MAX;
