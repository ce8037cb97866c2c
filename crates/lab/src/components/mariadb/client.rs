//! A connection to a server, for questions about itself.

use std::collections::BTreeMap;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use tokio::runtime::Runtime;

use crate::components::mariadb::OWNER;

/// A client that keeps its connection, and makes a new one after an error.
pub(super) struct Client {
    port: u16,
    state: Option<(Runtime, Conn)>,
}

impl Client {
    /// To the server at a port; connects with the first question.
    pub(super) fn new(port: u16) -> Self {
        Self { port, state: None }
    }

    /// The server's status variables of these names. Errors in the server's words, and when there is no response within
    /// the timeout.
    pub(super) fn status(&mut self, names: &[&str], timeout: Duration) -> Result<BTreeMap<String, String>, String> {
        let (runtime, connection) = match self.state.take() {
            Some((runtime, connection)) => (runtime, Some(connection)),
            None => (runtime()?, None),
        };
        let port = self.port;
        let read = runtime.block_on(async {
            let ask = async {
                let mut connection = match connection {
                    Some(connection) => connection,
                    None => connect(port).await?,
                };
                let rows: Vec<(String, String)> = connection.query(question(names)).await?;
                Ok::<_, mysql_async::Error>((connection, rows))
            };
            tokio::time::timeout(timeout, ask).await
        });
        let (connection, rows) = read
            .map_err(|_| format!("no response within {} s", timeout.as_secs()))?
            .map_err(|error| error.to_string())?;
        self.state = Some((runtime, connection));
        Ok(rows.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect())
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

async fn connect(port: u16) -> Result<Conn, mysql_async::Error> {
    let options =
        OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(port).user(Some(OWNER)).prefer_socket(false);
    Conn::new(options).await
}

fn question(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", quoted.join(", "))
}

/// One status variable of the server at a port.
pub(in crate::components) fn status(port: u16, name: &str, timeout: Duration) -> Result<String, String> {
    let mut found = Client::new(port).status(&[name], timeout)?;
    found.remove(name).ok_or_else(|| format!("it has no status variable {name}"))
}
