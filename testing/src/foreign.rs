//! Programs in other languages: installed once by the package clients of their languages, then run.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::{has_program, is_disabled, skip};

/// Installs the packages of `requirements.txt` in their own environment, `.venv`.
pub const PIP_INSTALL: &[&[&str]] = &[
    &["python3", "-m", "venv", ".venv"],
    &[".venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"],
];

/// Installs the packages of `package.json`. The date fixes the versions of their dependencies.
pub const NPM_INSTALL: &[&[&str]] =
    &[&["npm", "install", "--before=2026-11-15", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]];

/// The longest that one command may take, in seconds.
const TIMEOUT_S: &str = "900";
/// Texts that package clients print if their index cannot be reached.
const UNREACHABLE: [&str; 8] = [
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "EAI_AGAIN",
    "ENOTFOUND",
    "ECONNREFUSED",
    "ETIMEDOUT",
    "Could not resolve host",
    "Could not connect to server",
];

/// A program and its needs.
pub struct ForeignProgram<'a> {
    /// Name of its folder, before a number that stands for its content.
    pub name: &'a str,
    /// The variable that leaves its tests out.
    pub skip_variable: &'a str,
    /// Commands that have to be there.
    pub needs: &'a [&'a str],
    /// Names and texts of its files.
    pub files: &'a [(&'a str, &'a str)],
    /// Commands that make it ready, once.
    pub install: &'a [&'a [&'a str]],
}

impl ForeignProgram<'_> {
    /// Its folder within `root`, ready to run; none, with a note, when the test is to be skipped.
    ///
    /// # Panics
    /// If it cannot be installed, though its package index can be reached.
    pub fn installed(&self, root: &Path) -> Option<PathBuf> {
        let name = self.name;
        if is_disabled(self.skip_variable) {
            skip(&format!("{name}: {} is set", self.skip_variable));
            return None;
        }
        if let Some(missing) = self.needs.iter().find(|tool| !has_program(tool)) {
            skip(&format!("{name}: {missing} is missing"));
            return None;
        }
        let folder = self.folder(root);
        let done = folder.join("installed");
        let lock = self.locked(&folder);
        if !done.exists() && !self.install_in(&folder) {
            skip(&format!("{name}: the package index cannot be reached"));
            return None;
        }
        std::fs::write(done, "").unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        drop(lock);
        Some(folder)
    }

    /// A file that one test at a time has, of those that run the same program at once.
    fn locked(&self, folder: &Path) -> File {
        let locked = || {
            std::fs::create_dir_all(folder)?;
            let file = File::create(folder.join("lock"))?;
            file.lock()?;
            Ok::<_, std::io::Error>(file)
        };
        locked().unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
    }

    /// Whether it is installed; it is not if the package index cannot be reached.
    fn install_in(&self, folder: &Path) -> bool {
        let failed = |error: std::io::Error| -> ! { panic!("{}: {error}", folder.display()) };
        for (name, text) in self.files {
            std::fs::write(folder.join(name), text).unwrap_or_else(|error| failed(error));
        }
        for step in self.install {
            let output = foreign_command(folder, step).output().unwrap_or_else(|error| failed(error));
            let said = said(&output);
            if !output.status.success() && UNREACHABLE.iter().any(|words| said.contains(words)) {
                return false;
            }
            assert!(output.status.success(), "{step:?}: {}\n{said}", output.status);
        }
        true
    }

    /// A name that changes with anything that is installed, so that an old folder is never taken for a new one.
    fn folder(&self, root: &Path) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        (self.files, self.install).hash(&mut hasher);
        root.join(format!("{}-{:016x}", self.name, hasher.finish()))
    }
}

/// A command in a folder, which ends when it takes too long. OpenTelemetry settings of the one who tests do not reach it.
pub fn foreign_command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg(TIMEOUT_S).args(words).current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OTEL_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command that must succeed.
///
/// # Panics
/// With its output, if it fails.
pub fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, said(&output));
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}
