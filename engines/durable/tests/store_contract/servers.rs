//! Servers of a test's own: on free ports of the loopback interface, in a scratch folder, ended when dropped.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use narrows_testing::postgres_programs;

/// How long something may take that happens in the end.
pub(crate) const WAIT: Duration = Duration::from_secs(60);

/// Whose password a test knows.
const USER: &str = "keeper";
const PASSWORD: &str = "pass-w0rd";

/// A PostgreSQL server.
pub(crate) struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    /// None, and says so, where PostgreSQL is not installed or tests with it are disabled.
    pub(crate) fn start() -> Option<Self> {
        let programs = postgres_programs()?;
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let password = folder.path().join("password");
        std::fs::write(&password, PASSWORD).unwrap();
        let mut making = unprivileged(&programs.join("initdb"));
        making.arg("-D").arg(&data).args(["-A", "scram-sha-256", "-U", USER, "-N", "-E", "UTF8", "--no-locale"]);
        making.arg("--pwfile").arg(&password).stdout(Stdio::null());
        assert!(making.status().unwrap().success());
        let mut postgres = Self { folder, programs, port: free_port(), server: None };
        postgres.run();
        Some(postgres)
    }

    /// Starts the server, and waits until it takes connections.
    pub(crate) fn run(&mut self) {
        let begun = Instant::now();
        while !self.is_ready() {
            assert!(begun.elapsed() < WAIT, "not in time: a connection to PostgreSQL");
            // One that ended by itself found that workers of a killed one before it were still there.
            if self.server.as_mut().is_none_or(|server| server.try_wait().unwrap().is_some()) {
                self.server = Some(self.launch());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_ready(&self) -> bool {
        self.server.is_some() && self.sql("select 1").is_some()
    }

    fn launch(&self) -> Child {
        let data = self.folder.path().join("data");
        let mut command = unprivileged(&self.programs.join("postgres"));
        command.arg("-D").arg(&data).args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        // What is tested here is not the disk.
        command.args(["-c", "fsync=off", "-c"]).arg(format!("unix_socket_directories={}", data.display()));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Ends the server as a crash does.
    pub(crate) fn kill(&mut self) {
        end(&mut self.server.take().unwrap());
    }

    /// Runs a statement as a user at a terminal would; what it prints.
    pub(crate) fn sql(&self, sql: &str) -> Option<String> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-qAtX", "-d", &self.url_of("postgres", USER, PASSWORD), "-c", sql]).stderr(Stdio::null());
        let output = command.output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// The text that opens a hub.
    pub(crate) fn url(&self, hub: &str) -> String {
        format!("{}?hub={hub}", self.url_of("postgres", USER, PASSWORD))
    }

    /// The same with another password.
    pub(crate) fn url_with_password(&self, hub: &str, password: &str) -> String {
        format!("{}?hub={hub}", self.url_of("postgres", USER, password))
    }

    fn url_of(&self, database: &str, user: &str, password: &str) -> String {
        format!("postgres://{user}:{password}@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.kill();
        }
    }
}

fn end(server: &mut Child) {
    server.kill().unwrap();
    server.wait().unwrap();
}

/// A port that was free just now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// PostgreSQL refuses to run as root, so root runs it as somebody else in a user namespace.
fn unprivileged(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.args(["-Ur", "--map-user=1000", "--map-group=1000"]).arg(program);
    command
}
