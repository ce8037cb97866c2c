//! A partitioned document store with provisioned throughput that speaks Cosmos DB's REST shapes.
//!
//! It exists so that a service written against Cosmos DB can be measured on one machine and meet the same narrow
//! places: a budget of request units per physical partition and second, queries that pay for every partition they
//! touch, and `429` responses with a time to wait. What is exact here is the arithmetic of throughput: which partition
//! a key lands on, what a request costs, and when it is refused. Documents live in memory; with [`Config::dir`] a folder
//! keeps them too, and everything else a client can see, and a write is acknowledged once it is there ([`Flush`]).
//!
//! The surroundings of a cloud store can be simulated too: a network latency with an exponential part, drawn from a seed
//! ([`Config::delay`], [`Config::jitter`]), and physical partitions whose seconds do not begin together:
//! how far apart they are is drawn from the same seed.
//!
//! # Metrics
//!
//! With `OTEL_EXPORTER_OTLP_ENDPOINT` (or `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT`) set, a [`Server`] exports over OTLP
//! (http/protobuf) every second, or every `OTEL_METRIC_EXPORT_INTERVAL` milliseconds, and once more at the end:
//!
//! | name | instrument | unit | value |
//! |---|---|---|---|
//! | `db.throughput.consumed` | counter, f64 | `{request_unit}` | what requests have cost since the store opened, refusals included |
//! | `db.throughput.provisioned` | gauge, f64 | `{request_unit}/s` | what each second provides |
//! | `db.requests.throttled` | counter, u64 | `{request}` | requests refused with status 429 since the store opened |
//! | `db.documents` | gauge, f64 | `By` | the text of the documents |
//!
//! Each has one series per container and physical partition, by the attributes `db.namespace` (the database),
//! `db.collection.name` (the container) and `db.partition.id` (the number of its range, as text). Sums are cumulative and
//! add up to the charges in the responses; a partition that was split keeps its sums and provides nothing. Descriptions are
//! charged in their responses but to no partition. `service.name` is `OTEL_SERVICE_NAME`, else that of
//! `OTEL_RESOURCE_ATTRIBUTES`, else `docstore`. The names of the metrics and `db.partition.id` are Narrows' own: no semantic
//! convention of OpenTelemetry has them; `db.namespace` and `db.collection.name` are the conventions'.
//!
//! The same are at `/metrics` in the text format of Prometheus. `/_explorer/` is a page for people: containers, items, queries,
//! and what each partition uses at this moment.
//!
//! Requests are signed with the account's master key ([`Config::access`]), unless anyone may use the store; it listens on
//! loopback either way. With [`Config::tls`], the port that serves HTTP serves HTTPS too.
//!
//! Deliberately absent: resource tokens and Entra ID, consistency levels above Session, binary JSON,
//! stored procedures, and of the query language user-defined functions, full-text, vector and geospatial search. A
//! database's own throughput is what each of its containers gets that has none: sharing it is not played.
//!
//! ```no_run
//! # async fn run() -> Result<(), narrows_docstore::Error> {
//! let server = narrows_docstore::Server::open(narrows_docstore::Config::default()).await?;
//! server.serve(narrows_docstore::stop_signal()?).await
//! # }
//! ```

mod access;
mod budget;
mod charge;
mod clock;
mod config;
mod container;
mod database;
mod definition;
mod document;
mod effective_key;
mod error;
mod http;
mod http_date;
mod index;
mod latency;
mod metrics;
mod moment;
mod murmur;
mod partition;
mod partition_key;
mod query;
mod random;
mod ranges;
mod resource_id;
mod scalar;
mod seed;
mod sql;
mod storage;
mod store;
mod stored_document;
mod throughput;
mod tls;
mod usage;

pub use access::{Access, AccountKey};
pub use budget::Excess;
pub use config::{Config, Flush};
pub use error::Error;
pub use http::Server;
pub use narrows_serving::{Guard, Listen, stop_signal};
pub use seed::{FIRST_YEAR, MONTHS_PER_OWNER, owners};
pub use storage::Repair;
