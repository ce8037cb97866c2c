//! Microsoft's own clients, some over TLS, and the explorer in a browser, against `narrows engine docstore`: the programs in
//! `engines/docstore/tests/clients/` check every response themselves.
//!
//! `NARROWS_TEST_SKIP_PYTHON=1`, `NARROWS_TEST_SKIP_NODE=1`, `NARROWS_TEST_SKIP_GO=1`, `NARROWS_TEST_SKIP_JAVA=1`,
//! `NARROWS_TEST_SKIP_RUST=1` and `NARROWS_TEST_SKIP_CHROMIUM=1` leave them out.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use narrows_testing::{ForeignProgram, NPM_INSTALL, PIP_INSTALL, foreign_command, succeed};

use rustix::process::{Pid, Signal, kill_process};

use super::Store;
use crate::common::Bench;

/// The options of a store without documents.
const EMPTY: [&str; 2] = ["--documents", "0"];

/// Runs `command` in the program's folder with the address of a store of its own, which has these options.
fn check(program: &ForeignProgram<'_>, command: &[&str], store: &[&str]) {
    let Some(folder) = program.installed(env!("CARGO_TARGET_TMPDIR").as_ref()) else { return };
    let bench = Bench::new("");
    let store = Store::start(&bench, store);
    let address = format!("http://127.0.0.1:{}/", store.port);
    succeed(&mut foreign_command(&folder, &[command, &[&address]].concat()));
}

/// The same over TLS; `command` also gets the certificate to trust.
fn check_over_tls(program: &ForeignProgram<'_>, command: &[&str]) {
    let Some(folder) = program.installed(env!("CARGO_TARGET_TMPDIR").as_ref()) else { return };
    let bench = Bench::new("");
    let store = Store::start(&bench, &[&EMPTY[..], &["--tls", "tls"]].concat());
    let (address, certificate) = (format!("https://localhost:{}/", store.port), bench.path("tls/certificate.pem"));
    let arguments = [address.as_str(), certificate.to_str().unwrap()];
    succeed(&mut foreign_command(&folder, &[command, &arguments].concat()));
}

const PYTHON: ForeignProgram<'_> = ForeignProgram {
    name: "docstore-python",
    skip_variable: "NARROWS_TEST_SKIP_PYTHON",
    needs: &["python3"],
    files: &[
        ("client.py", include_str!("../../../../../engines/docstore/tests/clients/python/client.py")),
        ("load.py", include_str!("../../../../../engines/docstore/tests/clients/python/load.py")),
        ("requirements.txt", include_str!("../../../../../engines/docstore/tests/clients/python/requirements.txt")),
    ],
    install: PIP_INSTALL,
};

const JAVASCRIPT: ForeignProgram<'_> = ForeignProgram {
    name: "docstore-javascript",
    skip_variable: "NARROWS_TEST_SKIP_NODE",
    needs: &["node", "npm"],
    files: &[
        ("client.js", include_str!("../../../../../engines/docstore/tests/clients/javascript/client.js")),
        ("load.js", include_str!("../../../../../engines/docstore/tests/clients/javascript/load.js")),
        ("package.json", include_str!("../../../../../engines/docstore/tests/clients/javascript/package.json")),
    ],
    install: NPM_INSTALL,
};

const GO: ForeignProgram<'_> = ForeignProgram {
    name: "docstore-go",
    skip_variable: "NARROWS_TEST_SKIP_GO",
    needs: &["go"],
    files: &[
        ("main.go", include_str!("../../../../../engines/docstore/tests/clients/go/main.go")),
        ("load.go", include_str!("../../../../../engines/docstore/tests/clients/go/load.go")),
        ("go.mod", include_str!("../../../../../engines/docstore/tests/clients/go/go.mod")),
        ("go.sum", include_str!("../../../../../engines/docstore/tests/clients/go/go.sum")),
    ],
    install: &[&["go", "build", "-o", "client", "."]],
};

const RUST: ForeignProgram<'_> = ForeignProgram {
    name: "docstore-rust",
    skip_variable: "NARROWS_TEST_SKIP_RUST",
    needs: &["cargo"],
    files: &[
        ("main.rs", include_str!("../../../../../engines/docstore/tests/clients/rust/main.rs")),
        ("load.rs", include_str!("../../../../../engines/docstore/tests/clients/rust/load.rs")),
        ("Cargo.toml", include_str!("../../../../../engines/docstore/tests/clients/rust/Cargo.toml")),
        ("Cargo.lock", include_str!("../../../../../engines/docstore/tests/clients/rust/Cargo.lock")),
    ],
    install: &[&["cargo", "build", "--quiet", "--locked", "--target-dir", "target"]],
};

