//! Sockets: who waits for whom, without instrumentation, encrypted or not, in any language.
//!
//! One reading of the kernel's [socket diagnostics](diagnostics) has the listening sockets with their queues, the peers
//! that threads wait for, and the connections with what became of their data. Each connection is sampled at the end that
//! made it, [which says whether a request is outstanding](rules); the accepting end is sampled only where the other is
//! not. A sample costs about 0.2 ms and 0.5 µs for each socket, so samples are as far apart as keeps them under
//! [`SOCKETS_SHARE_MAX`] of a core, and the kernel leaves out what is not needed: once a second all is read, between that only
//! connecting ends.

mod addresses;
mod diagnostics;
mod listed;
mod listeners;
mod namespace;
mod owners;
mod rules;
mod short_lived;
mod tally;
mod unix;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use narrows_model::series::names::{GENERATOR, OTHER_PEERS, replica_label};
use rustix::time::{ClockId, clock_gettime};

use self::diagnostics::LISTENING;
pub use self::listeners::listening_ports;
pub(super) use self::listeners::{Listener, PORT_RANGE, by_port, overflows, port_range, time_wait};
use self::namespace::{Dump, Extent, Namespace};
pub(super) use self::owners::socket_inode;
use self::owners::{Listing, Owners};
use self::rules::{Role, Snapshot};
use self::short_lived::Strangers;
pub(super) use self::tally::Figures;
use self::tally::{Peers, Tally};
use super::files::Files;
use super::limits::{Depth, SOCKETS_FULL_SHARE_MAX, SOCKETS_INTERVAL, SOCKETS_SHARE_MAX};
use super::{PeerNames, ReplicaKey};

/// Network namespaces other than the sampler's own that are sampled.
const NAMESPACES_MAX: usize = 64;
/// The least time from a full reading to the next.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// Sockets that are known not to be TCP, at most; beyond that all are forgotten.
const ELSEWHERE_MAX: usize = 16_384;

/// A socket of the kernel.
#[derive(Debug, Clone, Copy)]
struct Socket {
    state: u8,
    local: SocketAddr,
    remote: SocketAddr,
    /// The kernel's mark of it, unique in its namespace.
    cookie: u64,
    /// 0 if no process has it.
    inode: u64,
    /// Unread bytes; of a listening socket, connections that wait to be accepted.
    queued: u64,
    /// Of a listening socket: the limit on these.
    limit: Option<u64>,
    dropped: Option<u64>,
    /// `None` of a listening socket, and without diagnostics.
    snapshot: Option<Snapshot>,
}

impl Socket {
    fn is_listening(&self) -> bool {
        self.state == LISTENING
    }
}

/// The other end of a socket that a thread waits at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Whoever connected to this service: a thread that waits here waits for a request.
    Client,
    /// Peers that this service connected to.
    Peer(SocketAddr),
    /// Not a TCP socket: of the host itself, or UDP.
    Elsewhere,
}

/// Figures of the connections of a replica.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Connections {
    /// By name of the peer that it connected to.
    pub(super) peers: Vec<(String, Figures)>,
    /// By port that clients connected to whose own end is not sampled.
    pub(super) clients: Vec<(u16, Figures)>,
}

/// Sockets that are missing from the samples, since the replicas that are watched began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketGaps {
    /// True if the kernel has no socket diagnostics.
    pub without_diagnostics: bool,
    /// Replicas' network namespaces that this user may not enter, or that are too many.
    pub namespaces: u64,
    /// Most connections at once that were beyond a limit.
    pub connections: u64,
    /// Most connections at once that replicas accepted over Unix sockets, which have no times.
    pub unix_connections: u64,
}

/// The sockets of all replicas.
#[derive(Debug)]
pub(super) struct Sockets {
    proc: String,
    own: Namespace,
    others: BTreeMap<String, Namespace>,
    owners: Owners,
    replicas: Vec<Replica>,
    /// Replicas by an address at which they are reached, beyond those of their own namespaces.
    names: PeerNames,
    /// The place of a process's replica among them.
    replica_of: HashMap<u32, usize>,
    pids: HashSet<u32>,
    /// By inode.
    ends: HashMap<u64, End>,
    elsewhere: HashSet<u64>,
    /// When a full reading is due.
    full_due: Instant,
    /// When the next sample is due.
    due: Instant,
    /// Number of samples so far times the golden ratio, without its whole part.
    phase: f64,
    /// Samples since figures were taken, and when that was.
    samples: u32,
    taken: Option<Instant>,
    figures: HashMap<ReplicaKey, Connections>,
    strangers: Strangers,
    gaps: SocketGaps,
}

