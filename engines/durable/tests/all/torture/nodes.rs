//! Processes that share a hub on three NATS servers, or on PostgreSQL, while in each round a node and a server fail.
//!
//! Either a node is killed and another one takes its place, or it is paused for longer than its lease. One server at a
//! time is paused for longer than the lease, killed, or restarted. Each round kills either a node or a server, in turn.
//! After each round, starts must be acknowledged again on every partition. A witness constantly reads the owners of
//! partitions from the store: no epoch has two owners, and epochs never decrease. At the end, all histories are also
//! replayed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use narrows_durable::{InstanceId, replay};
use narrows_durable_servers::open_shared;
use narrows_testing::torture;
use rustix::process::Signal;

use super::node::{HUB, LEASE, PARTITIONS};
use super::{TIMEOUT, check, code, kill, node, worker};
use crate::servers::{Nats, Postgres, signal};

/// Each kind of fault happens once or twice.
const ROUNDS: u64 = 4;
const NODES: usize = 3;
/// Number of starts that must be acknowledged on each partition after a round, before the next one begins.
const PROGRESS: usize = 8;
/// How much longer than a lease a pause is, how long a killed server is away, and how far the two faults of a round are
/// apart: at most.
const MORE_MS_MAX: usize = 1_500;
/// How often the witness looks.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Pause,
    Restart,
}

/// Servers of which one at a time fails.
trait Servers: Send {
    fn url(&self) -> String;

    /// Lets one of them fail for so long, and waits until it works again.
    fn fail(&mut self, which: usize, fault: Fault, how_long: Duration);

    /// Their state, for failure messages.
    fn report(&self) -> String;
}

impl Servers for Vec<Nats> {
    fn url(&self) -> String {
        Nats::url_of_cluster(self, "torture")
    }

    fn fail(&mut self, which: usize, fault: Fault, how_long: Duration) {
        let count = self.len();
        let server = &mut self[which % count];
        match fault {
            Fault::Pause => server.pause(),
            Fault::Kill => server.kill(),
            Fault::Restart => server.stop(),
        }
        std::thread::sleep(how_long);
        match fault {
            Fault::Pause => server.resume(),
            Fault::Kill | Fault::Restart => server.run(),
        }
        // Until then two of the three would be out at once if the next one failed.
        Nats::wait_until_current(self);
    }

    fn report(&self) -> String {
        Nats::report(self)
    }
}

impl Servers for Postgres {
    fn url(&self) -> String {
        Self::url(self, "torture")
    }

    fn fail(&mut self, _which: usize, fault: Fault, how_long: Duration) {
        match fault {
            Fault::Pause => self.pause(),
            Fault::Kill => self.kill(),
            Fault::Restart => self.stop(),
        }
        std::thread::sleep(how_long);
        match fault {
            Fault::Pause => self.resume(),
            Fault::Kill | Fault::Restart => self.run(),
        }
    }

    fn report(&self) -> String {
        String::new()
    }
}

#[test]
fn acknowledged_work_survives_faults_of_nodes_and_of_three_nats_servers() {
    if let Some(servers) = Nats::start_cluster() {
        suffer(servers);
    }
}

#[test]
fn acknowledged_work_survives_faults_of_nodes_and_of_postgresql() {
    if let Some(server) = Postgres::start() {
        suffer(server);
    }
}

fn suffer(mut servers: impl Servers) {
    let (rounds, mut chance) = torture(ROUNDS);
    let folder = tempfile::tempdir().unwrap();
    let url = servers.url();
    let mut fleet = Fleet::start(&url, folder.path());
    let witness = Witness::start(&url);
    fleet.progress(&servers);
    for round in 0..rounds {
        let begun = Instant::now();
        let of_node = [Fault::Kill, Fault::Pause][round as usize % 2];
        let of_server = [Fault::Pause, Fault::Kill, Fault::Restart, Fault::Kill][round as usize % 4];
        let (which_node, which_server) = (chance.below(NODES), chance.below(NODES));
        let [after, node_ms, server_ms] = [(); 3].map(|()| Duration::from_millis(chance.below(MORE_MS_MAX) as u64));
        let away = if matches!(of_server, Fault::Pause) { LEASE + server_ms } else { server_ms };
        std::thread::scope(|scope| {
            let servers = &mut servers;
            scope.spawn(move || {
                std::thread::sleep(after);
                servers.fail(which_server, of_server, away);
            });
            fleet.fail(which_node, of_node, LEASE + node_ms);
        });
        fleet.progress(&servers);
        let (node, server, ms) = (which_node, which_server, begun.elapsed().as_millis());
        eprintln!("round {round}: node {node} {of_node:?}, server {server} {of_server:?}; going on after {ms} ms");
    }
    let acknowledged = fleet.end();
    let moves = witness.end();
    eprintln!("{} acknowledged, partitions were taken {moves} times", acknowledged.len());
    let last = node::open(&url, folder.path());
    let begun = Instant::now();
    while last.partitions().len() < usize::from(PARTITIONS) {
        assert!(begun.elapsed() < TIMEOUT, "the last node has {:?}", last.partitions());
        std::thread::sleep(Duration::from_millis(10));
    }
    check::promises(folder.path(), &last.client(), || last.stats(), &acknowledged);
    last.close().unwrap();
    let checked = replay::check_hub(open_shared(&url).unwrap(), Arc::new(code::registry(folder.path()))).unwrap();
    assert_eq!(checked.mismatch_count, 0, "{:#?}", checked.mismatches);
}

