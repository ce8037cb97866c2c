//! One reading of `/proc`.
//!
//! Every process's `stat` is read once, because whose child it is stands nowhere else; the threads only of processes
//! that are watched. A process that vanishes while it is read is not an error: it is not there.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::fs::{self, File};
use std::io::{self, Read};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::Watched;
use super::stat::{self, HostStat, TaskStat};
use narrows_model::series::names::GENERATOR;

/// The generator's threads whose busiest is of interest.
const LOAD_THREADS: &[u8] = b"load-";

/// A process's `stat` is some 350 bytes; of the host's only the first line is of interest.
const FILE_BYTES_MAX: u64 = 4096;

/// What `/proc` said at one instant.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Reading {
    /// By the wall clock, since the Unix epoch.
    pub(super) time_ns: i64,
    /// Since boot, by the clock that processes' start times are in.
    pub(super) since_boot: Duration,
    pub(super) host: HostStat,
    /// By service and replica.
    pub(super) groups: BTreeMap<(String, u32), Group>,
}

/// The processes of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Group {
    pub(super) processes: HashMap<TaskId, Usage>,
    /// The threads that count towards the busiest; ticks each.
    pub(super) threads: HashMap<TaskId, u64>,
    pub(super) resident_pages: u64,
}

/// A process or thread, told from a later one with the same number by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TaskId {
    pub(super) id: u32,
    pub(super) started_ticks: u64,
}

/// CPU time of a process, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    pub(super) own_ticks: u64,
    pub(super) reaped_ticks: u64,
}

/// What the kernel counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Units {
    pub(super) ticks_per_second: u64,
    pub(super) page_bytes: u64,
}

/// Reads `/proc`, with buffers that are used again.
#[derive(Debug)]
pub(super) struct Scanner {
    line: Vec<u8>,
    path: String,
    units: Units,
}

impl Scanner {
    /// Fails when `/proc/stat` cannot be read.
    pub(super) fn new() -> io::Result<Self> {
        let units = Units {
            ticks_per_second: rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
        };
        let mut scanner = Self { line: Vec::new(), path: String::new(), units };
        scanner.host()?;
        Ok(scanner)
    }

    pub(super) fn units(&self) -> Units {
        self.units
    }

    /// Reads the host, this process and what is watched.
    pub(super) fn read(&mut self, watched: &Watched) -> io::Result<Reading> {
        let since_boot = clock_gettime(ClockId::Boottime);
        let mut reading = Reading {
            time_ns: now_ns(),
            since_boot: Duration::new(since_boot.tv_sec.unsigned_abs(), since_boot.tv_nsec.unsigned_abs() as u32),
            host: self.host()?,
            groups: BTreeMap::new(),
        };
        if let Some(group) = self.this_process() {
            reading.groups.insert((GENERATOR.to_owned(), 0), group);
        }
        if !watched.is_empty() {
            let processes = self.processes();
            for (key, root) in watched {
                let group = self.group(&processes, *root);
                reading.groups.insert(key.clone(), group);
            }
        }
        Ok(reading)
    }

