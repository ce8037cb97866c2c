//! Reads of instances: views for clients, and the open calls of an execution.

use std::collections::BTreeMap;

use crate::client::InstanceView;
use crate::codec::{Events, Skip};
use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, InstanceId, Name, PartitionId, Time};
use crate::message::{Message, MessageKind};
use crate::partition::Partition;
use crate::partition::input::Values;
use crate::partition::log::Log;
use crate::partition::table::{Execution, Instance, Table};
use crate::partition::timers::Timers;
use crate::payload::Payload;

/// The events of a history without their large payloads. Damage ends it: the log is checked where it is read.
fn outline(history: &[u8], mut each: impl FnMut(EventKind)) {
    let mut skip = Skip;
    for event in Events::new(history, Time(0), &mut skip).map_while(Result::ok) {
        each(event.kind);
    }
}

/// Sub-orchestrations that an execution waits for.
pub(super) fn open_subs(execution: &Execution) -> Vec<InstanceId> {
    let mut open = BTreeMap::new();
    outline(&execution.history, |kind| match kind {
        EventKind::SubScheduled { id, instance, awaited: true, .. } => {
            open.insert(id, instance);
        }
        EventKind::SubCompleted { id, .. } | EventKind::SubFailed { id, .. } => {
            open.remove(&id);
        }
        _ => {}
    });
    open.into_values().collect()
}

/// All sub-orchestrations that an execution has waited for.
pub(super) fn all_subs(execution: &Execution) -> Vec<InstanceId> {
    let mut found = Vec::new();
    outline(&execution.history, |kind| {
        if let EventKind::SubScheduled { instance, awaited: true, .. } = kind {
            found.push(instance);
        }
    });
    found
}

/// Locks that an execution has requested and not released, by decision.
pub(super) fn open_locks(execution: &Execution) -> Vec<(u32, Vec<EntityId>)> {
    let mut open = BTreeMap::new();
    outline(&execution.history, |kind| match kind {
        EventKind::LockRequested { id, entities } => {
            open.insert(id, entities);
        }
        EventKind::LockReleased { id, .. } => {
            open.remove(&id);
        }
        _ => {}
    });
    open.into_iter().collect()
}

/// Read access to the instances of a partition.
pub(super) struct InstanceReader<'a> {
    pub(super) table: &'a Table,
    timers: &'a Timers,
    log: &'a Log,
    partition: PartitionId,
}

impl Partition {
    pub(super) fn reader(&self) -> InstanceReader<'_> {
        InstanceReader { table: &self.table, timers: &self.timers, log: &self.log, partition: self.settings.id }
    }

    /// Gives each orchestration that has begun, without values, and its present history to `each`.
    pub(crate) fn histories(&self, each: &mut dyn FnMut(InstanceView, Result<Vec<Event>, Failure>)) {
        let reader = self.reader();
        for (handle, instance) in self.table.from(0) {
            if instance.execution().is_some_and(|execution| !execution.history.is_empty()) {
                let events = reader.events(handle).map(Option::unwrap_or_default);
                each(outline_of(instance), events.map_err(unreadable_payload));
            }
        }
    }
}

fn unreadable_payload(error: Error) -> Failure {
    Failure::new(FailureKind::Payload, error.to_string())
}

impl InstanceReader<'_> {
    /// An instance as clients see it.
    pub(super) fn view(&self, handle: u64, values: Values) -> Result<InstanceView, Error> {
        let instance = self.table.known(handle);
        let mut view = outline_of(instance);
        let Some(execution) = instance.execution() else {
            let state = instance.entity().and_then(|entity| entity.state.clone());
            view.input = if values == Values::With { state.unwrap_or_default() } else { Payload::EMPTY };
            return Ok(view);
        };
        if execution.history.is_empty() {
            self.view_pending(handle, &mut view);
        } else if values == Values::With {
            let ends = execution.status.is_ended();
            let mut last = None;
            self.walk(execution, |event| match event.kind {
                EventKind::Started { input, .. } => view.input = input,
                EventKind::StatusSet { status } => view.custom_status = Some(status),
                kind if ends && kind.is_end() => last = Some(kind),
                _ => {}
            })?;
            view.output = last.and_then(outcome);
        }
        Ok(view)
    }

    /// The view of an execution that has just ended with this result.
    pub(super) fn view_ended(&self, handle: u64, result: &Result<Payload, Failure>) -> Result<InstanceView, Error> {
        let instance = self.table.known(handle);
        let execution = instance.orchestration();
        let mut view = outline_of(instance);
        view.output = Some(result.clone());
        let mut reader = self.log.spiller.reader();
        let mut events = Events::new(&execution.history, Time(0), &mut reader);
        if let Some(Ok(Event { kind: EventKind::Started { input, .. }, .. })) = events.next() {
            view.input = input;
        }
        if execution.has_status {
            self.walk(execution, |event| {
                if let EventKind::StatusSet { status } = event.kind {
                    view.custom_status = Some(status);
                }
            })?;
        }
        Ok(view)
    }

    fn view_pending(&self, handle: u64, view: &mut InstanceView) {
        if let Some(Message { kind: MessageKind::Start { name, input, .. }, .. }) = self.timers.start_message(handle) {
            view.name = name.clone();
            view.input = input.clone();
        }
    }

    /// The whole history, with large payloads.
    pub(super) fn events(&self, handle: u64) -> Result<Option<Vec<Event>>, Error> {
        // Entities keep no history.
        let Some(execution) = self.table.known(handle).execution() else { return Ok(None) };
        let mut events = Vec::new();
        self.walk(execution, |event| events.push(event))?;
        Ok(Some(events))
    }

    fn walk(&self, execution: &Execution, mut each: impl FnMut(Event)) -> Result<(), Error> {
        let mut reader = self.log.spiller.reader();
        for event in Events::new(&execution.history, Time(0), &mut reader) {
            each(event.map_err(|error| self.unreadable(&error.to_string()))?);
        }
        Ok(())
    }

    fn unreadable(&self, what: &str) -> Error {
        let place = crate::store::Location::Frame { partition: self.partition, position: self.log.position.0 };
        Error::Store(crate::store::StoreError::Damaged { place, what: what.to_owned() })
    }
}

/// The view of an instance without its values.
fn outline_of(instance: &Instance) -> InstanceView {
    let execution = instance.execution();
    let entity_name = || instance.id.as_entity().map_or(Name::Static(""), |(name, _)| Name::from(name));
    InstanceView {
        id: instance.id.clone(),
        name: execution.map_or_else(entity_name, |execution| execution.name.clone()),
        version: execution.map_or(0, |execution| execution.version),
        generation: execution.map_or(0, |execution| execution.generation),
        status: instance.status(),
        created: instance.created,
        updated: instance.updated,
        parent: execution.and_then(|execution| execution.parent.as_deref().cloned()),
        input: Payload::EMPTY,
        custom_status: None,
        parked: execution.and_then(|execution| execution.parked.as_deref().map(str::to_owned)),
        output: None,
    }
}

/// How an execution ended, from its last event.
fn outcome(last: EventKind) -> Option<Result<Payload, Failure>> {
    match last {
        EventKind::Completed { output } => Some(Ok(output)),
        EventKind::Failed { failure } => Some(Err(failure)),
        EventKind::Terminated { reason } => Some(Err(Failure::new(FailureKind::Terminated, reason))),
        _ => None,
    }
}
