//! Nothing outlives its run, not even when Narrows itself is killed with `kill -9`.
//!
//! A run starts a second process, the guard, and tells it over a pipe what exists: process groups, adopted processes,
//! cgroups, scratch folders. When the pipe closes before the run said it was done, the guard ends and removes all of
//! it. Besides, every service carries the run's marker in its environment, by which even processes that detached
//! themselves (their own session, their own parent) are found. The guard leads a session of its own, so the terminal's
//! signals do not reach it, and `narrows guard` ignores the signals that ask a process to end.
//!
//! The guard trusts only its pipe, the marker and the folders; it keeps no state on disk.
//!
//! # Which processes are the run's
//!
//! The pipe can close long after the guard was told of a process, and other programs start processes meanwhile. A
//! process is therefore identified by its number and start time, and every signal goes through a pidfd.
//!
//! A process group has no such handle; its members are found and signalled one by one. While the run lives, it waits
//! for a group's leader only after it took the group off the guard's list. A leader that was not waited for keeps its
//! number, so a group on the list has the number that it had when the guard was told. Once the run is dead, the kernel
//! ends leaders and `init` waits for them. From then on:
//!
//! - The leader's identity is still there: the number is the group's own, and so are all members.
//! - Another process has the number: the kernel gave it away, which it does only once group and session are empty.
//!   There is no member left.
//! - Nobody has the number: members that started between the leader's start and the end of the pipe are the run's. A
//!   stranger among them would need a whole round of process numbers, and a leader that is gone again, between the end
//!   of the run and the moment the guard reads of it. Members that started later may be strangers and are not touched by
//!   this rule; the marker, the folder and the cgroup still find those of the run.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Signal, setsid};

use crate::Error;
use crate::processes::{self, Handle, Identity};

/// The environment variable that marks every process of a run. Its value begins with the run's id and differs each time
/// the run is resumed, so that the guard of a killed process does not touch what a later one starts.
pub const MARKER: &str = "NARROWS_RUN_ID";

/// The run's end of the pipe. Dropping it without [`Guard::done`] makes the guard clean up.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts the guard: `command` must end up in [`watch`] with its standard input. Errors when it cannot be started,
    /// and on kernels that cannot signal a process safely (before Linux 5.3).
    pub fn start(command: &[String], mark: &str) -> Result<Self, Error> {
        check_kernel()?;
        let (program, arguments) = command.split_first().ok_or_else(|| {
            Error::Guard(std::io::Error::new(std::io::ErrorKind::InvalidInput, "no command was given"))
        })?;
        let mut command = Command::new(program);
        command.args(arguments).env_remove(MARKER).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        lead_a_session(&mut command);
        let mut child = command.spawn().map_err(Error::Guard)?;
        let pipe = child.stdin.take();
        let mut guard = Self { child, pipe };
        guard.say(&format!("marker {mark}"))?;
        Ok(guard)
    }

    /// A process group exists from now on. Its leader must be a child that was not waited for, and stay so until
    /// [`Self::drop_group`].
    pub(crate) fn add_group(&mut self, leader: Identity) -> Result<(), Error> {
        self.say(&format!("group {leader}"))
    }

    /// A process group has ended.
    pub(crate) fn drop_group(&mut self, leader: Identity) -> Result<(), Error> {
        self.say(&format!("no-group {leader}"))
    }

    /// A process that detached itself from its service exists.
    pub(crate) fn add_process(&mut self, process: Identity) -> Result<(), Error> {
        self.say(&format!("process {process}"))
    }

    /// A process that detached itself has ended.
    pub(crate) fn drop_process(&mut self, process: Identity) -> Result<(), Error> {
        self.say(&format!("no-process {process}"))
    }

    /// A cgroup will exist from now on.
    pub fn add_cgroup(&mut self, path: &Path) -> Result<(), Error> {
        self.say(&format!("cgroup {}", path.display()))
    }

    /// A scratch folder will exist from now on.
    pub fn add_folder(&mut self, path: &Path) -> Result<(), Error> {
        self.say(&format!("folder {}", path.display()))
    }

    /// Containers of a project of Compose will exist from now on.
    pub(crate) fn add_containers(&mut self, engine: &str, project: &str) -> Result<(), Error> {
        self.say(&format!("containers {engine} {project}"))
    }

    /// The containers of a project are removed.
    pub(crate) fn drop_containers(&mut self, engine: &str, project: &str) -> Result<(), Error> {
        self.say(&format!("no-containers {engine} {project}"))
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

/// Errors where processes cannot be opened, for then nothing could be ended safely.
fn check_kernel() -> Result<(), Error> {
    match Handle::open(std::process::id() as i32) {
        Ok(_) => Ok(()),
        Err(Errno::NOSYS) => {
            let message = "this kernel has no pidfd_open, expected Linux 5.3 or newer";
            Err(Error::Guard(std::io::Error::new(std::io::ErrorKind::Unsupported, message)))
        }
        Err(errno) => Err(Error::Guard(errno.into())),
    }
}

#[allow(unsafe_code, reason = "the guard must leave the terminal's session before any signal can end it")]
fn lead_a_session(command: &mut Command) {
    // SAFETY: the closure only makes a system call; it does not allocate or take locks.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(())
        });
    }
}

