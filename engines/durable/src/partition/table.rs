//! The instances of a partition: found by handle, which says the order of acceptance, and by identifier.
//!
//! Handles are counted up and never used twice. They lie in pages that are freed as a whole, so that walking in
//! order, finding one and forgetting many are all cheap.

use std::collections::HashMap;

use crate::client::Status;
use crate::event::{Caller, Version};
use crate::ids::{InstanceId, Name, Time};
use crate::message::Message;
use crate::partition::input::TaskKey;
use crate::partition::queue::Queue;
use crate::payload::Payload;

const PAGE: usize = 1024;
/// Memory that an instance takes besides its history: places in a page and in the map, identifier, allocator. Bytes.
const INSTANCE_BYTES: u64 = 320;

/// An orchestration or an entity.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) id: InstanceId,
    pub(super) created: Time,
    /// The time of the last event.
    pub(super) updated: Time,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Orchestration(Execution),
    Entity(Box<EntityState>),
}

/// An orchestration's present execution. Without a history it is still to start.
#[derive(Debug)]
pub(super) struct Execution {
    pub(super) name: Name,
    pub(super) version: Version,
    pub(super) generation: u64,
    pub(super) status: Status,
    /// Whether it has ever requested a lock, or shown a status: looking for either costs a walk over the history.
    pub(super) has_locks: bool,
    pub(super) has_status: bool,
    /// Whether payloads of its history are kept out of line.
    pub(super) has_blobs: bool,
    /// Whether its history ends with continue-as-new and the next execution has not begun.
    pub(super) is_continuing: bool,
    /// Why its code does not fit, while it is parked. `status` keeps the status from before.
    pub(super) parked: Option<Box<str>>,
    pub(super) parent: Option<Box<Caller>>,
    pub(super) history: Vec<u8>,
}

impl Execution {
    /// One that is still to start.
    pub(super) fn pending(generation: u64) -> Self {
        Self {
            name: Name::Static(""),
            version: 0,
            generation,
            status: Status::Pending,
            has_locks: false,
            has_status: false,
            has_blobs: false,
            is_continuing: false,
            parked: None,
            parent: None,
            history: Vec::new(),
        }
    }
}

/// State of an entity between its operations.
#[derive(Debug, Default)]
pub(super) struct EntityState {
    pub(super) state: Option<Payload>,
    pub(super) lock: Option<Caller>,
    /// Operations and locks that wait for the lock to be freed.
    pub(super) queue: Queue,
    /// Inputs of this turn.
    pub(super) arrived: Vec<Message>,
}

impl Instance {
    pub(super) fn execution(&self) -> Option<&Execution> {
        match &self.kind {
            Kind::Orchestration(execution) => Some(execution),
            Kind::Entity(_) => None,
        }
    }

    pub(super) fn execution_mut(&mut self) -> Option<&mut Execution> {
        match &mut self.kind {
            Kind::Orchestration(execution) => Some(execution),
            Kind::Entity(_) => None,
        }
    }

    /// The execution of an instance that is known to be an orchestration.
    pub(super) fn orchestration(&self) -> &Execution {
        self.execution().expect("only orchestrations take steps")
    }

    pub(super) fn orchestration_mut(&mut self) -> &mut Execution {
        self.execution_mut().expect("only orchestrations take steps")
    }

    pub(super) fn entity(&self) -> Option<&EntityState> {
        match &self.kind {
            Kind::Entity(entity) => Some(entity),
            Kind::Orchestration(_) => None,
        }
    }

    pub(super) fn entity_mut(&mut self) -> Option<&mut EntityState> {
        match &mut self.kind {
            Kind::Entity(entity) => Some(entity),
            Kind::Orchestration(_) => None,
        }
    }

    pub(super) fn status(&self) -> Status {
        match self.execution() {
            None => Status::Entity,
            Some(execution) if execution.parked.is_some() => Status::Parked,
            Some(execution) => execution.status,
        }
    }

    pub(super) fn is_parked(&self) -> bool {
        self.status() == Status::Parked
    }

    /// About how many bytes it holds.
    pub(super) fn bytes(&self) -> u64 {
        let rest = match &self.kind {
            Kind::Orchestration(execution) => execution.history.capacity(),
            Kind::Entity(entity) => 256 + entity.state.as_ref().map_or(0, Payload::len) + entity.queue.bytes(),
        };
        INSTANCE_BYTES + rest as u64
    }
}

type Page = Box<[Option<Instance>]>;

/// All instances of a partition.
#[derive(Debug, Default)]
pub(super) struct Table {
    pages: Vec<Option<(Page, usize)>>,
    handles: HashMap<InstanceId, u64>,
    next: u64,
    /// About how many bytes all hold; kept by those who change instances.
    pub(super) bytes: u64,
    /// How many are in each state; the place is the state's number.
    statuses: [u64; Status::ALL.len()],
}

