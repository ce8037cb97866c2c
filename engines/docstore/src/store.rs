//! The account: its databases by name or by resource id, and the time requests are booked at.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Error;
use crate::clock::Clock;
use crate::config::Config;
use crate::container::{Container, Plan, Surroundings};
use crate::database::{CreateError, Database, MAX_RESOURCES};
use crate::definition::Definition;
use crate::partition_key::KeyDefinition;
use crate::resource_id::{ContainerId, NUMBERS};
use crate::storage::{Change, DatabaseRecord, Journal, OpenFolder, Unavailable};
use crate::throughput::Throughput;

/// The account with all it holds.
pub(crate) struct Store {
    databases: RwLock<Vec<Arc<Database>>>,
    /// The number of the next database or container.
    next_number: AtomicU32,
    /// Physical partitions of containers that are created, at least; without it their throughput decides.
    partitions: Option<u32>,
    clock: Box<dyn Clock>,
    setting: Surroundings,
}

impl Store {
    /// Opens the store that the folder of `config` keeps. Without a folder, or in a new one, there are the database and the
    /// containers of `config`, which has been validated.
    pub(crate) fn open(config: &Config, clock: impl Clock) -> Result<Self, Error> {
        let opened_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let journal = if config.dir.is_some() { Journal::new() } else { Journal::none() };
        let store = Self {
            databases: RwLock::default(),
            next_number: AtomicU32::new(0),
            partitions: config.partitions_of_created,
            clock: Box::new(clock),
            setting: Surroundings {
                journal,
                opened_unix_s,
                split_bytes: config.split_bytes,
                excess: config.excess,
                seed: config.seed,
            },
        };
        match &config.dir {
            None => store.fill(config),
            Some(dir) => {
                let fill = |journal: &Journal| store.beside(journal).fill(config);
                store.restore(OpenFolder::open(dir, config.sync, fill)?)?;
            }
        }
        Ok(store)
    }

    /// An empty store whose changes go to `journal`.
    fn beside(&self, journal: &Journal) -> Self {
        Self {
            databases: RwLock::default(),
            next_number: AtomicU32::new(0),
            partitions: self.partitions,
            clock: Box::new(Still),
            setting: Surroundings { journal: journal.clone(), ..self.setting.clone() },
        }
    }

    /// Builds and seeds the database and the containers of `config`.
    fn fill(&self, config: &Config) {
        // Names are distinct and few enough: `config` is valid.
        let Ok(database) = self.create_database(&config.database, None) else { return };
        for name in &config.containers {
            let definition = Definition::plain(name, KeyDefinition::of_property(&config.partition_key));
            let throughput = Throughput::Manual(config.throughput_ru_per_second);
            let plan = Plan { definition, throughput, partitions: config.partitions };
            if let Ok(container) = self.create(&database, plan) {
                container.seed(config.documents_per_container);
            }
        }
    }

    /// Takes all that a folder has, and writes to it from now on.
    fn restore(&self, opened: OpenFolder) -> Result<(), Error> {
        let content = opened.content();
        self.next_number.store(content.next_number, Ordering::Relaxed);
        let mut databases = self.databases.write().unwrap_or_else(PoisonError::into_inner);
        databases.extend(content.databases.iter().map(|record| Arc::new(Database::new(record))));
        for (record, marks) in &content.containers {
            let number = record.id.container;
            let damaged = |what: String| opened.damaged(format!("container number {number}: {what}"));
            let container = Container::restored(record, marks, self.setting.clone()).map_err(damaged)?;
            let ranges = container.ranges();
            opened.documents(number, |held| container.restore(&ranges, held))?;
            container.check_restored(marks).map_err(damaged)?;
            let database = databases.iter().find(|database| database.number == record.id.database);
            database.ok_or_else(|| damaged("it is in no database".to_owned()))?.adopt(container);
        }
        drop(databases);
        opened.serve(&self.setting.journal)
    }

    /// Where changes go.
    pub(crate) fn journal(&self) -> &Journal {
        &self.setting.journal
    }

    /// Writes the changes under way and lets the folder go. Later writes are refused.
    pub(crate) fn close(&self) {
        // Changes that could not be written have been refused already.
        let _ = self.setting.journal.close();
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
    ) -> Result<Arc<Database>, CreateError> {
        self.check()?;
        let mut databases = self.databases.write().unwrap_or_else(PoisonError::into_inner);
        if databases.iter().any(|database| database.name == name) {
            return Err(CreateError::Exists);
        }
        if databases.len() >= MAX_RESOURCES {
            return Err(CreateError::TooMany);
        }
        let (number, name, created_unix_s) = (self.number()?, name.to_owned(), self.unix_s());
        let record = DatabaseRecord { number, name, created_unix_s, throughput };
        let database = Arc::new(Database::new(&record));
        self.journal().describe(Change::CreateDatabase(record));
        databases.push(Arc::clone(&database));
        Ok(database)
    }

    /// Removes a database with its containers.
    pub(crate) fn delete_database(&self, database: &Database) -> Result<(), Unavailable> {
        self.journal().check()?;
        let mut databases = self.databases.write().unwrap_or_else(PoisonError::into_inner);
        databases.retain(|kept| kept.number != database.number);
        self.journal().describe(Change::DeleteDatabase(database.number));
        Ok(())
    }

    /// Removes a container.
    pub(crate) fn delete_container(&self, database: &Database, container: &Container) -> Result<(), Unavailable> {
        self.journal().check()?;
        database.delete(container, || self.journal().describe(Change::DeleteContainer(container.id.container)));
        Ok(())
    }

    /// Provides another throughput for the containers that share their database's.
    pub(crate) fn provision_database(&self, database: &Database, throughput: Throughput) -> Result<(), Unavailable> {
        self.journal().check()?;
        database.provision(throughput, |record| self.journal().describe(Change::AlterDatabase(record)));
        Ok(())
    }

    /// Adds a container with as many partitions as its throughput takes, or as new containers are to have.
    pub(crate) fn create_container(
        &self,
        database: &Database,
        definition: Definition,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>, CreateError> {
        let throughput = throughput.or(database.throughput()).unwrap_or(Throughput::DEFAULT);
        let partitions = self.partitions.unwrap_or(1).max(throughput.partitions());
        self.create(database, Plan { definition, throughput, partitions })
    }

    fn create(&self, database: &Database, plan: Plan) -> Result<Arc<Container>, CreateError> {
        self.check()?;
        let name = plan.definition.name.clone();
        let id = ContainerId { database: database.number, container: self.number()? };
        database.create(&name, || {
            let container = Container::new(id, plan, self.unix_s(), self.setting.clone());
            self.journal().describe(Change::CreateContainer(container.record()));
            container
        })
    }

    fn check(&self) -> Result<(), CreateError> {
        self.journal().check().map_err(CreateError::Unavailable)
    }

    /// A number that no other database or container has or had.
    fn number(&self) -> Result<u32, CreateError> {
        let next = |number| (number < NUMBERS).then_some(number + 1);
        self.next_number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_err(|_| CreateError::TooMany)
    }

    /// Time on the store's clock.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// The same time for `_ts`, in seconds since 1970.
    pub(crate) fn unix_s(&self) -> u64 {
        self.setting.opened_unix_s.saturating_add(self.clock.now().as_secs())
    }
}

/// The clock of a store that is only filled.
struct Still;

impl Clock for Still {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}