/// Connections of one replica.
#[derive(Debug)]
struct Replica {
    key: ReplicaKey,
    pids: Vec<u32>,
    peers: Peers,
    clients: BTreeMap<u16, Tally>,
}

impl Replica {
    fn new(key: &ReplicaKey) -> Self {
        Self { key: key.clone(), pids: Vec::new(), peers: Peers::default(), clients: BTreeMap::new() }
    }

    /// Takes the processes that it has now. Without any that it had before, it was started anew and has other peers.
    fn set_processes(&mut self, pids: &[u32]) {
        if !self.pids.iter().any(|pid| pids.contains(pid)) {
            (self.peers, self.clients) = (Peers::default(), BTreeMap::new());
        }
        pids.clone_into(&mut self.pids);
    }

    fn tally(&mut self, role: Role, peer: SocketAddr) -> &mut Tally {
        match role {
            Role::Caller => self.peers.tally(peer),
            Role::Server => self.clients.entry(peer.port()).or_default(),
        }
    }
}

/// Processes of the replicas, and the network namespaces other than the sampler's own.
pub(super) struct Members<'a> {
    pub(super) replicas: Vec<(&'a ReplicaKey, &'a [u32])>,
    pub(super) networks: BTreeMap<String, Residents<'a>>,
}

/// Replicas in a network namespace.
pub(super) struct Residents<'a> {
    /// A process.
    pub(super) pid: u32,
    /// The replica, if it is the only one that is watched there: all connections from there are its own.
    pub(super) only: Option<&'a ReplicaKey>,
}

impl Sockets {
    /// `proc` is where `/proc` is mounted.
    pub(super) fn new(proc: &str) -> Self {
        Self {
            proc: proc.to_owned(),
            own: Namespace::own(proc),
            others: BTreeMap::new(),
            owners: Owners::default(),
            replicas: Vec::new(),
            names: PeerNames::new(),
            replica_of: HashMap::new(),
            pids: HashSet::new(),
            ends: HashMap::new(),
            elsewhere: HashSet::new(),
            full_due: Instant::now(),
            due: Instant::now(),
            phase: 0.0,
            samples: 0,
            taken: None,
            figures: HashMap::new(),
            strangers: Strangers::default(),
            gaps: SocketGaps::default(),
        }
    }

    /// Takes over the replicas that are reached at addresses of this machine.
    pub(super) fn name_peers(&mut self, names: &PeerNames) {
        if self.names != *names {
            self.names.clone_from(names);
        }
    }

    /// Ports for connections to one peer in another namespace than the sampler's own; `None` if it was not entered.
    pub(super) fn ephemeral_ports(&self, namespace: &str) -> Option<u64> {
        self.others.get(namespace)?.ephemeral_ports()
    }

    /// When the next sample is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Gaps since the last [`Self::clear`].
    pub(super) fn gaps(&self) -> SocketGaps {
        self.gaps
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::new(&self.proc);
    }

    /// The listening sockets by process, and the connections' figures since the reading before. It is a full reading if one
    /// is due or processes are new; between those, only listening sockets are read.
    pub(super) fn read(
        &mut self,
        files: &mut Files,
        depth: Depth,
        members: &Members<'_>,
    ) -> (HashMap<u32, Vec<Listener>>, HashMap<ReplicaKey, Connections>) {
        let has_new = self.watch(members, depth);
        let is_full = has_new || depth == Depth::Rare || Instant::now() >= self.full_due || !self.own.has_diagnostics();
        let listeners = if is_full { self.refresh(files) } else { self.listeners(files) };
        if depth == Depth::Rare {
            self.count_unix_connections(files);
        }
        (listeners, self.take(files))
    }

    /// A sample of the connections.
    pub(super) fn sample(&mut self, files: &mut Files) {
        let began = cpu_time();
        self.read_namespaces(files, Extent::Connections);
        self.schedule(began);
    }

    /// The other end of a socket that a process waits at; `None` while that cannot be looked up yet.
    pub(super) fn end(&mut self, files: &mut Files, inode: u64) -> Option<End> {
        if let Some(end) = self.ends.get(&inode) {
            return Some(*end);
        }
        if self.elsewhere.contains(&inode) {
            return Some(End::Elsewhere);
        }
        if Instant::now() < self.full_due {
            return None;
        }
        self.refresh(files);
        let end = self.ends.get(&inode).copied();
        if end.is_none() {
            if self.elsewhere.len() >= ELSEWHERE_MAX {
                self.elsewhere.clear();
            }
            self.elsewhere.insert(inode);
        }
        Some(end.unwrap_or(End::Elsewhere))
    }