    fn host(&mut self) -> io::Result<HostStat> {
        self.read_file(format_args!("/proc/stat"))?;
        stat::host(&self.line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no line of all processors"))
    }

    /// The whole of this process, without its children, and its load threads.
    fn this_process(&mut self) -> Option<Group> {
        let pid = std::process::id();
        let (_, stat) = self.task(format_args!("/proc/self/stat"))?;
        let mut group = Group::default();
        group.add(pid, Usage { own_ticks: stat.own_ticks, reaped_ticks: 0 }, &stat);
        self.add_threads(&mut group, pid, LOAD_THREADS);
        Some(group)
    }

    /// All processes there are, by number.
    fn processes(&mut self) -> HashMap<u32, TaskStat> {
        numbered("/proc").filter_map(|pid| Some((pid, self.task(format_args!("/proc/{pid}/stat"))?.1))).collect()
    }

    fn group(&mut self, processes: &HashMap<u32, TaskStat>, root: u32) -> Group {
        let mut group = Group::default();
        for pid in members(processes, root) {
            let stat = &processes[&pid];
            group.add(pid, Usage { own_ticks: stat.own_ticks, reaped_ticks: stat.reaped_ticks }, stat);
            self.add_threads(&mut group, pid, b"");
        }
        group
    }

    fn add_threads(&mut self, group: &mut Group, pid: u32, name_prefix: &[u8]) {
        for id in numbered(&format!("/proc/{pid}/task")) {
            match self.task(format_args!("/proc/{pid}/task/{id}/stat")) {
                Some((name, stat)) if name.starts_with(name_prefix) => {
                    group.threads.insert(TaskId { id, started_ticks: stat.started_ticks }, stat.own_ticks);
                }
                Some(_) | None => {}
            }
        }
    }

    /// A process's or thread's name and figures; none when it vanished.
    fn task(&mut self, path: fmt::Arguments<'_>) -> Option<(&[u8], TaskStat)> {
        self.read_file(path).ok()?;
        stat::task(&self.line)
    }

    fn read_file(&mut self, path: fmt::Arguments<'_>) -> io::Result<()> {
        self.path.clear();
        // Writing to a string cannot fail.
        let _ = self.path.write_fmt(path);
        self.line.clear();
        File::open(&self.path)?.take(FILE_BYTES_MAX).read_to_end(&mut self.line).map(|_| ())
    }
}

impl Group {
    fn add(&mut self, pid: u32, usage: Usage, stat: &TaskStat) {
        self.processes.insert(TaskId { id: pid, started_ticks: stat.started_ticks }, usage);
        self.resident_pages += stat.resident_pages;
    }
}

/// The entries of a directory that are numbers.
fn numbered(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The root, its descendants, and all of its session if it leads one, even when it is gone itself.
fn members(processes: &HashMap<u32, TaskStat>, root: u32) -> Vec<u32> {
    let belongs = |pid: u32| {
        let mut at = pid;
        // Parents that change while /proc is read could form a ring; no chain is longer than there are processes.
        for _ in 0..=processes.len() {
            let Some(stat) = processes.get(&at) else { return false };
            if at == root || stat.session == root {
                return true;
            }
            at = stat.parent;
        }
        false
    };
    processes.keys().copied().filter(|pid| belongs(*pid)).collect()
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_its_root_its_descendants_and_its_session() {
        // (pid, parent, session)
        let rows = [
            (1, 0, 1),
            (10, 1, 10),  // a root that leads its session
            (11, 10, 10), // its child
            (12, 11, 12), // a grandchild in a session of its own
            (13, 1, 10),  // a daemon that stayed in the session
            (14, 13, 14), // and its child in another
            (20, 1, 5),   // a root in somebody else's session
            (21, 20, 5),
            (22, 1, 5), // a stranger in that session
            (30, 31, 30),
            (31, 30, 31), // a ring
        ];
        let stat = |parent, session| TaskStat { parent, session, ..TaskStat::default() };
        let processes = rows.map(|(pid, parent, session)| (pid, stat(parent, session))).into_iter().collect();
        let cases = [(10, vec![10, 11, 12, 13, 14]), (20, vec![20, 21]), (12, vec![12]), (99, vec![])];
        for (root, expected) in cases {
            let mut got = members(&processes, root);
            got.sort_unstable();
            assert_eq!(got, expected, "{root}");
        }
        let mut without_root: HashMap<_, _> = processes;
        without_root.remove(&10);
        let mut got = members(&without_root, 10);
        got.sort_unstable();
        assert_eq!(got, [11, 12, 13, 14]);
    }

    #[test]
    fn this_process_is_read_with_its_load_threads_only() {
        let mut scanner = Scanner::new().unwrap();
        let (done, wait) = std::sync::mpsc::sync_channel::<()>(0);
        let (up, is_up) = std::sync::mpsc::sync_channel(0);
        let spin = move || {
            up.send(()).unwrap();
            let _ = wait.recv();
        };
        let thread = std::thread::Builder::new().name("load-0".to_owned()).spawn(spin).unwrap();
        is_up.recv().unwrap();
        let reading = scanner.read(&Watched::new()).unwrap();
        let group = &reading.groups[&(GENERATOR.to_owned(), 0)];
        assert_eq!((reading.groups.len(), group.processes.len(), group.threads.len()), (1, 1, 1));
        assert!(group.resident_pages > 0);
        drop(done);
        thread.join().unwrap();
    }
}
