//! The sockets of one network namespace, and what is remembered of its connections from sample to sample.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::net::{IpAddr, SocketAddr};

use rustix::net::AddressFamily;

use super::diagnostics::{Diagnostics, Wanted};
use super::rules::{Activity, History, Role, Snapshot};
use super::tally::{Growth, Tally};
use super::{Socket, addresses, listed, listeners};
use crate::PROC;
use crate::files::Files;

/// Connections of a namespace that are tracked.
pub(super) const CONNECTIONS_MAX: usize = 16_384;
/// Samples that a short-lived connection is met in at most.
const SHORT_LIVED_SAMPLES: u64 = 2;
/// The port of name servers.
const NAME_SERVER: u16 = 53;

/// One network namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    /// A process that lives there; `None` for the sampler's own.
    pid: Option<u32>,
    /// `None` if it may not be entered, or the kernel has no diagnostics.
    diagnostics: Option<Diagnostics>,
    /// The replica that has it to itself.
    only: Option<usize>,
    /// Its addresses, beyond loopback, of another than the sampler's own.
    addresses: Vec<IpAddr>,
    /// By port: the replica that listened there last.
    servers: HashMap<u16, usize>,
    /// By the kernel's own mark of a socket.
    connections: HashMap<u64, Connection>,
    /// Ports that something listens on.
    listening: HashSet<u16>,
    /// By port that clients connect to whose own end is not sampled: the replica that listens.
    clients: HashMap<u16, usize>,
    samples: u64,
    /// Connections opened by what the kernel counts, at the last full reading.
    opened: Option<u64>,
    /// Connections met for the first time since.
    met: u64,
}

/// A connection of a replica.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) replica: Option<usize>,
    pub(super) role: Role,
    /// The peer that it was made to, or the port that accepted it.
    pub(super) peer: SocketAddr,
    history: History,
    /// Requests begin to be counted here.
    base: Counts,
    last: Counts,
    first_sample: u64,
    last_sample: u64,
}

/// Counts of a connection so far.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    sent: u32,
    received: u32,
    requests: u32,
    sent_bytes: u64,
    received_bytes: u64,
    busy_us: u64,
}

impl Counts {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            sent: snapshot.sent,
            received: snapshot.received,
            requests: 0,
            sent_bytes: snapshot.sent_bytes,
            received_bytes: snapshot.received_bytes,
            busy_us: snapshot.busy_us,
        }
    }
}

/// Kind of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All sockets.
    Full,
    /// Those that listen.
    Listening,
    /// Those of connections whose accepting end is not sampled at the other end.
    Connections,
}

impl Namespace {
    /// The sampler's own; `proc` is where `/proc` is mounted.
    pub(super) fn own(proc: &str) -> Self {
        Self::new(None, (proc == PROC).then(|| Diagnostics::open().ok()).flatten())
    }

    /// The one that a process lives in.
    pub(super) fn of(proc: &str, pid: u32) -> Self {
        let enter = || Diagnostics::open_in(&File::open(format!("{proc}/{pid}/ns/net"))?);
        let text = |file: &str| std::fs::read_to_string(format!("{proc}/{pid}/net/{file}")).unwrap_or_default();
        let addresses = addresses::of(&text("fib_trie"), &text("if_inet6"));
        Self { addresses, ..Self::new(Some(pid), (proc == PROC).then(|| enter().ok()).flatten()) }
    }

    fn new(pid: Option<u32>, diagnostics: Option<Diagnostics>) -> Self {
        Self {
            pid,
            diagnostics,
            only: None,
            addresses: Vec::new(),
            servers: HashMap::new(),
            connections: HashMap::new(),
            listening: HashSet::new(),
            clients: HashMap::new(),
            samples: 0,
            opened: None,
            met: 0,
        }
    }

    pub(super) fn has_diagnostics(&self) -> bool {
        self.diagnostics.is_some()
    }

    /// Ports for connections to one peer.
    pub(super) fn ephemeral_ports(&self) -> Option<u64> {
        self.diagnostics.as_ref()?.ephemeral_ports
    }

