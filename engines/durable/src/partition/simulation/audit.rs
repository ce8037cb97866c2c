//! History of a hub by its disk, read frame by frame as it becomes durable, apart from the engine's own state.
//!
//! Everything that shows outside is compared with it, and so are the frames with each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::codec::{Entry, Events, read_frame};
use crate::event::EventKind;
use crate::failure::FailureKind;
use crate::ids::{InstanceId, PartitionId, Time};
use crate::message::{Message, MessageKind};
use crate::partition::input::{Effect, TaskKey};
use crate::partition::simulation::code::{BROKEN, Note, Script, Token};
use crate::partition::simulation::disk::Payloads;
use crate::partition::simulation::node::Setting;
use crate::payload::Payload;
use crate::program::ActivityCall;
use crate::store::Store;

/// The state of all partitions by their logs.
pub(super) struct Audit {
    books: Vec<Book>,
    /// Whether a step may fail because it does too much.
    has_step_limit: bool,
    /// Executions that failed because of that.
    pub(super) oversized: u64,
    /// Scripts that began, and where.
    pub(super) begun: BTreeMap<String, (PartitionId, ExecutionKey)>,
    /// Instances that have ever begun.
    pub(super) beginnings: BTreeSet<InstanceId>,
    /// Scripts that orchestrations have started, and as whom.
    pub(super) promised: BTreeMap<String, InstanceId>,
    /// Notes that instances have sent to ledgers.
    pub(super) sent_notes: BTreeMap<Token, InstanceId>,
    /// Events that orchestrations were given.
    pub(super) raised: BTreeSet<Token>,
    /// Events that were kept until an orchestration would begin.
    pub(super) deferred: BTreeSet<Token>,
}

/// A number of an instance on its partition, and one of its executions.
pub(super) type ExecutionKey = (u64, u64);

/// The state of one partition by its log.
#[derive(Default)]
struct Book {
    ids: HashMap<u64, InstanceId>,
    handles: HashMap<InstanceId, u64>,
    executions: BTreeMap<ExecutionKey, Execution>,
    present: HashMap<u64, u64>,
    last: HashMap<u64, Time>,
    sent: BTreeMap<PartitionId, Vec<Message>>,
    taken: BTreeMap<PartitionId, u64>,
    ran: BTreeSet<(u64, u64, u32)>,
}

#[derive(Default)]
struct Execution {
    is_ended: bool,
    tasks: BTreeMap<u32, Payload>,
    completed: BTreeSet<u32>,
    timers: BTreeMap<u32, Time>,
    heard: HashMap<String, u32>,
}

impl Audit {
    pub(super) fn new(setting: &Setting) -> Self {
        let books = (0..setting.partitions).map(|_| Book::default()).collect();
        Self {
            books,
            has_step_limit: setting.step_bytes.is_some(),
            oversized: 0,
            begun: BTreeMap::new(),
            beginnings: BTreeSet::new(),
            promised: BTreeMap::new(),
            sent_notes: BTreeMap::new(),
            raised: BTreeSet::new(),
            deferred: BTreeSet::new(),
        }
    }

    fn book(&mut self, partition: PartitionId) -> &mut Book {
        &mut self.books[usize::from(partition.0)]
    }

    /// Reads a frame that has just become durable.
    pub(super) fn frame(&mut self, partition: PartitionId, frame: &[u8], store: &dyn Store) {
        let mut entries = Vec::new();
        let mut visit = |_, entry| {
            entries.push(entry);
            Ok(())
        };
        read_frame(frame, &mut Payloads(store), &mut visit).expect("a frame of our own");
        for entry in entries {
            self.entry(partition, entry, store);
        }
    }

    fn entry(&mut self, partition: PartitionId, entry: Entry<'_>, store: &dyn Store) {
        match entry {
            Entry::Created { handle, id, .. } => self.book(partition).created(handle, InstanceId::trusted(id)),
            Entry::Appended { handle, events } => self.events(partition, handle, events, store),
            Entry::Restarted { handle, events, .. } => {
                self.book(partition).last.remove(&handle);
                self.events(partition, handle, events, store);
            }
            Entry::Sent { to, sequence, message } => {
                let sent = self.book(partition).sent.entry(to).or_default();
                sent.push(message);
                assert_eq!(sequence, sent.len() as u64, "{partition} numbers its messages to {to} with a gap");
            }
            Entry::Consumed { from, up_to } => {
                let durable = self.book(from).sent.get(&partition).map_or(0, Vec::len);
                assert!(up_to <= durable as u64, "{partition} took {up_to} of {from}, where {durable} are durable");
                let before = self.book(partition).taken.insert(from, up_to);
                assert!(before < Some(up_to), "{partition} took {up_to} of {from} after {before:?}");
            }
            Entry::Deferred { message: Message { kind: MessageKind::Raise { data, .. }, .. }, .. } => {
                self.deferred.insert(data.decode().expect("a token"));
            }
            Entry::Purged { handle } => self.book(partition).purged(handle),
            _ => {}
        }
    }

    fn events(&mut self, partition: PartitionId, handle: u64, bytes: &[u8], store: &dyn Store) {
        let mut payloads = Payloads(store);
        let previous = self.book(partition).last.get(&handle).copied().unwrap_or(Time(0));
        for event in Events::new(bytes, previous, &mut payloads) {
            let event = event.expect("a history of our own");
            let before = self.book(partition).last.insert(handle, event.time);
            let is_later = before.is_none_or(|before| before.followed_by(event.time) == event.time);
            assert!(is_later, "time went back in the history of {handle} of {partition}");
            self.event(partition, handle, event.time, event.kind);
        }
    }

