//! Orchestrations whose code is missing, or does not decide what their history says.
//!
//! Such code was deployed by mistake, or too early, so an orchestration is not ended by it: it is parked. Messages for
//! it are deferred to the end of time; timers are left to its history. When the hub is opened again, its code is tried:
//! if it fits now, the orchestration gets these messages, in order, and goes on. Those that one frame has no room for are
//! due at once: the log need not say so again, since nothing else is kept for what is not parked.

use crate::codec::KEPT;
use crate::event::EventKind;
use crate::failure::Failure;
use crate::ids::InstanceId;
use crate::message::{Message, MessageKind, Reuse};
use crate::partition::Partition;
use crate::partition::input::TaskKey;
use crate::partition::table::Execution;
use crate::partition::timers::PendingStart;
use crate::partition::view::open_locks;
use crate::payload::Payload;

impl Partition {
    /// Parks an orchestration to which this was to happen, and keeps it.
    pub(super) fn park(&mut self, handle: u64, failure: &Failure, kind: EventKind) {
        let id = self.table.known(handle).id.clone();
        let kept = self.kept(handle, kind);
        if let Some(MessageKind::Start { .. }) = kept {
            self.unbegin(handle);
        }
        let reason = failure.to_string();
        self.code.cursors.remove(handle);
        self.timers.forget(handle, self.table.running(handle).generation);
        self.log.frame.parked(handle, Some(&reason));
        self.table.set_parked(handle, Some(reason.into()));
        if let Some(kind) = kept {
            let is_start = matches!(kind, MessageKind::Start { .. });
            let message = self.keep(Message { to: id, kind });
            if is_start {
                self.timers.set_start(handle, PendingStart { at: KEPT, message });
            }
        }
    }

    /// The message that brings an event again.
    fn kept(&self, handle: u64, kind: EventKind) -> Option<MessageKind> {
        let execution = self.table.running(handle);
        let generation = execution.generation;
        Some(match kind {
            EventKind::Started { name, version, input, parent, .. } => {
                // Of code that is not there, the newest version is not known either.
                let is_unknown = version == 0 && self.code.program.newest(name.as_str()).is_none();
                let version = (!is_unknown).then_some(version);
                MessageKind::Start { name, version, input, parent, at: None, reuse: Reuse::Never }
            }
            EventKind::TaskCompleted { id, result } => MessageKind::TaskDone { generation, id, result: Ok(result) },
            EventKind::TaskFailed { id, failure } => MessageKind::TaskDone { generation, id, result: Err(failure) },
            EventKind::SubCompleted { id, result } => MessageKind::SubDone { generation, id, result: Ok(result) },
            EventKind::SubFailed { id, failure } => MessageKind::SubDone { generation, id, result: Err(failure) },
            EventKind::OperationCompleted { id, result } => {
                MessageKind::Operated { generation, id, result: Ok(result) }
            }
            EventKind::OperationFailed { id, failure } => {
                MessageKind::Operated { generation, id, result: Err(failure) }
            }
            EventKind::LockGranted { id } => {
                let (_, entities) = open_locks(execution).into_iter().find(|(lock, _)| *lock == id)?;
                MessageKind::Locked { generation, id, entities }
            }
            EventKind::EventRaised { name, data } => MessageKind::Raise { name, data },
            EventKind::Suspended { reason } => MessageKind::Suspend { reason },
            EventKind::Resumed { reason } => MessageKind::Resume { reason },
            // A timer fires again when the history is looked at again.
            _ => return None,
        })
    }

    /// Takes back that an execution has begun.
    fn unbegin(&mut self, handle: u64) {
        let generation = self.table.running(handle).generation;
        self.table.set_status(handle, crate::client::Status::Pending);
        *self.table.running_mut(handle) = Execution::pending(generation);
        self.log.frame.numbered(handle, generation);
    }

    fn keep(&mut self, message: Message) -> u64 {
        self.defer_until(KEPT, message)
    }

