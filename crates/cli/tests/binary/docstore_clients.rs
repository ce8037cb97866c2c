//! Microsoft's own clients, and the explorer in a browser, against `narrows engine docstore`: the programs in `engines/docstore/tests/clients/` check every
//! response themselves.
//!
//! Each is installed with its language's package client into the target's temporary folder, where it stays for the next
//! time. Where a tool or the package index is missing, or `NARROWS_TEST_SKIP_PYTHON=1`, `NARROWS_TEST_SKIP_NODE=1` or
//! `NARROWS_TEST_SKIP_CHROMIUM=1` is set, the test is skipped.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use narrows_testing::{has_programs, is_disabled, skip};

use crate::common::{Bench, text};

/// The longest that one command may take, in seconds.
const TIMEOUT_S: &str = "300";
/// What package clients print when their index cannot be reached.
const UNREACHABLE: [&str; 6] = [
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "EAI_AGAIN",
    "ENOTFOUND",
    "ECONNREFUSED",
    "ETIMEDOUT",
];

/// The options of a store without documents.
const EMPTY: [&str; 2] = ["--documents", "0"];

/// A program that uses a client, and what it needs.
struct Program<'a> {
    name: &'a str,
    skip_variable: &'a str,
    needs: &'a [&'a str],
    /// Names and texts of its files.
    files: &'a [(&'a str, &'a str)],
    /// Commands that make it ready, once.
    install: &'a [&'a [&'a str]],
}

impl Program<'_> {
    /// The folder of the program, ready to run; None when the test is skipped.
    fn installed(&self) -> Option<PathBuf> {
        if is_disabled(self.skip_variable) {
            skip(&format!("{} is set", self.skip_variable));
            return None;
        }
        if !has_programs(self.needs) {
            return None;
        }
        // With anything that is installed the name changes, so that an old folder is never taken for a new one.
        let mut hasher = DefaultHasher::new();
        (self.files, self.install).hash(&mut hasher);
        let name = format!("docstore-{}-{:016x}", self.name, hasher.finish());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let done = folder.join("installed");
        if done.exists() {
            return Some(folder);
        }
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in self.files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        for step in self.install {
            let output = run(&folder, step);
            let said = said(&output);
            if !output.status.success() && UNREACHABLE.iter().any(|words| said.contains(words)) {
                skip(&format!("the package index of {} cannot be reached", self.name));
                return None;
            }
            assert!(output.status.success(), "{step:?}: {}\n{said}", output.status);
        }
        std::fs::write(done, "").unwrap();
        Some(folder)
    }

    /// Runs `command` in the program's folder with the address of a store of its own, which has these options.
    fn succeeds(&self, command: &[&str], store: &[&str]) {
        let Some(folder) = self.installed() else { return };
        let store = Store::start(store);
        let output = run(&folder, &[command, &[store.address.as_str()]].concat());
        assert!(output.status.success(), "{}: {}\n{}", self.name, output.status, said(&output));
    }
}

fn run(folder: &Path, words: &[&str]) -> Output {
    Command::new("timeout").arg(TIMEOUT_S).args(words).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// A store that is killed with the value.
struct Store {
    process: Child,
    address: String,
}

impl Store {
    fn start(options: &[&str]) -> Self {
        let arguments = [&["engine", "docstore", "--port", "0"], options].concat();
        let bench = Bench::new("");
        let mut process = bench.narrows(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.split_once("listens on ").map(|(_, address)| format!("{address}/"));
        // The rest is read so that the store never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address: address.unwrap_or_else(|| panic!("no address in {first:?}")) }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

#[test]
fn python_azure_cosmos() {
    let program = Program {
        name: "python",
        skip_variable: "NARROWS_TEST_SKIP_PYTHON",
        needs: &["python3"],
        files: &[
            ("client.py", include_str!("../../../../engines/docstore/tests/clients/python/client.py")),
            ("requirements.txt", include_str!("../../../../engines/docstore/tests/clients/python/requirements.txt")),
        ],
        install: &[
            &["python3", "-m", "venv", ".venv"],
            &[".venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"],
        ],
    };
    program.succeeds(&[".venv/bin/python", "client.py"], &EMPTY);
}

#[test]
fn javascript_azure_cosmos() {
    let program = Program {
        name: "javascript",
        skip_variable: "NARROWS_TEST_SKIP_NODE",
        needs: &["node", "npm"],
        files: &[
            ("client.js", include_str!("../../../../engines/docstore/tests/clients/javascript/client.js")),
            ("package.json", include_str!("../../../../engines/docstore/tests/clients/javascript/package.json")),
        ],
        // What the package brings along is held by the date.
        install: &[&[
            "npm",
            "install",
            "--before=2026-11-15",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--loglevel=error",
        ]],
    };
    program.succeeds(&["node", "client.js"], &EMPTY);
}

#[test]
fn the_explorer_in_chromium() {
    let program = Program {
        name: "explorer",
        skip_variable: "NARROWS_TEST_SKIP_CHROMIUM",
        needs: &["chromium", "python3"],
        files: &[("explorer.py", include_str!("../../../../engines/docstore/tests/clients/browser/explorer.py"))],
        install: &[],
    };
    program.succeeds(&["python3", "explorer.py"], &["--throughput", "900"]);
}
