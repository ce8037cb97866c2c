//! An operating-system process with its own session and process group, caps, captured output and a certain end.
//!
//! Five nets keep it from outliving the run: an orderly stop; the kernel, which kills it when the thread that started
//! it dies; adoption, for descendants that detached themselves; and the [guard], which finds its group and its mark.
//!
//! The process is waited for last, after the guard was reported that it has ended. Until then its number and its group's
//! are its own, so the group can be signalled by number.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use narrows_model::series::LogStream;
use narrows_telemetry::Store;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, set_parent_process_death_signal, setsid,
    waitid,
};

use crate::Error;
use crate::cgroup::Cgroup;
use crate::components::account::Account;
use crate::components::output::{LastLines, Source, capture};
use crate::experiment::{OTLP_TOKEN_VARIABLE, SERVICE_TOKEN_VARIABLE};
use crate::guard::{Guard, MARKER};
use crate::processes::{self, Identity, SignalState};

const POLL: Duration = Duration::from_millis(10);

/// Program to start.
#[derive(Debug)]
pub(crate) struct Spec {
    /// Service, or the service whose setup this is.
    pub(crate) service: String,
    /// The replica, from 0.
    pub(crate) replica: u32,
    /// Program and arguments, at least the program.
    pub(crate) command: Vec<String>,
    /// Where it runs.
    pub(crate) cwd: PathBuf,
    /// Added to this process's own environment.
    pub(crate) env: Vec<(String, String)>,
    /// Whose rights it gets; this process's own without.
    pub(crate) account: Option<Account>,
    /// A text in its output that someone waits for.
    pub(crate) wanted_line: Option<String>,
}

/// A started process.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    identity: Identity,
    /// Known before the child has been waited for.
    ended: Option<Exit>,
    last_lines: LastLines,
    cgroup: Option<Cgroup>,
}

impl Process {
    /// Starts it. The calling thread must live as long as the process should.
    pub(crate) fn start(
        spec: &Spec,
        cgroup: Option<Cgroup>,
        mark: &str,
        store: &Arc<dyn Store>,
        guard: &mut Guard,
    ) -> Result<Self, Error> {
        let name = if spec.replica > 0 { format!("{}[{}]", spec.service, spec.replica) } else { spec.service.clone() };
        let started = Self::spawn(spec, cgroup.as_ref(), mark);
        let (mut child, identity) = match started {
            Ok(started) => started,
            Err(source) => {
                if let Some(cgroup) = cgroup {
                    cgroup.remove();
                }
                if !spec.cwd.is_dir() {
                    return Err(Error::NoFolder { who: name, cwd: spec.cwd.clone() });
                }
                let program = spec.command.first().cloned().unwrap_or_default();
                return Err(Error::Spawn { who: name, program, cwd: spec.cwd.clone(), source });
            }
        };
        let last_lines = LastLines::watching(spec.wanted_line.as_deref());
        let source = |stream| Source { service: spec.service.clone(), replica: spec.replica, stream };
        if let Some(out) = child.stdout.take() {
            capture(out, source(LogStream::Stdout), Arc::clone(store), last_lines.clone());
        }
        if let Some(err) = child.stderr.take() {
            capture(err, source(LogStream::Stderr), Arc::clone(store), last_lines.clone());
        }
        let process = Self { name, child, identity, ended: None, last_lines, cgroup };
        guard.add_group(identity)?;
        Ok(process)
    }

    fn spawn(spec: &Spec, cgroup: Option<&Cgroup>, mark: &str) -> std::io::Result<(Child, Identity)> {
        let (program, arguments) = spec.command.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let doors = cgroup.map_or(Ok(Vec::new()), Cgroup::doors).map_err(std::io::Error::other)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&spec.cwd)
            // Tokens of services elsewhere and of their telemetry are nothing for what runs here.
            .env_remove(SERVICE_TOKEN_VARIABLE)
            .env_remove(OTLP_TOKEN_VARIABLE)
            .envs(spec.env.iter().map(|(name, value)| (name, value)))
            .env(MARKER, mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        bind_to_parent(&mut command, doors, spec.account);
        let mut child = command.spawn()?;
        let identity = Identity::of_child(&child).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        Ok((child, identity))
    }

    /// Its name for people: service, and replica from the second on.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its process id, which is also its process group's.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its process id and those of its descendants.
    pub(crate) fn tree(&self) -> Vec<u32> {
        let descendants = processes::descendants(self.identity).into_iter();
        std::iter::once(self.pid()).chain(descendants.filter_map(|one| u32::try_from(one.pid).ok())).collect()
    }

    /// Its last output.
    pub(crate) fn last_lines(&self) -> &LastLines {
        &self.last_lines
    }

