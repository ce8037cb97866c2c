//! The hub that workloads run on, and its store.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use narrows_durable::store::{
    AppendLayer, Batching, ClassicStore, DistantStore, FileStore, FileStoreOptions, MemoryStore, SharedStore, Store,
};
use narrows_durable::{Client, Filter, Hub, HubOptions, HubStats, Node, NodeOptions, NodeView, Program, TracedProgram};
use narrows_durable_servers::open_shared;
use narrows_serving::Telemetry;

use crate::Error;
use crate::code::{Activities, registry};
use crate::units::{CurrentRequest, Quota, ThroughputUnits};

/// Store of the hub's state.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum StoreKind {
    /// The engine's log, in files.
    #[default]
    Files,
    /// SQLite, each step in its own transaction.
    Classic,
    /// Memory: the engine's cost without a disk.
    Memory,
    /// A server, PostgreSQL or NATS, by its connection text, which may hold a password. Several processes may share it.
    Server(String),
}

/// How connection texts of servers begin.
const SERVERS: [&str; 3] = ["postgres", "postgresql", "nats"];

impl StoreKind {
    /// Its name in figures: for a server its kind and not its address.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Classic => "classic",
            Self::Memory => "memory",
            Self::Server(url) if url.starts_with("nats") => "nats",
            Self::Server(url) if url.contains("batching=each-step") => "postgres-classic",
            Self::Server(_) => "postgres",
        }
    }
}

impl fmt::Debug for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for StoreKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.split_once("://").is_some_and(|(scheme, _)| SERVERS.contains(&scheme)) {
            return Ok(Self::Server(text.to_owned()));
        }
        [Self::Files, Self::Classic, Self::Memory].into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let expected = "files, classic, memory, postgres, postgres-classic, nats, postgres://… or nats://…";
            // A faulty connection text may hold a password.
            let value = text.split_once("://").map_or(text, |(scheme, _)| scheme).to_owned();
            Error::Setting { name: "store", value, expected }
        })
    }
}

/// The settings of the hub.
#[derive(Debug, Clone)]
pub struct Config {
    /// Store of its state.
    pub store: StoreKind,
    /// Where, unless in memory; made if it is not there, and expected to hold no hub with orchestrations. Without one,
    /// a temporary folder that goes with the process.
    pub folder: Option<PathBuf>,
    /// Round trip that each call of the store takes longer, as if the state were on another machine; zero for none.
    pub store_delay: Duration,
    /// Throughput units of the log of a hub in one process; 0 for no quota.
    pub throughput_units: u16,
    /// Partitions, 1 to 64; as many as the machine has processors without it.
    pub partitions: Option<u16>,
    /// When activities may start.
    pub activities: Activities,
    /// The share of orchestrations whose spans are recorded, 0 to 1.
    pub sample: f64,
    /// The number of this process among those that share a hub on a server.
    pub node: u16,
    /// How long such a process may be silent before the others take its partitions.
    pub lease: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            store: StoreKind::Files,
            folder: None,
            store_delay: Duration::ZERO,
            throughput_units: 0,
            partitions: None,
            activities: Activities::Ordinary,
            sample: 0.01,
            node: 0,
            lease: Duration::from_secs(5),
        }
    }
}

/// A hub with all of its partitions in this process, or one of its nodes.
pub(crate) enum Engine {
    Alone(Hub),
    Node(Node),
}

impl Engine {
    /// Partitions that are not here have counted nothing.
    pub(crate) fn stats(&self) -> HubStats {
        match self {
            Self::Alone(hub) => hub.stats(),
            Self::Node(node) => node.stats(),
        }
    }

    /// Nodes that have partitions.
    pub(crate) fn nodes(&self) -> usize {
        match self {
            Self::Alone(_) => 1,
            Self::Node(node) => node.nodes().iter().filter(|node| !node.partitions.is_empty()).count(),
        }
    }

    /// Waits until another node has replaced this one.
    pub(crate) async fn replaced(&self) {
        loop {
            if let Self::Node(node) = self
                && node.ended().is_some()
            {
                return;
            }
            tokio::time::sleep(POLL_REPLACED).await;
        }
    }

