//! Nothing outlives its run, not even when Narrows itself is killed with `kill -9`.
//!
//! A run starts a second process, the guard, and tells it over a pipe what exists: process groups, cgroups, scratch
//! folders. When the pipe closes before the run said it was done, the guard ends and removes all of it. Besides, every
//! service carries the run's marker in its environment, by which even processes that detached themselves (their own
//! session, their own parent) are found. The guard runs in its own session and ignores the terminal's signals.
//!
//! The guard trusts only its pipe and the marker; it keeps no state on disk.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group, waitpgid};

use crate::Error;

/// The environment variable that marks every process of a run. Its value begins with the run's id and differs each time
/// the run is resumed, so that the guard of a killed process does not touch what a later one starts.
pub const MARKER: &str = "NARROWS_RUN_ID";

const KILL_PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// The run's end of the pipe. Dropping it without [`Guard::done`] makes the guard clean up.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts the guard: `command` must end up in [`watch`] with its standard input.
    pub fn start(command: &[String], mark: &str) -> Result<Self, Error> {
        let (program, arguments) = command.split_first().ok_or_else(|| {
            Error::Guard(std::io::Error::new(std::io::ErrorKind::InvalidInput, "no command was given"))
        })?;
        let mut child = Command::new(program)
            .args(arguments)
            .env_remove(MARKER)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::Guard)?;
        let pipe = child.stdin.take();
        let mut guard = Self { child, pipe };
        guard.say(&format!("marker {mark}"))?;
        Ok(guard)
    }

    /// A process group exists from now on.
    pub fn add_group(&mut self, leader: u32) -> Result<(), Error> {
        self.say(&format!("group {leader}"))
    }

    /// A process group has ended.
    pub fn drop_group(&mut self, leader: u32) -> Result<(), Error> {
        self.say(&format!("no-group {leader}"))
    }

    /// A process that detached itself from its service exists.
    pub fn add_process(&mut self, pid: i32) -> Result<(), Error> {
        self.say(&format!("process {pid}"))
    }

    /// A process that detached itself has ended.
    pub fn drop_process(&mut self, pid: i32) -> Result<(), Error> {
        self.say(&format!("no-process {pid}"))
    }

    /// A cgroup will exist from now on.
    pub fn add_cgroup(&mut self, path: &Path) -> Result<(), Error> {
        self.say(&format!("cgroup {}", path.display()))
    }

    /// A scratch folder will exist from now on.
    pub fn add_folder(&mut self, path: &Path) -> Result<(), Error> {
        self.say(&format!("folder {}", path.display()))
    }

    /// Everything was ended in order: the guard leaves without doing anything.
    pub fn done(mut self) {
        let _ = self.say("done");
        self.pipe = None;
        let _ = self.child.wait();
    }

    fn say(&mut self, line: &str) -> Result<(), Error> {
        let Some(pipe) = self.pipe.as_mut() else { return Ok(()) };
        writeln!(pipe, "{line}").and_then(|()| pipe.flush()).map_err(Error::GuardGone)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.child.wait();
    }
}

/// What a guard was told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Watched {
    marker: Option<String>,
    groups: BTreeSet<i32>,
    processes: BTreeSet<i32>,
    cgroups: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    done: bool,
}

impl Watched {
    fn hear(&mut self, line: &str) {
        let (word, value) = line.split_once(' ').unwrap_or((line, ""));
        match (word, value.parse::<i32>()) {
            ("marker", _) => self.marker = Some(value.to_owned()),
            ("group", Ok(group)) if group > 1 => {
                self.groups.insert(group);
            }
            ("no-group", Ok(group)) => {
                self.groups.remove(&group);
            }
            ("process", Ok(pid)) if pid > 1 => {
                self.processes.insert(pid);
            }
            ("no-process", Ok(pid)) => {
                self.processes.remove(&pid);
            }
            ("cgroup", _) => self.cgroups.push(PathBuf::from(value)),
            ("folder", _) => self.folders.push(PathBuf::from(value)),
            ("done", _) => self.done = true,
            _ => {}
        }
    }
}

/// The guard's whole life: listens until the pipe closes, then ends and removes what is left unless told `done`.
pub fn watch(input: impl BufRead) {
    let _ = rustix::process::setsid();
    let mut watched = Watched::default();
    for line in input.lines() {
        match line {
            Ok(line) => watched.hear(&line),
            Err(_) => break,
        }
    }
    if watched.done {
        return;
    }
    for group in &watched.groups {
        kill_group(*group, Signal::KILL);
    }
    for pid in watched.processes.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = kill_process(pid, Signal::KILL);
    }
    if let Some(marker) = &watched.marker {
        kill_marked(marker);
    }
    for cgroup in &watched.cgroups {
        crate::cgroup::empty_and_remove(cgroup);
    }
    for folder in &watched.folders {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Sends a signal to a process group; a group that is gone is fine.
pub(crate) fn kill_group(leader: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(leader) {
        let _ = kill_process_group(pid, signal);
    }
}

/// Whether a process group whose leader has been waited for still has a member. Members that became this process's
/// children and are dead are waited for.
pub(crate) fn is_group_alive(leader: i32) -> bool {
    let Some(group) = Pid::from_raw(leader) else { return false };
    while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
    test_kill_process_group(group).is_ok()
}

/// Kills every process that carries a mark, and waits, for at most five seconds, until none is left.
/// Returns how many there were.
pub(crate) fn kill_marked(mark: &str) -> usize {
    let needle = format!("{MARKER}={mark}");
    let deadline = Instant::now() + KILL_PATIENCE;
    let mut seen = BTreeSet::new();
    loop {
        let marked = marked_processes(needle.as_bytes());
        if marked.is_empty() || Instant::now() > deadline {
            return seen.len();
        }
        for pid in marked {
            seen.insert(pid);
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        std::thread::sleep(POLL);
    }
}

fn marked_processes(needle: &[u8]) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id() as i32;
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != own && carries(*pid, needle))
        .collect()
}

fn carries(pid: i32, needle: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == needle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_knows_what_it_was_told() {
        let mut watched = Watched::default();
        for line in [
            "marker ab12",
            "group 77",
            "group 78",
            "no-group 77",
            "group 1",
            "group x",
            "process 9",
            "process 8",
            "no-process 8",
            "cgroup /a b",
            "folder /t",
            "?",
        ] {
            watched.hear(line);
        }
        assert_eq!(
            watched,
            Watched {
                marker: Some("ab12".into()),
                groups: BTreeSet::from([78]),
                processes: BTreeSet::from([9]),
                cgroups: vec!["/a b".into()],
                folders: vec!["/t".into()],
                done: false
            }
        );
    }

    #[test]
    fn marked_processes_are_found_and_killed() {
        let marker = format!("test-{}", std::process::id());
        let mut child = Command::new("sleep").arg("60").env(MARKER, &marker).spawn().unwrap();
        let needle = format!("{MARKER}={marker}");
        while marked_processes(needle.as_bytes()).is_empty() {
            std::thread::yield_now();
        }
        let killer = std::thread::spawn(move || kill_marked(&marker));
        assert!(!child.wait().unwrap().success());
        assert_eq!(killer.join().unwrap(), 1);
    }
}
