//! Microsoft's own clients, some over TLS, and the explorer in a browser, against `narrows engine docstore`: the programs in
//! `engines/docstore/tests/clients/` check every response themselves.
//!
//! `NARROWS_TEST_SKIP_PYTHON=1`, `NARROWS_TEST_SKIP_NODE=1`, `NARROWS_TEST_SKIP_GO=1`, `NARROWS_TEST_SKIP_JAVA=1` and
//! `NARROWS_TEST_SKIP_CHROMIUM=1` leave them out.

use narrows_testing::{ForeignProgram, NPM_INSTALL, PIP_INSTALL, foreign_command, succeed};

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

#[test]
fn python_azure_cosmos() {
    let program = ForeignProgram {
        name: "docstore-python",
        skip_variable: "NARROWS_TEST_SKIP_PYTHON",
        needs: &["python3"],
        files: &[
            ("client.py", include_str!("../../../../../engines/docstore/tests/clients/python/client.py")),
            ("requirements.txt", include_str!("../../../../../engines/docstore/tests/clients/python/requirements.txt")),
        ],
        install: PIP_INSTALL,
    };
    check(&program, &[".venv/bin/python", "client.py"], &EMPTY);
}

#[test]
fn javascript_azure_cosmos() {
    let program = ForeignProgram {
        name: "docstore-javascript",
        skip_variable: "NARROWS_TEST_SKIP_NODE",
        needs: &["node", "npm"],
        files: &[
            ("client.js", include_str!("../../../../../engines/docstore/tests/clients/javascript/client.js")),
            ("package.json", include_str!("../../../../../engines/docstore/tests/clients/javascript/package.json")),
        ],
        install: NPM_INSTALL,
    };
    check(&program, &["node", "client.js"], &EMPTY);
}

#[test]
fn go_azcosmos() {
    let program = ForeignProgram {
        name: "docstore-go",
        skip_variable: "NARROWS_TEST_SKIP_GO",
        needs: &["go"],
        files: &[
            ("main.go", include_str!("../../../../../engines/docstore/tests/clients/go/main.go")),
            ("go.mod", include_str!("../../../../../engines/docstore/tests/clients/go/go.mod")),
            ("go.sum", include_str!("../../../../../engines/docstore/tests/clients/go/go.sum")),
        ],
        install: &[&["go", "build", "-o", "client", "."]],
    };
    check_over_tls(&program, &["./client"]);
}

#[test]
fn java_azure_cosmos() {
    let program = ForeignProgram {
        name: "docstore-java",
        skip_variable: "NARROWS_TEST_SKIP_JAVA",
        needs: &["java", "javac", "mvn"],
        files: &[
            ("Client.java", include_str!("../../../../../engines/docstore/tests/clients/java/Client.java")),
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
            &["javac", "-cp", "lib/*", "Client.java"],
        ],
    };
    check_over_tls(&program, &["java", "-XX:TieredStopAtLevel=1", "-cp", "lib/*:.", "Client"]);
}

#[test]
fn the_explorer_in_chromium() {
    let program = ForeignProgram {
        name: "docstore-explorer",
        skip_variable: "NARROWS_TEST_SKIP_CHROMIUM",
        needs: &["chromium", "python3"],
        files: &[("explorer.py", include_str!("../../../../../engines/docstore/tests/clients/browser/explorer.py"))],
        install: &[],
    };
    check(&program, &["python3", "explorer.py"], &["--throughput", "900"]);
}