    fn client(&self) -> Client {
        match self {
            Self::Alone(hub) => hub.client(),
            Self::Node(node) => node.client(),
        }
    }

    pub(crate) fn close(&self) -> Result<(), narrows_durable::Error> {
        match self {
            Self::Alone(hub) => hub.close(),
            Self::Node(node) => node.close(),
        }
    }
}

/// How long the partitions may take to spread over the nodes.
const SPREAD_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);
/// Interval at which a node is asked whether another one has replaced it.
const POLL_REPLACED: Duration = Duration::from_secs(1);

/// A hub that is open.
pub(crate) struct OpenHub {
    pub(crate) engine: Engine,
    pub(crate) client: Client,
    pub(crate) store: StoreKind,
    pub(crate) batching: Batching,
    /// The request that runs a workload, under which attempts to append to a log with a quota are traced.
    pub(crate) request: CurrentRequest,
    /// Runs of this process have the numbers after it, which no other process has.
    pub(crate) runs_before: u64,
    /// Where it is, for errors.
    place: String,
    /// Kept until the hub is gone; fields are dropped in order.
    _scratch: Option<tempfile::TempDir>,
}

impl OpenHub {
    /// Opens the hub. Blocks while the store is made.
    pub(crate) fn open(config: &Config, telemetry: &Telemetry) -> Result<Self, Error> {
        let wrong = |name, value: String, expected| Err(Error::Setting { name, value, expected });
        if !(0.0..=1.0).contains(&config.sample) {
            return wrong("sample", config.sample.to_string(), "0 to 1");
        }
        if config.node > 0 && !matches!(config.store, StoreKind::Server(_)) {
            return wrong(
                "node",
                config.node.to_string(),
                "0: only a store on a server is shared by several processes",
            );
        }
        if config.throughput_units > 0 && matches!(config.store, StoreKind::Server(_)) {
            let expected = "0: the quota is of one process, and several share a store on a server";
            return wrong("throughput_units", config.throughput_units.to_string(), expected);
        }
        // Without a share to trace, user code runs without anything around it.
        let code = registry(config.activities);
        if config.sample > 0.0 {
            Self::open_with(config, telemetry, TracedProgram::new(code, telemetry.tracer(), config.sample))
        } else {
            Self::open_with(config, telemetry, code)
        }
    }

    fn open_with(config: &Config, telemetry: &Telemetry, program: impl Program) -> Result<Self, Error> {
        let mut options = HubOptions::default();
        options.partitions = config.partitions.unwrap_or(options.partitions);
        options.meter = Some(telemetry.meter());
        let (store, runs_before) = (config.store.clone(), u64::from(config.node) * RUNS_MAX);
        let request = CurrentRequest::default();
        let quota = (config.throughput_units > 0).then(|| Quota::of_units(config.throughput_units.into()));
        let units = quota.map(|quota| ThroughputUnits::new(quota, request.clone(), telemetry.tracer()));
        let layer = units.map(|units| Arc::new(units) as Arc<dyn AppendLayer>);
        let (engine, batching, folder) = match self::store(config)?.at_distance(config.store_delay, layer) {
            OpenStore::Local(store, folder) => {
                let batching = store.batching();
                (Engine::Alone(Hub::open(store, program, options)?), batching, folder)
            }
            OpenStore::Shared(store) => {
                let batching = store.batching();
                (Engine::Node(Node::open(store, program, options, node(config))?), batching, None)
            }
        };
        let place = folder.as_ref().map_or_else(|| "the hub".to_owned(), |folder| folder.path.display().to_string());
        let scratch = folder.and_then(|folder| folder.scratch);
        let client = engine.client();
        Ok(Self { engine, client, store, batching, request, runs_before, place, _scratch: scratch })
    }