    /// How it ended, in words, if it has.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.look(WaitIdOptions::NOHANG);
        let how = self.ended?.describe();
        Some(if self.ran_out_of_memory() { format!("{how} (it reached its memory cap)") } else { how })
    }

    /// Whether the kernel killed a process of it at its memory cap.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.cgroup.as_ref().is_some_and(Cgroup::ran_out_of_memory)
    }

    /// Looks whether it has ended, without waiting for it in the kernel's sense: its number stays its own.
    fn look(&mut self, options: WaitIdOptions) {
        if self.ended.is_some() {
            return;
        }
        let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        self.ended = match waitid(WaitId::Pid(Pid::from_child(&self.child)), options) {
            Ok(status) => status.map(|status| Exit::of(&status)),
            // The kernel waits for children by itself where SIGCHLD is ignored.
            Err(Errno::CHILD) => Some(Exit::Unknown),
            Err(_) => None,
        };
    }

    /// As [`Self::ended`], and ends what it left in its group.
    pub(crate) fn ended_with_its_group(&mut self) -> Option<String> {
        let is_news = self.ended.is_none();
        let how = self.ended()?;
        if is_news {
            self.kill_group(Signal::KILL);
        }
        Some(how)
    }

    /// Whether it ended with exit code 0.
    pub(crate) fn succeeded(&self) -> bool {
        self.exit_code() == Some(0)
    }

    /// The code it exited with; none while it lives or when a signal ended it.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        match self.ended {
            Some(Exit::Code(code)) => Some(code),
            _ => None,
        }
    }

    /// Sends a signal to its group, unless it has ended.
    pub(crate) fn signal_group(&self, signal: Signal) {
        if self.ended.is_none() {
            self.kill_group(signal);
        }
    }

    /// Sends a signal to its group and to descendants that lead groups of their own, unless it has ended.
    pub(crate) fn signal_all(&self, signal: Signal) {
        let descendants = if self.ended.is_none() { processes::descendants(self.identity) } else { Vec::new() };
        self.signal_group(signal);
        descendants.into_iter().for_each(|descendant| descendant.send(signal));
    }

    /// Sends a signal to its group, which may be without members. It must not have been waited for.
    fn kill_group(&self, signal: Signal) {
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }

    /// Asks the whole group to end, waits up to `timeout` until all of it has, then kills what is left.
    /// Members whose leader had ended before are left to their mark.
    pub(crate) fn stop(mut self, signal: Signal, timeout: Duration, guard: &mut Guard) -> ProcessEnd {
        let ended = if self.ended().is_some() { ProcessEnd::Before } else { self.stop_group(signal, timeout) };
        self.last_lines.last_words();
        self.clear(guard);
        ended
    }

    /// Waits for a process that has ended and gives up its control group.
    pub(crate) fn clear(&mut self, guard: &mut Guard) {
        // Told first: the guard's groups are those whose leaders have not been waited for. It may be gone only if someone
        // killed it; the process itself has ended either way.
        let _ = guard.drop_group(self.identity);
        let _ = self.child.wait();
        if let Some(cgroup) = self.cgroup.take() {
            cgroup.remove();
        }
    }

    fn stop_group(&mut self, signal: Signal, timeout: Duration) -> ProcessEnd {
        let deadline = Instant::now() + timeout;
        self.kill_group(signal);
        while self.ended().is_none() || self.has_members() {
            if Instant::now() >= deadline {
                let reason = self.reason_to_stay(signal);
                self.kill_group(Signal::KILL);
                self.look(WaitIdOptions::empty());
                return ProcessEnd::Killed { reason };
            }
            std::thread::sleep(POLL);
        }
        ProcessEnd::Asked
    }

    /// Why the first process of its group that still runs did not end on a signal, the leader before others.
    fn reason_to_stay(&self, signal: Signal) -> Option<String> {
        let leader = self.ended.is_none().then_some(self.identity.pid);
        let member =
            || processes::each(|pid| processes::is_in_group(pid, self.identity, 0)).next().map(|one| one.pid());
        Some(SignalState::read(leader.or_else(member)?)?.reason(signal))
    }

    /// Whether a process runs in its group. It must not have been waited for.
    fn has_members(&self) -> bool {
        processes::each(|pid| processes::is_in_group(pid, self.identity, 0)).next().is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.kill_group(Signal::KILL);
        }
        let _ = self.child.wait();
        if let Some(cgroup) = self.cgroup.take() {
            cgroup.remove();
        }
    }
}

/// With what a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    Code(i32),
    Signal(i32),
    Unknown,
}

impl Exit {
    fn of(status: &WaitIdStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Code(code) => format!("exited with code {code}"),
            Self::Signal(signal) => format!("ended by signal {signal}"),
            Self::Unknown => "ended".to_owned(),
        }
    }
}

/// How a process came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// Before it was asked.
    Before,
    /// When it was asked.
    Asked,
    /// It did not end when asked.
    Killed {
        /// Why not, in a clause, as far as it can be seen.
        reason: Option<String>,
    },
}

