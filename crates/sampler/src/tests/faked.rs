//! The reading of a made-up `/proc` and made-up control groups.

use std::os::unix::fs::PermissionsExt;

use narrows_model::series::ThreadState;

use super::tree::Tree;
use crate::details::{Descriptors, Details, GroupDetails};
use crate::scan::{Reading, Scanner};
use crate::text::{Disk, Switches};
use crate::*;

const SECOND: Duration = Duration::from_secs(1);

fn shop() -> ReplicaKey {
    ("shop".to_owned(), 0)
}

fn watched(target: Target) -> Watched {
    Watched::from([(shop(), target)])
}

fn read(scanner: &mut Scanner, watched: &Watched) -> (Reading, Option<Details>) {
    scanner.read(watched, SECOND).unwrap()
}

/// The details of a first reading, which has all of them.
fn details(tree: &Tree, target: Target) -> GroupDetails {
    let (_, details) = read(&mut Scanner::new(tree.path()).unwrap(), &watched(target));
    details.unwrap().groups.remove(&shop()).unwrap()
}

/// A process of two threads with everything there is to read.
fn full() -> Tree {
    let tree = Tree::new();
    tree.write("self/schedstat", "5 5 5\n");
    tree.link("self/ns/net", "net:[1]");
    tree.process(10, "S 1 10 10 0 0 0 0 0 0 0 30 20 0 0 20 0 2 0 5 0 9");
    for (tid, run_ns) in [(10, 700), (11, 300)] {
        tree.thread(10, tid, 1, 5);
        tree.schedule(10, tid, run_ns, 3);
        tree.switches(10, tid, 40, 2);
    }
    tree.write("10/io", "read_bytes: 4096\nwrite_bytes: 512\n");
    tree.write("10/smaps_rollup", "5-6 ---p 0 00:00 0 [rollup]\nRss: 40 kB\nPss: 20 kB\n");
    (0..3).for_each(|descriptor| tree.write(&format!("10/fd/{descriptor}"), ""));
    tree.write("10/limits", "Limit  Soft Limit  Hard Limit  Units\nMax open files            4                    524288               files\n");
    tree.write("10/net/netstat", "TcpExt: TW ListenOverflows\nTcpExt: 5 6\n");
    tree.link("10/ns/net", "net:[2]");
    tree.write("10/net/sockstat", "TCP: inuse 1 orphan 0 tw 7 alloc 1 mem 0\n");
    tree.write("10/net/dev", "eth0: 100 0 0 0 0 0 0 0 50 0\n");
    tree
}

#[test]
fn all_of_a_process_is_read() {
    let tree = full();
    let mut scanner = Scanner::new(tree.path()).unwrap();
    let watched = watched(Target::Process(10));
    let (reading, details) = read(&mut scanner, &watched);
    let group = &reading.groups[&shop()];
    let mut run_ns: Vec<u64> = group.threads.values().map(|ran| ran.run_ns).collect();
    run_ns.sort_unstable();
    assert_eq!((run_ns, group.resident_pages, group.processes.len()), (vec![300, 700], 9, 1));
    let details = &details.unwrap().groups[&shop()];
    assert_eq!((details.threads, details.descriptors, details.pss_bytes), (2, Some(3), Some(20 << 10)));
    let fullest = Descriptors { open: 3, limit: 4 };
    assert_eq!((details.fullest, details.overflows), (Some(fullest), Some(6)));
    let disk: Vec<Disk> = details.disk.as_ref().unwrap().values().map(|usage| usage.disk).collect();
    assert_eq!(disk, [Disk { read_bytes: 4096, written_bytes: 512 }]);
    let expected = Switches { voluntary: 40, involuntary: 2 };
    assert_eq!(details.switches.values().copied().collect::<Vec<_>>(), [expected; 2]);
    let network = details.network.as_ref().unwrap();
    assert_eq!((network.namespace.as_str(), network.interfaces[0].received_bytes), ("net:[2]", 100));
    assert_eq!(network.time_wait, Some(7));
    let gaps = SocketGaps { without_diagnostics: true, namespaces: 1, ..SocketGaps::default() };
    assert_eq!(scanner.absent(), (LeftOut::default(), DeniedFigures::default(), gaps));
}