/// A process with a node.
struct NodeProcess {
    process: Child,
    reader: JoinHandle<Vec<String>>,
}

struct Fleet {
    url: String,
    folder: std::path::PathBuf,
    nodes: Vec<Option<NodeProcess>>,
    started: u64,
    /// Number of starts acknowledged by all nodes, per partition.
    started_on: Arc<[AtomicUsize; PARTITIONS as usize]>,
    acknowledged: Vec<String>,
}

impl Fleet {
    fn start(url: &str, folder: &Path) -> Self {
        let (url, folder) = (url.to_owned(), folder.to_owned());
        let mut fleet =
            Self { url, folder, nodes: Vec::new(), started: 0, started_on: Arc::default(), acknowledged: Vec::new() };
        for _ in 0..NODES {
            let running = fleet.spawn();
            fleet.nodes.push(Some(running));
        }
        fleet
    }

    fn spawn(&mut self) -> NodeProcess {
        let mut command = super::command();
        command.env(worker::FOLDER, &self.folder).env(worker::ROUND, self.started.to_string()).env(HUB, &self.url);
        self.started += 1;
        let mut process = command.spawn().unwrap();
        let (stdout, started_on) = (process.stdout.take().unwrap(), Arc::clone(&self.started_on));
        let reader = std::thread::spawn(move || {
            super::read(stdout, |said| {
                if let Some(id) = said.last().filter(|text| !check::is_token(text)) {
                    let partition = InstanceId::new(id).unwrap().partition(PARTITIONS);
                    started_on[usize::from(partition.0)].fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        NodeProcess { process, reader }
    }

    fn fail(&mut self, which: usize, fault: Fault, how_long: Duration) {
        match fault {
            Fault::Kill | Fault::Restart => {
                self.kill(which);
                self.nodes[which] = Some(self.spawn());
            }
            Fault::Pause => {
                let process = self.nodes[which].as_ref().unwrap().process.id();
                signal(process, Signal::STOP);
                std::thread::sleep(how_long);
                signal(process, Signal::CONT);
            }
        }
    }

    fn kill(&mut self, which: usize) {
        let mut running = self.nodes[which].take().unwrap();
        kill(&mut running.process);
        self.acknowledged.extend(running.reader.join().unwrap());
    }

    /// Waits until more starts have been acknowledged on each partition.
    fn progress(&self, servers: &impl Servers) {
        let begun = Instant::now();
        let counts = || self.started_on.each_ref().map(|count| count.load(Ordering::Relaxed));
        let wanted = counts().map(|count| count + PROGRESS);
        let is_stuck = |counts: &[usize]| counts.iter().zip(&wanted).any(|(count, wanted)| count < wanted);
        while is_stuck(&counts()) {
            if begun.elapsed() > TIMEOUT {
                let owners = open_shared(&self.url).and_then(|store| store.owners());
                panic!("starts by partition: {:?}, wanted: {wanted:?}\n{owners:#?}\n{}", counts(), servers.report());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills all nodes; what they had acknowledged.
    fn end(mut self) -> Vec<String> {
        (0..NODES).for_each(|which| self.kill(which));
        std::mem::take(&mut self.acknowledged)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for running in self.nodes.iter_mut().flatten() {
            // Only after a failure, which is the one to report.
            let _ = running.process.kill();
            let _ = running.process.wait();
        }
    }
}

/// The node that took a partition, by partition and epoch.
type Owners = BTreeMap<(u16, u64), String>;

/// Looks who has which partition.
struct Witness {
    is_over: Arc<AtomicBool>,
    seen: Arc<Mutex<Owners>>,
    thread: JoinHandle<()>,
}

impl Witness {
    fn start(url: &str) -> Self {
        let (is_over, seen) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Owners>>::default());
        let (url, over, owners) = (url.to_owned(), Arc::clone(&is_over), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            let begun = Instant::now();
            let store = loop {
                match open_shared(&url) {
                    Ok(store) => break store,
                    Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}"),
                }
            };
            let mut newest: BTreeMap<u16, u64> = BTreeMap::new();
            while !over.load(Ordering::Relaxed) {
                // A server that is out of reach is looked at again.
                for owner in store.owners().unwrap_or_default() {
                    let (partition, epoch) = (owner.partition.0, owner.epoch.0);
                    let before = newest.insert(partition, epoch).unwrap_or(0);
                    assert!(epoch >= before, "partition {partition} went from epoch {before} to {epoch}");
                    let Some(node) = owner.node else { continue };
                    let mut owners = owners.lock().unwrap();
                    let first = owners.entry((partition, epoch)).or_insert_with(|| node.clone());
                    assert_eq!(*first, node, "partition {partition} has two owners in epoch {epoch}");
                }
                std::thread::sleep(LOOK);
            }
        });
        Self { is_over, seen, thread }
    }

    /// How often partitions were seen to be taken.
    fn end(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        let seen = self.seen.lock().unwrap();
        seen.len()
    }
}
