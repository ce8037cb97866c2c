//! Snapshots of a partition, taken in slices while it works.
//!
//! The first part holds what belongs to the partition as a whole, at position `base`; each further part holds the
//! instances of a range of handles as they are at its own position. Recovery reads the parts, then the log from
//! `base` on, and passes over entries that the part of an instance has already. The list of parts is written last, once the
//! log is durable beyond all of them; only then is the log cut, and only then are blobs deleted that nothing refers
//! to any more.
//!
//! The store fences appends to logs, but not blobs. Where nodes share a store, one that has lost the partition without
//! knowing it may still write and delete some. So the names of all that a node writes hold its epoch, it deletes nothing
//! of later ones, and of several lists the one of the latest position counts.

use serde::{Deserialize, Serialize};

use crate::codec::{EntityDelta, Events, FrameWriter, Inline};
use crate::ids::{Epoch, PartitionId, Position, Time};
use crate::partition::Partition;
use crate::partition::gate::GatedEffect;
use crate::partition::generations::Generations;
use crate::partition::input::Effect;
use crate::partition::log::Log;
use crate::partition::outbox::Outbox;
use crate::partition::output::Output;
use crate::partition::spill::{References, blob_prefix};
use crate::partition::table::{Instance, Kind, Table};
use crate::partition::timers::Timers;

/// The numbers of the large payloads of one epoch differ in so many bits.
const NUMBERS_BITS: u32 = 40;
/// The last epoch that has numbers of its own.
const EPOCH_MAX: u64 = u64::MAX >> (NUMBERS_BITS + 1);
/// Bytes of one part after which it is closed.
const PART_BYTES: usize = 2 << 20;

/// A snapshot whose parts are all written: the steps left to do, in this order.
#[derive(Debug)]
pub struct FinishedSnapshot {
    /// The name of the list of parts.
    pub name: String,
    /// The list of parts.
    pub list: Vec<u8>,
    /// The log may be cut before this.
    pub before: Position,
    /// The prefix of the names of the list and of parts.
    pub parts: String,
    /// The epoch that the names hold, where nodes share the store: nothing of later ones may be deleted.
    pub epoch: Option<Epoch>,
    /// The parts of this snapshot; nothing refers to others afterwards.
    pub parts_kept: Vec<String>,
    /// The prefix of the names of large payloads; a number follows.
    pub payloads: String,
    /// Those with a smaller number may go,
    pub payloads_before: u64,
    /// except for these, in ascending order.
    pub payloads_kept: Vec<u64>,
}

/// The list of parts, as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Parts {
    pub(super) base: u64,
    pub(super) whole: String,
    pub(super) parts: Vec<Part>,
    /// Handles from here on were given after the last part.
    pub(super) end: u64,
}

/// A part with instances.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) name: String,
    /// The least handle it may hold; the next part's is the bound.
    pub(super) first: u64,
    /// The position it was taken at.
    pub(super) at: u64,
}

impl Parts {
    /// The position before which entries about this instance are in its part already.
    pub(super) fn taken_at(&self, handle: u64) -> u64 {
        if handle >= self.end {
            return 0;
        }
        let after = self.parts.partition_point(|part| part.first <= handle);
        after.checked_sub(1).map_or(0, |at| self.parts[at].at)
    }

    fn names(&self) -> impl Iterator<Item = String> + '_ {
        std::iter::once(self.whole.clone()).chain(self.parts.iter().map(|part| part.name.clone()))
    }
}

/// The trigger of snapshots, and the snapshot under way.
#[derive(Debug)]
pub(super) struct Snapshots {
    partition: PartitionId,
    /// Epoch of the owner, for the names of blobs.
    pub(super) epoch: Option<Epoch>,
    after_bytes: u64,
    /// [`PART_BYTES`], unless a simulation makes it smaller.
    pub(super) part_bytes: usize,
    written: u64,
    run: Option<Run>,
}

