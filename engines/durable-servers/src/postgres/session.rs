//! One connection to PostgreSQL that is made when it is needed and made again when it was lost.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use super::failure::StatementFailure;
use super::sql;
use crate::calls::pause;

/// The values of a statement.
pub(super) type Values = Vec<Box<dyn ToSql + Send + Sync>>;

/// Settings of a connection.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) config: tokio_postgres::Config,
    pub(super) schema: String,
    /// The number that the store's connections hold as an advisory lock.
    pub(super) session: i64,
    pub(super) call_timeout: Duration,
    pub(super) retry_timeout: Duration,
}

/// Rows, and how often the statement was sent.
pub(super) struct StatementResult {
    pub(super) rows: Vec<Row>,
    pub(super) attempts: u32,
}

/// A place for one connection.
#[derive(Debug)]
pub(super) struct Slot {
    setup: Setup,
    session: tokio::sync::Mutex<Option<std::sync::Arc<Session>>>,
}

#[derive(Debug)]
struct Session {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    driver: AbortHandle,
}

impl Slot {
    pub(super) fn new(setup: Setup) -> Self {
        Self { setup, session: tokio::sync::Mutex::default() }
    }

    /// Connects, once, if there is no connection yet.
    pub(super) async fn connect(&self) -> Result<(), StatementFailure> {
        self.session().await.map(drop)
    }

    /// Runs a statement, and if the connection was lost, its form `again` until the time for it is over.
    pub(super) async fn call(
        &self,
        statement: sql::Statement,
        values: Values,
    ) -> Result<StatementResult, StatementFailure> {
        let begun = Instant::now();
        let (mut failures, mut attempts) = (0, 0);
        loop {
            let failed = match self.session().await {
                Ok(session) => {
                    attempts += 1;
                    let sql = if attempts == 1 { statement.first } else { statement.again };
                    match self.within_time(session.query(sql, &values)).await {
                        Ok(rows) => return Ok(StatementResult { rows, attempts }),
                        Err(failed) => failed,
                    }
                }
                Err(failed) => failed,
            };
            if matches!(failed, StatementFailure::Lost(_) | StatementFailure::Timeout(_)) {
                self.close().await;
            }
            failures += 1;
            let pause = pause(failures);
            if !failed.is_lost() || begun.elapsed() + pause > self.setup.retry_timeout {
                return Err(failed);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Runs statements without values, as [`call`](Self::call) does. They must not mind being run twice.
    pub(super) async fn script(&self, sql: String) -> Result<(), StatementFailure> {
        let session = self.session().await?;
        let run =
            async { session.client.batch_execute(&sql).await.map_err(|error| StatementFailure::from_postgres(&error)) };
        let result = self.within_time(run).await;
        if result.is_err() {
            // It may be in the middle of a transaction.
            self.close().await;
        }
        result
    }

    /// Ends the connection after the server has freed its locks, so that another store finds them free.
    pub(super) async fn give_up(&self) {
        let session = self.session.lock().await.take();
        if let Some(session) = session {
            // A connection that is lost has no locks.
            let _ = session.client.batch_execute("select pg_advisory_unlock_all()").await;
        }
    }

    async fn close(&self) {
        self.session.lock().await.take();
    }

    async fn within_time<T>(
        &self,
        call: impl Future<Output = Result<T, StatementFailure>>,
    ) -> Result<T, StatementFailure> {
        let timeout = self.setup.call_timeout;
        tokio::time::timeout(timeout, call).await.unwrap_or(Err(StatementFailure::Timeout(timeout.as_millis())))
    }

    async fn session(&self) -> Result<std::sync::Arc<Session>, StatementFailure> {
        let mut slot = self.session.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(std::sync::Arc::clone(session));
        }
        let session = std::sync::Arc::new(self.within_time(Session::open(&self.setup)).await?);
        *slot = Some(std::sync::Arc::clone(&session));
        Ok(session)
    }
}

impl Session {
    async fn open(setup: &Setup) -> Result<Self, StatementFailure> {
        let failed = |error: tokio_postgres::Error| StatementFailure::from_postgres(&error);
        let (client, connection) = setup.config.connect(NoTls).await.map_err(failed)?;
        // How it ended, the next call on it says.
        let driver = tokio::spawn(async { drop(connection.await) }).abort_handle();
        let session = Self { client, statements: Mutex::default(), driver };
        session.client.batch_execute(&prepare(setup)).await.map_err(failed)?;
        Ok(session)
    }

    async fn query(&self, sql: &'static str, values: &Values) -> Result<Vec<Row>, StatementFailure> {
        let failed = |error: tokio_postgres::Error| StatementFailure::from_postgres(&error);
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        let statement = match known {
            Some(statement) => statement,
            None => {
                let statement = self.client.prepare(sql).await.map_err(failed)?;
                self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
                statement
            }
        };
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        self.client.query(&statement, &values).await.map_err(failed)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Settings of every connection. A commit is on the disk before it is confirmed, whatever the server's default;
/// a machine that has vanished loses its locks after about ten seconds.
fn prepare(setup: &Setup) -> String {
    format!(
        "set search_path to \"{}\";
         set default_transaction_isolation to 'read committed';
         set client_min_messages to warning;
         set statement_timeout to {};
         set tcp_keepalives_idle to 4; set tcp_keepalives_interval to 2; set tcp_keepalives_count to 3;
         select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off';
         select pg_advisory_lock_shared({})",
        setup.schema,
        setup.call_timeout.as_millis(),
        setup.session
    )
}
