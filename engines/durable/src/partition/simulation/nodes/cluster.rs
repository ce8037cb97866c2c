//! One schedule of several nodes: what could happen next is drawn from the seed, step by step.
//!
//! `effects` has what partitions cause, `keeping` what keeps a node going, and `rest` the end of a schedule.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use narrows_testing::Chance;
use tokio::sync::oneshot;

use super::host::{BEGIN_US, Host, LEASE, Packet, Process, Skew, Stray};
use super::tally::Tally;
use crate::ids::{Epoch, PartitionId, Position, Time};
use crate::node::record::Identity;
use crate::partition::input::{Input, Request};
use crate::partition::simulation::audit::Audit;
use crate::partition::simulation::code;
use crate::partition::simulation::node::{Frame, Setting};
use crate::partition::simulation::outside::PendingRequest;
use crate::partition::simulation::trace::Trace;
use crate::partition::simulation::workload::{RandomRequest, Wish, Workload};
use crate::program::Program;
use crate::store::{Batching, FrameBatch, HubShape, MemoryStore, SharedStore as _, Store, StoreError};

const NODES_MAX: usize = 4;
const REQUESTS_MAX: usize = 30;

/// Everything there is.
pub(super) struct Cluster {
    pub(super) chance: Chance,
    pub(super) trace: Trace,
    pub(super) setting: Setting,
    pub(super) steps: usize,
    pub(super) now: Time,
    pub(super) store: Arc<MemoryStore>,
    /// Whether all monotonic clocks are equally fast.
    pub(super) clocks_are_equal: bool,
    pub(super) nodes: Vec<Process>,
    started: u64,
    /// The newest incarnation of each name.
    newest: BTreeMap<String, u64>,
    /// Packets on their way, from one run of a node to another. They stay in order, unless they come twice.
    pub(super) ways: BTreeMap<(u64, u64), VecDeque<Packet>>,
    pub(super) strays: Vec<Stray>,
    /// The last epoch of each partition.
    pub(super) epochs: BTreeMap<PartitionId, Epoch>,
    writers: BTreeMap<(PartitionId, Epoch), u64>,
    pub(super) audit: Audit,
    pub(super) workload: Workload,
    pub(super) pending: Vec<PendingRequest>,
    pub(super) acknowledged: Vec<Wish>,
    pub(super) unknown: Vec<Wish>,
    pub(super) program: Arc<dyn Program>,
    pub(super) tally: Tally,
    /// Nothing fails any more.
    pub(super) is_calm: bool,
    weights: Vec<usize>,
    requests: u64,
}

impl Cluster {
    pub(super) fn new(seed: u64, shown: usize) -> Self {
        let mut chance = Chance::new(seed);
        let setting = Setting { is_shared: true, ..Setting::draw(&mut chance) };
        let workload = Workload::new(&setting, &mut chance);
        // A request, a turn, a commit's begin, a call's arrival, the word of a commit, a delivery, an activity, a chore, time,
        // the threads of nodes, moves.
        let mut weights: Vec<usize> = (0..11).map(|_| 10 * (1 + chance.below(8))).collect();
        for often in [1, 3, 8, 9, 10] {
            weights[often] += 60;
        }
        // A pause and its end, a crash, a node that comes or leaves.
        weights.extend([2 + chance.below(12), chance.below(4), chance.below(6)]);
        let mut trace = Trace::new(shown);
        trace.step(format!("{setting:?}"));
        let store = Arc::new(MemoryStore::new());
        let shape = HubShape { partitions: setting.partitions, format: crate::codec::FORMAT };
        store.open_or_create(shape).expect("a hub");
        let mut cluster = Self {
            steps: 4 * setting.steps,
            clocks_are_equal: chance.one_in(2),
            chance,
            trace,
            now: Time(BEGIN_US),
            store,
            nodes: Vec::new(),
            started: 0,
            newest: BTreeMap::new(),
            ways: BTreeMap::new(),
            strays: Vec::new(),
            epochs: BTreeMap::new(),
            writers: BTreeMap::new(),
            audit: Audit::new(&setting),
            workload,
            pending: Vec::new(),
            acknowledged: Vec::new(),
            unknown: Vec::new(),
            program: Arc::new(code::code()),
            tally: Tally::default(),
            is_calm: false,
            weights,
            requests: 0,
            setting,
        };
        for _ in 0..2 + cluster.chance.below(NODES_MAX - 1) {
            cluster.start();
        }
        cluster
    }

