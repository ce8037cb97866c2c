//! Recovery of a partition from the last snapshot and the log.
//!
//! User code does not run here: frames say what happened, and orchestrations are replayed when something next comes in
//! for them. What histories leave open (activities, timers) is taken up again at the end.

use std::collections::BTreeMap;

use crate::client::Status;
use crate::codec::{BlobRef, CodecError, EntityDelta, Entry, Events, Fetch, read_frame};
use crate::event::EventKind;
use crate::ids::{InstanceId, Name, PartitionId, Position, Time};
use crate::partition::Partition;
use crate::partition::input::{Effect, TaskKey};
use crate::partition::snapshot::{Parts, list_name, list_prefix};
use crate::partition::table::{EntityState, Execution, Instance, Kind};
use crate::payload::Payload;
use crate::program::ActivityCall;
use crate::store::{Location, Store, StoreError, Visit};

/// Gives the frames of the log from a position on, and returns where the log ends.
pub(super) type ReadLog<'a> = dyn FnMut(Position, &mut Visit<'_>) -> Result<Position, StoreError> + 'a;

/// Decides whether recovery goes on without a part of a snapshot that cannot be read.
pub(super) type LossHandler<'a> = dyn FnMut(StoreError) -> Result<(), StoreError> + 'a;

/// Takes note of the numbers of blobs and reads none.
#[derive(Default)]
struct Numbers {
    next: u64,
}

impl Fetch for Numbers {
    fn fetch(&mut self, blob: BlobRef) -> Result<Payload, CodecError> {
        self.next = self.next.max(blob.number + 1);
        Ok(Payload::EMPTY)
    }
}

impl Partition {
    /// Reads the partition back. Must be called once, before the first turn; its effects are ready afterwards.
    ///
    /// # Errors
    /// Whatever the store says, and [`StoreError::Damaged`] for frames and parts that cannot be read.
    pub fn recover(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let (id, parts) = (self.settings.id, self.recover_snapshot(store, &mut Err)?);
        self.recover_log(parts.as_ref(), &mut |from, visit| store.read(id, from, visit))
    }

    /// Applies the log that follows a snapshot, and resumes the work under way.
    pub(super) fn recover_log(&mut self, parts: Option<&Parts>, read: &mut ReadLog<'_>) -> Result<(), StoreError> {
        let base = parts.map_or(0, |parts| parts.base);
        let mut now = self.now;
        let id = self.settings.id;
        let mut names = Names::default();
        let end = read(Position(base), &mut |position, frame| {
            let place = Location::Frame { partition: id, position: position.0 };
            now = self.apply(frame, parts.map(|parts| (parts, position.0)), place, &mut names)?;
            // The existing log counts towards the next snapshot, whichever node wrote it. Otherwise partitions that
            // move often would never get a snapshot.
            self.snapshots.written(frame.len() as u64);
            Ok(())
        })?;
        if end.0 < base {
            let what = format!("it ends before frame {}, and its snapshot was taken before frame {base}", end.0);
            return Err(StoreError::Damaged { place: Location::Log { partition: id }, what });
        }
        self.now = now;
        self.log.continue_at(end);
        self.reopen().map_err(|what| {
            let place = Location::Frame { partition: id, position: end.0 };
            StoreError::Damaged { place, what }
        })
    }

    /// Reads the last snapshot, if there is one. A part with instances that cannot be read goes to `lost`, which decides
    /// whether to go on without it.
    pub(super) fn recover_snapshot(
        &mut self,
        store: &dyn Store,
        lost: &mut LossHandler<'_>,
    ) -> Result<Option<Parts>, StoreError> {
        let Some(parts) = self.latest_parts(store)? else { return Ok(None) };
        let mut names = Names::default();
        self.recover_part(store, &parts.whole, &mut names)?;
        for part in &parts.parts {
            self.recover_part(store, &part.name, &mut names).or_else(&mut *lost)?;
        }
        // Instances that came and went while it was taken are in none of its parts.
        self.table.restore_next(parts.end);
        Ok(Some(parts))
    }

