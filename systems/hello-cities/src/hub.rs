//! The hub that workloads run on, and its store.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use narrows_durable::store::{Batching, ClassicStore, FileStore, FileStoreOptions, MemoryStore, Store, open_shared};
use narrows_durable::{Client, Filter, Hub, HubOptions, Observed};
use narrows_serving::Telemetry;

use crate::Error;
use crate::code::{Activities, registry};

/// What keeps the hub's state.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum StoreKind {
    /// The engine's log, in files.
    #[default]
    Files,
    /// SQLite, each step in a transaction of its own.
    Classic,
    /// Nothing: what the engine costs without a disk.
    Memory,
    /// A server, PostgreSQL or NATS, by its connection text, which may hold a password.
    Server(String),
}

/// How connection texts of servers begin.
const SERVERS: [&str; 3] = ["postgres", "postgresql", "nats"];

impl StoreKind {
    /// Its name in figures: that of a server says what it is and not where.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Classic => "classic",
            Self::Memory => "memory",
            Self::Server(url) if url.starts_with("nats") => "nats",
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
            let expected = "files, classic, memory, postgres://… or nats://…";
            // What was meant as a connection text may hold a password.
            let value = text.split_once("://").map_or(text, |(scheme, _)| scheme).to_owned();
            Error::Setting { name: "store", value, expected }
        })
    }
}

/// The settings of the hub.
#[derive(Debug, Clone)]
pub struct Config {
    /// What keeps its state.
    pub store: StoreKind,
    /// Where, unless in memory; made if it is not there, and expected to hold no hub with orchestrations. Without one,
    /// a temporary folder that goes with the process.
    pub folder: Option<PathBuf>,
    /// Partitions, 1 to 64; as many as the machine has processors without it.
    pub partitions: Option<u16>,
    /// When activities may start.
    pub activities: Activities,
    /// The share of orchestrations whose spans are recorded, 0 to 1.
    pub sample: f64,
}

/// A hub that is open.
pub(crate) struct Held {
    pub(crate) hub: Hub,
    pub(crate) client: Client,
    pub(crate) store: StoreKind,
    pub(crate) batching: Batching,
    /// Kept until the hub is gone; fields are dropped in order.
    _scratch: Option<tempfile::TempDir>,
}

impl Held {
    /// Opens an empty hub. Blocks while the store is made.
    pub(crate) fn open(config: &Config, telemetry: &Telemetry) -> Result<Self, Error> {
        if !(0.0..=1.0).contains(&config.sample) {
            return Err(Error::Setting { name: "sample", value: config.sample.to_string(), expected: "0 to 1" });
        }
        let (folder, scratch) = folder(config)?;
        let store = store(&config.store, &folder)?;
        let batching = store.batching();
        let mut options = HubOptions::default();
        options.partitions = config.partitions.unwrap_or(options.partitions);
        options.meter = Some(telemetry.meter());
        let code = registry(config.activities);
        // Without a share to trace, user code runs without anything around it.
        let hub = if config.sample > 0.0 {
            Hub::open(store, Observed::new(code, telemetry.tracer(), config.sample), options)?
        } else {
            Hub::open(store, code, options)?
        };
        let client = hub.client();
        Ok(Self { hub, client, store: config.store.clone(), batching, _scratch: scratch })
    }

    /// Refuses a hub that has orchestrations of an earlier process.
    pub(crate) async fn check_empty(&self, config: &Config) -> Result<(), Error> {
        match self.client.count(Filter::default()).await? {
            0 => Ok(()),
            count => {
                let folder = config.folder.as_ref().map_or_else(String::new, |folder| folder.display().to_string());
                Err(Error::NotEmpty { folder, count })
            }
        }
    }
}

fn folder(config: &Config) -> Result<(PathBuf, Option<tempfile::TempDir>), Error> {
    if let Some(folder) = &config.folder {
        let failed = |source| Error::Folder { folder: folder.display().to_string(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        return Ok((folder.clone(), None));
    }
    let failed = |source| Error::Folder { folder: std::env::temp_dir().display().to_string(), source };
    let scratch = tempfile::Builder::new().prefix("hello-cities-").tempdir().map_err(failed)?;
    Ok((scratch.path().to_owned(), Some(scratch)))
}

fn store(kind: &StoreKind, folder: &std::path::Path) -> Result<Arc<dyn Store>, Error> {
    Ok(match kind {
        StoreKind::Files => Arc::new(FileStore::open(folder, FileStoreOptions::default())?),
        StoreKind::Classic => Arc::new(ClassicStore::open(folder.join("hub.db"))?),
        StoreKind::Memory => Arc::new(MemoryStore::new()),
        StoreKind::Server(url) => open_shared(url)?,
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