impl Table {
    /// Takes a new instance in.
    pub(super) fn add(&mut self, instance: Instance) -> u64 {
        let handle = self.next;
        self.restore(handle, instance);
        handle
    }

    /// Takes an instance in under the handle that the log gives it.
    pub(super) fn restore(&mut self, handle: u64, instance: Instance) {
        self.next = self.next.max(handle + 1);
        self.handles.insert(instance.id.clone(), handle);
        self.bytes += instance.bytes();
        self.statuses[instance.status() as usize] += 1;
        let (page, at) = place(handle);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let (slots, used) = self.pages[page].get_or_insert_with(|| ((0..PAGE).map(|_| None).collect(), 0));
        match slots[at].replace(instance) {
            Some(before) => self.uncount(before.status()),
            None => *used += 1,
        }
    }

    pub(super) fn handle(&self, id: &InstanceId) -> Option<u64> {
        self.handles.get(id).copied()
    }

    pub(super) fn get(&self, handle: u64) -> Option<&Instance> {
        let (page, at) = place(handle);
        self.pages.get(page)?.as_ref()?.0[at].as_ref()
    }

    pub(super) fn get_mut(&mut self, handle: u64) -> Option<&mut Instance> {
        let (page, at) = place(handle);
        self.pages.get_mut(page)?.as_mut()?.0[at].as_mut()
    }

    /// The instance of a handle that the present step has looked up. A step that forgets its instance ends with that.
    ///
    /// # Panics
    /// If there is none: a bug of the engine, at which the partition stops before its frame is written.
    pub(super) fn known(&self, handle: u64) -> &Instance {
        self.get(handle).expect("the instance of a step is in the table until the step ends")
    }

    /// As [`Table::known`].
    pub(super) fn known_mut(&mut self, handle: u64) -> &mut Instance {
        self.get_mut(handle).expect("the instance of a step is in the table until the step ends")
    }

    /// The execution of an orchestration that the present step has looked up.
    ///
    /// # Panics
    /// As [`Table::known`], and if it is an entity.
    pub(super) fn running(&self, handle: u64) -> &Execution {
        self.known(handle).orchestration()
    }

    /// As [`Table::running`].
    pub(super) fn running_mut(&mut self, handle: u64) -> &mut Execution {
        self.known_mut(handle).orchestration_mut()
    }

    /// The orchestration of an activity, if that execution of it still runs.
    pub(super) fn waiting_for(&self, key: TaskKey) -> Option<&Instance> {
        let instance = self.get(key.handle)?;
        let execution = instance.execution().filter(|execution| execution.generation == key.generation)?;
        matches!(execution.status, Status::Running | Status::Suspended).then_some(instance)
    }

    /// Whether an instance is an entity whose operations wait for nothing but room in the frame.
    pub(super) fn is_behind(&self, handle: u64) -> bool {
        let entity = self.get(handle).and_then(Instance::entity);
        entity.is_some_and(|entity| entity.lock.is_none() && !entity.queue.is_empty())
    }

    /// Whether an instance is a parked orchestration.
    pub(super) fn is_parked(&self, handle: u64) -> bool {
        self.get(handle).is_some_and(Instance::is_parked)
    }

    /// Whether an instance is a parked orchestration at this execution, if one is given. A message for an earlier
    /// execution is not kept, so that a lock that comes too late is freed now.
    pub(super) fn is_execution_parked(&self, handle: u64, generation: Option<u64>) -> bool {
        let execution = self.get(handle).filter(|instance| instance.is_parked()).and_then(Instance::execution);
        execution.is_some_and(|execution| generation.is_none_or(|generation| generation == execution.generation))
    }

    /// Takes note that an instance which held `before` bytes holds another number now.
    pub(super) fn resized(&mut self, handle: u64, before: u64) {
        self.bytes = self.bytes + self.known(handle).bytes() - before;
    }

    /// Forgets an instance.
    pub(super) fn remove(&mut self, handle: u64) -> Option<Instance> {
        let (page, at) = place(handle);
        let slot = self.pages.get_mut(page)?;
        let (slots, used) = slot.as_mut()?;
        let instance = slots[at].take()?;
        *used -= 1;
        if *used == 0 {
            *slot = None;
        }
        // Another instance may have the identifier by now: recovery reads parts of a snapshot before what led to them.
        if self.handles.get(&instance.id) == Some(&handle) {
            self.handles.remove(&instance.id);
        }
        self.uncount(instance.status());
        self.bytes = self.bytes.saturating_sub(instance.bytes());
        Some(instance)
    }