    /// Keeps a message for a parked orchestration; gives it back if its receiver is not parked, or it is for the
    /// engine.
    pub(super) fn keep_if_parked(&mut self, message: Message) -> Option<Message> {
        let execution = match message.kind {
            MessageKind::SubDone { generation, .. }
            | MessageKind::TaskDone { generation, .. }
            | MessageKind::Operated { generation, .. }
            | MessageKind::Locked { generation, .. } => Some(generation),
            MessageKind::Raise { .. } => None,
            _ => return Some(message),
        };
        if self.table.handle(&message.to).is_some_and(|handle| self.table.is_execution_parked(handle, execution)) {
            self.keep(message);
            return None;
        }
        Some(message)
    }

    /// The result of an activity of an orchestration that is parked.
    pub(super) fn keep_result(&mut self, task: TaskKey, result: Result<Payload, Failure>) {
        let to = self.table.known(task.handle).id.clone();
        let kind = MessageKind::TaskDone { generation: task.generation, id: task.id, result };
        self.keep(Message { to, kind });
    }

    /// Forgets messages kept for an orchestration that has ended.
    pub(super) fn forget_parked(&mut self, handle: u64) {
        if !self.table.is_parked(handle) {
            return;
        }
        self.log.frame.parked(handle, None);
        self.table.set_parked(handle, None);
        let id = &self.table.known(handle).id;
        if self.timers.drop_kept(id) {
            self.log.frame.dropped(id.as_str());
        }
    }

    /// Takes note of what recovery found for parked orchestrations, and gives the activities whose results are kept.
    pub(super) fn reopen_parked(&mut self) -> Vec<TaskKey> {
        let (mut done, mut due) = (Vec::new(), Vec::new());
        for (number, _, message) in self.timers.messages().filter(|(_, at, _)| *at == KEPT) {
            let Some(handle) = self.table.handle(&message.to).filter(|handle| self.table.is_parked(*handle)) else {
                due.push(number);
                continue;
            };
            if let MessageKind::TaskDone { generation, id, .. } = message.kind {
                done.push(TaskKey { handle, generation, id });
            }
        }
        due.into_iter().for_each(|number| self.timers.hurry(number, &self.table));
        self.work.retries = self.table.from(0).filter(|(_, instance)| instance.is_parked()).map(|(at, _)| at).collect();
        done
    }

    /// Tries the code of a parked orchestration; lets it go on if it fits.
    pub(super) fn retry(&mut self, handle: u64) {
        // It was terminated or purged before its turn came.
        let Some(instance) = self.table.get(handle).filter(|instance| instance.is_parked()) else { return };
        let id = instance.id.clone();
        let is_pending = instance.execution().is_some_and(|execution| execution.history.is_empty());
        let fits = if is_pending { self.can_begin(handle, &id) } else { self.replay_parked(handle) };
        if fits {
            self.unpark(handle);
        }
    }

    fn can_begin(&self, handle: u64, id: &InstanceId) -> bool {
        let message = self.timers.start_message(handle).expect("one that is parked before it begins keeps its start");
        let MessageKind::Start { name, version, .. } = &message.kind else { unreachable!("it is pending by a start") };
        let version = version.or_else(|| self.code.program.newest(name.as_str()));
        version.is_some_and(|version| self.code.program.cursor(id, name.as_str(), version).is_ok())
    }

    fn unpark(&mut self, handle: u64) {
        self.log.frame.parked(handle, None);
        self.table.set_parked(handle, None);
        self.timers_anew(handle);
        let id = self.table.known(handle).id.clone();
        for number in self.timers.take_kept(&id) {
            if self.is_full() {
                self.timers.hurry(number, &self.table);
                continue;
            }
            let message = self.timers.undefer(number).expect("what is kept for it waits until now");
            self.log.frame.undeferred(number);
            self.timers.start_delivered(handle, number);
            self.deliver(message);
        }
    }
}