    /// Waits until each node has its share of the partitions, and refuses a hub that has orchestrations of another process.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        if let Engine::Node(node) = &self.engine {
            self.spread(node).await?;
        }
        match self.client.count(Filter::default()).await? {
            0 => Ok(()),
            count => Err(Error::NotEmpty { place: self.place.clone(), count }),
        }
    }

    async fn spread(&self, node: &Node) -> Result<(), Error> {
        let partitions = node.stats().partitions.len();
        let spread = async {
            while !is_spread(&node.nodes(), partitions) {
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::time::timeout(SPREAD_TIMEOUT, spread).await.map_err(|_| Error::NotSpread(SPREAD_TIMEOUT))
    }
}

/// Runs that one process of a hub can number.
const RUNS_MAX: u64 = 1_000_000;

fn node(config: &Config) -> NodeOptions {
    let mut options = NodeOptions::default();
    (options.name, options.lease) = (format!("node-{}", config.node), config.lease);
    options.version = env!("CARGO_PKG_VERSION").to_owned();
    options
}

/// Whether all partitions are taken, and no node that is alive has two more than another.
fn is_spread(nodes: &[NodeView], partitions: usize) -> bool {
    let staying = nodes.iter().filter(|node| node.is_staying());
    let counts: Vec<usize> = staying.map(|node| node.partitions.len()).collect();
    let (most, fewest) = (counts.iter().max(), counts.iter().min());
    let apart = most.zip(fewest).map_or(0, |(most, fewest)| most - fewest);
    counts.iter().sum::<usize>() == partitions && apart <= 1
}

/// Where the store keeps its files, if it has any.
struct Folder {
    path: PathBuf,
    scratch: Option<tempfile::TempDir>,
}

impl Folder {
    fn of(config: &Config) -> Result<Self, Error> {
        if let Some(folder) = &config.folder {
            let failed = |source| Error::Folder { folder: folder.display().to_string(), source };
            std::fs::create_dir_all(folder).map_err(failed)?;
            return Ok(Self { path: folder.clone(), scratch: None });
        }
        let failed = |source| Error::Folder { folder: std::env::temp_dir().display().to_string(), source };
        let scratch = tempfile::Builder::new().prefix("hello-cities-").tempdir().map_err(failed)?;
        Ok(Self { path: scratch.path().to_owned(), scratch: Some(scratch) })
    }
}

/// Store that a hub is opened on.
enum OpenStore {
    Local(Arc<dyn Store>, Option<Folder>),
    Shared(Arc<dyn SharedStore>),
}

impl OpenStore {
    /// The same store, this round trip away, with a layer around its appends if there is one.
    fn at_distance(self, round_trip: Duration, layer: Option<Arc<dyn AppendLayer>>) -> Self {
        match (self, layer) {
            (near, None) if round_trip.is_zero() => near,
            (Self::Local(store, folder), None) => Self::Local(Arc::new(DistantStore::new(store, round_trip)), folder),
            (Self::Local(store, folder), Some(layer)) => {
                Self::Local(Arc::new(DistantStore::new(store, round_trip).with_layer(layer)), folder)
            }
            // Nothing but a hub in one process has a layer.
            (Self::Shared(store), _) => Self::Shared(Arc::new(DistantStore::new(store, round_trip))),
        }
    }
}

fn store(config: &Config) -> Result<OpenStore, Error> {
    Ok(match &config.store {
        StoreKind::Memory => OpenStore::Local(Arc::new(MemoryStore::new()), None),
        StoreKind::Server(url) => OpenStore::Shared(open_shared(url)?),
        StoreKind::Files => {
            let folder = Folder::of(config)?;
            OpenStore::Local(Arc::new(FileStore::open(&folder.path, FileStoreOptions::default())?), Some(folder))
        }
        StoreKind::Classic => {
            let folder = Folder::of(config)?;
            OpenStore::Local(Arc::new(ClassicStore::open(folder.path.join("hub.db"))?), Some(folder))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_told_without_its_password() {
        let store: StoreKind = "postgres://narrows:secret@127.0.0.1/hubs?hub=a".parse().unwrap();
        assert_eq!((store.as_str(), format!("{store:?}")), ("postgres", "postgres".to_owned()));
        let refused = "mysql://narrows:secret@127.0.0.1/hubs".parse::<StoreKind>().unwrap_err().to_string();
        assert!(refused.contains("mysql") && !refused.contains("secret"), "{refused}");
    }
}