#[test]
fn switches_are_read_only_of_threads_that_ran() {
    let tree = full();
    let mut scanner = Scanner::new(tree.path()).unwrap();
    let watched = watched(Target::Process(10));
    read(&mut scanner, &watched);
    tree.switches(10, 10, 41, 2);
    tree.switches(10, 11, 50, 3);
    tree.schedule(10, 11, 400, 4);
    // So long an interval makes details due at every reading.
    let (_, details) = scanner.read(&watched, SECOND * 60).unwrap();
    let switches = &details.unwrap().groups[&shop()].switches;
    let mut voluntary: Vec<u64> = switches.values().map(|switches| switches.voluntary).collect();
    voluntary.sort_unstable();
    assert_eq!(voluntary, [40, 50]);
}

#[test]
fn without_schedstat_clock_ticks_count() {
    let tree = full();
    tree.remove("self/schedstat");
    tree.thread(10, 11, 7, 5);
    let mut scanner = Scanner::new(tree.path()).unwrap();
    let tick_ns = 1_000_000_000 / scanner.units().ticks_per_second;
    let (reading, _) = read(&mut scanner, &watched(Target::Process(10)));
    let mut run_ns: Vec<u64> = reading.groups[&shop()].threads.values().map(|ran| ran.run_ns).collect();
    run_ns.sort_unstable();
    assert_eq!(run_ns, [tick_ns, 7 * tick_ns]);
}

#[test]
fn threads_and_processes_come_and_go() {
    let tree = full();
    let mut scanner = Scanner::new(tree.path()).unwrap();
    let watched = watched(Target::Process(10));
    let threads = |scanner: &mut Scanner| {
        let mut ids: Vec<u32> = read(scanner, &watched).0.groups[&shop()].threads.keys().map(|id| id.id).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(threads(&mut scanner), [10, 11]);
    // One ends and another begins; the number of threads stays.
    tree.write("10/task/11/schedstat", "");
    tree.remove("10/task/11");
    tree.thread(10, 12, 1, 900);
    tree.schedule(10, 12, 5, 1);
    assert_eq!(threads(&mut scanner), [10, 12]);
    tree.process(13, "S 10 13 10 0 0 0 0 0 0 0 30 20 0 0 20 0 1 0 950 0 9");
    tree.thread(13, 13, 1, 950);
    tree.schedule(13, 13, 5, 1);
    assert_eq!(threads(&mut scanner), [10, 12, 13]);
    tree.remove("10");
    tree.remove("13");
    assert!(threads(&mut scanner).is_empty());
}

#[test]
fn a_number_that_is_used_again_is_another_process_with_other_threads() {
    let tree = full();
    let mut scanner = Scanner::new(tree.path()).unwrap();
    let watched = watched(Target::Process(10));
    let started = |scanner: &mut Scanner| {
        let (reading, _) = read(scanner, &watched);
        let group = &reading.groups[&shop()];
        let processes: Vec<u64> = group.processes.keys().map(|id| id.started_ticks).collect();
        let threads: Vec<u64> = group.threads.keys().map(|id| id.started_ticks).collect();
        (processes, threads)
    };
    assert_eq!(started(&mut scanner), (vec![5], vec![5, 5]));
    tree.remove("10");
    tree.process(10, "S 1 10 10 0 0 0 0 0 0 0 1 0 0 0 20 0 1 0 777 0 9");
    tree.thread(10, 10, 1, 777);
    tree.schedule(10, 10, 5, 1);
    assert_eq!(started(&mut scanner), (vec![777], vec![777]));
}

#[test]
fn what_is_not_there_is_absent() {
    let tree = Tree::new();
    tree.process(10, "S 1 10 10 0 0 0 0 0 0 0 30 20 0 0 20 0 2 0 5 0 9");
    let details = details(&tree, Target::Process(10));
    assert_eq!(details, GroupDetails { threads: 2, ..GroupDetails::default() });
    // Only the line of the process is broken, or the whole list of processes cannot be read.
    tree.write("10/stat", "10 (shop) S 1");
    let (reading, _) = read(&mut Scanner::new(tree.path()).unwrap(), &watched(Target::Process(10)));
    assert_eq!(reading.groups[&shop()], Default::default());
    tree.write("stat", "nothing\n");
    assert!(Scanner::new(tree.path()).is_err());
}

#[test]
fn what_may_not_be_read_is_absent_and_said() {
    let tree = full();
    for path in ["10/io", "10/smaps_rollup", "10/fd", "10/ns"] {
        let path = std::path::Path::new(tree.path()).join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o0)).unwrap();
    }
    // The superuser may read all of it nevertheless.
    let may_read = std::fs::read(format!("{}/10/io", tree.path())).is_ok();
    let mut scanner = Scanner::new(tree.path()).unwrap();
    let (_, details) = read(&mut scanner, &watched(Target::Process(10)));
    let details = &details.unwrap().groups[&shop()];
    let denied = scanner.absent().1;
    let absent = (details.disk.is_none(), details.pss_bytes.is_none(), details.descriptors.is_none());
    assert_eq!(absent, (!may_read, !may_read, !may_read));
    let all = DeniedFigures { pss: true, disk: true, descriptors: true, network: true };
    assert_eq!(denied, if may_read { DeniedFigures::default() } else { all });
    std::fs::set_permissions(format!("{}/10/fd", tree.path()), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::set_permissions(format!("{}/10/ns", tree.path()), std::fs::Permissions::from_mode(0o700)).unwrap();
}

