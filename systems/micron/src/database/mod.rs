//! The database: where it is, a bounded pool of connections to it, statements with a span each, and what can fail.
//!
//! The client library has a pool too; this one is our own because waiting in it has a limit and is measured, and
//! because a connection whose request was given up in mid-statement must never be used again.

mod failure;
mod meters;
mod node;
mod pool;
mod statement;

pub(crate) use failure::Failure;
pub use node::Node;
pub(crate) use pool::{Lease, Pool, PoolConfig};
pub(crate) use statement::Statement;
