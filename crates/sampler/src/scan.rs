//! One reading of `/proc`.
//!
//! A process that vanishes while it is read is not an error: it is not there.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::cgroups::{self, Cgroups};
use super::details::{Details, GroupDetails};
use super::files::{Files, KeptFile};
use super::host::{self, Host};
use super::limits::{Budget, DETAILS_INTERVAL, DeniedFigures, Depth, LeftOut, RARE_INTERVAL};
use super::process::{Figures, Kernel, Process};
use super::sockets::{self, Listener, Members, Residents, SocketGaps, Sockets};
use super::stat::{self, Cpu, HostStat, TaskId, TaskStat};
use super::states::States;
use super::table::Table;
use super::text;
use super::threads::{Clock, SchedulerCounts};
use super::{PeerNames, ReplicaKey, Target, Watched};
use narrows_model::series::names::GENERATOR;

/// The generator's threads whose busiest is of interest.
const LOAD_THREADS: &[u8] = b"load-";

/// Reading of `/proc` at one instant.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Reading {
    /// By the wall clock, since the Unix epoch.
    pub(super) time_ns: i64,
    /// Since boot, by the clock that processes' start times are in.
    pub(super) since_boot: Duration,
    pub(super) host: HostStat,
    /// By service and replica.
    pub(super) groups: BTreeMap<ReplicaKey, Group>,
}

/// The processes of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Group {
    pub(super) processes: HashMap<TaskId, Usage>,
    /// The threads that count towards the busiest.
    pub(super) threads: HashMap<TaskId, SchedulerCounts>,
    /// Those that collect garbage while the program stands still.
    pub(super) collectors: Vec<TaskId>,
    pub(super) resident_pages: u64,
}

/// CPU time of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    pub(super) own: Cpu,
    pub(super) reaped: Cpu,
}

/// Unit in which the kernel counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Units {
    pub(super) ticks_per_second: u64,
    pub(super) page_bytes: u64,
}

/// Reads `/proc`, with files that stay open.
#[derive(Debug)]
pub(super) struct Scanner {
    files: Files,
    units: Units,
    kernel: Kernel,
    budget: Budget,
    schedule: Due,
    host_stat: KeptFile,
    host: Host,
    cgroups: Cgroups,
    sockets: Sockets,
    table: Table,
    processes: HashMap<u32, Process>,
    states: States,
    /// The generator's own, of which only some threads count.
    generator: Option<Process>,
}

impl Scanner {
    /// `proc` is where `/proc` is mounted. Fails when its `stat` cannot be read.
    pub(super) fn new(proc: &str) -> io::Result<Self> {
        let units = Units {
            ticks_per_second: rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
        };
        let mut files = Files::new(proc);
        let mut scanner = Self {
            kernel: kernel(&mut files, units),
            files,
            units,
            budget: Budget::default(),
            schedule: Due::default(),
            host_stat: KeptFile::default(),
            host: Host::default(),
            cgroups: Cgroups::default(),
            sockets: Sockets::new(proc),
            table: Table::default(),
            processes: HashMap::new(),
            states: States::default(),
            generator: None,
        };
        scanner.host_stat()?;
        Ok(scanner)
    }

    pub(super) fn units(&self) -> Units {
        self.units
    }

    /// Omissions and unreadable figures since the start.
    pub(super) fn absent(&self) -> (LeftOut, DeniedFigures, SocketGaps) {
        (self.budget.left_out, self.budget.denied, self.sockets.gaps())
    }

    /// Reads the host, this process and what is watched; details too when they are due, `interval` being the time to
    /// the next reading.
    pub(super) fn read(&mut self, watched: &Watched, interval: Duration) -> io::Result<(Reading, Option<Details>)> {
        let since_boot = since_boot();
        let host = self.host_stat()?;
        let mut reading = Reading { time_ns: now_ns(), since_boot, host, ..Reading::default() };
        let depth = self.schedule.depth(since_boot, interval);
        self.budget.refill();
        let mut details = (depth >= Depth::Details).then(|| Details {
            since_boot,
            host: self.host.read(&mut self.files),
            ..Details::default()
        });
        self.cgroups.refresh(&mut self.files, depth, |key| watched.contains_key(key));
        self.read_generator(&mut reading, details.as_mut(), depth);
        self.read_watched(watched, &mut reading, details.as_mut(), depth);
        Ok((reading, details))
    }

