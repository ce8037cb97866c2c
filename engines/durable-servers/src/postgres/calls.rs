//! The connections of a store, and statements on them for callers that wait.

use narrows_durable::PartitionId;
use narrows_durable::store::{Location, StoreError};

use super::options::{Address, PostgresStoreOptions};
use super::session::{Setup, Slot, StatementResult, Values};
use super::sql;
use crate::blocking::BlockingRuntime;
use crate::calls::{refused, unique_number};

/// Subject of a call, for its errors.
pub(super) struct Act {
    pub(super) action: &'static str,
    pub(super) what: String,
}

impl Act {
    pub(super) fn new(action: &'static str, what: impl Into<String>) -> Self {
        Self { action, what: what.into() }
    }
}

/// The connections of a store.
#[derive(Debug)]
pub(super) struct Calls {
    blocking: BlockingRuntime,
    slots: Vec<Slot>,
    server: String,
    schema: String,
    session: i64,
}

impl Calls {
    /// Makes the first connection.
    pub(super) fn open(address: Address, options: &PostgresStoreOptions) -> Result<Self, StoreError> {
        let server = address.server;
        let place = || Location::Remote { server: server.clone(), what: "a connection".to_owned() };
        let blocking = BlockingRuntime::start("postgres-store")
            .map_err(|error| refused("start a thread for", place(), error.to_string()))?;
        let session = unique_number();
        let setup = Setup {
            config: address.config,
            schema: address.schema.clone(),
            session,
            call_timeout: options.call_timeout,
            retry_timeout: options.retry_timeout,
        };
        let slots = (0..options.connections).map(|_| Slot::new(setup.clone())).collect();
        let calls = Self { blocking, slots, server: server.clone(), schema: address.schema, session };
        let slot = calls.slot(0);
        calls.blocking.run(slot.connect()).map_err(|failed| failed.at("open", place()))?;
        Ok(calls)
    }

    /// Server, database and hub, for people.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    pub(super) fn session(&self) -> i64 {
        self.session
    }

    pub(super) fn place(&self, what: impl Into<String>) -> Location {
        Location::Remote { server: self.server.clone(), what: what.into() }
    }

    /// Runs a statement of a partition.
    pub(super) fn of_partition(
        &self,
        partition: PartitionId,
        statement: sql::Statement,
        values: Values,
        act: Act,
    ) -> Result<StatementResult, StoreError> {
        self.on(usize::from(partition.0), statement, values, act)
    }

    /// Runs a statement of a blob, on a connection that its name says.
    pub(super) fn of_blob(
        &self,
        name: &str,
        sql: &'static str,
        values: Values,
        act: Act,
    ) -> Result<StatementResult, StoreError> {
        self.on(crc32fast::hash(name.as_bytes()) as usize, sql::Statement::repeatable(sql), values, act)
    }

    /// Runs a statement of the hub, which may be run twice.
    pub(super) fn of_hub(&self, sql: &'static str, values: Values, act: Act) -> Result<StatementResult, StoreError> {
        self.on(0, sql::Statement::repeatable(sql), values, act)
    }

    /// Runs statements without values.
    pub(super) fn script(&self, sql: String, act: Act) -> Result<(), StoreError> {
        let slot = self.slot(0);
        self.blocking.run(slot.script(sql)).map_err(|failed| failed.at(act.action, self.place(act.what)))
    }

    fn on(
        &self,
        number: usize,
        statement: sql::Statement,
        values: Values,
        act: Act,
    ) -> Result<StatementResult, StoreError> {
        let slot = self.slot(number);
        self.blocking.run(slot.call(statement, values)).map_err(|failed| failed.at(act.action, self.place(act.what)))
    }

    fn slot(&self, number: usize) -> &Slot {
        &self.slots[number % self.slots.len()]
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);
        self.blocking.run(async {
            let given_up = async {
                for slot in &self.slots {
                    slot.give_up().await;
                }
            };
            // The server frees the locks of connections that are cut, a little later.
            let _ = tokio::time::timeout(TIMEOUT, given_up).await;
        });
    }
}