    fn event(&mut self, partition: PartitionId, handle: u64, time: Time, kind: EventKind) {
        if let EventKind::Started { generation, input, .. } = &kind {
            return self.started(partition, (handle, *generation), input);
        }
        let book = self.book(partition);
        let key = (handle, book.present[&handle]);
        let what = format!("{} {key:?} of {partition}", book.ids[&handle]);
        let ran = matches!(kind, EventKind::TaskCompleted { id, .. } | EventKind::TaskFailed { id, .. }
            if book.ran.contains(&(key.0, key.1, id)));
        let execution = book.executions.get_mut(&key).expect("it has started");
        assert!(!execution.is_ended, "{what} goes on after its end with {kind:?}");
        execution.is_ended = kind.is_end();
        match kind {
            EventKind::TaskScheduled { id, input, .. } => {
                execution.tasks.insert(id, input);
            }
            EventKind::TaskCompleted { id, .. } | EventKind::TaskFailed { id, .. } => {
                assert!(ran, "{what} has a result of activity {id}, which never ran");
                assert!(execution.completed.insert(id), "{what} has two results of activity {id}");
            }
            EventKind::TimerCreated { id, at } => {
                execution.timers.insert(id, at);
            }
            EventKind::TimerFired { id } => {
                let at = execution.timers[&id];
                assert!(time >= at, "timer {id} of {what} fired at {time:?}, before {at:?}");
            }
            EventKind::EventRaised { data, .. } => {
                let token: Token = data.decode().expect("a token");
                let before = execution.heard.insert(token.sender.clone(), token.number);
                assert!(before < Some(token.number), "{what} hears {token:?} after {before:?}");
                self.raised.insert(token);
            }
            EventKind::EntityCalled { entity, operation, input, .. }
            | EventKind::EntitySignalled { entity, operation, input, .. }
                if operation.as_str() == "Note" =>
            {
                let note: Note = input.decode().expect("a note");
                let before = self.sent_notes.insert(note.token, entity.instance().clone());
                assert!(before.is_none(), "{what} sent a note twice");
            }
            EventKind::SubScheduled { instance, input, .. } => {
                let script: Script = input.decode().expect("a script");
                self.promised.insert(script.beginning(), instance);
            }
            EventKind::Failed { failure } => {
                let is_too_much = failure.kind == FailureKind::Limit && self.has_step_limit;
                self.oversized += u64::from(is_too_much);
                let is_meant = failure.kind == FailureKind::Application && !failure.message.starts_with(BROKEN);
                assert!(is_meant || is_too_much, "{what} failed: {failure:?}");
            }
            _ => {}
        }
    }

    fn started(&mut self, partition: PartitionId, key: ExecutionKey, input: &Payload) {
        let script: Script = input.decode().expect("a script");
        let book = self.book(partition);
        book.present.insert(key.0, key.1);
        let before = book.executions.insert(key, Execution::default());
        assert!(before.is_none(), "{key:?} of {partition} started twice");
        let id = book.ids[&key.0].clone();
        self.beginnings.insert(id);
        let before = self.begun.insert(script.beginning(), (partition, key));
        assert!(before.is_none(), "{} started twice, as {before:?} and {key:?} of {partition}", script.beginning());
    }

    /// Takes note that an activity has run to its end.
    pub(super) fn ran(&mut self, partition: PartitionId, TaskKey { handle, generation, id }: TaskKey) {
        self.book(partition).ran.insert((handle, generation, id));
    }

    /// Checks an effect that leaves a partition against the durable state there.
    pub(super) fn leaves(&mut self, from: PartitionId, effect: &Effect, may_run_ahead: impl Fn(&ActivityCall) -> bool) {
        match effect {
            Effect::Send { to, first, messages } => {
                let durable = self.book(from).sent.entry(*to).or_default();
                for (sequence, message) in (*first..).zip(messages) {
                    let kept = durable.get(sequence as usize - 1);
                    assert_eq!(
                        kept,
                        Some(message),
                        "message {sequence} from {from} to {to} is not durable as it leaves"
                    );
                }
            }
            Effect::Acknowledge { to, up_to } => {
                let durable = self.book(from).taken.get(to).copied().unwrap_or(0);
                assert!(*up_to <= durable, "{from} acknowledges {up_to} of {to}, where {durable} are durably taken");
            }
            Effect::Run(key, call) if !may_run_ahead(call) => {
                let execution = self.book(from).executions.get(&(key.handle, key.generation));
                let input = execution.and_then(|execution| execution.tasks.get(&key.id));
                assert_eq!(input, Some(&call.input), "activity {key:?} of {from} starts, which is not durable");
            }
            _ => {}
        }
    }

    /// Executions that have not ended, of instances that are still there.
    pub(super) fn open(&self) -> Vec<String> {
        self.books.iter().enumerate().flat_map(|(at, book)| book.open(at)).collect()
    }
}

impl Book {
    /// Executions of partition `at` that have not ended.
    fn open(&self, at: usize) -> Vec<String> {
        let open = self.executions.iter().filter(|(_, execution)| !execution.is_ended);
        open.map(|((handle, generation), _)| format!("{handle}/{generation} of {at}: {:?}", self.ids.get(handle)))
            .collect()
    }

    fn created(&mut self, handle: u64, id: InstanceId) {
        let before = self.handles.insert(id.clone(), handle);
        assert!(before.is_none(), "{id} is created as {handle} and as {before:?}");
        self.ids.insert(handle, id);
    }

    fn purged(&mut self, handle: u64) {
        if let Some(id) = self.ids.get(&handle) {
            let found = self.handles.remove(id);
            assert_eq!(found, Some(handle), "{id} is forgotten, which is another by now");
        }
    }
}
