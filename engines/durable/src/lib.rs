//! An embedded engine for durable orchestrations.
//!
//! User code is written as ordinary `async fn`s that call activities, wait for timers and events and talk to
//! entities. Its steps are kept in a log, and after a crash it goes on where it was.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//!
//! use narrows_durable::store::{FileStore, FileStoreOptions};
//! use narrows_durable::{Activity, ActivityContext, Ctx, Failure, Hub, HubOptions, Orchestration, Registry};
//!
//! const HELLO: Activity<String, String> = Activity::new("hello");
//! const TOUR: Orchestration<Vec<String>, String> = Orchestration::new("tour");
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut code = Registry::new();
//! code.activity(HELLO, |_: ActivityContext, city: String| async move { Ok::<_, Failure>(format!("Hello {city}!")) });
//! code.orchestration(TOUR, |ctx: Ctx, cities: Vec<String>| async move {
//!     let mut said = Vec::new();
//!     for city in &cities {
//!         said.push(ctx.call(HELLO, city).await?);
//!     }
//!     Ok::<_, Failure>(said.join(" "))
//! });
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let store = Arc::new(FileStore::open(folder, FileStoreOptions::default())?);
//! let hub = Hub::open(store, code, HubOptions::default())?;
//! let client = hub.client();
//! let cities = vec!["Tokyo".to_owned(), "Seoul".to_owned()];
//! let tour = client.start(TOUR.start(&cities)?.id("tour-1")?).await?;
//! let ended = client.wait(&tour, Duration::from_secs(60)).await?;
//! let output = ended.output.expect("it has ended")?;
//! assert_eq!(output.decode::<String>()?, "Hello Tokyo! Hello Seoul!");
//! hub.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! A *hub* is divided into *partitions*. Each is a state machine with one writer ([`partition`]) and its own log
//! in a [`store`]; an instance lives on the partition that the hash of its identifier says. Everything that one turn
//! of a partition changes is one frame of its log, applied whole or not at all. Frames are written in groups: while
//! one group is on its way to the disk, the next one gathers.
//!
//! A partition runs ahead of its log. Only what leaves it waits until the step that caused it is durable: responses to
//! clients, messages to other partitions, and activities that are not marked idempotent. So nothing that was seen
//! outside is ever taken back, and a step inside costs no wait. [`Mode::PersistFirst`] makes every message wait.
//!
//! An orchestration's future is kept in memory as it stands, up to a bound in bytes; beyond it, and after a crash, it
//! is made again by running its code over its history. Where the code then decides otherwise, or is not there, the
//! orchestration is parked until the hub is opened with code that fits, or fails: see [`Mismatch`].
//!
//! # Guarantees
//!
//! - A start, event or signal that was acknowledged is not lost, and takes effect once.
//! - An activity runs at least once, under a key that is the same each time ([`ActivityContext::key`]).
//! - An operation of an entity takes effect once; operations of one entity never overlap.
//! - Messages from one instance to another arrive in the order they were sent.
//!
//! # Seen from outside
//!
//! [`HubOptions::meter`] and [`TracedProgram`] report a hub's work to OpenTelemetry, [`Hub::stats`] to the program.
//! [`HubReader`] looks into a store without the program, [`HubMaintenance`] changes single instances in it, and
//! [`HubRepair`] makes a damaged one open again.
//!
//! # Limits
//!
//! A [`Hub`] is one process with all partitions. Several processes run one together as [`Node`]s, each with some of the
//! partitions, over a store that they share ([`store::SharedStore`]); there are up to 64 partitions, fixed when the hub is
//! created. No quotas per instance. Instances stay in memory until they are purged, and
//! [`HubOptions::instance_bytes_max`] bounds them.

pub mod codec;
pub mod partition;
pub mod replay;
pub mod store;

mod client;
mod error;
mod event;
mod failure;
mod hub;
mod ids;
mod message;
mod model;
mod node;
mod observe;
mod offline;
mod options;
mod payload;
mod program;
mod stopped;

pub use client::{Client, Filter, InstanceView, Page, Start, Status, Summary};
pub use error::Error;
pub use event::{Caller, Event, EventKind, Version};
pub use failure::{FAILURE_MESSAGE_BYTES_MAX, Failure, FailureKind};
pub use hub::{Health, Hub, HubStats, PartitionStats};
pub use ids::{EntityId, Epoch, INSTANCE_ID_BYTES_MAX, InstanceId, NAME_BYTES_MAX, Name, PartitionId, Position, Time};
pub use message::{Message, MessageKind, Reuse};
pub use model::{
    Activity, ActivityContext, Call, Ctx, DECISIONS_MAX, Either, EntityBuilder, EntityCall, EntityContext, EntityOp,
    EntityType, EventWait, ExternalEvent, Join2, Join3, JoinAll, LockGuard, LockRequest, Orchestration, Registry,
    RetryPolicy, Select2, SelectAll, SubCall, Timer,
};
pub use node::{Advice, AdviceReason, Node, NodeOptions, NodeView, NodeWatch, OwnedPartition, PartitionLoad, advise};
pub use observe::{SPANS_OPEN_MAX, TracedProgram};
pub use offline::{ChangeResults, Damage, Findings, HubMaintenance, HubReader, HubRepair, LISTED_MAX};
pub use options::{HubOptions, Mismatch, Mode, PARTITIONS_MAX};
pub use partition::{Change, Values};
pub use payload::{PAYLOAD_BYTES_MAX, Payload};
pub use program::{ActivityCall, ActivityFuture, Cursor, EntityStep, Operation, Program, Progress};
pub use stopped::StoppedPartition;
