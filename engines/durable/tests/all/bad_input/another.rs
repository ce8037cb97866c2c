//! Another process: this very program, which runs one of its tests again, if need be on its own small disk.
//!
//! A test that finds [`folder`] set is that other process and does its part instead.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FOLDER: &str = "NARROWS_BAD_INPUT_FOLDER";

/// The folder that this process works in, where a test started it as another process.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// This program with one test, in its own process.
pub(crate) fn process(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(FOLDER, folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Runs a test again with a disk of 2 MiB at `folder` that no other process sees, prepared by a few lines of shell. The
/// test is skipped where this user may not mount.
pub(crate) fn on_a_small_disk(test: &str, folder: &Path, prepare: &str) {
    const MOUNT: &str = "mount -t tmpfs -o size=2m tmpfs \"$0\"";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-ec", script]).arg(folder).stdin(Stdio::null());
        command
    };
    if !unshare(MOUNT).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return narrows_testing::skip("this user cannot mount a small disk");
    }
    let script = format!("{MOUNT}; {prepare}; exec \"$1\" --exact \"$2\" --nocapture");
    let output = unshare(&script).arg(std::env::current_exe().unwrap()).arg(test).env(FOLDER, folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
