//! Database servers that Narrows did not start and asks about themselves: `observe` in an experiment, and
//! `narrows attach --observe`.
//!
//! They need Redis (Debian package redis-server). `NARROWS_TEST_SKIP_REDIS=1` leaves them out; what is not installed is
//! skipped too.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use narrows_testing::{has_programs, is_disabled, skip};

use crate::common::{Bench, ask, caveats, end, eventually, free_port, text};

const PASSWORD: &str = "s3cr3t-Wq7Zb2Lx";

/// A Redis server that wants a password, as others start it. It ends with the value.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// `None`, and the test is skipped, if it is not installed.
    fn start() -> Option<Self> {
        const SKIP: &str = "NARROWS_TEST_SKIP_REDIS";
        if is_disabled(SKIP) {
            skip(&format!("{SKIP} is set"));
            return None;
        }
        if !has_programs(&["redis-server", "sleep"]) {
            return None;
        }
        let port = free_port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--requirepass", PASSWORD, "--save", ""]);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { process, port };
        eventually("Redis listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(server)
    }

    fn url(&self, password: &str) -> String {
        format!("redis://:{password}@127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn experiment(url: &str) -> String {
    format!("experiment: observed\nload: {{ command: [sleep, \"3\"] }}\nobserve: {{ cache: \"{url}\" }}\n")
}

/// Asserts that the server told its figures.
fn was_asked(run: &Path) {
    let count = |name: &str| {
        let sql = format!("select count(*) from metrics where service = 'cache' and name = '{name}' and value > 0");
        ask(run, &sql).parse::<u64>().unwrap()
    };
    assert!(count("redis.commands.processed") >= 2, "once a second");
    assert!(count("redis.cmd.calls") >= 2, "by command");
}

/// Asserts that no file below the bench's folder but the experiment has the password, nor one of these outputs.
fn is_kept_secret(bench: &Bench, outputs: &[&Output]) {
    let mut open: Vec<PathBuf> = vec![bench.path("")];
    let mut files = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else if entry.file_name() != "experiment.yaml" {
                files += 1;
                assert!(!has_password(&std::fs::read(&path).unwrap()), "{}", path.display());
            }
        }
    }
    assert!(files > 0, "there is a run file at least");
    for output in outputs {
        assert!(!has_password(&output.stdout) && !has_password(&output.stderr), "{}", text(&output.stderr));
    }
}

fn has_password(bytes: &[u8]) -> bool {
    bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes())
}

#[test]
fn a_server_that_an_experiment_names_is_asked_and_its_password_kept_secret() {
    let Some(server) = Server::start() else { return };
    let bench = Bench::new(&experiment(&server.url(PASSWORD)));
    let run = bench.run(&["run", "--out", "run.narrows"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    was_asked(&bench.path("run.narrows"));
    let report = bench.run(&["report", "run.narrows", "--out", "page.html"]);
    let markdown = bench.run(&["report", "run.narrows", "--format", "markdown"]);
    let json = bench.run(&["diagnose", "run.narrows", "--json"]);
    let source = bench.run(&["query", "run.narrows", "select experiment_source from run"]);
    assert!(text(&source.stdout).contains("redis://"), "{}", text(&source.stdout));
    is_kept_secret(&bench, &[&run, &report, &markdown, &json, &source]);
}

#[test]
fn a_server_that_attach_names_is_asked_and_its_password_kept_secret() {
    let Some(server) = Server::start() else { return };
    let bench = Bench::new("");
    let attach = |login: &str, out: &str| {
        bench.narrows(&["attach", "--for", "3s", "--otlp", "none", "--observe", login, "--out", out])
    };
    let in_url = end(attach(&format!("cache={}", server.url(PASSWORD)), "url.narrows"));
    assert!(in_url.status.success(), "{}", text(&in_url.stderr));
    was_asked(&bench.path("url.narrows"));
    let mut command = attach(&format!("cache=redis://127.0.0.1:{}", server.port), "variable.narrows");
    command.env("REDISCLI_AUTH", PASSWORD);
    let in_variable = end(command);
    assert!(in_variable.status.success(), "{}", text(&in_variable.stderr));
    was_asked(&bench.path("variable.narrows"));
    is_kept_secret(&bench, &[&in_url, &in_variable]);
}

#[test]
fn a_server_that_refuses_the_password_is_a_caveat() {
    let Some(server) = Server::start() else { return };
    let bench = Bench::new(&experiment(&server.url("wrong")));
    let run = bench.run(&["run", "--out", "run.narrows"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let caveats = caveats(&bench.path("run.narrows")).join("\n");
    assert!(caveats.contains("cache did not respond") && caveats.contains("WRONGPASS"), "{caveats}");
}

#[test]
fn addresses_of_no_server_are_refused_without_their_password() {
    let cases = [
        ("http://user:s3cr3t-Wq7Zb2Lx@db", "unknown scheme `http`, expected one of `postgres`, `mysql`, `redis`"),
        ("redis://:s3cr3t-Wq7Zb2Lx@db:99999", "invalid port, expected a number from 1 to 65535"),
        ("postgres://app:s3cr3t-Wq7Zb2Lx@", "a host is required"),
        ("postgres://app:s3cr3t-Wq7Zb2Lx@db/shop?sslmode=off", "parameters after `?` are not supported"),
    ];
    for (url, reason) in cases {
        let bench = Bench::new(&experiment(url));
        let run = bench.run(&["run", "--out", "run.narrows"]);
        let observe = format!("cache={url}");
        let attach = bench.run(&["attach", "--for", "1s", "--observe", &observe, "--out", "attach.narrows"]);
        for output in [&run, &attach] {
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(reason) && !has_password(&output.stderr), "{said}");
        }
        let said = text(&run.stderr);
        assert!(said.contains("observe.cache") && said.contains("hint: write it as"), "{said}");
        assert!(!bench.path("run.narrows").exists() && !bench.path("attach.narrows").exists());
    }
}
