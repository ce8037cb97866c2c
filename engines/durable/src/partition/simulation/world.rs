//! One schedule: what could happen next is drawn from the seed, step by step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use narrows_testing::Chance;

use crate::client::Status;
use crate::error::Error;
use crate::hub::agreement;
use crate::ids::{InstanceId, PartitionId, Position, Time};
use crate::partition::input::{Effect, Input, Request, TaskKey};
use crate::partition::simulation::audit::Audit;
use crate::partition::simulation::code;
use crate::partition::simulation::digest::digest;
use crate::partition::simulation::disk::{Archive, Disk};
use crate::partition::simulation::node::{Frame, Node, Setting};
use crate::partition::simulation::outside::{Chore, PendingRequest, Way};
use crate::partition::simulation::trace::Trace;
use crate::partition::simulation::verdict::Tally;
use crate::partition::simulation::workload::{RandomRequest, Wish, Workload};
use crate::partition::{LaneProgress, Partition};
use crate::program::{ActivityCall, Program};
use crate::store::files::simulated::Trouble;
use crate::store::{Batching, FrameBatch, Store, StoreError};

/// Damages that are tried when the process ends.
const DAMAGES: usize = 4;
/// Requests that are under way at once.
const REQUESTS_MAX: usize = 30;

/// Everything there is.
pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) trace: Trace,
    pub(super) setting: Setting,
    pub(super) now: Time,
    pub(super) disk: Arc<Disk>,
    pub(super) nodes: Vec<Node>,
    pub(super) audit: Audit,
    pub(super) workload: Workload,
    pub(super) pending: Vec<PendingRequest>,
    pub(super) acknowledged: Vec<(PartitionId, Wish)>,
    pub(super) unknown: Vec<Wish>,
    pub(super) program: Arc<dyn Program>,
    pub(super) ways: BTreeMap<Way, VecDeque<Input>>,
    pub(super) tasks: Vec<(PartitionId, TaskKey, ActivityCall)>,
    pub(super) chores: VecDeque<Chore>,
    /// Partitions whose snapshot cannot be finished.
    pub(super) snapshots_failed: BTreeSet<PartitionId>,
    /// By how many microseconds the machine's clock is wrong.
    pub(super) wrong_by: i64,
    /// Whether a call of the disk was to fail since the hub was opened.
    had_trouble: bool,
    pub(super) tally: Tally,
    /// The code differs from that of the histories.
    pub(super) has_misfit: bool,
    /// Nothing fails any more.
    pub(super) is_calm: bool,
    weights: Vec<usize>,
    requests: u64,
}

/// Possible next steps.
const TURN: usize = 1;
const CRASH: usize = 9;

impl World {
    pub(super) fn new(seed: u64, shown: usize) -> Self {
        let mut chance = Chance::new(seed);
        let setting = Setting::draw(&mut chance);
        let workload = Workload::new(&setting, &mut chance);
        // A request, a turn, a commit's begin and end, the word of it, a delivery, an activity, a chore, time.
        let mut weights: Vec<usize> = (0..9).map(|_| 1 + chance.below(8)).collect();
        weights.extend([usize::from(!chance.one_in(3)), usize::from(chance.one_in(3)), usize::from(chance.one_in(2))]);
        weights.extend(if setting.is_shared { [1 + chance.below(4), 4 + chance.below(16)] } else { [0, 0] });
        weights[TURN] += 4;
        weights.iter_mut().take(CRASH).for_each(|weight| *weight *= 10);
        let mut trace = Trace::new(shown);
        trace.step(format!("{setting:?}"));
        let disk_seed = chance.below(1 << 32) as u64;
        let disk = Disk::new(setting.partitions, setting.batching, setting.frame_bytes_max(), disk_seed);
        let disk = Arc::new(disk);
        let mut world = Self {
            chance,
            trace,
            now: Time(1_000_000_000_000_000),
            disk,
            nodes: Vec::new(),
            audit: Audit::new(&setting),
            workload,
            pending: Vec::new(),
            acknowledged: Vec::new(),
            unknown: Vec::new(),
            program: Arc::new(code::code()),
            ways: BTreeMap::new(),
            tasks: Vec::new(),
            chores: VecDeque::new(),
            snapshots_failed: BTreeSet::new(),
            wrong_by: 0,
            had_trouble: false,
            tally: Tally::default(),
            is_calm: false,
            has_misfit: false,
            weights,
            requests: 0,
            setting,
        };
        world.open();
        world
    }