    /// The name under which a replica's figures of a peer are written.
    pub(super) fn peer_name(&mut self, key: &ReplicaKey, peer: SocketAddr) -> String {
        let at = self.place(key);
        if !self.replicas[at].peers.is_named(peer) {
            return OTHER_PEERS.to_owned();
        }
        let keys: Vec<&ReplicaKey> = self.replicas.iter().map(|replica| &replica.key).collect();
        name_of(peer, &self.names, self.others.values(), &keys)
    }

    fn place(&mut self, key: &ReplicaKey) -> usize {
        self.replicas.iter().position(|replica| replica.key == *key).unwrap_or_else(|| {
            self.replicas.push(Replica::new(key));
            self.replicas.len() - 1
        })
    }

    /// Takes over who is watched. True if a process is new or gone.
    fn watch(&mut self, members: &Members<'_>, depth: Depth) -> bool {
        self.replica_of.clear();
        for (key, pids) in &members.replicas {
            let at = self.place(key);
            self.replicas[at].set_processes(pids);
            self.replica_of.extend(pids.iter().map(|pid| (*pid, at)));
        }
        let pids: HashSet<u32> = self.replica_of.keys().copied().collect();
        self.others.retain(|name, _| members.networks.contains_key(name));
        for (name, residents) in members.networks.iter().take(NAMESPACES_MAX) {
            let only = residents.only.map(|key| self.place(key));
            let proc = &self.proc;
            let namespace = self.others.entry(name.clone()).or_insert_with(|| Namespace::of(proc, residents.pid));
            namespace.set_residents(residents.pid, only);
        }
        let is_changed = pids != self.pids;
        if is_changed || depth == Depth::Rare {
            self.own.forget_strangers();
            self.others.values_mut().for_each(Namespace::forget_strangers);
        }
        self.pids = pids;
        let refused = self.others.values().filter(|one| !one.has_diagnostics()).count();
        let beyond = members.networks.len().saturating_sub(NAMESPACES_MAX);
        self.gaps.without_diagnostics |= !self.own.has_diagnostics();
        self.gaps.namespaces = self.gaps.namespaces.max((refused + beyond) as u64);
        is_changed
    }

    /// Reads all sockets. Gives those that listen, by process.
    fn refresh(&mut self, files: &mut Files) -> HashMap<u32, Vec<Listener>> {
        let began = cpu_time();
        self.owners.next_reading();
        self.ends.clear();
        let dumps = self.read_namespaces(files, Extent::Full);
        let listeners = self.by_process(&dumps);
        let cost = cpu_time().saturating_sub(began);
        self.full_due = Instant::now() + REFRESH_INTERVAL.max(cost.div_f64(SOCKETS_FULL_SHARE_MAX));
        listeners
    }

    /// Reads the sockets that listen, by process.
    fn listeners(&mut self, files: &mut Files) -> HashMap<u32, Vec<Listener>> {
        let namespaces = std::iter::once(&mut self.own).chain(self.others.values_mut());
        let dumps: Vec<Dump> = namespaces.map(|one| one.read(files, Extent::Listening, &mut 0)).collect();
        self.by_process(&dumps)
    }

    fn by_process(&self, dumps: &[Dump]) -> HashMap<u32, Vec<Listener>> {
        let mut by_process: HashMap<u32, Vec<Listener>> = HashMap::new();
        for listener in dumps.iter().flat_map(|dump| &dump.sockets).filter_map(Listener::of) {
            for pid in self.owners.of(listener.inode) {
                by_process.entry(*pid).or_default().push(listener);
            }
        }
        by_process
    }

    fn count_unix_connections(&mut self, files: &mut Files) {
        let (owners, replica_of) = (&self.owners, &self.replica_of);
        let of_services = |inode| {
            let replica = Self::replica(owners, replica_of, inode);
            replica.is_some_and(|at| self.replicas[at].key.0 != GENERATOR)
        };
        self.gaps.unix_connections = self.gaps.unix_connections.max(unix::accepted(files, of_services));
    }

    /// Takes a sample of all namespaces, its own first.
    fn read_namespaces(&mut self, files: &mut Files, extent: Extent) -> Vec<Dump> {
        let mut beyond = 0;
        let namespaces = std::iter::once(&mut self.own).chain(self.others.values_mut());
        let dumps: Vec<Dump> = namespaces.map(|one| one.read(files, extent, &mut beyond)).collect();
        self.learn_ends(files, &dumps);
        if extent == Extent::Full {
            self.find_clients(&dumps);
        }
        beyond += self.observe(&dumps);
        self.gaps.connections = self.gaps.connections.max(beyond);
        dumps
    }

