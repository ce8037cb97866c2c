//! Servers of a test's own: on free ports of the loopback interface, in a scratch folder, ended when dropped.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use narrows_testing::{has_programs, postgres_programs};
use rustix::process::{Pid, Signal, kill_process};

/// How long something may take that happens in the end.
pub(crate) const WAIT: Duration = Duration::from_secs(60);

/// Number of lines of a server's log that are shown after a failure.
const LOG_LINES: usize = 60;

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
        // The disk is not under test here.
        command.args(["-c", "fsync=off", "-c"]).arg(format!("unix_socket_directories={}", data.display()));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Ends the server as a crash does.
    pub(crate) fn kill(&mut self) {
        end(&mut self.server.take().unwrap());
    }

    /// Ends the server in order, without waiting for its clients.
    pub(crate) fn stop(&mut self) {
        let mut server = self.server.take().unwrap();
        signal(server.id(), Signal::INT);
        server.wait().unwrap();
    }

    /// Has the server stand still, and its processes for connections too.
    pub(crate) fn pause(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Has it go on.
    pub(crate) fn resume(&self) {
        self.signal_all(Signal::CONT);
    }

    fn signal_all(&self, which: Signal) {
        let server = self.server.as_ref().unwrap().id();
        signal(server, which);
        let children = std::fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
        for child in children.split_whitespace() {
            // One that has just ended stands still anyway.
            let child = Pid::from_raw(child.parse().unwrap()).unwrap();
            let _ = kill_process(child, which);
        }
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

/// A NATS server with JetStream.
pub(crate) struct Nats {
    folder: tempfile::TempDir,
    port: u16,
    /// Further arguments, which make it part of a cluster.
    arguments: Vec<String>,
    server: Option<Child>,
}

impl Nats {
    /// None, and says so, where it is not installed.
    pub(crate) fn start() -> Option<Self> {
        if !has_programs(&["nats-server"]) {
            return None;
        }
        let mut nats =
            Self { folder: tempfile::tempdir().unwrap(), port: free_port(), arguments: vec![], server: None };
        nats.run();
        Some(nats)
    }

    /// Three servers that keep the same.
    pub(crate) fn start_cluster() -> Option<Vec<Self>> {
        if !has_programs(&["nats-server"]) {
            return None;
        }
        let routes = [free_port(), free_port(), free_port()].map(|port| format!("nats://127.0.0.1:{port}"));
        let server = |route: &String| {
            let arguments = ["--cluster_name", "test", "--cluster", route, "--routes", &routes.join(",")];
            let name = ["--name".to_owned(), format!("server-{}", free_port())];
            let arguments = arguments.map(str::to_owned).into_iter().chain(name).collect();
            let mut nats = Self { folder: tempfile::tempdir().unwrap(), port: free_port(), arguments, server: None };
            nats.run();
            nats
        };
        Some(routes.iter().map(server).collect())
    }

    /// Starts the server, and waits until it takes connections.
    pub(crate) fn run(&mut self) {
        let mut command = Command::new("nats-server");
        command.args(["-js", "-a", "127.0.0.1", "-p", &self.port.to_string(), "--user", USER, "--pass", PASSWORD]);
        command.arg("-sd").arg(self.folder.path()).args(&self.arguments);
        command.arg("-l").arg(self.folder.path().join("log"));
        command.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
        self.server = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begun.elapsed() < WAIT, "not in time: a connection to NATS");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the server as a crash does.
    pub(crate) fn kill(&mut self) {
        end(&mut self.server.take().unwrap());
    }

    /// Ends the server in order.
    pub(crate) fn stop(&mut self) {
        let mut server = self.server.take().unwrap();
        signal(server.id(), Signal::TERM);
        server.wait().unwrap();
    }

    /// Has the server stand still.
    pub(crate) fn pause(&self) {
        signal(self.server.as_ref().unwrap().id(), Signal::STOP);
    }

    /// Has it go on.
    pub(crate) fn resume(&self) {
        signal(self.server.as_ref().unwrap().id(), Signal::CONT);
    }

    /// The text that opens a hub.
    pub(crate) fn url(&self, hub: &str) -> String {
        self.url_with_password(hub, PASSWORD)
    }

    /// The text that opens a hub which all servers of a cluster keep.
    pub(crate) fn url_of_cluster(servers: &[Self], hub: &str) -> String {
        let addresses = servers.iter().map(|server| format!("127.0.0.1:{}", server.port));
        let addresses: Vec<String> = addresses.collect();
        format!("nats://{USER}:{PASSWORD}@{}/{hub}?replicas={}", addresses.join(","), servers.len())
    }

    /// The same with another password.
    pub(crate) fn url_with_password(&self, hub: &str, password: &str) -> String {
        format!("nats://{USER}:{password}@127.0.0.1:{}/{hub}", self.port)
    }

    /// Waits until all servers of a cluster have everything that each stream held at the time of the call. A server
    /// counts as behind even if only the last message is missing, so under load some stream nearly always is behind:
    /// each stream must be current only once.
    ///
    /// # Panics
    /// With the state of each stream and the end of each server's log if that takes too long.
    pub(crate) fn wait_until_current(servers: &[Self]) {
        let begun = Instant::now();
        let mut behind: Option<Vec<String>> = None;
        while behind.as_ref().is_none_or(|behind| !behind.is_empty()) {
            assert!(begun.elapsed() < 2 * WAIT, "not in time: replicas of {behind:?}\n{}", Self::report(servers));
            std::thread::sleep(Duration::from_millis(100));
            behind = behind.or_else(|| servers.iter().map(Self::streams).find(|streams| !streams.is_empty()));
            if let Some(streams) = &mut behind {
                streams.retain(|stream| !servers.iter().any(|server| server.sees_current(stream)));
            }
        }
    }

    /// Whether this server reports that all replicas of a stream are current.
    fn sees_current(&self, stream: &str) -> bool {
        let info = self.request(&info_of(stream));
        let replicas = info.map(|info| info["cluster"]["replicas"].clone());
        let Some(serde_json::Value::Array(replicas)) = replicas else { return false };
        replicas.len() == 2 && replicas.iter().all(|replica| replica["current"] == true && replica["offline"] != true)
    }

    /// The names of all streams; empty if the server does not respond.
    fn streams(&self) -> Vec<String> {
        let names = self.request("$JS.API.STREAM.NAMES").map(|found| found["streams"].clone());
        names.and_then(|names| serde_json::from_value(names).ok()).unwrap_or_default()
    }

    /// The state of each stream as reported by each server that believes to be its leader, and the end of each server's
    /// log.
    pub(crate) fn report(servers: &[Self]) -> String {
        let mut report = String::new();
        for (number, server) in servers.iter().enumerate() {
            for name in server.streams() {
                let mut infos = server.responses(&info_of(&name), "", usize::MAX);
                if infos.is_empty() {
                    infos.push("no response".into());
                }
                for info in infos {
                    let what = format!("{} {}", info["cluster"], info["state"]);
                    let what = if info.is_string() { info.to_string() } else { what };
                    report += &format!("by server {number}: {name}: {what}\n");
                }
            }
            let log = std::fs::read_to_string(server.folder.path().join("log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            report +=
                &format!("log of server {number}:\n{}\n", lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"));
        }
        report
    }

    /// The response of the server's API to an empty request; `None` if there is none soon.
    fn request(&self, subject: &str) -> Option<serde_json::Value> {
        self.responses(subject, "", 1).pop()
    }

    /// At most `most` responses to a request; stops if the next one takes too long.
    fn responses(&self, subject: &str, payload: &str, most: usize) -> Vec<serde_json::Value> {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return Vec::new() };
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let connect = format!("CONNECT {{\"verbose\":false,\"user\":\"{USER}\",\"pass\":\"{PASSWORD}\"}}");
        let inbox = format!("_INBOX.{}", free_port());
        let request = format!("{connect}\r\nSUB {inbox} 1\r\nPUB {subject} {inbox} {}\r\n{payload}\r\n", payload.len());
        if stream.write_all(request.as_bytes()).is_err() {
            return Vec::new();
        }
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let next = || {
            lines.find(|line| line.starts_with("MSG "))?;
            serde_json::from_str(&lines.next()?).ok()
        };
        std::iter::from_fn(next).take(most).collect()
    }

    /// The number of the last message of a stream.
    pub(crate) fn last_sequence(&self, stream: &str) -> u64 {
        self.request(&info_of(stream)).unwrap()["state"]["last_seq"].as_u64().unwrap()
    }

    /// Subject of a message of a stream; `None` if it is not there.
    pub(crate) fn subject_of(&self, stream: &str, sequence: u64) -> Option<String> {
        let payload = format!("{{\"seq\":{sequence}}}");
        let found = self.responses(&format!("$JS.API.STREAM.MSG.GET.{stream}"), &payload, 1).pop()?;
        found["message"]["subject"].as_str().map(str::to_owned)
    }

    /// Publishes a message as any other client may, and waits until the server has it.
    pub(crate) fn publish(&self, subject: &str, payload: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let connect = format!("CONNECT {{\"verbose\":false,\"user\":\"{USER}\",\"pass\":\"{PASSWORD}\"}}");
        let publish = format!("PUB {subject} reply.nowhere {}\r\n{payload}", payload.len());
        stream.write_all(format!("{connect}\r\n{publish}\r\nPING\r\n").as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        assert!(lines.any(|line| line.unwrap() == "PONG"));
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.kill();
        }
    }
}

/// The request for the state of a stream, to which the stream's leader responds.
fn info_of(stream: &str) -> String {
    format!("$JS.API.STREAM.INFO.{stream}")
}

/// Sends a signal to a process that a test has started.
pub(crate) fn signal(process: u32, which: Signal) {
    kill_process(Pid::from_raw(process.try_into().unwrap()).unwrap(), which).unwrap();
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
