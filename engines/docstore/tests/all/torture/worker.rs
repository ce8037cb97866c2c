//! The process that is killed: this program, whose test becomes a server.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use narrows_docstore::{Access, Config, Flush, Listen, Server};

const FOLDER: &str = "NARROWS_TORTURE_FOLDER";
const FLUSH: &str = "NARROWS_TORTURE_FLUSH";
/// Prefix of the line that names the address.
const MARK: &str = "listens on ";
/// How large a file may get on a small disk, in the units of `ulimit`, of 512 or of 1,024 bytes.
const SMALL_BLOCKS: u32 = 3_000;

/// The disk of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    Free,
    /// No file may grow beyond a few megabytes.
    Small,
}

pub(crate) struct Worker {
    child: Child,
    address: SocketAddr,
}

impl Worker {
    /// A server of the folder. Every third round acknowledges writes before the disk is flushed.
    pub(crate) fn spawn(folder: &Path, round: u64, disk: Disk) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = match disk {
            Disk::Free => Command::new(program),
            Disk::Small => {
                let mut shell = Command::new("sh");
                let script = format!("trap '' XFSZ; ulimit -f {SMALL_BLOCKS}; exec \"$@\"");
                shell.args(["-c", &script, "sh"]).arg(program);
                shell
            }
        };
        command.args(["--exact", "torture::what_was_acknowledged_survives_kills", "--nocapture"]);
        command.env(FOLDER, folder).env(FLUSH, if round % 3 == 2 { "never" } else { "always" });
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut addresses = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix(MARK)?.parse().ok());
        let address = addresses.next().expect("the worker says where it listens");
        Self { child, address }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn kill(&mut self) {
        use std::os::unix::process::ExitStatusExt;
        const SIGKILL: i32 = 9;
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(SIGKILL), "the worker ended by itself: {status}");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has ended already, unless the test fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this process was started to be killed.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os(FOLDER).is_some()
}

pub(crate) fn work() {
    let folder = std::env::var_os(FOLDER).expect("the torture starts this");
    let sync = if std::env::var(FLUSH).unwrap() == "never" { Flush::Never } else { Flush::Always };
    let config = Config {
        listen: Listen::loopback(0),
        access: Access::Anyone,
        dir: Some(folder.into()),
        sync,
        throughput_ru_per_second: 90_000,
        documents_per_container: 0,
        // Small enough for splits under the load.
        split_bytes: 8_000,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Server::open(config).await.unwrap();
        let address = server.address();
        // The line feed in front ends the line that the test harness has begun.
        let line = format!("\n{MARK}{address}\n");
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
        server.serve(std::future::pending()).await.unwrap();
    });
}
