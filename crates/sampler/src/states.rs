//! Activity of the threads of replicas: the mean number in each state, from samples between readings.
//!
//! A thread that runs or is ready to run is `Running`; how long threads waited for a processor is counted exactly
//! elsewhere (`diff.rs`). A blocked thread is in the state that its system call says (`syscalls.rs`), or, where that may
//! not be read, the kernel's function that it sleeps in. Idle threads wait too: one at a connection that a client made
//! waits for the next request, so it is in `Events`; but one that waits for work in a pool cannot be distinguished from
//! one that waits for a lock.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use narrows_model::series::ThreadState;
use narrows_model::series::names::OTHER_PEERS;

use super::ReplicaKey;
use super::files::{Files, is_denied};
use super::limits::STATES_MAX;
use super::process::Process;
use super::sockets::{End, Sockets, socket_inode};
use super::stat;
use super::syscalls::{self, Wait};

/// Opening a file costs as much as so many readings of one that is open.
const OPENING_COST: usize = 3;

/// The mean number of threads in a state; the peer is named where they wait for one, else empty.
pub(super) type Mean = (ThreadState, String, f64);

/// The threads of all replicas, and what was seen of them since the means were taken.
#[derive(Debug, Default)]
pub(super) struct States {
    groups: Vec<Group>,
    /// Those of the last reading that have not ended since.
    threads: Vec<Thread>,
    /// The next to be read.
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    group: usize,
    pid: u32,
    id: u32,
}

/// One replica.
#[derive(Debug)]
struct Group {
    key: ReplicaKey,
    seen: StateSamples,
}

#[derive(Debug, Default)]
struct StateSamples {
    samples: u32,
    /// Added up over samples.
    threads: f64,
    /// How often a thread was read.
    read: f64,
    /// How often in which state, with its peer.
    states: BTreeMap<(ThreadState, Option<SocketAddr>), f64>,
}

impl States {
    /// Takes over what a reading found; replicas that are not among it are forgotten.
    pub(super) fn watch(&mut self, members: &[(&ReplicaKey, Vec<u32>)], processes: &HashMap<u32, Process>) {
        let mut known: HashMap<ReplicaKey, Group> =
            self.groups.drain(..).map(|group| (group.key.clone(), group)).collect();
        self.threads.clear();
        for (at, (key, pids)) in members.iter().enumerate() {
            let new = || Group { key: (*key).clone(), seen: StateSamples::default() };
            self.groups.push(known.remove(*key).unwrap_or_else(new));
            for process in pids.iter().filter_map(|pid| processes.get(pid)) {
                let pid = process.id.id;
                self.threads.extend(process.threads.numbers().map(|id| Thread { group: at, pid, id }));
            }
        }
    }

    /// One sample: all threads, or as many as are allowed.
    pub(super) fn sample(&mut self, files: &mut Files, processes: &mut HashMap<u32, Process>, sockets: &mut Sockets) {
        self.groups.iter_mut().for_each(|group| group.seen.samples += 1);
        for thread in &self.threads {
            self.groups[thread.group].seen.threads += 1.0;
        }
        let mut left = STATES_MAX;
        for _ in 0..self.threads.len() {
            if left == 0 {
                return;
            }
            if self.next >= self.threads.len() {
                self.next = 0;
            }
            let Some(thread) = self.threads.get(self.next).copied() else { return };
            let Some(process) = processes.get_mut(&thread.pid) else { return };
            let state = state(files, sockets, process, thread.id);
            left = left.saturating_sub(if process.threads.keeps_call(thread.id) { 1 } else { OPENING_COST });
            match state {
                Some(state) => {
                    self.groups[thread.group].seen.add(state);
                    self.next += 1;
                }
                None => {
                    self.groups[thread.group].seen.threads -= 1.0;
                    self.threads.swap_remove(self.next);
                }
            }
        }
    }