#[derive(Debug)]
struct Run {
    parts: Parts,
    /// Large payloads older than this are only kept if a history refers to them.
    payloads_before: u64,
    payloads_kept: Vec<u64>,
    is_complete: bool,
}

pub(super) fn list_name(partition: PartitionId) -> String {
    format!("{}list", part_prefix(partition))
}

/// The names of lists that hold an epoch begin so.
pub(super) fn list_prefix(partition: PartitionId) -> String {
    format!("{}-", list_name(partition))
}

fn part_prefix(partition: PartitionId) -> String {
    format!("p{partition}/snapshot/")
}

impl Snapshots {
    pub(super) fn new(partition: PartitionId, after_bytes: u64) -> Self {
        Self { partition, epoch: None, after_bytes, part_bytes: PART_BYTES, written: 0, run: None }
    }

    pub(super) fn written(&mut self, bytes: u64) {
        self.written += bytes;
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.is_complete)
    }

    fn part_name(&self, base: u64, part: usize) -> String {
        let prefix = part_prefix(self.partition);
        self.epoch
            .map_or_else(|| format!("{prefix}{base}-{part}"), |epoch| format!("{prefix}{}-{base}-{part}", epoch.0))
    }

    fn list_name(&self) -> String {
        let name = list_name(self.partition);
        self.epoch.map_or_else(|| name.clone(), |epoch| format!("{name}-{}", epoch.0))
    }
}

impl FinishedSnapshot {
    /// Whether the list or part of this name belongs to an earlier snapshot, whose owner has finished with it. A list
    /// without an epoch says nothing of its age, and stays.
    fn is_past(&self, name: &str) -> bool {
        let Some(epoch) = self.epoch else { return true };
        let rest = name.strip_prefix(&self.parts).unwrap_or_default();
        let numbers: Vec<u64> = rest.split('-').filter_map(|number| number.parse().ok()).collect();
        match numbers[..] {
            // A list or part of a node.
            [of] | [of, _, _] => of <= epoch.0,
            [base, _] => base <= self.before.0,
            _ => false,
        }
    }

    /// Those of `names`, which begin with [`parts`](Self::parts), that nothing needs any more.
    pub(crate) fn spent_parts(&self, mut names: Vec<String>) -> Vec<String> {
        names.retain(|name| *name != self.name && !self.parts_kept.contains(name) && self.is_past(name));
        names
    }
}

impl Partition {
    /// Has the names of all blobs that the partition writes hold the epoch of its owner. Must be called before it is
    /// recovered.
    pub(crate) fn own_blobs(&mut self, epoch: Epoch) {
        self.snapshots.epoch = Some(epoch);
        self.log.spiller.restore_next(epoch.0.min(EPOCH_MAX) << NUMBERS_BITS);
    }

    /// Takes the next slice of a snapshot, or begins one if the log has grown enough. Nothing is open in the frame.
    pub(super) fn snapshot_step(&mut self) {
        let (snapshots, source, output) = self.snapshot_parts();
        snapshots.step(&source, output);
    }

    /// A snapshot of a partition that does nothing meanwhile and whose log is durable: names and bytes, the list last.
    pub(crate) fn snapshot_at_once(&mut self) -> Vec<(String, Vec<u8>)> {
        let (snapshots, source, output) = self.snapshot_parts();
        snapshots.begin(&source, output);
        while snapshots.is_under_way() {
            snapshots.take_part(&source, output);
        }
        snapshots.finish(output);
        let kept = self.output.effects.drain(..).filter_map(|effect| match effect {
            Effect::Keep(name, bytes) => Some((name, bytes)),
            Effect::Finish(finished) => Some((finished.name, finished.list)),
            _ => None,
        });
        kept.collect()
    }

    fn snapshot_parts(&mut self) -> (&mut Snapshots, Source<'_>, &mut Output) {
        let source = Source {
            now: self.now,
            table: &self.table,
            generations: &self.generations,
            outbox: &self.outbox,
            timers: &self.timers,
            log: &self.log,
        };
        (&mut self.snapshots, source, &mut self.output)
    }
}

