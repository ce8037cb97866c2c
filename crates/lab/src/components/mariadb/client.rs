//! A connection to a server, for questions about itself.

use std::time::Duration;

use mysql_async::prelude::{FromValue, Queryable};
use mysql_async::{Conn, OptsBuilder, Row};
use tokio::runtime::Runtime;

use crate::components::mariadb::OWNER;
use crate::experiment::{ServerKind, ServerUrl};

/// Limits of the session, whatever its user may do. MySQL and MariaDB bound a statement's time by different
/// variables, so that is done by the client.
const BOUNDS: [&str; 2] = ["SET SESSION TRANSACTION READ ONLY", "SET SESSION lock_wait_timeout = 1"];

/// A client that keeps its connection, and makes a new one after an error.
pub(super) struct Client {
    url: ServerUrl,
    state: Option<(Runtime, Conn)>,
}

impl Client {
    /// To a server; connects with the first question.
    pub(super) fn new(url: ServerUrl) -> Self {
        Self { url, state: None }
    }

    /// The rows of a query. Errors in the server's words, and when there is no response within the timeout.
    pub(super) fn rows(&mut self, query: &str, timeout: Duration) -> Result<Vec<Row>, String> {
        let (runtime, connection) = match self.state.take() {
            Some((runtime, connection)) => (runtime, Some(connection)),
            None => (runtime()?, None),
        };
        let url = &self.url;
        let read = runtime.block_on(async {
            let ask = async {
                let mut connection = match connection {
                    Some(connection) => connection,
                    None => connect(url).await?,
                };
                let rows: Vec<Row> = connection.query(query).await?;
                Ok::<_, mysql_async::Error>((connection, rows))
            };
            tokio::time::timeout(timeout, ask).await
        });
        let (connection, rows) = read
            .map_err(|_| format!("no response within {} s", timeout.as_secs()))?
            .map_err(|error| error.to_string())?;
        self.state = Some((runtime, connection));
        Ok(rows)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some((runtime, connection)) = self.state.take() {
            // Without a word of farewell the server counts an aborted connection.
            let _ = runtime.block_on(async { tokio::time::timeout(FAREWELL, connection.disconnect()).await });
        }
    }
}

const FAREWELL: Duration = Duration::from_millis(200);

fn runtime() -> Result<Runtime, String> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())
}

async fn connect(url: &ServerUrl) -> Result<Conn, mysql_async::Error> {
    let options = OptsBuilder::default()
        .ip_or_hostname(&url.host)
        .tcp_port(url.port)
        .user(url.user.as_deref())
        .pass(url.password())
        .db_name(url.database.as_deref())
        .prefer_socket(false);
    let mut connection = Conn::new(options).await?;
    for bound in BOUNDS {
        connection.query_drop(bound).await?;
    }
    Ok(connection)
}

/// A query for the server's status variables of these names.
pub(super) fn status_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", quoted.join(", "))
}

/// A server on this machine that Narrows started.
pub(in crate::components) fn local(port: u16) -> ServerUrl {
    ServerUrl::local(ServerKind::Mysql, port, OWNER, "")
}

/// One status variable of the server at a port.
pub(in crate::components) fn status(port: u16, name: &str, timeout: Duration) -> Result<String, String> {
    let rows = Client::new(local(port)).rows(&status_of(&[name]), timeout)?;
    rows.first().and_then(|row| column(row, 1)).ok_or_else(|| format!("it has no status variable {name}"))
}

/// A value of a row; `None` if it is null or of another type.
pub(super) fn column<T: FromValue>(row: &Row, at: usize) -> Option<T> {
    row.get_opt::<Option<T>, usize>(at)?.ok()?
}
