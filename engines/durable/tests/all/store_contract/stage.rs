//! Every kind of store, and how the same one is opened again after the process has ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use narrows_durable::store::{
    ClassicStore, DistantStore, FileStore, FileStoreOptions, MemoryStore, SharedStore, Store, StoreError,
};
use narrows_durable_servers::{NatsStore, NatsStoreOptions, PostgresStore, PostgresStoreOptions};

use super::SHAPE;
use crate::servers::{Nats, Postgres};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Kind {
    Memory,
    Files,
    Classic,
    /// The one before, at a distance.
    Distant,
    Postgres,
    PostgresEachStep,
    Nats,
}

/// The servers of a test.
pub(crate) struct Stage {
    postgres: Option<Postgres>,
    nats: Option<Nats>,
    hubs: AtomicU32,
}

impl Stage {
    pub(crate) fn start() -> Self {
        Self { postgres: Postgres::start(), nats: Nats::start(), hubs: AtomicU32::new(0) }
    }

    /// Without servers.
    pub(crate) fn local() -> Self {
        Self { postgres: None, nats: None, hubs: AtomicU32::new(0) }
    }

    /// An empty store of each kind for which there is a server.
    pub(crate) fn all(&self) -> Vec<Subject<'_>> {
        let local = [Kind::Memory, Kind::Files, Kind::Classic, Kind::Distant].into_iter();
        local.map(|kind| self.subject(kind)).chain(self.shared()).collect()
    }

    /// Those that several processes open at once.
    pub(crate) fn shared(&self) -> Vec<Subject<'_>> {
        let postgres = self.postgres.iter().flat_map(|_| [Kind::Postgres, Kind::PostgresEachStep]);
        let nats = self.nats.iter().map(|_| Kind::Nats);
        postgres.chain(nats).map(|kind| self.subject(kind)).collect()
    }

    fn subject(&self, kind: Kind) -> Subject<'_> {
        let hub = format!("hub-{}", self.hubs.fetch_add(1, Ordering::Relaxed));
        Subject { stage: self, folder: tempfile::tempdir().unwrap(), memory: Arc::new(MemoryStore::new()), hub, kind }
    }
}

/// A store.
pub(crate) struct Subject<'a> {
    stage: &'a Stage,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) memory: Arc<MemoryStore>,
    pub(crate) hub: String,
    pub(crate) kind: Kind,
}

impl Subject<'_> {
    pub(crate) fn try_open(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self.kind {
            Kind::Memory => {
                self.memory.crash();
                Arc::clone(&self.memory) as Arc<dyn Store>
            }
            Kind::Files => Arc::new(FileStore::open(self.folder.path(), small_segments())?),
            Kind::Classic => Arc::new(ClassicStore::open(self.database())?),
            Kind::Distant => Arc::new(self.open_distant()?),
            Kind::Postgres | Kind::PostgresEachStep => Arc::new(self.open_postgres()?),
            Kind::Nats => Arc::new(self.open_nats()?),
        })
    }

    pub(crate) fn open(&self) -> Arc<dyn Store> {
        let store = self.try_open().unwrap();
        store.open_or_create(SHAPE).unwrap();
        store
    }

    pub(crate) fn open_shared(&self) -> Arc<dyn SharedStore> {
        let store = self.connect();
        store.open_or_create(SHAPE).unwrap();
        store
    }

    /// A shared store in which there may be no hub yet.
    pub(crate) fn connect(&self) -> Arc<dyn SharedStore> {
        match self.kind {
            Kind::Postgres | Kind::PostgresEachStep => Arc::new(self.open_postgres().unwrap()),
            Kind::Nats => Arc::new(self.open_nats().unwrap()),
            kind => panic!("{kind:?} is not shared"),
        }
    }

    pub(crate) fn open_distant(&self) -> Result<DistantStore<ClassicStore>, StoreError> {
        let classic = ClassicStore::open(self.database())?;
        Ok(DistantStore::new(Arc::new(classic), Duration::from_micros(10)))
    }

    pub(crate) fn open_postgres(&self) -> Result<PostgresStore, StoreError> {
        let url = self.stage.postgres.as_ref().unwrap().url(&self.hub);
        let batching = if self.kind == Kind::PostgresEachStep { "&batching=each-step" } else { "" };
        PostgresStore::open(&format!("{url}{batching}"), PostgresStoreOptions::default())
    }

    pub(crate) fn open_nats(&self) -> Result<NatsStore, StoreError> {
        NatsStore::open(&self.stage.nats.as_ref().unwrap().url(&self.hub), NatsStoreOptions::default())
    }

    /// Changes or removes the last batch but one of partition 0. No process has the hub open at this time.
    pub(crate) fn damage_batch(&self) {
        match self.kind {
            Kind::Nats => {
                let server = self.stage.nats.as_ref().unwrap();
                let stream = format!("NRW_{}_p0", self.hub);
                // Among and after the last batches are messages that record who owns the partition.
                let is_batch = |sequence: &u64| {
                    server.subject_of(&stream, *sequence).is_some_and(|subject| subject.ends_with(".log"))
                };
                let gone = (1..=server.last_sequence(&stream)).rev().filter(is_batch).nth(1).unwrap();
                server.publish(&format!("$JS.API.STREAM.MSG.DELETE.{stream}"), &format!("{{\"seq\":{gone}}}"));
            }
            _ => self.change(
                "batches set crc = crc # 1 where partition = 0 and position =
                (select position from batches where partition = 0 order by position desc offset 1 limit 1)",
            ),
        }
    }

    /// Changes a blob.
    pub(crate) fn damage_blob(&self, name: &str) {
        match self.kind {
            Kind::Nats => {
                let subject = format!("nrw.{}.name.blob.{}", self.hub, name.replace('.', "_").replace('/', "."));
                self.stage.nats.as_ref().unwrap().publish(&subject, "garbage");
            }
            _ => self.change(&format!("blobs set crc = crc # 1 where name = '{name}'")),
        }
    }

    fn change(&self, what: &str) {
        let sql = format!("set search_path to \"narrows_{}\"; update {what} returning 1", self.hub);
        assert_eq!(self.stage.postgres.as_ref().unwrap().sql(&sql).unwrap(), "1");
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("hub.db")
    }
}

/// So small that a few frames fill one.
pub(crate) fn small_segments() -> FileStoreOptions {
    FileStoreOptions { segment_bytes: 64 << 10 }
}