/// State of a partition that goes into a snapshot.
struct Source<'a> {
    now: Time,
    table: &'a Table,
    generations: &'a Generations,
    outbox: &'a Outbox,
    timers: &'a Timers,
    log: &'a Log,
}

impl Source<'_> {
    /// The part with the state that belongs to no instance.
    fn whole(&self) -> Vec<u8> {
        let mut part = FrameWriter::new();
        part.begin(self.now);
        part.next_handle(self.table.next());
        part.next_generation(self.generations.next());
        for (partition, taken, arrived, open) in self.outbox.lanes() {
            part.consumed(partition, taken);
            part.acknowledged(partition, arrived);
            for (sequence, message) in (arrived + 1..).zip(open) {
                part.sent(partition, sequence, message, &mut Inline);
            }
        }
        for (number, at, message) in self.timers.messages() {
            part.deferred(number, at, message, &mut Inline);
        }
        part.as_bytes().to_vec()
    }
}

impl Snapshots {
    fn step(&mut self, source: &Source<'_>, output: &mut Output) {
        match &self.run {
            None if self.written >= self.after_bytes.max(source.table.bytes / 4) => self.begin(source, output),
            Some(run) if !run.is_complete => self.take_part(source, output),
            _ => {}
        }
    }

    fn begin(&mut self, source: &Source<'_>, output: &mut Output) {
        let base = source.log.position.0;
        let whole = self.part_name(base, 0);
        output.effects.push(Effect::Keep(whole.clone(), source.whole()));
        let parts = Parts { base, whole, parts: Vec::new(), end: 0 };
        let payloads_before = source.log.spiller.next();
        self.run = Some(Run { parts, payloads_before, payloads_kept: Vec::new(), is_complete: false });
        self.written = 0;
    }

    fn take_part(&mut self, source: &Source<'_>, output: &mut Output) {
        let run = self.run.as_ref().expect("parts are taken of a snapshot that was begun");
        let first = run.parts.end;
        let name = self.part_name(run.parts.base, run.parts.parts.len() + 1);
        let mut part = FrameWriter::new();
        part.begin(source.now);
        let mut end = source.table.next();
        let mut references = References::default();
        for (handle, instance) in source.table.from(first) {
            if part.len() >= self.part_bytes {
                end = handle;
                break;
            }
            put_instance(&mut part, handle, instance);
            refer(instance, &mut references);
        }
        output.effects.push(Effect::Keep(name.clone(), part.as_bytes().to_vec()));
        let (at, is_complete) = (source.log.position.0, end == source.table.next());
        let run = self.run.as_mut().expect("parts are taken of a snapshot that was begun");
        run.parts.parts.push(Part { name, first, at });
        run.parts.end = end;
        run.payloads_kept.extend(references.0.into_iter().map(|blob| blob.number));
        run.is_complete = is_complete;
        if is_complete {
            output.gate.stage(GatedEffect::Snapshot);
        }
    }

    /// Gives the finished snapshot out, once the log is durable beyond all of its parts.
    pub(super) fn finish(&mut self, output: &mut Output) {
        let run = self.run.take().expect("a snapshot is finished once");
        let list = serde_json::to_vec(&run.parts).unwrap_or_default();
        let mut payloads_kept = run.payloads_kept;
        payloads_kept.sort_unstable();
        output.effects.push(Effect::Finish(FinishedSnapshot {
            name: self.list_name(),
            list,
            before: Position(run.parts.base),
            parts: part_prefix(self.partition),
            epoch: self.epoch,
            parts_kept: run.parts.names().collect(),
            payloads: blob_prefix(self.partition),
            payloads_before: run.payloads_before,
            payloads_kept,
        }));
    }
}

