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
/// So many descendants of a process are looked for.
const DESCENDANTS_MAX: usize = 10_000;

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
        // Found before their parents are gone: workers that lead sessions of their own.
        let workers = descendants(*group);
        kill_group(*group, Signal::KILL);
        workers.into_iter().for_each(|pid| send(pid, Signal::KILL));
    }
    watched.processes.iter().for_each(|pid| send(*pid, Signal::KILL));
    if let Some(marker) = &watched.marker {
        kill_marked(marker);
    }
    watched.folders.iter().for_each(|folder| kill_working_in(folder));
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

/// Sends a signal to a process; one that is gone is fine.
pub(crate) fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// The descendants of a process, parents before their children, at most [`DESCENDANTS_MAX`].
pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while next < found.len() && found.len() < DESCENDANTS_MAX {
        let more = children(found[next]);
        found.extend(more);
        next += 1;
    }
    found
}

/// The children of a process, dead ones that were not waited for included.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()).collect()
}

/// Kills the processes that work in a folder of the run's own, and waits, for at most five seconds, until none is left.
///
/// Servers that write over their environment and give each worker a session of its own leave no other trace. A process
/// at a terminal is somebody looking on and is let be.
pub(crate) fn kill_working_in(folder: &Path) {
    let deadline = Instant::now() + KILL_PATIENCE;
    loop {
        let there = processes().filter(|pid| works_in(*pid, folder)).collect::<Vec<i32>>();
        if there.is_empty() || Instant::now() > deadline {
            return;
        }
        there.into_iter().for_each(|pid| send(pid, Signal::KILL));
        std::thread::sleep(POLL);
    }
}

fn works_in(pid: i32, folder: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder)) && !has_terminal(pid)
}

/// By `tty_nr`, the fifth field after the name in `/proc/PID/stat`.
fn has_terminal(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    after_name.split(' ').nth(4).is_some_and(|terminal| terminal != "0")
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
            send(pid, Signal::KILL);
        }
        std::thread::sleep(POLL);
    }
}

fn marked_processes(needle: &[u8]) -> Vec<i32> {
    processes().filter(|pid| carries(*pid, needle)).collect()
}

/// All processes but this one.
fn processes() -> impl Iterator<Item = i32> {
    let own = std::process::id() as i32;
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok()).filter(move |pid| *pid != own)
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
    fn workers_with_sessions_of_their_own_are_found_by_their_parents_and_by_where_they_work() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().canonicalize().unwrap();
        let script = "setsid sleep 60 & echo $!; wait";
        let mut server = Command::new("sh")
            .args(["-c", script])
            .current_dir(&there)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let worker: i32 = line.trim().parse().unwrap();
        assert_eq!(descendants(server.id() as i32), [worker]);
        assert!(works_in(worker, &there) && !works_in(worker, Path::new("/no/such/folder")));
        kill_group(server.id() as i32, Signal::KILL);
        assert!(!server.wait().unwrap().success());
        kill_working_in(&there);
        assert!(!works_in(worker, &there), "the worker outlived its folder");
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