    /// Takes over a process that lives there, and the replica that has it to itself.
    pub(super) fn set_residents(&mut self, pid: u32, only: Option<usize>) {
        (self.pid, self.only) = (Some(pid), only);
    }

    /// The replica whose all connections from here are; `None` if several live here, or others.
    pub(super) fn only(&self) -> Option<usize> {
        self.only
    }

    /// Reads the sockets, adding to `beyond` those that are too many. Without diagnostics, only a full sample has any.
    pub(super) fn read(&mut self, files: &mut Files, extent: Extent, beyond: &mut u64) -> Dump {
        let mut dump = Dump::default();
        if let Some(diagnostics) = &mut self.diagnostics {
            let mut excluded: Vec<u16> =
                self.listening.iter().filter(|port| !self.clients.contains_key(port)).copied().collect();
            excluded.sort_unstable();
            let wanted = match extent {
                Extent::Full => Wanted::All,
                Extent::Listening => Wanted::Listening,
                Extent::Connections => Wanted::Connected { excluded: &excluded },
            };
            match diagnostics.dump(wanted, |socket| dump.sockets.push(socket)) {
                Ok(over) => *beyond += over,
                Err(_) => dump.is_whole = false,
            }
            if extent == Extent::Listening {
                return dump;
            }
            for family in [AddressFamily::INET, AddressFamily::INET6] {
                let wanted = Wanted::Udp { family, peer_port: NAME_SERVER };
                // Without them there are no look-ups; TCP is there still.
                let _ = diagnostics.dump(wanted, |socket| dump.lookups.push(socket));
            }
        } else if extent == Extent::Full {
            dump.sockets = match self.pid {
                None => listed::sockets(files, format_args!("self")),
                Some(pid) => listed::sockets(files, format_args!("{pid}")),
            };
        }
        if extent == Extent::Full {
            self.listening = dump.sockets.iter().filter(|one| one.is_listening()).map(|one| one.local.port()).collect();
        }
        dump
    }

    /// Whether a socket was accepted at a port that is listened on.
    pub(super) fn is_accepted(&self, socket: &Socket) -> bool {
        self.listening.contains(&socket.local.port())
    }

    /// From now on, clients' connections to these ports are sampled at this end, for the replica that listens.
    pub(super) fn set_clients(&mut self, clients: HashMap<u16, usize>) {
        self.connections.retain(|_, one| one.role == Role::Caller || clients.contains_key(&one.peer.port()));
        self.clients = clients;
    }

    /// Takes over which replicas listen at which ports.
    pub(super) fn add_servers(&mut self, servers: &HashMap<u16, usize>) {
        self.servers.extend(servers);
    }

    /// The replica that connections from elsewhere to this address lead to.
    pub(super) fn reached_at(&self, peer: SocketAddr) -> Option<usize> {
        self.servers.get(&peer.port()).copied().filter(|_| self.addresses.contains(&peer.ip()))
    }

    /// The replica whose clients connect to this port from ends that are not sampled.
    pub(super) fn server(&self, port: u16) -> Option<usize> {
        self.clients.get(&port).copied()
    }

