//! Helpers of the tests of the real binary: folders, experiment files, and readings of `/proc`.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use narrows_testing::{has_programs, skip};
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The longest a test waits for a run to end; one with a first install of packages is among them.
const RUN_TIMEOUT: Duration = Duration::from_secs(600);

/// The longest a test waits for anything else.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// A folder of the test's own, with an experiment in it.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(experiment: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("experiment.yaml"), experiment).unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The binary, in this folder, deaf to the environment's settings.
    pub(crate) fn narrows(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("TMPDIR", self.path("tmp"))
            .env_remove("NARROWS_RUNS")
            .env_remove("NARROWS_RUN_ID")
            .env_remove("NARROWS_TOKEN")
            .env_remove("NARROWS_OTLP_TOKEN")
            .env_remove("COLUMNS")
            .env_remove("BROWSER")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        end(self.narrows(arguments))
    }

    /// Starts it and waits until standard error has a line with this text.
    pub(crate) fn start_until(&self, arguments: &[&str], text: &str) -> (Child, BufReader<ChildStderr>) {
        start_until(&mut self.narrows(arguments), text)
    }

    /// Files in the scratch space of runs.
    pub(crate) fn scratch(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// Starts a command and waits until its standard error has a line with this text.
pub(crate) fn start_until(command: &mut Command, text: &str) -> (Child, BufReader<ChildStderr>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    let mut seen = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "ended before it said `{text}`:\n{seen}");
        seen.push_str(&line);
    }
    (child, lines)
}

/// Shell that runs `script`, with the binary as `$0`, and can mount disks that only it sees. `None` if this user may not
/// mount; the test then counts as skipped.
pub(crate) fn that_mounts(script: &str) -> Option<Command> {
    // Root needs no user namespace, which some machines forbid.
    for namespaces in [&["--mount"][..], &["--map-root-user", "--mount"]] {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(namespaces);
            command
        };
        if unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            let mut command = unshare();
            command.args(["sh", "-c", script, env!("CARGO_BIN_EXE_narrows")]);
            return Some(command);
        }
    }
    skip("a full disk: this user may not mount a small one");
    None
}

/// Runs a command to its end and keeps what it printed.
pub(crate) fn end(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |mut stream: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).map(|_| bytes).unwrap()
        })
    };
    let (out, err) = (read(Box::new(out)), read(Box::new(err)));
    let deadline = Instant::now() + RUN_TIMEOUT;
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let is_late = child.try_wait().unwrap().is_none();
    if is_late {
        let _ = kill_process(pid, Signal::KILL);
    }
    let status = child.wait().unwrap();
    let output = Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() };
    assert!(!is_late, "{command:?} took longer than {RUN_TIMEOUT:?}:\n{}", text(&output.stderr));
    output
}

/// Whether this user may cap services; that caps go untested is noted where not.
pub(crate) fn has_caps() -> bool {
    let doctor = text(&Bench::new("").run(&["doctor"]).stdout);
    let has = !doctor.lines().any(|line| line.split_whitespace().take(2).eq(["missing", "caps"]));
    if !has {
        skip("CPU and memory caps: this user may not make control groups");
    }
    has
}

/// Whether services in Python can be started here; the test is skipped where they cannot.
pub(crate) fn has_python() -> bool {
    has_programs(&["python3"])
}

/// One value of a run file, as text.
pub(crate) fn ask(run: &Path, sql: &str) -> String {
    let connection = Connection::open_with_flags(run, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let value: rusqlite::types::Value = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    match value {
        rusqlite::types::Value::Text(text) => text,
        rusqlite::types::Value::Integer(n) => n.to_string(),
        other => format!("{other:?}"),
    }
}

/// Requests of a trial that succeeded, as far as they are written down.
pub(crate) fn succeeded(run: &Path, trial: i64) -> i64 {
    let sql = format!("select coalesce(sum(succeeded), 0) from load_seconds where trial = {trial}");
    ask(run, &sql).parse().unwrap()
}

/// Texts of the caveats of a run's first trial.
pub(crate) fn caveats(run: &Path) -> Vec<String> {
    let caveats: Vec<Value> = serde_json::from_str(&ask(run, "select caveats from trials")).unwrap();
    caveats.iter().map(|caveat| caveat["text"].as_str().unwrap().to_owned()).collect()
}

/// The ids of processes that carry a mark of this run, whichever process of Narrows gave it.
pub(crate) fn marked(run_id: &str) -> Vec<i32> {
    let needle = format!("NARROWS_RUN_ID={run_id}-").into_bytes();
    let carries = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|variable| variable.starts_with(&needle)))
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter(carries)
        .collect()
}

/// Control groups that carry a run's id in their name.
pub(crate) fn cgroups(run_id: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().contains(run_id) {
                    found.push(entry.path());
                }
                todo.push(entry.path());
            }
        }
    }
    found
}

/// Waits until nothing is left of a run that has ended: no process, no control group, no folder.
pub(crate) fn nothing_is_left(bench: &Bench, run: &Path) {
    let id = ask(run, "select id from run");
    eventually("the end of every process of the run", || marked(&id).is_empty());
    eventually("the removal of every control group of the run", || cgroups(&id).is_empty());
    eventually("the removal of every scratch folder of the run", || bench.scratch().is_empty());
}

/// Processes that work in the scratch space of a test: a server leaves no other trace.
pub(crate) fn working(bench: &Bench) -> Vec<i32> {
    let scratch = bench.path("tmp").canonicalize().unwrap();
    let is_there = |pid: &i32| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|folder: PathBuf| folder.starts_with(&scratch))
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).filter(is_there).collect()
}

/// A port that nothing listens on now, and that no outgoing connection is given.
pub(crate) fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let first = 12_000 + (std::process::id() % 4_000) as u16;
    (first..18_000).find(is_free).unwrap()
}

/// A service that listens at `PORT`, which it does not report.
pub(crate) const OTHER_LISTENER: &str = r#"    other:
      run:
        - python3
        - -c
        - |
          import socket, time
          listener = socket.create_server(("127.0.0.1", PORT))
          print("listening", flush=True)
          time.sleep(3600)
      ready: { log: listening }
"#;

/// Checks again and again until it is so, for a bounded time.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not happen within {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file server that every machine with Python has, under a light load, twice.
pub(crate) const TWO_FILE_SERVERS: &str = r#"
experiment: file-server
parameters: { level: "1" }
system:
  services:
    files:
      run: [python3, -m, http.server, "${port}", --bind, 127.0.0.1]
      cwd: tmp
      ready: "GET /"
      env: { LEVEL: "${level}" }
load:
  target: files
  scenarios:
    browse:
      model: constant-vus
      vus: 2
      duration: 4s
      think_time: 20ms
      request: "GET /"
variants:
  - { name: first }
  - { name: second, from: first, level: "2" }
"#;