    /// Starts a node under a new name.
    pub(super) fn start(&mut self) {
        self.start_as(format!("n{}", self.started + 1));
    }

    /// Starts a node under a name that another node may have.
    fn start_as(&mut self, name: String) {
        self.started += 1;
        let (number, said) = (self.store.number().expect("a number"), self.store.said().expect("read"));
        let identity = Identity::next(&name, number, said, Instant::now());
        let before = self.newest.insert(name, identity.incarnation);
        assert!(before < Some(identity.incarnation), "{identity:?} was opened after incarnation {before:?}");
        let skew = Skew {
            rate: if self.clocks_are_equal { 1_000 } else { self.chance.pick(&[800, 950, 1_000, 1_050, 1_250]) },
            offset_us: 3_600_000_000 + self.chance.below(1 << 30) as u64,
            wrong_by_us: self.chance.pick(&[0, 0, 5_000, 1_000_000, -1_000_000, 3_000_000, -3_000_000]),
        };
        self.trace.step(format!("{} begins as n{}: {skew:?}", identity.key(), self.started));
        self.nodes.push(Process::new(self.started, identity, self.setting.partitions, skew, self.now));
    }

    pub(super) fn step(&mut self) {
        let n = self.chance.below(self.nodes.len());
        match self.chance.weighed(&self.weights) {
            0 => self.submit(),
            1 => self.of_host(n, Self::turn),
            2 => self.of_host(n, |cluster, n, id| cluster.begin_commit(n, id)),
            3 => {
                self.arrive();
            }
            4 => self.of_host(n, Self::confirm),
            5 => {
                self.deliver();
            }
            6 => self.awake(n, |cluster, n| {
                cluster.run_activity(n);
            }),
            7 => self.awake(n, |cluster, n| {
                cluster.chore(n);
            }),
            8 => self.pass_time(),
            9 => self.awake(n, Self::keep),
            10 => self.awake(n, Self::go_on),
            11 => self.pause(n),
            12 => self.crash(n),
            _ => self.come_or_leave(n),
        }
    }

    fn awake(&mut self, n: usize, run: impl FnOnce(&mut Self, usize)) {
        if !self.nodes[n].is_paused {
            run(self, n);
        }
    }

    fn of_host(&mut self, n: usize, run: impl FnOnce(&mut Self, usize, PartitionId)) {
        let hosts: Vec<PartitionId> = self.nodes[n].hosts.keys().copied().collect();
        if !hosts.is_empty() {
            let id = self.chance.pick(&hosts);
            self.awake(n, |cluster, n| run(cluster, n, id));
        }
    }

    fn pass_time(&mut self) {
        let lease_us = LEASE.as_micros() as usize;
        let us = match self.chance.below(60) {
            0 => self.chance.below(2 * lease_us),
            1..=6 => self.chance.below(lease_us / 5),
            _ => self.chance.below(lease_us / 100),
        };
        self.now.0 += us as u64;
        self.trace.step(format!("it is {}", self.now.0));
    }

    fn pause(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        node.is_paused = !node.is_paused;
        node.was_paused = true;
        self.tally.paused += u64::from(node.is_paused);
        self.trace.step(format!("{} {}", node.name, if node.is_paused { "stands still" } else { "goes on" }));
    }

    fn crash(&mut self, n: usize) {
        let node = self.nodes.remove(n);
        self.trace.step(format!("{} crashes", node.name));
        self.tally.crashed += 1;
        for host in node.hosts.into_values() {
            self.lose(node.run, host);
        }
        if self.chance.one_in(2) { self.start_as(node.identity.name) } else { self.start() }
    }