    /// The list of the latest snapshot. Nodes leave a list each.
    fn latest_parts(&self, store: &dyn Store) -> Result<Option<Parts>, StoreError> {
        let mut latest: Option<(u64, u64, Parts)> = None;
        let prefix = list_prefix(self.settings.id);
        for name in std::iter::once(list_name(self.settings.id)).chain(store.list_blobs(&prefix)?) {
            let Some(list) = store.get_blob(&name)? else { continue };
            let parts: Parts = serde_json::from_slice(&list).map_err(|error| damaged(&name, error.to_string()))?;
            let epoch = name.strip_prefix(&prefix).and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
            if latest.as_ref().is_none_or(|(base, of, _)| (*base, *of) < (parts.base, epoch)) {
                latest = Some((parts.base, epoch, parts));
            }
        }
        Ok(latest.map(|(_, _, parts)| parts))
    }

    fn recover_part(&mut self, store: &dyn Store, name: &str, names: &mut Names) -> Result<(), StoreError> {
        let bytes = store.get_blob(name)?.ok_or_else(|| damaged(name, "it is missing".to_owned()))?;
        self.apply(&bytes, None, blob_place(name), names).map(drop)
    }

    /// Applies a frame and returns its time.
    fn apply(
        &mut self,
        frame: &[u8],
        known: Option<(&Parts, u64)>,
        place: Location,
        names: &mut Names,
    ) -> Result<Time, StoreError> {
        let mut frame_time = Time(0);
        let mut entries = Vec::new();
        let next = {
            let mut reader = self.log.spiller.reader();
            let read = read_frame(frame, &mut reader, &mut |time, entry| {
                frame_time = time;
                entries.push(entry);
                Ok(())
            });
            read.map_err(|error| StoreError::Damaged { place: place.clone(), what: error.to_string() })?;
            reader.next_seen()
        };
        self.log.spiller.restore_next(next);
        for entry in entries {
            let passed = known.zip(entry.handle()).is_some_and(|((parts, at), handle)| at < parts.taken_at(handle));
            if !passed {
                self.apply_entry(entry, names)
                    .map_err(|error| StoreError::Damaged { place: place.clone(), what: error.to_string() })?;
            }
        }
        Ok(frame_time)
    }

    fn apply_entry(&mut self, entry: Entry<'_>, names: &mut Names) -> Result<(), CodecError> {
        match entry {
            Entry::Created { handle, time, id } => self.table.restore(handle, created(id, time)),
            Entry::Numbered { handle, generation } => {
                if let Some(execution) = self.table.get_mut(handle).and_then(Instance::execution_mut) {
                    execution.generation = generation;
                }
            }
            Entry::Parked { handle, reason } => self.table.set_parked(handle, reason.map(Into::into)),
            Entry::Appended { handle, events } => self.apply_events(handle, events, names)?,
            Entry::Restarted { handle, time, events } => {
                if let Some(instance) = self.table.get_mut(handle) {
                    instance.updated = time;
                    instance.kind = Kind::Orchestration(Execution::pending(0));
                }
                self.apply_events(handle, events, names)?;
            }
            Entry::Entity { handle, delta } => {
                if let Some(instance) = self.table.get_mut(handle) {
                    apply_delta(instance, delta)?;
                }
            }
            Entry::Sent { to, sequence, message } => {
                self.check(to)?;
                self.outbox.restore(to, sequence, message);
            }
            Entry::Consumed { from, up_to } => {
                self.check(from)?;
                self.outbox.restore_taken(from, up_to);
                if from == self.settings.id {
                    self.outbox.restore_arrived(from, up_to);
                }
            }
            Entry::Acknowledged { to, up_to } => {
                self.check(to)?;
                self.outbox.restore_arrived(to, up_to);
            }
            Entry::Deferred { number, at, message } => self.timers.restore(number, at, message),
            Entry::Undeferred { number } => {
                self.timers.undefer(number);
            }
            Entry::Dropped { id } => {
                self.timers.drop_kept(&InstanceId::trusted(id));
            }
            Entry::Purged { handle } => {
                self.table.remove(handle);
            }
            Entry::NextHandle { handle } => self.table.restore_next(handle),
            Entry::NextGeneration { generation } => {
                self.generations.restore(generation);
            }
        }
        Ok(())
    }

