//! Installing and running programs of other languages.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use narrows_testing::{has_program, is_disabled, skip};

/// The longest that one command may take, in seconds.
const TIMEOUT_S: &str = "900";

/// A program and what it needs.
pub(crate) struct Program<'a> {
    pub(crate) name: &'a str,
    /// Commands that have to be there.
    pub(crate) needs: &'a [&'a str],
    /// Names and texts of its files.
    pub(crate) files: &'a [(&'a str, &'a str)],
    /// Commands that make it ready, once.
    pub(crate) install: &'a [&'a [&'a str]],
}

/// The folder of a program that is ready to run; none, and a word about it, when it is to be skipped.
pub(crate) fn installed(program: &Program<'_>) -> Option<PathBuf> {
    if is_disabled("NARROWS_TEST_SKIP_EXPORTERS") {
        skip(&format!("{}: NARROWS_TEST_SKIP_EXPORTERS is set", program.name));
        return None;
    }
    if let Some(missing) = program.needs.iter().find(|tool| !has_program(tool)) {
        skip(&format!("{}: {missing} is missing", program.name));
        return None;
    }
    let folder = folder(program);
    let done = folder.join("installed");
    if !done.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in program.files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        for step in program.install {
            succeed(&mut command(&folder, step));
        }
        std::fs::write(done, "").unwrap();
    }
    Some(folder)
}

/// A name that changes with anything that is installed, so that an old folder is never taken for a new one.
fn folder(program: &Program<'_>) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (program.files, program.install).hash(&mut hasher);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("exporter-{}-{:016x}", program.name, hasher.finish()))
}

/// A command in a folder, which ends when it takes too long. Settings of the one who tests do not reach it.
pub(crate) fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg(TIMEOUT_S).args(words.iter().map(OsStr::new)).current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OTEL_") {
            command.env_remove(name);
        }
    }
    command
}

pub(crate) fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        said(&output.stdout),
        said(&output.stderr)
    );
}