    /// Whether another node was opened later under the name of this one.
    pub(super) fn is_replaced(&self, node: &Process) -> bool {
        self.newest.get(&node.identity.name).is_some_and(|newest| *newest > node.identity.incarnation)
    }

    /// Ends a node that has noticed its replacement.
    pub(super) fn replaced(&mut self, n: usize) {
        let node = self.nodes.remove(n);
        assert!(self.is_replaced(&node), "{} ends, and none was opened under its name after it", node.name);
        self.trace.step(format!("{} has been replaced", node.name));
        self.tally.replaced += 1;
        self.tally.replaced_asleep += u64::from(node.was_paused);
        for host in node.hosts.into_values() {
            self.lose(node.run, host);
        }
    }

    fn come_or_leave(&mut self, n: usize) {
        let staying = self.nodes.iter().filter(|node| !node.is_leaving && !self.is_replaced(node)).count();
        if self.nodes.len() < NODES_MAX && self.chance.one_in(4) {
            self.start_as(self.nodes[n].identity.name.clone());
        } else if self.nodes.len() < NODES_MAX && (staying < 2 || self.chance.one_in(2)) {
            self.start();
        } else if staying > 1 && !self.nodes[n].is_leaving {
            self.nodes[n].is_leaving = true;
            self.trace.step(format!("{} is to leave", self.nodes[n].name));
        }
    }

    fn submit(&mut self) {
        if self.pending.len() < REQUESTS_MAX {
            let drawn = self.workload.draw(self.now, &mut self.chance);
            drawn.into_iter().for_each(|drawn| self.put(drawn));
        }
    }

    /// Puts a request into the inbox of its partition, at any node that runs it as far as that node knows.
    pub(super) fn put(&mut self, RandomRequest { to, kind, wish, text }: RandomRequest) {
        let runs = |node: &Process| !node.is_paused && node.hosts.get(&to).is_some_and(Host::is_open);
        let running: Vec<usize> = (0..self.nodes.len()).filter(|n| runs(&self.nodes[*n])).collect();
        if running.is_empty() {
            return;
        }
        let n = self.chance.pick(&running);
        self.requests += 1;
        let number = self.requests;
        self.trace.step(format!("request {number} to {to} on {}: {text}", self.nodes[n].name));
        let (reply, response) = oneshot::channel();
        let host = self.nodes[n].hosts.get_mut(&to).expect("it runs there");
        host.node.inbox.push_back((Some(number), Input::Request(Request { kind, reply })));
        self.pending.push(PendingRequest { number, to, wish, needs: None, must_be_heard: false, response });
    }

    pub(super) fn turn(&mut self, n: usize, id: PartitionId) {
        let most = match self.setting.batching {
            Batching::Group => self.chance.below(self.nodes[n].hosts[&id].node.inbox.len() + 2),
            Batching::EachStep => 1,
        };
        self.turn_with(n, id, most);
    }

    pub(super) fn turn_with(&mut self, n: usize, id: PartitionId, most: usize) {
        let (wall, since) = (self.nodes[n].wall(self.now), self.nodes[n].since(self.now));
        let name = self.nodes[n].name.clone();
        let host = self.nodes[n].hosts.get_mut(&id).expect("it runs here");
        if host.failed.is_some() {
            return;
        }
        let now = host.node.clock.read(wall, since);
        let (sealed, requests) = host.node.feed(most, |partition, inputs| {
            let sealed = partition.turn(inputs, now);
            sealed.map(|sealed| Frame { blobs: sealed.blobs, bytes: sealed.frame.to_vec() })
        });
        assert!(host.node.partition.fault().is_none(), "reads do not fail");
        let position = host.node.partition.position();
        if let Some(frame) = sealed {
            self.trace.step(format!("turn of {id} on {name}: {} bytes", frame.bytes.len()));
            self.trace.bytes(&frame.bytes);
            self.tally.frames += 1;
            host.node.waiting.push(frame);
        }
        for pending in self.pending.iter_mut().filter(|pending| requests.contains(&pending.number)) {
            pending.needs = Some(position);
        }
        self.carry_out(n, id);
    }

