//! A MariaDB server of a test's own, and instances of the service over it.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, OptsBuilder};
use narrows_micron::{Config, MovedSession, Queries, SCHEMA, open};
use narrows_serving::Listen;
use narrows_testing::{has_programs, is_disabled, skip};
use tempfile::TempDir;
use tokio::task::JoinHandle;

const TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
const SKIP: &str = "NARROWS_TEST_SKIP_MARIADB";

/// A server that is killed when it is dropped.
pub(crate) struct Mariadb {
    folder: TempDir,
    port: u16,
    process: Child,
}

impl Mariadb {
    /// A server with the service's tables; none, and a word about it, where the programs are missing.
    pub(crate) async fn start() -> Option<Self> {
        if is_disabled(SKIP) {
            skip(&format!("{SKIP} is set"));
            return None;
        }
        if !has_programs(&["mariadb-install-db", "mariadbd"]) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        install(folder.path());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { process: launch(folder.path(), port), folder, port };
        let mut connection = server.connection("").await;
        connection.query_drop("CREATE DATABASE micron").await.unwrap();
        server.connection("micron").await.query_drop(SCHEMA).await.unwrap();
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/micron", self.port)
    }

    /// Ends the server as a crash does, and starts it again on its port and folder.
    pub(crate) async fn crash_and_restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = launch(self.folder.path(), self.port);
        self.connection("micron").await;
    }

    /// A connection, as soon as the server takes one.
    async fn connection(&self, database: &str) -> Conn {
        let options = OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(self.port).user(Some("root"));
        let options = options.prefer_socket(false).db_name((!database.is_empty()).then_some(database));
        let begun = Instant::now();
        loop {
            match Conn::new(options.clone()).await {
                Ok(connection) => return connection,
                Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}\n{}", self.log()),
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The server refuses to run as root without `--user`.
fn user() -> Option<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t")).then_some("--user=root")
}

fn install(folder: &Path) {
    let output = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
        .args(user())
        .arg(format!("--datadir={}", folder.join("data").display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn launch(folder: &Path, port: u16) -> Child {
    let at = |name: &str| folder.join(name).display().to_string();
    Command::new("mariadbd")
        .args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve", "--skip-log-bin"])
        .args(["--innodb-buffer-pool-size=16M", "--innodb-log-file-size=16M", "--performance-schema=OFF"])
        .args(user())
        .args([format!("--port={port}"), format!("--datadir={}", at("data")), format!("--socket={}", at("socket"))])
        .args([format!("--pid-file={}", at("pid")), format!("--log-error={}", at("log"))])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// An instance of the service within the test.
pub(crate) struct Instance {
    address: SocketAddr,
    running: JoinHandle<()>,
}

impl Instance {
    pub(crate) async fn start(database: &str, queries: Queries, retries_max: u32, cache_ttl: Duration) -> Self {
        let config = Config {
            databases: vec![database.parse().unwrap()],
            instance: 0,
            moved: MovedSession::Served,
            queries,
            retries_max,
            connections_max: 8,
            connection_wait: Duration::from_secs(20),
            cache_ttl,
            cache_entries_max: 100,
            network_delay: Duration::ZERO,
        };
        let service = open(Listen::loopback(0), config).await.unwrap();
        let address = service.address();
        let running = tokio::spawn(async move { service.run(std::future::pending()).await });
        Self { address, running }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.running.abort();
    }
}