/// State of a guard.
#[derive(Debug, Default, PartialEq, Eq)]
struct GuardState {
    marker: Option<String>,
    /// Leaders of process groups.
    groups: BTreeSet<Identity>,
    processes: BTreeSet<Identity>,
    cgroups: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// Programs that run containers, each with a project.
    containers: BTreeSet<(String, String)>,
    done: bool,
}

impl GuardState {
    fn hear(&mut self, line: &str) {
        let (word, value) = line.split_once(' ').unwrap_or((line, ""));
        match (word, value.parse::<Identity>()) {
            ("marker", _) => self.marker = Some(value.to_owned()),
            ("group", Ok(leader)) => {
                self.groups.insert(leader);
            }
            ("no-group", Ok(leader)) => {
                self.groups.remove(&leader);
            }
            ("process", Ok(process)) => {
                self.processes.insert(process);
            }
            ("no-process", Ok(process)) => {
                self.processes.remove(&process);
            }
            ("cgroup", _) => self.cgroups.push(PathBuf::from(value)),
            ("folder", _) => self.folders.push(PathBuf::from(value)),
            ("containers", _) => self.containers.extend(project(value)),
            ("no-containers", _) => self.containers.retain(|known| Some(known) != project(value).as_ref()),
            ("done", _) => self.done = true,
            _ => {}
        }
    }

