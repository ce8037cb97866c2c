//! One connection to PostgreSQL with its statements prepared, on which queries follow each other without waiting.
//!
//! PostgreSQL responds in order, so a query that is sent before the response to the one before costs neither side a
//! change of task. The server itself ends a statement that takes too long (`statement_timeout`).

use std::time::Duration;

use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::{Client, NoTls};

use super::failure::innermost;
use super::rows::Rows;
use super::statement::{Query, Statements};

/// How long making a connection may take, statements included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// An open connection.
#[derive(Debug)]
pub(super) struct Session {
    client: Client,
    statements: Statements,
    driver: AbortHandle,
}

/// Ready when the connection has ended, with the reason.
pub(super) type SessionEnd = JoinHandle<String>;

impl Session {
    /// Connects and prepares.
    ///
    /// # Errors
    ///
    /// The message of the system or the database.
    pub(super) async fn open(config: &tokio_postgres::Config) -> Result<(Self, SessionEnd), String> {
        let opening = tokio::time::timeout(CONNECT_TIMEOUT, Self::connect(config)).await;
        match opening {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(error)) => Err(innermost(&error)),
            Err(_) => Err(format!("no connection within {} ms", CONNECT_TIMEOUT.as_millis())),
        }
    }

    async fn connect(config: &tokio_postgres::Config) -> Result<(Self, SessionEnd), tokio_postgres::Error> {
        let (client, connection) = config.connect(NoTls).await?;
        let ended = tokio::spawn(async {
            match connection.await {
                Ok(()) => "it was closed".to_owned(),
                Err(error) => innermost(&error),
            }
        });
        let driver = ended.abort_handle();
        let statements = match Statements::prepare(&client).await {
            Ok(statements) => statements,
            Err(error) => {
                driver.abort();
                return Err(error);
            }
        };
        Ok((Self { client, statements, driver }, ended))
    }

    pub(super) async fn run(&self, query: &Query) -> Result<Result<Rows, String>, tokio_postgres::Error> {
        self.statements.run(&self.client, query).await
    }

    /// Ends the connection. What is under way on it fails as lost.
    pub(super) fn cut(&self) {
        self.driver.abort();
    }
}