    /// From now on, connections to these addresses are connections to these replicas.
    pub(super) fn name_peers(&mut self, names: &PeerNames) {
        self.sockets.name_peers(names);
    }

    /// Samples what the threads do that were there at the last reading.
    pub(super) fn sample_states(&mut self) {
        self.states.sample(&mut self.files, &mut self.processes, &mut self.sockets);
    }

    /// When the next sample of the sockets is due.
    pub(super) fn sockets_due(&self) -> Instant {
        self.sockets.due()
    }

    /// Samples the connections of what was there at the last reading.
    pub(super) fn sample_sockets(&mut self) {
        self.sockets.sample(&mut self.files);
    }

    fn host_stat(&mut self) -> io::Result<HostStat> {
        let line = self.files.record(&mut self.host_stat, format_args!("stat"))?;
        stat::host(line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no line of all processors"))
    }

    /// The whole of this process, without its children, and its load threads.
    fn read_generator(&mut self, reading: &mut Reading, details: Option<&mut Details>, depth: Depth) {
        let Ok(line) = self.files.once(format_args!("self/stat")) else { return };
        let (Some(pid), Some((_, stat))) = (stat::own_number(line), stat::task(line)) else { return };
        let process = match self.generator.take() {
            Some(process) if process.id == stat.id(pid) => self.generator.insert(process),
            _ => self.generator.insert(Process::new(stat.id(pid))),
        };
        let figures = process.read(&mut self.files, &stat, LOAD_THREADS, depth, self.kernel, &mut self.budget);
        let without_children = TaskStat { reaped: Cpu::default(), ..stat };
        let key = (GENERATOR.to_owned(), 0);
        if let (Some(details), Some(own)) = (details, &figures.details) {
            let group = GroupDetails::sum(&[(process.id, stat.parent, own)]);
            details.groups.insert(key.clone(), group);
        }
        reading.groups.entry(key).or_default().add(process.id, &without_children, &figures);
    }

    fn read_watched(&mut self, watched: &Watched, reading: &mut Reading, details: Option<&mut Details>, depth: Depth) {
        if watched.is_empty() {
            self.processes.clear();
            self.states = States::default();
            self.sockets.clear();
            self.table = Table::default();
            return;
        }
        self.budget.left_out.processes += self.table.refresh(&mut self.files);
        let members = self.members(watched);
        let figures = self.read_processes(&members, depth);
        for (key, pids) in &members {
            reading.groups.insert((*key).clone(), self.group(pids, &figures));
        }
        if let Some(details) = details {
            for (key, pids) in &members {
                if let Some(mut group) = self.group_details(key, &watched[*key], pids, &figures) {
                    group.states = self.states.take(key, &mut self.sockets);
                    details.groups.insert((*key).clone(), group);
                }
            }
            self.read_sockets(&members, details, depth);
        }
    }

    /// The listening sockets of each replica and of this process, and what a replica's own network dropped for lack of
    /// place in them.
    fn read_sockets(&mut self, members: &[(&ReplicaKey, Vec<u32>)], details: &mut Details, depth: Depth) {
        let mut networks: BTreeMap<String, Residents<'_>> = BTreeMap::new();
        for (key, of_replica) in members {
            let Some(group) = details.groups.get_mut(*key) else { continue };
            if let (Some(network), Some(pid)) = (&group.network, of_replica.first()) {
                let only = (!networks.contains_key(&network.namespace)).then_some(*key);
                networks.insert(network.namespace.clone(), Residents { pid: *pid, only });
                let text = self.files.whole(format_args!("{pid}/net/netstat")).ok();
                group.overflows = text.and_then(sockets::overflows);
            }
        }
        let generator = (GENERATOR.to_owned(), 0);
        let own: Vec<u32> = self.generator.iter().map(|process| process.id.id).collect();
        let mut replicas: Vec<(&ReplicaKey, &[u32])> = members.iter().map(|(key, pids)| (*key, &pids[..])).collect();
        replicas.push((&generator, &own));
        let (listeners, mut connections) = self.sockets.read(&mut self.files, depth, &Members { replicas, networks });
        for (key, group) in &mut details.groups {
            group.connections = connections.remove(key);
            group.ephemeral_ports =
                group.network.as_ref().and_then(|network| self.sockets.ephemeral_ports(&network.namespace));
        }
        let replicas = members.iter().map(|(key, pids)| (*key, &pids[..])).chain([(&generator, &own[..])]);
        for (key, pids) in replicas {
            if let Some(group) = details.groups.get_mut(key) {
                let mut listening: Vec<Listener> =
                    pids.iter().filter_map(|pid| listeners.get(pid)).flatten().copied().collect();
                listening.sort_unstable_by_key(|listener| listener.inode);
                group.listeners = listening;
            }
        }
        self.states.watch(members, &self.processes);
    }

    /// The processes of each replica, by number.
    fn members<'a>(&mut self, watched: &'a Watched) -> Vec<(&'a ReplicaKey, Vec<u32>)> {
        let roots = watched.values().filter_map(|target| match target {
            Target::Process(root) => Some(*root),
            Target::Cgroup(_) => None,
        });
        let by_root = self.table.members(&roots.collect());
        let mut members = Vec::with_capacity(watched.len());
        for (key, target) in watched {
            let mut pids = match target {
                Target::Process(root) => by_root.get(root).cloned().unwrap_or_default(),
                Target::Cgroup(folder) => cgroups::processes(&mut self.files, folder, &mut self.budget),
            };
            pids.retain(|pid| self.table.get(*pid).is_some());
            pids.sort_unstable();
            members.push((key, pids));
        }
        members
    }