    /// The means of a replica since they were taken last; empty without a sample. Every state has one, so that a series
    /// has a point whenever threads were sampled; the network has one for each peer.
    pub(super) fn take(&mut self, key: &ReplicaKey, sockets: &mut Sockets) -> Vec<Mean> {
        let group = self.groups.iter_mut().find(|group| group.key == *key);
        group.map_or_else(Vec::new, |group| group.take(sockets))
    }
}

impl Group {
    fn take(&mut self, sockets: &mut Sockets) -> Vec<Mean> {
        let seen = std::mem::take(&mut self.seen);
        if seen.read == 0.0 {
            return Vec::new();
        }
        let each = seen.threads / f64::from(seen.samples) / seen.read;
        let others = ThreadState::ALL.into_iter().filter(|state| *state != ThreadState::Network);
        let mut means: BTreeMap<(ThreadState, String), f64> =
            others.map(|state| ((state, String::new()), 0.0)).collect();
        for ((state, peer), times) in seen.states {
            let peer = match (state, peer) {
                (ThreadState::Network, Some(peer)) => sockets.peer_name(&self.key, peer),
                (ThreadState::Network, None) => OTHER_PEERS.to_owned(),
                _ => String::new(),
            };
            *means.entry((state, peer)).or_default() += times * each;
        }
        means.into_iter().map(|((state, peer), threads)| (state, peer, threads)).collect()
    }
}

impl StateSamples {
    fn add(&mut self, state: (ThreadState, Option<SocketAddr>)) {
        self.read += 1.0;
        *self.states.entry(state).or_default() += 1.0;
    }
}

/// Activity of a thread, and the peer at which it waits; `None` if it has ended.
fn state(
    files: &mut Files,
    sockets: &mut Sockets,
    process: &mut Process,
    id: u32,
) -> Option<(ThreadState, Option<SocketAddr>)> {
    let pid = process.id.id;
    let wait = match process.threads.call(files, pid, id) {
        Ok(text) => syscalls::wait(text),
        Err(error) if is_denied(&error) => {
            let function = files.once(format_args!("{pid}/task/{id}/wchan"));
            Some(function.map_or(Wait::Unknown, syscalls::wait_in))
        }
        Err(_) => return None,
    };
    let state = match wait {
        None => ThreadState::Running,
        Some(Wait::For(state)) => state,
        Some(Wait::Descriptor(descriptor)) => return Some(at_descriptor(files, sockets, pid, descriptor)),
        Some(Wait::Listed(address)) => {
            let descriptor = files.bytes(format_args!("{pid}/mem"), address).map(u32::from_ne_bytes);
            let at = descriptor.map(|descriptor| at_descriptor(files, sockets, pid, descriptor));
            return Some(at.filter(|(state, _)| *state == ThreadState::Network).unwrap_or((ThreadState::Events, None)));
        }
        Some(Wait::Unknown) => by_letter(files, pid, id)?,
    };
    Some((state, None))
}

fn at_descriptor(
    files: &mut Files,
    sockets: &mut Sockets,
    pid: u32,
    descriptor: u32,
) -> (ThreadState, Option<SocketAddr>) {
    let path = files.link(format_args!("{pid}/fd/{descriptor}")).unwrap_or_default();
    if let Some(inode) = socket_inode(&path) {
        return match sockets.end(files, inode) {
            Some(End::Peer(peer)) => (ThreadState::Network, Some(peer)),
            Some(End::Elsewhere) => (ThreadState::Network, None),
            Some(End::Client) => (ThreadState::Events, None),
            None => (ThreadState::Other, None),
        };
    }
    let is_file = path.starts_with('/') && files.is_regular(format_args!("{pid}/fd/{descriptor}"));
    // A pipe, a terminal, a counter of events.
    (if is_file { ThreadState::Disk } else { ThreadState::Events }, None)
}

fn by_letter(files: &mut Files, pid: u32, id: u32) -> Option<ThreadState> {
    let line = files.once(format_args!("{pid}/task/{id}/stat")).ok()?;
    Some(match stat::state(line)? {
        b'R' => ThreadState::Running,
        b'D' => ThreadState::Disk,
        _ => ThreadState::Other,
    })
}