    /// Learns of new sockets what their other ends are and who has them open.
    fn learn_ends(&mut self, files: &mut Files, dumps: &[Dump]) {
        let mut is_any_new = false;
        let mut met = HashSet::new();
        for (namespace, dump) in std::iter::once(&self.own).chain(self.others.values()).zip(dumps) {
            for socket in dump.sockets.iter().filter(|socket| socket.inode != 0) {
                met.insert(socket.inode);
                let is_client = socket.is_listening() || namespace.is_accepted(socket);
                let end = if is_client { End::Client } else { End::Peer(socket.remote) };
                let is_new = self.ends.insert(socket.inode, end).is_none();
                is_any_new |=
                    is_new && (!is_client || socket.is_listening()) && self.owners.of(socket.inode).is_empty();
            }
        }
        for socket in dumps.iter().flat_map(|dump| &dump.lookups) {
            met.insert(socket.inode);
            self.ends.insert(socket.inode, End::Elsewhere);
            is_any_new |= self.owners.of(socket.inode).is_empty();
        }
        if is_any_new {
            let listing = |inode| match self.ends.get(&inode) {
                // Accepted sockets are not always among those met.
                Some(End::Client) => Listing::Open,
                Some(_) if met.contains(&inode) => Listing::Open,
                Some(_) => Listing::Closed,
                None => Listing::Unlisted,
            };
            self.owners.look(files, &self.pids, listing);
        }
    }

    /// The replica that has a socket open.
    fn replica(owners: &Owners, replica_of: &HashMap<u32, usize>, inode: u64) -> Option<usize> {
        owners.of(inode).iter().find_map(|pid| replica_of.get(pid).copied())
    }

    /// The other ends of all connections that replicas made, as pairs of a remote and a local address.
    fn made(&self, dumps: &[Dump]) -> HashSet<(SocketAddr, SocketAddr)> {
        let mut made = HashSet::new();
        for (namespace, dump) in std::iter::once(&self.own).chain(self.others.values()).zip(dumps) {
            for socket in dump.sockets.iter().filter(|socket| !socket.is_listening() && socket.inode != 0) {
                let is_known = || {
                    namespace.only().is_some() || Self::replica(&self.owners, &self.replica_of, socket.inode).is_some()
                };
                if !namespace.is_accepted(socket) && is_known() {
                    made.insert((socket.remote, socket.local));
                }
            }
        }
        made
    }

    /// Finds the ports at which replicas accepted connections whose other end is not sampled.
    fn find_clients(&mut self, dumps: &[Dump]) {
        let made = self.made(dumps);
        for (namespace, dump) in std::iter::once(&mut self.own).chain(self.others.values_mut()).zip(dumps) {
            let mut servers = HashMap::new();
            for listener in dump.sockets.iter().filter_map(Listener::of) {
                if let Some(at) = Self::replica(&self.owners, &self.replica_of, listener.inode) {
                    servers.insert(listener.port, at);
                }
            }
            namespace.add_servers(&servers);
            let accepted = dump.sockets.iter().filter(|socket| !socket.is_listening() && socket.snapshot.is_some());
            let unsampled = accepted.filter(|socket| !made.contains(&(socket.local, socket.remote)));
            let clients =
                unsampled.filter_map(|socket| Some((socket.local.port(), *servers.get(&socket.local.port())?)));
            namespace.set_clients(clients.collect());
        }
    }

    /// Adds a sample to the sums. Gives how many connections were beyond the limit.
    fn observe(&mut self, dumps: &[Dump]) -> u64 {
        let mut beyond = 0;
        self.samples += 1;
        for replica in &mut self.replicas {
            let peers = replica.peers.tallies().map(|(_, tally)| tally);
            peers.chain(replica.clients.values_mut()).for_each(Tally::begin_sample);
        }
        let made = if self.has_clients() { self.made(dumps) } else { HashSet::new() };
        for (namespace, dump) in std::iter::once(&mut self.own).chain(self.others.values_mut()).zip(dumps) {
            let sample = namespace.begin_sample();
            for socket in &dump.sockets {
                let Some(snapshot) = &socket.snapshot else { continue };
                let server = namespace.server(socket.local.port());
                let role = if namespace.is_accepted(socket) { Role::Server } else { Role::Caller };
                let is_sampled = match role {
                    Role::Caller => socket.inode != 0,
                    Role::Server => server.is_some() && !made.contains(&(socket.local, socket.remote)),
                };
                if !is_sampled {
                    continue;
                }
                let only = namespace.only();
                let replica = || match role {
                    // Whose a connection is shows only later than it may be closed.
                    Role::Caller => only.or_else(|| Self::replica(&self.owners, &self.replica_of, socket.inode)),
                    Role::Server => server,
                };
                let Some(connection) = namespace.connection(socket, role, replica) else {
                    beyond += 1;
                    continue;
                };
                match connection.replica {
                    Some(at) => {
                        let tally = self.replicas[at].tally(role, connection.peer);
                        connection.observe(snapshot, sample, tally);
                    }
                    None => connection.meet(sample),
                }
            }
            for socket in &dump.lookups {
                if let Some(at) = Self::replica(&self.owners, &self.replica_of, socket.inode) {
                    self.replicas[at].peers.tally(socket.remote).add_lookup();
                }
            }
            if !dump.is_whole {
                continue;
            }
            for connection in namespace.remove_closed() {
                match connection.replica {
                    Some(at) => connection.close(self.replicas[at].tally(connection.role, connection.peer)),
                    None if connection.is_short_lived() => self.strangers.add(connection.peer),
                    None => {}
                }
            }
        }
        beyond
    }