    fn check(&self, partition: PartitionId) -> Result<(), CodecError> {
        if self.outbox.knows(partition) {
            return Ok(());
        }
        let what = format!("partition {partition} found, expected one of {}", self.settings.count);
        Err(CodecError { at: 0, what })
    }

    fn apply_events(&mut self, handle: u64, bytes: &[u8], names: &mut Names) -> Result<(), CodecError> {
        // The instance may be lost, with a part of a snapshot that was given up.
        let Some(instance) = self.table.get_mut(handle) else { return Ok(()) };
        let mut numbers = Numbers::default();
        let mut updated = instance.updated;
        // Bytes that a checksum has passed may still be another program's.
        let Some(execution) = instance.execution_mut() else { return Ok(()) };
        let previous = if execution.history.is_empty() { Time(0) } else { updated };
        for event in Events::new(bytes, previous, &mut numbers) {
            let event = event?;
            updated = event.time;
            note(execution, event.kind, names);
        }
        execution.has_blobs |= numbers.next > 0;
        execution.history.extend_from_slice(bytes);
        instance.updated = updated;
        self.log.spiller.restore_next(numbers.next);
        Ok(())
    }

    /// Resumes the work that was under way.
    fn reopen(&mut self) -> Result<(), String> {
        self.table.recount();
        let mut tasks = Vec::new();
        let mut timers = Vec::new();
        for (handle, instance) in self.table.from(0) {
            if self.table.is_behind(handle) {
                self.work.backlog.push_back(handle);
            }
            let Some(execution) = instance.execution() else { continue };
            if matches!(execution.status, Status::Running | Status::Suspended) {
                if execution.is_continuing {
                    self.work.restarts.push_back(handle);
                    continue;
                }
                let known = timers.len();
                self.open_of(handle, instance, execution, &mut tasks, &mut timers)?;
                if instance.is_parked() {
                    // They are set when it goes on.
                    timers.truncate(known);
                }
            }
        }
        for (key, at) in timers {
            self.timers.add(key, at);
        }
        self.timers.restore_starts(&self.table);
        let done: std::collections::HashSet<TaskKey> = self.reopen_parked().into_iter().collect();
        for (key, call) in tasks.into_iter().filter(|(key, _)| !done.contains(key)) {
            self.activities.run(key, call, &mut self.output);
        }
        self.reopen_lanes();
        Ok(())
    }

    fn open_of(
        &self,
        handle: u64,
        instance: &Instance,
        execution: &Execution,
        tasks: &mut Vec<(TaskKey, ActivityCall)>,
        timers: &mut Vec<(TaskKey, Time)>,
    ) -> Result<(), String> {
        let (mut open_tasks, mut open_timers) = (BTreeMap::new(), BTreeMap::new());
        let mut reader = self.log.spiller.reader();
        for event in Events::new(&execution.history, Time(0), &mut reader) {
            let event = event.map_err(|error| format!("the history of {} cannot be read: {error}", instance.id))?;
            match event.kind {
                EventKind::TaskScheduled { id, name, input } => {
                    open_tasks.insert(id, (name, input));
                }
                EventKind::TaskCompleted { id, .. } | EventKind::TaskFailed { id, .. } => {
                    open_tasks.remove(&id);
                }
                EventKind::TimerCreated { id, at } => {
                    open_timers.insert(id, at);
                }
                EventKind::TimerFired { id } | EventKind::TimerCancelled { id } => {
                    open_timers.remove(&id);
                }
                _ => {}
            }
        }
        let generation = execution.generation;
        timers.extend(open_timers.into_iter().map(|(id, at)| (TaskKey { handle, generation, id }, at)));
        tasks.extend(open_tasks.into_iter().map(|(id, (name, input))| {
            let call = ActivityCall { name, input, instance: instance.id.clone(), generation, id };
            (TaskKey { handle, generation, id }, call)
        }));
        Ok(())
    }