    pub(super) fn has_clients(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Begins a sample. Gives its number, from 1.
    pub(super) fn begin_sample(&mut self) -> u64 {
        self.samples += 1;
        self.samples
    }

    /// The connection of a socket; new, if it is met for the first time. `None` beyond the limit. `replica` says whose
    /// it is.
    pub(super) fn connection(
        &mut self,
        socket: &Socket,
        role: Role,
        replica: impl FnOnce() -> Option<usize>,
    ) -> Option<&mut Connection> {
        let (samples, is_full) = (self.samples, self.connections.len() >= CONNECTIONS_MAX);
        if is_full && !self.connections.contains_key(&socket.cookie) {
            return None;
        }
        let met = &mut self.met;
        let connection = self.connections.entry(socket.cookie).or_insert_with(|| {
            *met += u64::from(role == Role::Caller && samples > 1);
            // Connections that were there before the first sample were opened earlier.
            let before = socket.snapshot.as_ref().filter(|_| samples == 1).map(Counts::of).unwrap_or_default();
            Connection {
                replica: replica(),
                role,
                peer: if role == Role::Caller { socket.remote } else { socket.local },
                history: History::new(role),
                base: before,
                last: before,
                first_sample: samples,
                last_sample: 0,
            }
        });
        Some(connection)
    }

    /// Removes the connections that neither this sample nor the one before met: while others open and close, the kernel's
    /// list may leave one out.
    pub(super) fn remove_closed(&mut self) -> Vec<Connection> {
        let sample = self.samples;
        self.connections.extract_if(|_, one| one.last_sample + 1 < sample).map(|(_, one)| one).collect()
    }

    /// Looks again, at the next sample, whose those connections are that belong to no replica.
    pub(super) fn forget_strangers(&mut self) {
        self.connections.retain(|_, one| one.replica.is_some());
    }

    /// Connections opened since the last call that no sample met.
    pub(super) fn missed(&mut self, files: &mut Files) -> u64 {
        let text = match self.pid {
            None => files.once(format_args!("self/net/snmp")),
            Some(pid) => files.once(format_args!("{pid}/net/snmp")),
        };
        let now = text.ok().and_then(listeners::opened);
        let before = std::mem::replace(&mut self.opened, now);
        let met = std::mem::take(&mut self.met);
        match (before, now) {
            (Some(before), Some(now)) => now.saturating_sub(before).saturating_sub(met),
            _ => 0,
        }
    }
}

/// Findings of a sample.
#[derive(Debug)]
pub(super) struct Dump {
    pub(super) sockets: Vec<Socket>,
    pub(super) lookups: Vec<Socket>,
    /// False if the kernel ended the dump early: what is missing was not closed.
    pub(super) is_whole: bool,
}

impl Default for Dump {
    fn default() -> Self {
        Self { sockets: Vec::new(), lookups: Vec::new(), is_whole: true }
    }
}

impl Connection {
    /// Takes a sample into the sums of its replica.
    pub(super) fn observe(&mut self, snapshot: &Snapshot, sample: u64, tally: &mut Tally) {
        if self.last_sample == 0 && self.first_sample > 1 {
            tally.add_opened();
        }
        self.last_sample = sample;
        let connections = tally.live_before;
        let activity = self.history.observe(snapshot, &mut tally.exchange, connections);
        let mut now = Counts::of(snapshot);
        // The lesser of both, so that a message of several segments counts once if the other has one.
        now.requests = now.sent.saturating_sub(self.base.sent).min(now.received.saturating_sub(self.base.received));
        let growth = Growth {
            requests: now.requests.saturating_sub(self.last.requests),
            sent_bytes: now.sent_bytes.saturating_sub(self.last.sent_bytes),
            received_bytes: now.received_bytes.saturating_sub(self.last.received_bytes),
            busy_us: now.busy_us.saturating_sub(self.last.busy_us),
        };
        self.last = now;
        tally.add((!self.history.is_one_way()).then_some(activity), growth);
    }

    /// Notes that a sample met it, whoever it belongs to.
    pub(super) fn meet(&mut self, sample: u64) {
        self.last_sample = sample;
    }

    /// True if it was opened since the first sample and closed after few.
    pub(super) fn is_short_lived(&self) -> bool {
        let met = self.last_sample.saturating_sub(self.first_sample) + 1;
        self.first_sample > 1 && met <= SHORT_LIVED_SAMPLES
    }

    /// Takes its end into the sums. A request that was under way at the last sample has ended since.
    pub(super) fn close(&self, tally: &mut Tally) {
        let is_under_way = matches!(self.history.activity(), Activity::Waiting | Activity::Undecided);
        let last = u32::from(is_under_way && !self.history.is_one_way());
        tally.add_closed(last, self.is_short_lived().then_some(self.last.requests + last));
    }
}