    /// Ends and removes all of it. `closed_ticks` is when the pipe closed, in clock ticks since boot.
    fn clean_up(&self, closed_ticks: u64) {
        self.groups.iter().for_each(|leader| kill_group(*leader, closed_ticks));
        self.processes.iter().for_each(|process| process.send(Signal::KILL));
        if let Some(marker) = &self.marker {
            kill_marked(marker);
        }
        for folder in &self.folders {
            kill_working_in(folder);
        }
        for cgroup in &self.cgroups {
            crate::cgroup::empty_and_remove(cgroup);
        }
        for (engine, project) in &self.containers {
            crate::containers::remove(engine, project);
        }
        for folder in &self.folders {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// The program and the project of `docker shop`.
fn project(value: &str) -> Option<(String, String)> {
    let (engine, project) = value.split_once(' ')?;
    Some((engine.to_owned(), project.to_owned()))
}

/// The guard's whole life: listens until the pipe closes, then ends and removes what is left unless told `done`.
pub fn watch(input: impl BufRead) {
    let mut watched = GuardState::default();
    for line in input.lines() {
        match line {
            Ok(line) => watched.hear(&line),
            Err(_) => break,
        }
    }
    if !watched.done {
        watched.clean_up(processes::now_ticks());
    }
}

/// Kills a process group and the descendants of its members, workers that lead sessions of their own among them.
fn kill_group(leader: Identity, closed_ticks: u64) {
    let is_member = |pid| processes::is_in_group(pid, leader, closed_ticks);
    // Found before their parents are gone.
    let members = processes::each(is_member).filter_map(|member| member.identity());
    let workers: Vec<Identity> = members.flat_map(processes::descendants).collect();
    processes::kill_each(is_member);
    workers.into_iter().for_each(|worker| worker.send(Signal::KILL));
}

/// Kills the processes whose working directory is in the run's own folder, and waits up to five seconds until all have
/// ended.
///
/// Servers that overwrite their environment and start a session for each worker can be found in no other way. A process
/// at a terminal belongs to a user who is looking around and is not killed. Returns the number of processes.
pub(crate) fn kill_working_in(folder: &Path) -> usize {
    processes::kill_each(|pid| processes::works_in(pid, folder) && !processes::has_terminal(pid))
}

/// Kills every process that carries a mark, and waits, for at most five seconds, until none is left.
/// Returns how many there were.
pub(crate) fn kill_marked(mark: &str) -> usize {
    let variable = format!("{MARKER}={mark}");
    processes::kill_each(|pid| processes::carries(pid, variable.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_guard_knows_what_it_was_told() {
        let mut watched = GuardState::default();
        for line in [
            "marker ab12",
            "group 77 5",
            "group 78 6",
            "no-group 77 5",
            "no-group 78 5",
            "group 1 7",
            "group 79",
            "group x",
            "process 9 1",
            "process 8 2",
            "no-process 8 2",
            "cgroup /a b",
            "folder /t",
            "containers docker shop-1",
            "containers podman shop-2",
            "no-containers docker shop-1",
            "?",
        ] {
            watched.hear(line);
        }
        assert_eq!(
            watched,
            GuardState {
                marker: Some("ab12".into()),
                groups: BTreeSet::from([Identity { pid: 78, started_ticks: 6 }]),
                processes: BTreeSet::from([Identity { pid: 9, started_ticks: 1 }]),
                cgroups: vec!["/a b".into()],
                folders: vec!["/t".into()],
                containers: BTreeSet::from([("podman".into(), "shop-2".into())]),
                done: false
            }
        );
    }

    /// A process that leads a session, as a service does.
    fn leader(script: &str) -> (Child, Identity) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        lead_a_session(&mut command);
        let child = command.spawn().unwrap();
        let identity = Identity::of_child(&child).unwrap();
        (child, identity)
    }

    fn first_line(child: &mut Child) -> String {
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    #[test]
    fn a_stranger_with_the_number_of_an_ended_process_or_group_is_spared() {
        let (mut stranger, own) = leader("exec sleep 60");
        let stale = Identity { started_ticks: own.started_ticks - 1, ..own };
        watch(format!("group {stale}\nprocess {stale}\n").as_bytes());
        // A kill by the guard would be pending already, and show as the cause of the end.
        own.send(Signal::TERM);
        assert_eq!(stranger.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    }

    #[test]
    fn what_a_guard_was_told_ends_when_the_pipe_closes() {
        let (mut group, of_group) = leader("exec sleep 60");
        let (mut process, of_process) = leader("exec sleep 60");
        watch(format!("group {of_group}\nprocess {of_process}\n").as_bytes());
        for child in [&mut group, &mut process] {
            assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        }
    }

    #[test]
    fn nothing_ends_after_done() {
        let (mut child, own) = leader("exec sleep 60");
        watch(format!("group {own}\ndone\n").as_bytes());
        own.send(Signal::TERM);
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
    }

    #[test]
    fn members_end_whose_leader_is_gone_and_workers_with_sessions_of_their_own() {
        let (mut server, group) =
            leader("sh -c 'setsid sleep 60 >/dev/null & sleep 60 >/dev/null & echo $! $$; wait' & exec sleep 60");
        let line = first_line(&mut server);
        let members = line.split(' ').map(|pid| Identity::from_pid(pid.parse().unwrap()).unwrap()).collect::<Vec<_>>();
        let worker = processes::descendants(members[1]).into_iter().find(|one| *one != members[0]).unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
        watch(format!("group {group}\n").as_bytes());
        for process in members.iter().chain([&worker]) {
            let deadline = Instant::now() + Duration::from_secs(60);
            while runs(*process) {
                assert!(Instant::now() < deadline, "{process} outlived the run");
                std::thread::yield_now();
            }
        }
    }

    fn runs(process: Identity) -> bool {
        Handle::open(process.pid).is_ok_and(|handle| handle.identity() == Some(process))
    }

    #[test]
    fn marked_processes_are_found_and_killed() {
        let marker = format!("test-{}", std::process::id());
        let mut child = Command::new("sleep").arg("60").env(MARKER, &marker).spawn().unwrap();
        // The kernel lets `spawn` return a moment before the new program's environment can be read.
        let variable = format!("{MARKER}={marker}");
        while !processes::carries(child.id() as i32, variable.as_bytes()) {
            assert!(child.try_wait().unwrap().is_none(), "sleep has ended");
            std::thread::yield_now();
        }
        assert_eq!(kill_marked(&marker), 1);
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        assert_eq!(kill_marked(&marker), 0);
    }
}