/// Collects the large payloads that an instance's history refers to.
fn refer(instance: &Instance, references: &mut References) {
    let Some(execution) = instance.execution().filter(|execution| execution.has_blobs) else { return };
    for event in Events::new(&execution.history, Time(0), references) {
        if event.is_err() {
            break;
        }
    }
}

fn put_instance(part: &mut FrameWriter, handle: u64, instance: &Instance) {
    put_kind(part, handle, instance);
    if let Some(reason) = instance.execution().and_then(|execution| execution.parked.as_deref()) {
        part.parked(handle, Some(reason));
    }
}

fn put_kind(part: &mut FrameWriter, handle: u64, instance: &Instance) {
    part.created(handle, instance.created, instance.id.as_str());
    match &instance.kind {
        Kind::Orchestration(execution) if execution.history.is_empty() => {
            // One that continues as new and waits for its code has a past, but no history yet.
            if instance.updated != instance.created {
                part.restarted(handle, instance.updated, &[]);
            }
            if execution.generation > 0 {
                part.numbered(handle, execution.generation);
            }
        }
        Kind::Orchestration(execution) => part.restarted(handle, instance.updated, &execution.history),
        Kind::Entity(entity) => {
            let delta = EntityDelta {
                time: instance.updated,
                state: Some(entity.state.clone()),
                patch: None,
                popped: 0,
                pushed: entity.queue.iter().cloned().collect(),
                lock: Some(entity.lock.clone()),
            };
            part.entity(handle, &delta, &mut Inline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Entry, Skip, read_frame};
    use crate::ids::InstanceId;
    use crate::partition::table::Execution;

    #[test]
    fn each_instance_is_passed_over_up_to_the_position_of_its_part() {
        let part = |first, at| Part { name: String::new(), first, at };
        let parts = Parts { base: 5, whole: String::new(), parts: vec![part(0, 7), part(100, 9)], end: 150 };
        assert_eq!([0, 99, 100, 149, 150].map(|handle| parts.taken_at(handle)), [7, 7, 9, 9, 0]);
    }

    #[test]
    fn a_node_deletes_nothing_of_later_epochs() {
        let mut finished = FinishedSnapshot {
            name: "p0/snapshot/list-7".into(),
            list: Vec::new(),
            before: Position(50),
            parts: "p0/snapshot/".into(),
            epoch: Some(Epoch(7)),
            parts_kept: vec!["p0/snapshot/7-50-0".into()],
            payloads: "p0/payload/".into(),
            payloads_before: 0,
            payloads_kept: Vec::new(),
        };
        let names = ["40-0", "60-0", "6-40-0", "7-50-0", "7-30-0", "8-50-0", "list", "list-6", "list-7", "list-8"];
        let all = || names.iter().map(|name| format!("p0/snapshot/{name}")).collect();
        let past = ["40-0", "6-40-0", "7-30-0", "list-6"].map(|name| format!("p0/snapshot/{name}"));
        assert_eq!(finished.spent_parts(all()), past);
        finished.epoch = None;
        assert_eq!(finished.spent_parts(all()).len(), names.len() - 2);
    }

    #[test]
    fn an_instance_without_a_history_keeps_when_it_was_changed() {
        let id = InstanceId::new("continues").expect("an identifier");
        let kind = Kind::Orchestration(Execution::pending(3));
        let instance = Instance { id, created: Time(1), updated: Time(9), kind };
        let mut part = FrameWriter::new();
        part.begin(Time(10));
        put_instance(&mut part, 7, &instance);
        let (mut updated, mut generation) = (None, None);
        read_frame(part.as_bytes(), &mut Skip, &mut |_, entry| {
            match entry {
                Entry::Restarted { time, .. } => (updated, generation) = (Some(time), None),
                Entry::Numbered { generation: number, .. } => generation = Some(number),
                _ => {}
            }
            Ok(())
        })
        .expect("a frame");
        assert_eq!((updated, generation), (Some(Time(9)), Some(3)));
    }
}