/// Mounts hierarchies that lie in the tree: (type, options, folder).
fn mount(tree: &Tree, hierarchies: &[(&str, &str, &str)]) {
    let line = |(kind, options, folder): &(&str, &str, &str)| {
        format!("1 1 0:1 / {}/{folder} rw - {kind} x {options}\n", tree.path())
    };
    tree.write("self/mountinfo", &hierarchies.iter().map(line).collect::<String>());
}

#[test]
fn the_closest_limit_of_version_1_counts() {
    let tree = full();
    mount(&tree, &[("cgroup", "rw,cpu,cpuacct", "cpu"), ("cgroup", "rw,memory", "memory")]);
    tree.write("self/cgroup", "2:memory:/\n1:cpu,cpuacct:/user\n");
    tree.write("10/cgroup", "2:memory:/pod/shop\n1:cpu,cpuacct:/pod/shop\n");
    tree.group("cpu/pod/shop", &[("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n")]);
    let stat = "nr_periods 40\nnr_throttled 4\nthrottled_time 5000\n";
    let limited = [("cpu.cfs_quota_us", "5000\n"), ("cpu.cfs_period_us", "10000\n"), ("cpu.stat", stat)];
    let folder = tree.group("cpu/pod", &limited);
    let events = ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    let memory = [("memory.limit_in_bytes", "1048576\n"), ("memory.usage_in_bytes", "4096\n"), events];
    let of_memory = tree.group("memory/pod/shop", &memory);
    let cgroup = details(&tree, Target::Process(10)).cgroup;
    let cpu = cgroup.cpu.unwrap();
    assert_eq!((cpu.folder, cpu.limit_cores), (PathBuf::from(folder), 0.5));
    assert_eq!((cpu.periods, cpu.throttled_periods, cpu.throttled_ns), (40, 4, 5000));
    let memory = cgroups::Memory {
        folder: PathBuf::from(of_memory),
        used_bytes: 4096,
        limit_bytes: 1 << 20,
        oom_kills: Some(3),
    };
    assert_eq!(cgroup.memory, Some(memory));
    // The kernel's number for no limit.
    tree.group("memory/pod/shop", &[("memory.limit_in_bytes", "9223372036854771712\n")]);
    assert_eq!(details(&tree, Target::Process(10)).cgroup.memory, None);
}

#[test]
fn a_limit_that_the_sampler_is_under_too_is_not_the_replicas_own() {
    let tree = full();
    mount(&tree, &[("cgroup2", "rw", "unified")]);
    tree.write("10/cgroup", "0::/pod/shop\n");
    let stat = "usage_usec 9\nnr_periods 40\nnr_throttled 4\nthrottled_usec 5\n";
    let limits = [("cpu.max", "5000 10000\n"), ("cpu.stat", stat), ("memory.max", "max\n")];
    tree.group("unified/pod", &limits);
    let pressure = ("cpu.pressure", "some avg10=50.00 avg60=0 avg300=0 total=7\n");
    tree.group("unified/pod/shop", &[("cpu.max", "max 100000\n"), ("memory.max", "max\n"), pressure]);
    for (own, is_limited, has_pressure) in
        [("/other", true, true), ("/", true, true), ("/pod/lab", false, true), ("/pod/shop", false, false)]
    {
        tree.write("self/cgroup", &format!("0::{own}\n"));
        let cgroup = details(&tree, Target::Process(10)).cgroup;
        assert_eq!(cgroup.cpu.is_some_and(|cpu| cpu.throttled_ns == 5000), is_limited, "{own}");
        assert_eq!(cgroup.pressure[0].is_some_and(|pressure| pressure.average == 0.5), has_pressure, "{own}");
        assert_eq!(cgroup.memory, None);
    }
}