    /// Reads each process once, however many replicas it belongs to, up to the limit.
    fn read_processes(&mut self, members: &[(&ReplicaKey, Vec<u32>)], depth: Depth) -> HashMap<u32, Figures> {
        let mut figures = HashMap::new();
        for pid in members.iter().flat_map(|(_, pids)| pids) {
            let Some(stat) = self.table.get(*pid).filter(|_| !figures.contains_key(pid)) else { continue };
            if self.budget.processes == 0 {
                self.budget.left_out.processes += 1;
                continue;
            }
            self.budget.processes -= 1;
            let id = stat.id(*pid);
            let process = self.processes.entry(*pid).or_insert_with(|| Process::new(id));
            if process.id != id {
                *process = Process::new(id);
            }
            figures.insert(*pid, process.read(&mut self.files, stat, b"", depth, self.kernel, &mut self.budget));
        }
        self.processes.retain(|pid, _| figures.contains_key(pid));
        self.table.set_members(|pid| figures.contains_key(&pid));
        figures
    }

    fn group(&self, pids: &[u32], figures: &HashMap<u32, Figures>) -> Group {
        let mut group = Group::default();
        for (id, stat, figures) in self.figures_of(pids, figures) {
            group.add(id, stat, figures);
        }
        group
    }

    fn figures_of<'a>(
        &'a self,
        pids: &'a [u32],
        figures: &'a HashMap<u32, Figures>,
    ) -> impl Iterator<Item = (TaskId, &'a TaskStat, &'a Figures)> {
        pids.iter().filter_map(|pid| {
            let stat = self.table.get(*pid)?;
            Some((stat.id(*pid), stat, figures.get(pid)?))
        })
    }

    fn group_details(
        &mut self,
        key: &ReplicaKey,
        target: &Target,
        pids: &[u32],
        figures: &HashMap<u32, Figures>,
    ) -> Option<GroupDetails> {
        let processes: Vec<_> = self
            .figures_of(pids, figures)
            .filter_map(|(id, stat, figures)| Some((id, stat.parent, figures.details.as_ref()?)))
            .collect();
        let oldest = processes.iter().map(|(id, _, _)| *id).min()?;
        let folder = match target {
            Target::Process(_) => None,
            Target::Cgroup(folder) => Some(Path::new(folder)),
        };
        let group = GroupDetails::sum(&processes);
        Some(GroupDetails {
            network: host::network(&mut self.files, oldest.id, &mut self.budget),
            cgroup: self.cgroups.read(&mut self.files, key, oldest, folder),
            ..group
        })
    }
}

