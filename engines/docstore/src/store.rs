//! The one database: its containers by name or by resource id, and the time requests are booked at.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::Clock;
use crate::config::Config;
use crate::container::Container;
use crate::resource_id;

/// The database with all it holds.
pub(crate) struct Store {
    pub(crate) database: String,
    pub(crate) database_rid: String,
    containers: Vec<Container>,
    clock: Box<dyn Clock>,
    opened_unix_s: u64,
}

impl Store {
    /// Builds and seeds every container; `config` has been validated.
    pub(crate) fn open(config: &Config, clock: impl Clock) -> Self {
        let opened_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let containers = (0_u32..)
            .zip(&config.containers)
            .map(|(number, name)| Container::seeded(number, name, config, opened_unix_s))
            .collect();
        Self {
            database: config.database.clone(),
            database_rid: resource_id::database(),
            containers,
            clock: Box::new(clock),
            opened_unix_s,
        }
    }

    /// Whether `name` is the database's name or resource id.
    pub(crate) fn is_database(&self, name: &str) -> bool {
        name == self.database || name == self.database_rid
    }

    /// The container with this name or resource id.
    pub(crate) fn container(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|container| container.name == name || container.rid == name)
    }

    /// Every container.
    pub(crate) fn containers(&self) -> &[Container] {
        &self.containers
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
