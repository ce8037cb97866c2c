//! A partitioned document store with provisioned throughput that speaks Cosmos DB's REST shapes.
//!
//! It exists so that a service written against Cosmos DB can be measured on one machine and meet the same narrow
//! places: a budget of request units per physical partition and second, queries that pay for every partition they
//! touch, and answers `429` with a time to wait. What is exact here is the arithmetic of throughput: which partition a
//! key lands on, what a request costs, and when it is refused. Documents live in memory and go with the process.
//!
//! Deliberately absent: authentication (the store listens on loopback), consistency levels, binary JSON, deletes,
//! partition split, and every part of the query language beyond a conjunction of equalities.
//!
//! ```no_run
//! # async fn run() -> Result<(), narrows_docstore::Error> {
//! let config = narrows_docstore::Config::default();
//! let listener = narrows_docstore::bind(&config).await?;
//! narrows_docstore::serve(listener, config).await
//! # }
//! ```

mod budget;
mod charge;
mod clock;
mod config;
mod container;
mod effective_key;
mod error;
mod http;
mod index;
mod murmur;
mod partition;
mod query;
mod resource_id;
mod scalar;
mod seed;
mod sql;
mod store;

pub use config::Config;
pub use error::Error;
pub use http::{bind, serve};
pub use seed::{FIRST_YEAR, MONTHS_PER_OWNER, owners};