    fn has_clients(&self) -> bool {
        std::iter::once(&self.own).chain(self.others.values()).any(Namespace::has_clients)
    }

    /// The figures of all replicas since they were taken last; empty the first time. Without a sample since, they are those
    /// of the last ones: samples are rare where a walk through the kernel's table of sockets is dear.
    fn take(&mut self, files: &mut Files) -> HashMap<ReplicaKey, Connections> {
        if self.samples == 0 {
            return self.figures.clone();
        }
        self.share_missed(files);
        let now = Instant::now();
        let taken = self.taken.replace(now);
        let samples = std::mem::take(&mut self.samples);
        let is_sampled = self.own.has_diagnostics() || self.others.values().any(Namespace::has_diagnostics);
        let elapsed = taken.map(|taken| now - taken).filter(|elapsed| is_sampled && !elapsed.is_zero());
        let mut figures = HashMap::new();
        let keys: Vec<ReplicaKey> = self.replicas.iter().map(|replica| replica.key.clone()).collect();
        let keys: Vec<&ReplicaKey> = keys.iter().collect();
        for replica in &mut self.replicas {
            let elapsed_or_any = elapsed.unwrap_or(REFRESH_INTERVAL);
            let name = |peer| name_of(peer, &self.names, self.others.values(), &keys);
            let peers = replica.peers.take(samples, elapsed_or_any, name);
            let clients = replica.clients.iter_mut();
            let clients = clients.map(|(port, tally)| (*port, tally.take(samples, elapsed_or_any))).collect();
            if elapsed.is_some() {
                figures.insert(replica.key.clone(), Connections { peers, clients });
            }
        }
        self.figures.clone_from(&figures);
        figures
    }

    /// Gives the connections that no sample met to replicas: where one has a namespace to itself, all of that to it.
    fn share_missed(&mut self, files: &mut Files) {
        let mut missed = self.own.missed(files);
        let mut shared_out = HashSet::new();
        for namespace in self.others.values_mut() {
            let here = namespace.missed(files);
            match namespace.only().filter(|at| shared_out.insert(*at)) {
                Some(at) => Strangers::default().share(here, std::iter::once(&mut self.replicas[at].peers)),
                None => missed += here,
            }
        }
        let others = self.replicas.iter_mut().enumerate().filter(|(at, _)| !shared_out.contains(at));
        self.strangers.share(missed, others.map(|(_, replica)| &mut replica.peers));
    }

    /// Puts the next sample so far off that samples as dear as this one, which began at `began`, stay below their share.
    /// Intervals differ, from half to one and a half of their mean, so that callers with a rhythm of their own are not
    /// always met at the same point of it.
    fn schedule(&mut self, began: Duration) {
        const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;
        let cost = cpu_time().saturating_sub(began);
        let interval = SOCKETS_INTERVAL.max(cost.div_f64(SOCKETS_SHARE_MAX));
        self.phase = (self.phase + GOLDEN_RATIO).fract();
        self.due = Instant::now() + interval.mul_f64(0.5 + self.phase);
    }
}

/// The name of a peer: its replica if the address is known to be one's, else the address.
fn name_of<'n>(
    peer: SocketAddr,
    names: &PeerNames,
    mut namespaces: impl Iterator<Item = &'n Namespace>,
    replicas: &[&ReplicaKey],
) -> String {
    let in_namespace = || Some(*replicas.get(namespaces.find_map(|namespace| namespace.reached_at(peer))?)?);
    let key = names.get(&peer).or_else(in_namespace);
    key.map_or_else(|| peer.to_string(), |(service, replica)| replica_label(service, *replica))
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