    /// Puts an orchestration into another state.
    pub(super) fn set_status(&mut self, handle: u64, status: Status) {
        self.restate(handle, |execution| execution.status = status);
    }

    /// Parks an orchestration, or lets it go on.
    pub(super) fn set_parked(&mut self, handle: u64, parked: Option<Box<str>>) {
        self.restate(handle, |execution| execution.parked = parked);
    }

    fn restate(&mut self, handle: u64, change: impl FnOnce(&mut Execution)) {
        // Recovery may have lost the instance, with a part of a snapshot that was given up.
        let Some(instance) = self.get_mut(handle) else { return };
        let before = instance.status();
        if let Some(execution) = instance.execution_mut() {
            change(execution);
        }
        let after = instance.status();
        self.statuses[after as usize] += 1;
        self.uncount(before);
    }

    /// Recovery changes instances past this table and counts them anew at its end; until then the counts mean nothing.
    fn uncount(&mut self, status: Status) {
        let count = &mut self.statuses[status as usize];
        *count = count.saturating_sub(1);
    }

    /// How many are in each state; the place is the state's number.
    pub(super) fn statuses(&self) -> [u64; Status::ALL.len()] {
        self.statuses
    }

    /// Counts bytes and states anew, after instances were changed past this table.
    pub(super) fn recount(&mut self) {
        let (mut bytes, mut statuses) = (0, [0; Status::ALL.len()]);
        for (_, instance) in self.from(0) {
            bytes += instance.bytes();
            statuses[instance.status() as usize] += 1;
        }
        (self.bytes, self.statuses) = (bytes, statuses);
    }

    /// All from a handle on, in order.
    pub(super) fn from(&self, handle: u64) -> impl Iterator<Item = (u64, &Instance)> {
        let (first, _) = place(handle);
        self.pages
            .iter()
            .enumerate()
            .skip(first)
            .flat_map(move |(page, slots)| {
                let slots = slots.as_ref().map_or(&[][..], |(slots, _)| slots);
                slots.iter().enumerate().filter_map(move |(at, slot)| Some(((page * PAGE + at) as u64, slot.as_ref()?)))
            })
            .skip_while(move |(found, _)| *found < handle)
    }

    /// The handle that the next instance will get.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn restore_next(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    pub(super) fn len(&self) -> usize {
        self.handles.len()
    }
}

fn place(handle: u64) -> (usize, usize) {
    let handle = usize::try_from(handle).unwrap_or(usize::MAX);
    (handle / PAGE, handle % PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(id: &str) -> Instance {
        let id = InstanceId::new(id).expect("an identifier");
        Instance { id, created: Time(1), updated: Time(1), kind: Kind::Orchestration(Execution::pending(0)) }
    }

    #[test]
    fn handles_count_up_and_are_not_used_twice() {
        let mut table = Table::default();
        let first = table.add(instance("a"));
        let second = table.add(instance("b"));
        assert!(table.remove(first).is_some());
        let third = table.add(instance("a"));
        assert_eq!((first, second, third), (0, 1, 2));
        assert_eq!(table.handle(&InstanceId::new("a").expect("an identifier")), Some(third));
        assert_eq!(table.from(0).map(|(handle, _)| handle).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn forgetting_one_leaves_its_successor_to_be_found() {
        let mut table = Table::default();
        table.restore(0, instance("a"));
        table.restore(7, instance("a"));
        assert!(table.remove(0).is_some());
        assert_eq!(table.handle(&InstanceId::new("a").expect("an identifier")), Some(7));
    }

    #[test]
    fn forgetting_all_of_a_page_frees_it_and_its_bytes() {
        let mut table = Table::default();
        for n in 0..PAGE + 1 {
            table.add(instance(&format!("i{n}")));
        }
        for handle in 0..PAGE as u64 {
            table.remove(handle);
        }
        assert!(table.pages[0].is_none());
        assert_eq!(table.from(0).count(), 1);
        table.remove(PAGE as u64);
        assert_eq!(table.bytes, 0);
    }

    #[test]
    fn instances_are_counted_by_state() {
        let mut table = Table::default();
        let (first, second) = (table.add(instance("a")), table.add(instance("b")));
        table.set_status(first, Status::Running);
        table.set_status(second, Status::Running);
        table.set_status(second, Status::Failed);
        assert_eq!(table.statuses(), [0, 1, 0, 0, 1, 0, 0, 0]);
        let counted = table.statuses();
        table.recount();
        assert_eq!(table.statuses(), counted);
        table.remove(first);
        assert_eq!(table.statuses(), [0, 0, 0, 0, 1, 0, 0, 0]);
    }
}