    pub(super) fn step(&mut self) {
        let at = self.chance.below(self.nodes.len());
        match self.chance.weighed(&self.weights) {
            0 => self.submit(),
            1 => self.turn(at),
            2 => self.begin_commit(at),
            3 => self.end_commit(at),
            4 => self.confirm(at),
            5 => {
                self.deliver();
            }
            6 => {
                self.run_activity();
            }
            7 => {
                self.chore();
            }
            8 => self.pass_time(),
            9 => self.crash(),
            10 => self.stop(at),
            11 => self.set_clock(),
            12 => self.relocate(at),
            _ => self.repeat(at),
        }
    }

    /// Lets a call of the disk fail soon, once in so many times.
    pub(super) fn trouble(&mut self, times: usize) {
        if !self.is_calm && self.chance.one_in(times) {
            self.had_trouble = true;
            self.disk.machine.trouble_after(self.chance.below(10) as u64, Trouble::Fails);
        }
    }

    fn set_clock(&mut self) {
        const MINUTE: i64 = 60_000_000;
        const YEAR: i64 = 365 * 24 * 60 * MINUTE;
        self.wrong_by = self.chance.pick(&[0, 0, YEAR, 2 * MINUTE, -2 * MINUTE, -YEAR, 3_000, -3_000]);
        self.trace.step(format!("the clock is wrong by {} µs", self.wrong_by));
    }

    /// The time that a partition goes by.
    pub(super) fn clock(&mut self, at: usize, late: u64) -> Time {
        let wall = Time(self.now.0.saturating_add_signed(self.wrong_by) - late);
        self.nodes[at].clock.read(wall, Duration::from_micros(self.now.0))
    }

    fn submit(&mut self) {
        if self.pending.len() < REQUESTS_MAX {
            let drawn = self.workload.draw(self.now, &mut self.chance);
            drawn.into_iter().for_each(|drawn| self.put(drawn));
        }
    }

    /// Puts a request into the inbox of its partition, if that works.
    pub(super) fn put(&mut self, RandomRequest { to, kind, wish, text }: RandomRequest) {
        let node = &mut self.nodes[usize::from(to.0)];
        if !node.is_up {
            return;
        }
        self.requests += 1;
        let number = self.requests;
        self.trace.step(format!("request {number} to {to}: {text}"));
        let (reply, response) = oneshot::channel();
        node.inbox.push_back((Some(number), Input::Request(Request { kind, reply })));
        self.pending.push(PendingRequest { number, to, wish, needs: None, must_be_heard: false, response });
    }

    pub(super) fn turn(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if !node.is_up {
            return;
        }
        let most = match self.setting.batching {
            Batching::Group => self.chance.below(node.inbox.len() + 2),
            Batching::EachStep => 1,
        };
        self.disk.refuse_reads(!self.is_calm && self.chance.one_in(500));
        // Clocks are set back now and then.
        let late = self.chance.pick(&[0, 0, 0, 5_000]);
        let now = self.clock(at, late);
        let before = self.listeners(at);
        let (sealed, requests) = self.nodes[at].feed(most, |partition, inputs| {
            let sealed = partition.turn(inputs, now);
            sealed.map(|sealed| Frame { blobs: sealed.blobs, bytes: sealed.frame.to_vec() })
        });
        self.disk.refuse_reads(false);
        let node = &mut self.nodes[at];
        self.trace
            .step(format!("turn of {at} with {most}: {} bytes", sealed.as_ref().map_or(0, |frame| frame.bytes.len())));
        if let Some(frame) = sealed {
            self.trace.bytes(&frame.bytes);
            self.tally.frames += 1;
            node.waiting.push(frame);
        }
        if node.partition.fault().is_some() {
            self.give_up(&requests);
            return self.stop(at);
        }
        let position = node.partition.position();
        let after = self.listeners(at);
        for pending in self.pending.iter_mut().filter(|pending| requests.contains(&pending.number)) {
            pending.needs = Some(position);
            if let Wish::Raise { to, .. } = &pending.wish {
                pending.must_be_heard = before.get(to).is_some_and(|handle| after.get(to) == Some(handle));
            }
        }
        self.note_state(at);
        self.carry_out(at);
    }