    pub(super) fn begin_commit(&mut self, n: usize, id: PartitionId) {
        let host = self.nodes[n].hosts.get_mut(&id).expect("it runs here");
        if host.failed.is_none() && host.node.under_way.is_empty() {
            host.node.under_way = std::mem::take(&mut host.node.waiting);
        }
    }

    pub(super) fn append_arrives(&mut self, n: usize, id: PartitionId) {
        let run = self.nodes[n].run;
        let host = self.nodes[n].hosts.get_mut(&id).expect("it runs here");
        let (epoch, end, frames) = (host.epoch, host.end, std::mem::take(&mut host.node.under_way));
        let written = self.append(run, id, epoch, end, &frames);
        let host = self.nodes[n].hosts.get_mut(&id).expect("it runs here");
        host.written = Some(written);
        host.node.under_way = frames;
    }

    /// The store takes an append, or refuses it.
    fn append(
        &mut self,
        run: u64,
        id: PartitionId,
        epoch: Epoch,
        end: Position,
        frames: &[Frame],
    ) -> Result<(), StoreError> {
        let mut batch = FrameBatch::default();
        for frame in frames {
            for (name, payload) in &frame.blobs {
                self.store.put_blob(name, payload.as_bytes()).expect("kept");
            }
            batch.push(&frame.bytes);
        }
        let appended = self.store.append(id, epoch, end, &batch);
        self.trace.step(format!("{} frames of {id} by n{run}, epoch {}: {appended:?}", frames.len(), epoch.0));
        if let Err(error) = &appended {
            self.tally.fenced += u64::from(matches!(error, StoreError::Fenced { .. }));
            assert!(matches!(error, StoreError::Fenced { .. }), "{error}");
            return appended;
        }
        let newest = self.epochs[&id];
        assert_eq!(epoch, newest, "a write of a former owner has reached the log of {id}");
        let writer = *self.writers.entry((id, epoch)).or_insert(run);
        assert_eq!(writer, run, "two nodes wrote {id} in epoch {}", epoch.0);
        frames.iter().for_each(|frame| self.audit.frame(id, &frame.bytes, &*self.store));
        Ok(())
    }

    /// An append whose owner is gone arrives. Says whether there was one.
    pub(super) fn stray_arrives(&mut self) -> bool {
        if self.strays.is_empty() {
            return false;
        }
        let at = self.chance.below(self.strays.len());
        let Stray { run, partition, epoch, end, frames } = self.strays.swap_remove(at);
        let appended = self.append(run, partition, epoch, end, &frames);
        self.tally.late += u64::from(appended.is_ok());
        true
    }

    pub(super) fn confirm(&mut self, n: usize, id: PartitionId) {
        let host = self.nodes[n].hosts.get_mut(&id).expect("it runs here");
        match host.written.take() {
            None => return,
            Some(Err(error)) => drop(host.failed.get_or_insert(error)),
            Some(Ok(())) => {
                host.end.0 += host.node.under_way.len() as u64;
                host.node.end_seen = host.end;
                host.node.partition.confirm(host.end);
            }
        }
        host.node.under_way.clear();
        self.carry_out(n, id);
    }

    /// All that is in memory of a partition goes. What is under way to its log may still arrive, and those who wait for it
    /// learn nothing.
    pub(super) fn lose(&mut self, run: u64, host: Host) {
        let Host { epoch, mut node, written, end, .. } = host;
        let frames = std::mem::take(&mut node.under_way);
        if written.is_none() && !frames.is_empty() && self.chance.one_in(2) {
            self.strays.push(Stray { run, partition: node.id, epoch, end, frames });
        }
        let durable = node.end_seen;
        drop(node);
        self.take_responses(durable);
    }

    /// The shortest time that all clocks take to notice.
    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.trace.step(format!("it is {}", self.now.0));
    }
}