impl Group {
    fn add(&mut self, id: TaskId, stat: &TaskStat, figures: &Figures) {
        self.processes.insert(id, Usage { own: stat.own, reaped: stat.reaped });
        self.threads.extend(figures.threads.iter().copied());
        self.collectors.extend(&figures.collectors);
        self.resident_pages = self.resident_pages.saturating_add(stat.resident_pages);
    }
}

/// When details and what is dear were read last.
#[derive(Debug, Default)]
struct Due {
    details: Option<Duration>,
    rare: Option<Duration>,
}

impl Due {
    /// The depth of the reading that is due now, which then counts as done. A reading is made when it is nearer to the
    /// due time than the next one.
    fn depth(&mut self, now: Duration, interval: Duration) -> Depth {
        let is_due = |last: Option<Duration>, every| last.is_none_or(|last| now + interval / 2 >= last + every);
        if is_due(self.rare, RARE_INTERVAL) {
            (self.rare, self.details) = (Some(now), Some(now));
            return Depth::Rare;
        }
        if is_due(self.details, DETAILS_INTERVAL) {
            self.details = Some(now);
            return Depth::Details;
        }
        Depth::Quick
    }
}

/// Features of this kernel, tried on this process.
fn kernel(files: &mut Files, units: Units) -> Kernel {
    let schedule = files.once(format_args!("self/schedstat")).ok().and_then(text::schedule);
    let mut folder = KeptFile::default();
    let counts_descriptors = files.size(&mut folder, format_args!("self/fd")).is_ok_and(|size| size > 0)
        && files.is_in_procfs(format_args!("self/fd"));
    let clock = Clock {
        has_schedstat: schedule.is_some_and(|schedule| schedule.run_ns > 0),
        tick_ns: 1_000_000_000 / units.ticks_per_second,
    };
    Kernel { clock, counts_descriptors }
}

fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_read_with_its_load_threads_only() {
        let mut scanner = Scanner::new("/proc").unwrap();
        let (done, wait) = std::sync::mpsc::sync_channel::<()>(0);
        let (up, is_up) = std::sync::mpsc::sync_channel(0);
        let spin = move || {
            up.send(()).unwrap();
            let _ = wait.recv();
        };
        let thread = std::thread::Builder::new().name("load-0".to_owned()).spawn(spin).unwrap();
        is_up.recv().unwrap();
        let (reading, details) = scanner.read(&Watched::new(), Duration::from_secs(1)).unwrap();
        let key = (GENERATOR.to_owned(), 0);
        let group = &reading.groups[&key];
        assert_eq!((reading.groups.len(), group.processes.len(), group.threads.len()), (1, 1, 1));
        assert!(group.resident_pages > 0);
        let details = details.unwrap();
        let own = &details.groups[&key];
        assert!(own.threads >= 2 && own.switches.len() >= 2 && own.descriptors.is_some_and(|open| open > 2), "{own:?}");
        assert!(details.host.available_bytes.is_some_and(|bytes| bytes > 0) && details.host.load.is_some());
        drop(done);
        thread.join().unwrap();
    }

    #[test]
    fn details_come_once_a_second_and_the_dear_every_ten() {
        for (interval_ms, every) in [(1000, 1), (100, 10), (300, 3), (2500, 1)] {
            let interval = Duration::from_millis(interval_ms);
            let mut due = Due::default();
            let depths: Vec<Depth> = (0..101).map(|n| due.depth(interval * n, interval)).collect();
            assert_eq!(depths[0], Depth::Rare);
            let first = depths.iter().skip(1).position(|depth| *depth >= Depth::Details).unwrap() + 1;
            assert_eq!(first, every, "{interval:?}");
            let rare = depths.iter().skip(1).position(|depth| *depth == Depth::Rare).unwrap() + 1;
            let seconds = rare as f64 * interval.as_secs_f64();
            assert!((8.5..=11.5).contains(&seconds), "{interval:?}: {seconds}");
        }
    }
}