#[test]
fn a_watched_group_is_all_that_is_in_it_and_below() {
    let tree = full();
    for pid in [20, 21] {
        tree.process(pid, &format!("S 1 {pid} {pid} 0 0 0 0 0 0 0 30 20 0 0 20 0 1 0 {pid} 0 9"));
    }
    mount(&tree, &[("cgroup2", "rw", "unified")]);
    tree.write("self/cgroup", "0::/\n");
    tree.write("10/cgroup", "0::/slice/a\n");
    let events = ("memory.events", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n");
    let memory = [("memory.max", "8192\n"), ("memory.current", "4096\n"), ("cgroup.procs", "20\n0\nx\n"), events];
    let folder = tree.group("unified/slice", &memory);
    tree.group("unified/slice/a", &[("cgroup.procs", "10\n99\n"), ("memory.max", "2048\n"), ("memory.current", "1\n")]);
    for named in ["/slice", &folder] {
        let found = cgroups::folder(&mut tree.files(), Path::new(named)).unwrap();
        assert_eq!(found, Path::new(&folder));
    }
    for named in ["/none", "slice", "/../slice", ""] {
        assert_eq!(cgroups::folder(&mut tree.files(), Path::new(named)), None, "{named}");
    }
    let mut scanner = Scanner::new(tree.path()).unwrap();
    let (reading, details) = read(&mut scanner, &watched(Target::Cgroup(folder.into())));
    let mut pids: Vec<u32> = reading.groups[&shop()].processes.keys().map(|id| id.id).collect();
    pids.sort_unstable();
    assert_eq!(pids, [10, 20]);
    let memory = details.unwrap().groups[&shop()].cgroup.memory.clone();
    assert_eq!(memory.map(|memory| (memory.limit_bytes, memory.oom_kills)), Some((8192, Some(2))));
}

#[test]
fn the_host_is_read() {
    let tree = Tree::new();
    tree.write("self/net/dev", "lo: 9 0 0 0 0 0 0 0 8 0\n");
    tree.write("pressure/io", "some avg10=1.00 avg60=0.00 avg300=0.00 total=3\n");
    tree.write("meminfo", "MemTotal: 9 kB\nMemAvailable: 3 kB\n");
    tree.write("loadavg", "0.50 0.1 0.1 1/2 3\n");
    let (reading, details) = read(&mut Scanner::new(tree.path()).unwrap(), &Watched::new());
    let host = details.unwrap().host;
    assert_eq!((host.available_bytes, host.load, host.interfaces.len()), (Some(3072), Some(0.5), 1));
    assert!(host.pressure[2].is_some() && host.pressure[0].is_none());
    assert_eq!((reading.host.steal_ticks, reading.groups.len()), (7, 0));
}

#[test]
fn the_listening_sockets_of_another_network_are_those_that_its_processes_have_open() {
    let tree = full();
    let rows = "sl\n\
        0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000 0 0 90000011 1\n\
        1: 0100007F:1F91 00000000:0000 0A 00000000:00000004 00:00000000 00000000 0 0 90000012 1\n";
    tree.write("10/net/tcp", rows);
    tree.link("10/fd/8", "socket:[90000011]");
    let listeners = details(&tree, Target::Process(10)).listeners;
    assert_eq!(listeners.iter().map(|one| (one.port, one.queued)).collect::<Vec<_>>(), [(8080, 3)]);
}

/// States of the process's threads since the reading before, by state and peer.
fn states(tree: &Tree, scanner: &mut Scanner, samples: u32) -> Vec<(ThreadState, String, f64)> {
    // So long an interval makes details due at every reading.
    let read = |scanner: &mut Scanner| scanner.read(&watched(Target::Process(10)), SECOND * 60).unwrap().1;
    if samples == 0 {
        tree.write("self/net/tcp", "");
    }
    let _ = read(scanner);
    (0..samples).for_each(|_| scanner.sample_states());
    let means = read(scanner).unwrap().groups[&shop()].states.clone();
    means.into_iter().filter(|(_, _, threads)| *threads > 0.0).collect()
}

/// A process with a thread for each of these system calls, as `syscall` files show them.
fn calling(calls: &[&str]) -> Tree {
    let tree = Tree::new();
    tree.write("self/schedstat", "5 5 5\n");
    tree.process(10, &format!("S 1 10 10 0 0 0 0 0 0 0 30 20 0 0 20 0 {} 0 5 0 9", calls.len()));
    for (tid, call) in (10..).zip(calls) {
        tree.thread(10, tid, 1, 5);
        tree.schedule(10, tid, 7, 3);
        tree.write(&format!("10/task/{tid}/syscall"), call);
    }
    tree.write("file", "text");
    tree.link("10/fd/3", &format!("{}/file", tree.path()));
    tree.link("10/fd/4", "pipe:[8]");
    for (descriptor, inode) in [(5, 12), (6, 13)] {
        tree.link(&format!("10/fd/{descriptor}"), &format!("socket:[{inode}]"));
    }
    let row = |local: &str, remote: &str, state: &str, inode| {
        format!("0: 0100007F:{local} 0100007F:{remote} {state} 0:0 0:0 0 0 0 {inode} 1\n")
    };
    let rows = [row("1F90", "0000", "0A", 11), row("1F90", "C350", "01", 12), row("C351", "1538", "01", 13)];
    tree.write("self/net/tcp", &rows.concat());
    tree
}

/// The call of a number on this machine, with a first argument.
fn call(x86_64: u32, aarch64: u32, first: u32) -> String {
    format!(
        "{} {first:#x} 0x0 0x0 0x0 0x0 0x0 0x7f 0x7f\n",
        if cfg!(target_arch = "aarch64") { aarch64 } else { x86_64 }
    )
}

#[test]
fn threads_are_in_the_state_that_their_call_says() {
    let read = |descriptor| call(0, 63, descriptor);
    let calls = [
        "running\n".to_owned(),
        call(202, 98, 0),
        call(74, 82, 3),
        call(230, 115, 0),
        call(281, 22, 4),
        read(3),
        read(4),
        read(5),
        read(6),
        "-1 0x7f 0x7f\n".to_owned(),
    ];
    let tree = calling(&calls.each_ref().map(String::as_str));
    let found = states(&tree, &mut Scanner::new(tree.path()).unwrap(), 4);
    let all = [
        // A thread that waits without a call is in the state of its letter, which is R here.
        (ThreadState::Running, "", 2.0),
        (ThreadState::Disk, "", 2.0),
        (ThreadState::Sleep, "", 1.0),
        (ThreadState::Network, "127.0.0.1:5432", 1.0),
        (ThreadState::Lock, "", 1.0),
        // Of these, one waits at a connection that a client made.
        (ThreadState::Events, "", 3.0),
    ];
    assert_eq!(found, all.map(|(state, peer, threads)| (state, peer.to_owned(), threads)));
}

#[test]
fn of_many_threads_some_are_read_at_a_time_and_stand_for_all() {
    let (running, locked) = ("running\n".to_owned(), call(202, 98, 0));
    let calls: Vec<&str> = (0..STATES_MAX * 2).map(|at| if at % 4 == 0 { &*running } else { &*locked }).collect();
    let tree = calling(&calls);
    // How many are read at a time depends on how many files may stay open.
    let found = states(&tree, &mut Scanner::new(tree.path()).unwrap(), 12);
    let [(ThreadState::Running, _, running), (ThreadState::Lock, _, locked)] = found[..] else { panic!("{found:?}") };
    let all = (STATES_MAX * 2) as f64;
    assert!((running + locked - all).abs() < 1e-6 && (running / all - 0.25).abs() < 0.15, "{found:?}");
}

#[test]
fn threads_that_ended_and_readings_without_samples_count_nothing() {
    let tree = calling(&[&call(202, 98, 0), &call(230, 115, 0)]);
    let mut scanner = Scanner::new(tree.path()).unwrap();
    assert_eq!(states(&tree, &mut scanner, 0), []);
    tree.remove("10/task/11/syscall");
    assert_eq!(states(&tree, &mut scanner, 3), [(ThreadState::Lock, String::new(), 1.0)]);
}