    /// Sets the timers of an orchestration as its history has them.
    pub(super) fn timers_anew(&mut self, handle: u64) {
        let (mut tasks, mut timers) = (Vec::new(), Vec::new());
        let instance = self.table.known(handle);
        let execution = instance.orchestration();
        // An unreadable history has failed the replay before this.
        let _ = self.open_of(handle, instance, execution, &mut tasks, &mut timers);
        let generation = execution.generation;
        self.timers.forget(handle, generation);
        for (key, at) in timers {
            self.timers.add(key, at);
        }
    }

    fn reopen_lanes(&mut self) {
        for partition in (0..self.settings.count).map(PartitionId) {
            self.outbox.newly_sent(partition);
            let up_to = self.outbox.sent(partition);
            self.outbox.allow(partition, up_to);
            self.output.hand_over(&mut self.outbox, partition, self.settings.bounds.lot);
            let taken = self.outbox.taken(partition);
            if taken > 0 {
                self.output.effects.push(Effect::Acknowledge { to: partition, up_to: taken });
            }
        }
    }
}

/// Facts of an event about its execution.
fn note(execution: &mut Execution, kind: EventKind, names: &mut Names) {
    match kind {
        EventKind::Started { name, version, generation, parent, .. } => {
            execution.name = names.same(name);
            execution.version = version;
            execution.generation = generation;
            execution.status = Status::Running;
            execution.parent = parent.map(Box::new);
        }
        EventKind::Suspended { .. } => execution.status = Status::Suspended,
        EventKind::Resumed { .. } => execution.status = Status::Running,
        EventKind::Completed { .. } => execution.status = Status::Completed,
        EventKind::Failed { .. } => execution.status = Status::Failed,
        EventKind::Terminated { .. } => execution.status = Status::Terminated,
        EventKind::ContinuedAsNew { .. } => execution.is_continuing = true,
        EventKind::LockRequested { .. } => execution.has_locks = true,
        EventKind::StatusSet { .. } => execution.has_status = true,
        _ => {}
    }
}

/// Names read back, each held once.
#[derive(Debug, Default)]
struct Names(std::collections::HashSet<Name>);

impl Names {
    fn same(&mut self, name: Name) -> Name {
        if let Some(known) = self.0.get(&name) {
            return known.clone();
        }
        self.0.insert(name.clone());
        name
    }
}

fn created(id: &str, time: Time) -> Instance {
    let kind = if id.starts_with('@') {
        Kind::Entity(Box::<EntityState>::default())
    } else {
        Kind::Orchestration(Execution::pending(0))
    };
    Instance { id: InstanceId::trusted(id), created: time, updated: time, kind }
}

fn apply_delta(instance: &mut Instance, delta: EntityDelta) -> Result<(), CodecError> {
    instance.updated = delta.time;
    // As with events: bytes that a checksum has passed.
    let Some(entity) = instance.entity_mut() else { return Ok(()) };
    for _ in 0..delta.popped {
        if entity.queue.pop().is_none() {
            break;
        }
    }
    delta.pushed.into_iter().for_each(|message| entity.queue.push(message));
    if let Some(state) = delta.state {
        entity.state = state;
    }
    if let Some(patch) = delta.patch {
        let before = entity.state.take().unwrap_or_default();
        let after = patch.apply(&before);
        let wrong =
            || CodecError { at: 0, what: format!("a change of a state of {} bytes, expected more", before.len()) };
        entity.state = Some(after.ok_or_else(wrong)?);
    }
    if let Some(lock) = delta.lock {
        entity.lock = lock;
    }
    Ok(())
}

fn blob_place(name: &str) -> Location {
    Location::File { path: name.into(), offset: None }
}

fn damaged(name: &str, what: String) -> StoreError {
    StoreError::Damaged { place: blob_place(name), what }
}