const JAVA: ForeignProgram<'_> = ForeignProgram {
    name: "docstore-java",
    skip_variable: "NARROWS_TEST_SKIP_JAVA",
    needs: &["java", "javac", "mvn"],
    files: &[
        ("Client.java", include_str!("../../../../../engines/docstore/tests/clients/java/Client.java")),
        ("Load.java", include_str!("../../../../../engines/docstore/tests/clients/java/Load.java")),
        ("pom.xml", include_str!("../../../../../engines/docstore/tests/clients/java/pom.xml")),
    ],
    install: &[
        &[
            "mvn",
            "--quiet",
            "--batch-mode",
            "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
            "-DoutputDirectory=lib",
        ],
        &["javac", "-cp", "lib/*", "Client.java", "Load.java"],
    ],
};

const JAVA_CLIENT: [&str; 5] = ["java", "-XX:TieredStopAtLevel=1", "-cp", "lib/*:.", "Client"];

#[test]
fn python_azure_cosmos() {
    check(&PYTHON, &[".venv/bin/python", "client.py"], &EMPTY);
}

#[test]
fn python_goes_on_when_the_store_comes_back() {
    check_restarts(&PYTHON, &[".venv/bin/python", "load.py"]);
}

#[test]
fn javascript_azure_cosmos() {
    check(&JAVASCRIPT, &["node", "client.js"], &EMPTY);
}

#[test]
fn javascript_goes_on_when_the_store_comes_back() {
    check_restarts(&JAVASCRIPT, &["node", "load.js"]);
}

#[test]
fn rust_azure_data_cosmos() {
    check(&RUST, &["target/debug/client"], &EMPTY);
}

#[test]
fn rust_goes_on_when_the_store_comes_back() {
    check_restarts(&RUST, &["target/debug/client", "load"]);
}

#[test]
fn go_azcosmos() {
    check_over_tls(&GO, &["./client"]);
}

#[test]
fn go_goes_on_when_the_store_comes_back() {
    check_restarts(&GO, &["./client", "load"]);
}

#[test]
fn java_azure_cosmos() {
    check_over_tls(&JAVA, &JAVA_CLIENT);
}

#[test]
fn java_goes_on_when_the_store_comes_back() {
    check_restarts_over_tls(&JAVA, &JAVA_CLIENT);
}

/// A client under load, which ends with the value.
struct Load {
    process: Child,
    acknowledged: Lines<BufReader<ChildStdout>>,
}

impl Load {
    fn start(folder: &Path, command: &[&str]) -> Self {
        let mut command = foreign_command(folder, command);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let acknowledged = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, acknowledged }
    }

    /// Waits until so many more writes were acknowledged.
    fn expect(&mut self, writes: usize) {
        let seen = self.acknowledged.by_ref().take(writes).filter(Result::is_ok).count();
        assert_eq!(seen, writes, "the client has ended");
    }

    /// Has the client end its load and look for what was acknowledged.
    fn finish(&mut self) {
        drop(self.process.stdin.take());
        self.acknowledged.by_ref().for_each(drop);
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It has ended already, unless the test fails. What stands between passes the signal on.
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
            let _ = self.process.wait();
        }
    }
}

/// Runs `command` with the address of a store that is killed twice in the middle of the client's load and started again.
fn check_restarts(program: &ForeignProgram<'_>, command: &[&str]) {
    let Some(folder) = program.installed(env!("CARGO_TARGET_TMPDIR").as_ref()) else { return };
    let bench = Bench::new("");
    let kept = [&EMPTY[..], &["--dir", "data"]].concat();
    let store = Store::start(&bench, &kept);
    let address = format!("http://127.0.0.1:{}/", store.port);
    kill_under(Load::start(&folder, &[command, &[&address]].concat()), store, &bench, &kept);
}

/// The same over TLS; `command` also gets the certificate to trust and the argument "load".
fn check_restarts_over_tls(program: &ForeignProgram<'_>, command: &[&str]) {
    let Some(folder) = program.installed(env!("CARGO_TARGET_TMPDIR").as_ref()) else { return };
    let bench = Bench::new("");
    let kept = [&EMPTY[..], &["--dir", "data", "--tls", "tls"]].concat();
    let store = Store::start(&bench, &kept);
    let (address, certificate) = (format!("https://localhost:{}/", store.port), bench.path("tls/certificate.pem"));
    let arguments = [address.as_str(), certificate.to_str().unwrap(), "load"];
    kill_under(Load::start(&folder, &[command, &arguments].concat()), store, &bench, &kept);
}

/// Kills the store in the middle of the load, twice, and starts it again at the same port.
fn kill_under(mut load: Load, mut store: Store, bench: &Bench, options: &[&str]) {
    const WRITES: usize = 300;
    for _ in 0..2 {
        load.expect(WRITES);
        store = store.killed_and_started_again(bench, options);
    }
    load.expect(WRITES);
    load.finish();
}

#[test]
fn the_explorer_in_chromium() {
    let program = ForeignProgram {
        name: "docstore-explorer",
        skip_variable: "NARROWS_TEST_SKIP_CHROMIUM",
        needs: &["chromium", "python3"],
        files: &[
            ("browser.py", include_str!("../../../../../testing/browser.py")),
            ("explorer.py", include_str!("../../../../../engines/docstore/tests/clients/browser/explorer.py")),
        ],
        install: &[],
    };
    check(&program, &["python3", "explorer.py"], &["--throughput", "900"]);
}
