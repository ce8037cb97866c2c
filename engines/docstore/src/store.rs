//! The account: its databases by name or by resource id, and the time requests are booked at.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::Clock;
use crate::config::Config;
use crate::container::{Container, Plan};
use crate::database::{Database, MAX_RESOURCES, Rejected};
use crate::definition::Definition;
use crate::partition_key::KeyDefinition;
use crate::resource_id::ContainerId;
use crate::throughput::Throughput;

/// The account with all it holds.
pub(crate) struct Store {
    databases: RwLock<Vec<Arc<Database>>>,
    /// The number of the next database or container.
    next_number: AtomicU32,
    /// Physical partitions of containers that are created, at least; without it their throughput decides.
    partitions: Option<u32>,
    split_bytes: usize,
    clock: Box<dyn Clock>,
    opened_unix_s: u64,
}

impl Store {
    /// Builds and seeds the database and containers of `config`, which has been validated.
    pub(crate) fn open(config: &Config, clock: impl Clock) -> Self {
        let opened_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let store = Self {
            databases: RwLock::default(),
            next_number: AtomicU32::new(0),
            partitions: config.partitions_of_created,
            split_bytes: config.split_bytes,
            clock: Box::new(clock),
            opened_unix_s,
        };
        // Names are distinct and few enough: `config` is valid.
        if let Ok(database) = store.create_database(&config.database, None) {
            for name in &config.containers {
                let definition = Definition::plain(name, KeyDefinition::of_property(&config.partition_key));
                let throughput = Throughput::Manual(config.throughput_ru_per_second);
                let plan =
                    Plan { definition, throughput, partitions: config.partitions, split_bytes: config.split_bytes };
                if let Ok(container) = store.create(&database, plan) {
                    container.seed(config.documents_per_container);
                }
            }
        }
        store
    }

    /// The database with this name or resource id.
    pub(crate) fn database(&self, name: &str) -> Option<Arc<Database>> {
        self.databases().into_iter().find(|database| database.name == name || database.rid == name)
    }

    /// Every database, in the order of creation.
    pub(crate) fn databases(&self) -> Vec<Arc<Database>> {
        self.databases.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Every container of every database.
    pub(crate) fn containers(&self) -> Vec<Arc<Container>> {
        self.databases().iter().flat_map(|database| database.containers()).collect()
    }

    /// Adds a database, unless there is one with this name.
    pub(crate) fn create_database(
        &self,
        name: &str,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Database>, Rejected> {
        let mut databases = self.databases.write().unwrap_or_else(PoisonError::into_inner);
        if databases.iter().any(|database| database.name == name) {
            return Err(Rejected::Exists);
        }
        if databases.len() >= MAX_RESOURCES {
            return Err(Rejected::TooMany);
        }
        let database = Arc::new(Database::new(self.number(), name, throughput, self.unix_s()));
        databases.push(Arc::clone(&database));
        Ok(database)
    }

    /// Removes a database with its containers.
    pub(crate) fn delete_database(&self, database: &Database) {
        let mut databases = self.databases.write().unwrap_or_else(PoisonError::into_inner);
        databases.retain(|kept| kept.number != database.number);
    }

    /// Adds a container with as many partitions as its throughput takes, or as new containers are to have.
    pub(crate) fn create_container(
        &self,
        database: &Database,
        definition: Definition,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>, Rejected> {
        let throughput = throughput.or(database.throughput()).unwrap_or(Throughput::DEFAULT);
        let partitions = self.partitions.unwrap_or(1).max(throughput.partitions());
        self.create(database, Plan { definition, throughput, partitions, split_bytes: self.split_bytes })
    }

    fn create(&self, database: &Database, plan: Plan) -> Result<Arc<Container>, Rejected> {
        let name = plan.definition.name.clone();
        database.create(&name, || {
            let id = ContainerId { database: database.number, container: self.number() };
            Container::new(id, plan, self.unix_s(), self.opened_unix_s)
        })
    }

    fn number(&self) -> u32 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Time on the store's clock.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// The same time for `_ts`, in seconds since 1970.
    pub(crate) fn unix_s(&self) -> u64 {
        self.opened_unix_s.saturating_add(self.clock.now().as_secs())
    }
}
