//! One database: its containers by name or by resource id.

use std::sync::{Arc, PoisonError, RwLock};

use crate::container::Container;
use crate::resource_id;
use crate::storage::{DatabaseRecord, Unavailable};
use crate::throughput::Throughput;

/// Cosmos DB's limit of databases and containers of an account.
pub(crate) const MAX_RESOURCES: usize = 500;

/// One database with all it holds.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) rid: String,
    pub(crate) created_unix_s: u64,
    /// Throughput of containers that are created without a throughput.
    throughput: RwLock<Option<Throughput>>,
    containers: RwLock<Vec<Arc<Container>>>,
}

/// Why nothing was created.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CreateError {
    /// There is one with this name.
    Exists,
    /// There are as many as there may be.
    TooMany,
    /// The disk takes no more writes.
    Unavailable(Unavailable),
}

impl Database {
    pub(crate) fn new(record: &DatabaseRecord) -> Self {
        let DatabaseRecord { number, name, created_unix_s, throughput } = record;
        Self {
            name: name.clone(),
            number: *number,
            rid: resource_id::database(*number),
            created_unix_s: *created_unix_s,
            throughput: RwLock::new(*throughput),
            containers: RwLock::default(),
        }
    }

    /// The database as plain data.
    fn record(&self, throughput: Option<Throughput>) -> DatabaseRecord {
        let (number, name, created_unix_s) = (self.number, self.name.clone(), self.created_unix_s);
        DatabaseRecord { number, name, created_unix_s, throughput }
    }

    /// The container with this name or resource id.
    pub(crate) fn container(&self, name: &str) -> Option<Arc<Container>> {
        self.containers().into_iter().find(|container| container.name == name || container.rid == name)
    }

    /// Every container, in the order of creation.
    pub(crate) fn containers(&self) -> Vec<Arc<Container>> {
        self.containers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds the container that `make` makes, unless there is one named `name`.
    pub(crate) fn create(&self, name: &str, make: impl FnOnce() -> Container) -> Result<Arc<Container>, CreateError> {
        let mut containers = self.containers.write().unwrap_or_else(PoisonError::into_inner);
        if containers.iter().any(|container| container.name == name) {
            return Err(CreateError::Exists);
        }
        if containers.len() >= MAX_RESOURCES {
            return Err(CreateError::TooMany);
        }
        let container = Arc::new(make());
        containers.push(Arc::clone(&container));
        Ok(container)
    }

    /// Adds a container that the disk has.
    pub(crate) fn adopt(&self, container: Container) {
        self.containers.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(container));
    }

    /// Removes a container; requests under way still see it. `keep` hears of it in the order of such changes.
    pub(crate) fn delete(&self, container: &Container, keep: impl FnOnce()) {
        let mut containers = self.containers.write().unwrap_or_else(PoisonError::into_inner);
        containers.retain(|kept| kept.id != container.id);
        keep();
    }

    pub(crate) fn throughput(&self) -> Option<Throughput> {
        *self.throughput.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Provides another throughput. `keep` hears of it in the order of such changes.
    pub(crate) fn provision(&self, throughput: Throughput, keep: impl FnOnce(DatabaseRecord)) {
        let mut current = self.throughput.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(throughput);
        keep(self.record(*current));
    }
}