    /// Instances that take events, and their numbers.
    fn listeners(&self, at: usize) -> BTreeMap<InstanceId, u64> {
        let all = self.nodes[at].partition.table.from(0);
        all.filter(|(_, instance)| matches!(instance.status(), Status::Pending | Status::Running | Status::Suspended))
            .map(|(handle, instance)| (instance.id.clone(), handle))
            .collect()
    }

    /// Records the partition's state, or compares it with the recorded one: steps that change nothing in the log
    /// changes nothing in memory.
    pub(super) fn note_state(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let position = node.partition.position();
        if self.is_calm || self.chance.one_in(3) || node.states.contains_key(&position) {
            let found = digest(&mut node.partition);
            let noted = node.states.entry(position).or_insert_with(|| found.clone());
            assert_eq!(*noted, found, "a turn of {at} changed something and wrote no frame");
        }
    }

    fn give_up(&mut self, requests: &[u64]) {
        let (gone, left) =
            std::mem::take(&mut self.pending).into_iter().partition(|pending| requests.contains(&pending.number));
        self.pending = left;
        let gone: Vec<PendingRequest> = gone;
        self.unknown.extend(gone.into_iter().map(|pending| pending.wish));
    }

    pub(super) fn begin_commit(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.under_way.is_empty() {
            node.under_way = std::mem::take(&mut node.waiting);
        }
    }

    pub(super) fn end_commit(&mut self, at: usize) {
        let frames = std::mem::take(&mut self.nodes[at].under_way);
        if frames.is_empty() {
            return;
        }
        self.trouble(40);
        let written = self.write(at, &frames);
        self.disk.machine.no_trouble();
        match written {
            Ok(()) => self.trace.step(format!("{} frames of {at} are durable", frames.len())),
            Err(error) => {
                self.trace.step(format!("{} frames of {at} are not known to be durable: {error}", frames.len()));
                self.stop(at);
            }
        }
    }

    fn write(&mut self, at: usize, frames: &[Frame]) -> Result<(), StoreError> {
        let id = self.nodes[at].id;
        let mut batch = FrameBatch::default();
        for frame in frames {
            for (name, payload) in &frame.blobs {
                self.disk.put_blob(name, payload.as_bytes())?;
            }
            batch.push(&frame.bytes);
        }
        self.disk.write(id, &batch)?;
        frames.iter().for_each(|frame| self.audit.frame(id, &frame.bytes, &*self.disk));
        Ok(())
    }

    pub(super) fn confirm(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let end = self.disk.end(node.id);
        if node.is_up && end > node.end_seen {
            node.end_seen = end;
            node.partition.confirm(end);
            self.trace.step(format!("{at} knows that it is durable up to {}", end.0));
            self.carry_out(at);
        }
    }

    fn pass_time(&mut self) {
        let due = self.nodes.iter().filter_map(|node| node.partition.next_due()).min();
        let little = if self.chance.one_in(50) { 70_000_000 } else { self.chance.below(30_000) as u64 };
        let little = Time(self.now.0 + little);
        self.now = match due {
            Some(due) if self.chance.one_in(3) && due < self.now.plus(Duration::from_secs(1)) => due.max(little),
            _ => little,
        };
        self.trace.step(format!("it is {}", self.now.0));
    }