#[allow(
    unsafe_code,
    reason = "a child must leave our session, join its cgroup and tie its life to ours between fork and exec"
)]
fn bind_to_parent(command: &mut Command, doors: Vec<File>, account: Option<Account>) {
    let parent = rustix::process::getpid();
    // SAFETY: the closure only makes system calls (setsid, write, setgroups, setgid, setuid, prctl, getppid); it does not
    // allocate or take locks.
    unsafe {
        command.pre_exec(move || {
            setsid()?;
            for door in &doors {
                rustix::io::write(door, b"0")?;
            }
            // The kernel forgets the parent-death signal when rights change, so it is asked for afterwards.
            if let Some(account) = account {
                account.take_on()?;
            }
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(parent) {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::series::{LogLine, Point, SeriesKey};
    use narrows_model::trace::Span;
    use narrows_telemetry::{KeptCounts, Receipt};

    use super::*;
    use crate::cgroup::Limits;

    struct Nowhere;

    impl Nowhere {
        fn kept() -> Receipt {
            let (sender, receipt) = tokio::sync::oneshot::channel();
            let _ = sender.send(Ok(KeptCounts::default()));
            receipt
        }
    }

    impl Store for Nowhere {
        fn spans(&self, _: Vec<Span>) -> Receipt {
            Self::kept()
        }
        fn points(&self, _: Vec<(SeriesKey, Point)>) -> Receipt {
            Self::kept()
        }
        fn logs(&self, _: Vec<LogLine>) -> Receipt {
            Self::kept()
        }
    }

    fn start(script: &str, cgroup: Option<Cgroup>, run_id: &str) -> (Process, Guard) {
        let spec = Spec {
            service: "svc".into(),
            replica: 0,
            command: vec!["sh".into(), "-c".into(), script.into()],
            cwd: "/".into(),
            env: vec![("GREETING".into(), "hello".into())],
            account: None,
            wanted_line: Some("up".into()),
        };
        let store: Arc<dyn Store> = Arc::new(Nowhere);
        let mut guard = Guard::start(&["cat".into()], run_id).unwrap();
        let process = Process::start(&spec, cgroup, run_id, &store, &mut guard).unwrap();
        (process, guard)
    }

    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn output_is_remembered_and_an_orderly_stop_is_told_from_a_kill() {
        let (process, mut guard) = start("echo $GREETING; echo up; exec sleep 60", None, "t1");
        assert!(process.last_lines().saw_wanted(TIMEOUT));
        assert_eq!(process.last_lines().get(), ["hello", "up"]);
        assert_eq!(process.stop(Signal::TERM, TIMEOUT, &mut guard), ProcessEnd::Asked);

        let (process, mut guard) = start("trap '' TERM; echo up; while :; do sleep 1; done", None, "t2");
        assert!(process.last_lines().saw_wanted(TIMEOUT));
        let reason = Some("sh ignores SIGTERM".to_owned());
        assert_eq!(process.stop(Signal::TERM, Duration::ZERO, &mut guard), ProcessEnd::Killed { reason });
    }

    #[test]
    fn a_process_that_ended_says_how() {
        let (mut process, mut guard) = start("exit 3", None, "t3");
        let how = std::iter::repeat_with(|| process.ended()).find_map(|how| how);
        assert_eq!(how.as_deref(), Some("exited with code 3"));
        assert!(process.identity.is_there(), "its number may be another's while the guard still has it");
        assert_eq!(process.stop(Signal::TERM, TIMEOUT, &mut guard), ProcessEnd::Before);
    }

    #[test]
    fn descendants_that_detached_themselves_are_found_by_their_mark() {
        let run_id = format!("detached-{}", std::process::id());
        let (process, mut guard) = start("setsid sh -c 'echo up; exec sleep 300' & exec sleep 60", None, &run_id);
        assert!(process.last_lines().saw_wanted(TIMEOUT));
        process.stop(Signal::TERM, TIMEOUT, &mut guard);
        assert_eq!(crate::guard::kill_marked(&run_id), 1);
        assert_eq!(crate::guard::kill_marked(&run_id), 0);
    }

    #[test]
    fn a_cap_is_in_force_and_its_group_is_removed() {
        let name = format!("narrows-test-{}", std::process::id());
        let mut folders = Vec::new();
        let limits = Limits { cpus: Some(0.5), memory_bytes: None };
        // Where caps are not allowed there is nothing to test, and the run says so in a caveat.
        let Ok(cgroup) = Cgroup::create(&name, limits, |path| folders.push(path.to_owned())) else { return };
        let (process, mut guard) = start("cat /proc/self/cgroup; echo up; exec sleep 60", Some(cgroup), "t4");
        assert!(process.last_lines().saw_wanted(TIMEOUT));
        assert!(process.last_lines().get().iter().any(|line| line.contains(&name)));
        process.stop(Signal::TERM, TIMEOUT, &mut guard);
        assert!(folders.iter().all(|folder| !folder.exists()));
    }
}