    /// One partition stops, as when its store fails; the others go on without it until the hub is opened again.
    pub(super) fn stop(&mut self, at: usize) {
        if !self.nodes[at].is_up {
            return;
        }
        self.trace.step(format!("{at} stops"));
        self.tally.stops += 1;
        self.cut_short(at, Trouble::Fails);
        let node = &mut self.nodes[at];
        node.is_up = false;
        node.inbox.clear();
        node.partition.stop(&Error::Closed);
        for effect in std::mem::take(node.partition.effects()) {
            if let Effect::Respond(reply, response) = effect {
                drop(reply.send(response));
            }
        }
        for pending in self.pending.iter_mut().filter(|pending| pending.to == self.nodes[at].id) {
            // Whatever response it gets now does not report that something is done.
            pending.needs = Some(Position(0));
        }
        self.take_responses();
    }

    /// Writes the frames under way in part, not at all, or whole.
    fn cut_short(&mut self, at: usize, trouble: Trouble) {
        let under_way = std::mem::take(&mut self.nodes[at].under_way);
        self.nodes[at].waiting.clear();
        if under_way.is_empty() || self.chance.one_in(3) {
            return;
        }
        self.had_trouble = true;
        self.disk.machine.trouble_after(self.chance.below(8) as u64, trouble);
        let written = self.write(at, &under_way);
        self.trace.step(format!("{} frames of {at}: {written:?}", under_way.len()));
        if trouble == Trouble::Fails {
            self.disk.machine.no_trouble();
        }
    }

    /// All that is in memory is lost, and the hub is opened again.
    pub(super) fn crash(&mut self) {
        self.trace.step("crash".to_owned());
        self.tally.crashes += 1;
        (0..self.nodes.len()).for_each(|at| self.cut_short(at, Trouble::PowerGoes));
        if self.disk.machine.is_off() || self.chance.one_in(2) {
            self.trace.step("the power goes".to_owned());
            self.disk.machine.lose_power();
        } else if !self.had_trouble {
            (0..DAMAGES).for_each(|_| self.try_damage());
            self.try_lost_end();
        }
        self.disk.machine.no_trouble();
        self.snapshots_failed.clear();
        self.ways.clear();
        self.tasks.clear();
        self.chores.clear();
        self.unknown.extend(std::mem::take(&mut self.pending).into_iter().map(|pending| pending.wish));
        self.open();
    }

    fn open(&mut self) {
        let is_misfit = !self.is_calm && self.chance.one_in(8);
        self.tally.misfits += u64::from(is_misfit);
        self.program = Arc::new(if is_misfit { code::without_orchestrations() } else { code::code() });
        self.has_misfit = is_misfit;
        self.disk.open();
        self.had_trouble = false;
        for id in (0..self.setting.partitions).map(PartitionId) {
            for frame in self.disk.take_up(id).expect("what the disk holds can be read") {
                self.audit.frame(id, &frame, &*self.disk);
            }
        }
        let before = std::mem::take(&mut self.nodes);
        self.tally.replays += before.iter().map(|node| node.partition.counts().cursor_misses).sum::<u64>();
        for id in (0..self.setting.partitions).map(PartitionId) {
            let mut partition = self.recovered(id, Arc::clone(&self.disk) as Arc<dyn Store>);
            let found = digest(&mut partition);
            let end = partition.position();
            if let Some(noted) = before.get(usize::from(id.0)).and_then(|node| node.states.get(&end)) {
                assert_eq!(found, *noted, "what {id} recovers is not what it was at {}", end.0);
            }
            if self.setting.large_bytes == 0 {
                let mut built = self.recovered(id, Arc::new(Archive(Arc::clone(&self.disk))));
                assert_eq!(found, digest(&mut built), "the snapshot of {id} is not what its log says");
            }
            self.trace.step(format!("{id} is back at {}", end.0));
            self.nodes.push(Node::new(id, partition));
        }
        let progress: Vec<Vec<LaneProgress>> = self.nodes.iter().map(|node| node.partition.lane_progress()).collect();
        agreement::check(&progress).expect("no partition has lost anything that another has seen");
        (0..self.nodes.len()).for_each(|at| self.carry_out(at));
    }

    pub(super) fn recovered(&self, id: PartitionId, store: Arc<dyn Store>) -> Partition {
        let mut partition = self.setting.partition(id, &self.program, Arc::clone(&store));
        partition.recover(&*store).expect("what the disk holds can be read");
        partition
    }
}
