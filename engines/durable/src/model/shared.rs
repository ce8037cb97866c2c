//! State that an execution and the futures of its code share: decisions on their way out, results on their way in.
//!
//! An open decision has a slot by its number; slots of the oldest decisions go away as they are closed, so a slot is
//! found by subtraction. User code never runs while the state is borrowed.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Poll;

use crate::event::{EventKind, Version};
use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, InstanceId, Name, Time};
use crate::model::mailbox::Mailbox;
use crate::model::scope::Branch;
use crate::payload::Payload;

/// The most decisions of one execution. An orchestration that goes on for longer continues as new.
pub const DECISIONS_MAX: u32 = 1 << 20;

/// The state of one execution that its futures share.
pub(super) struct Shared {
    pub(super) instance: InstanceId,
    pub(super) name: Name,
    pub(super) version: Version,
    state: RefCell<State>,
}

/// State that changes from event to event.
#[derive(Default)]
pub(super) struct State {
    pub(super) generation: u64,
    /// The time of the last event that was fed.
    pub(super) now: Time,
    /// The code is being polled; else nothing is decided, whatever is dropped or called.
    pub(super) is_polling: bool,
    pub(super) is_replaying: bool,
    /// Something of this execution was found waiting since this was last set to `false`.
    pub(super) is_waiting: bool,
    pub(super) decisions: Vec<EventKind>,
    decided: u32,
    /// The number of the first slot.
    first: u32,
    slots: VecDeque<Slot>,
    /// The branch of a join or select that is being polled.
    pub(super) branch: Option<Branch>,
    pub(super) mailbox: Option<Box<Mailbox>>,
    /// Input of the next generation, if the code has requested one.
    pub(super) next: Option<Payload>,
    /// Why the execution cannot go on.
    pub(super) fatal: Option<Box<Failure>>,
    /// The critical section: requested, or held.
    pub(super) lock: Option<HeldLock>,
    /// How many random numbers were drawn.
    pub(super) draws: u64,
    /// Bytes of values that wait here, and of branches.
    pub(super) bytes: usize,
}

/// The entities of a critical section.
pub(super) struct HeldLock {
    pub(super) entities: Vec<EntityId>,
    pub(super) is_granted: bool,
}

/// Sort of result that a decision waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Task,
    Timer,
    Sub,
    Operation,
    Lock,
}

enum Slot {
    Closed,
    Open(Wait, Option<Branch>),
    Completed(Payload),
    Failed(Box<Failure>),
}

/// Fate of an outside event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It is not awaited.
    Refused,
    /// It is kept until the code requests it.
    Kept,
    /// Something that the code awaits is there.
    Woken,
}

impl Shared {
    pub(super) fn new(instance: InstanceId, name: Name, version: Version) -> Rc<Self> {
        Rc::new(Self { instance, name, version, state: RefCell::default() })
    }

    pub(super) fn state(&self) -> Ref<'_, State> {
        self.state.borrow()
    }

    pub(super) fn state_mut(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    /// Takes a decision that gets a result.
    pub(super) fn schedule(self: &Rc<Self>, wait: Wait, decision: impl FnOnce(u32) -> EventKind) -> Ticket {
        let mut state = self.state.borrow_mut();
        let id = state.number(decision);
        if id != u32::MAX {
            state.slots.push_back(Slot::Open(wait, None));
        }
        drop(state);
        Ticket { shared: Rc::clone(self), id }
    }

    /// Takes a decision that gets no result.
    pub(super) fn tell(&self, decision: impl FnOnce(u32) -> EventKind) {
        let mut state = self.state.borrow_mut();
        if state.number(decision) == u32::MAX {
            return;
        }
        if state.slots.is_empty() {
            state.first = state.decided;
        } else {
            state.slots.push_back(Slot::Closed);
        }
    }

    /// Takes a decision that has no number of its own. Outside of a poll, when the execution is dropped, it takes none.
    pub(super) fn note(&self, decision: EventKind) {
        let mut state = self.state.borrow_mut();
        if state.is_polling {
            state.decisions.push(decision);
        }
    }

    /// The identifier of the sub-orchestration that the next decision starts.
    pub(super) fn next_sub(&self) -> Result<InstanceId, Failure> {
        let state = self.state();
        let text = format!("{}:{}:{}", self.instance, state.generation, state.decided);
        InstanceId::new(text).map_err(|error| {
            let hint = "sub-orchestrations of sub-orchestrations need identifiers of their own";
            Failure::new(FailureKind::Limit, format!("{error}; {hint}"))
        })
    }

    /// The failure of code that awaits a future that is not its context's.
    pub(super) fn foreign(&self) -> Failure {
        let text = format!(
            "orchestration {} awaits something that is not of its context, after {} decisions; leave sleeping, input, \
             output and channels to activities, timers and events",
            self.name,
            self.state().decided
        );
        Failure::new(FailureKind::ForeignAwait, text)
    }

    /// A timer from now on.
    pub(super) fn alarm(self: &Rc<Self>, after: std::time::Duration) -> Ticket {
        let at = self.state().now.plus(after);
        self.schedule(Wait::Timer, |id| EventKind::TimerCreated { id, at })
    }
}

impl State {
    /// Numbers a decision and writes it down. `u32::MAX` if none can be taken any more.
    fn number(&mut self, decision: impl FnOnce(u32) -> EventKind) -> u32 {
        if !self.is_polling {
            return u32::MAX;
        }
        if self.decided >= DECISIONS_MAX {
            let text = format!("more than {DECISIONS_MAX} decisions in one execution; continue as new before that");
            self.fatal.get_or_insert_with(|| Box::new(Failure::new(FailureKind::Limit, text)));
            return u32::MAX;
        }
        let id = self.decided;
        self.decided += 1;
        if self.slots.is_empty() {
            self.first = id;
        }
        self.decisions.push(decision(id));
        id
    }

    /// Whether an outside event completes an open decision, or needs none.
    pub(super) fn accepts(&self, kind: &EventKind) -> bool {
        match completion(kind) {
            Some((id, wait, _)) => self.is_open(id, wait),
            None => matches!(kind, EventKind::EventRaised { .. }),
        }
    }

    fn is_open(&self, id: u32, wait: Wait) -> bool {
        matches!(self.slots.get(place(id, self.first)), Some(Slot::Open(found, _)) if *found == wait)
    }

    /// Puts an outside event where the code finds it.
    pub(super) fn deliver(&mut self, kind: &EventKind) -> Delivery {
        if let EventKind::EventRaised { name, data } = kind {
            self.bytes += data.len();
            let is_awaited = self.mailbox.get_or_insert_default().put(name.clone(), data.clone());
            return if is_awaited { Delivery::Woken } else { Delivery::Kept };
        }
        let Some((id, wait, result)) = completion(kind) else { return Delivery::Refused };
        if !self.is_open(id, wait) {
            return Delivery::Refused;
        }
        let filled = match result {
            Ok(Some(payload)) => Slot::Completed(payload.clone()),
            Ok(None) => Slot::Completed(Payload::EMPTY),
            Err(failure) => Slot::Failed(Box::new(failure.clone())),
        };
        self.bytes += filled.bytes();
        let slot = &mut self.slots[place(id, self.first)];
        if let Slot::Open(_, Some(branch)) = slot {
            branch.wake();
        }
        *slot = filled;
        Delivery::Woken
    }

    /// Notes that something waits, in the branch that is being polled.
    pub(super) fn wait(&mut self) -> Option<Branch> {
        self.is_waiting = true;
        self.branch.clone()
    }

    fn trim(&mut self) {
        while matches!(self.slots.front(), Some(Slot::Closed)) {
            self.slots.pop_front();
            self.first += 1;
        }
    }

    /// About how many bytes it holds beside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes + self.slots.capacity() * size_of::<Slot>()
    }
}

impl Slot {
    fn bytes(&self) -> usize {
        match self {
            Self::Completed(payload) => payload.len(),
            Self::Failed(failure) => {
                size_of::<Failure>() + failure.message.len() + failure.details.as_ref().map_or(0, Payload::len)
            }
            Self::Closed | Self::Open(..) => 0,
        }
    }
}

fn place(id: u32, first: u32) -> usize {
    id.checked_sub(first).map_or(usize::MAX, |place| place as usize)
}

type Completion<'a> = (u32, Wait, Result<Option<&'a Payload>, &'a Failure>);

fn completion(kind: &EventKind) -> Option<Completion<'_>> {
    Some(match kind {
        EventKind::TaskCompleted { id, result } => (*id, Wait::Task, Ok(Some(result))),
        EventKind::TaskFailed { id, failure } => (*id, Wait::Task, Err(failure)),
        EventKind::TimerFired { id } => (*id, Wait::Timer, Ok(None)),
        EventKind::SubCompleted { id, result } => (*id, Wait::Sub, Ok(Some(result))),
        EventKind::SubFailed { id, failure } => (*id, Wait::Sub, Err(failure)),
        EventKind::OperationCompleted { id, result } => (*id, Wait::Operation, Ok(Some(result))),
        EventKind::OperationFailed { id, failure } => (*id, Wait::Operation, Err(failure)),
        EventKind::LockGranted { id } => (*id, Wait::Lock, Ok(None)),
        _ => return None,
    })
}

/// An open decision. Dropped before its result, it closes the slot: a timer is cancelled, other results are refused.
pub(super) struct Ticket {
    shared: Rc<Shared>,
    id: u32,
}

impl Ticket {
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Takes the result, once.
    pub(super) fn poll(&self) -> Poll<Result<Payload, Failure>> {
        let mut state = self.shared.state.borrow_mut();
        let state = &mut *state;
        let Some(slot) = state.slots.get_mut(place(self.id, state.first)) else { return Poll::Pending };
        if let Slot::Open(_, branch) = slot {
            state.is_waiting = true;
            branch.clone_from(&state.branch);
            return Poll::Pending;
        }
        let slot = std::mem::replace(slot, Slot::Closed);
        state.bytes -= slot.bytes();
        state.trim();
        match slot {
            Slot::Completed(payload) => Poll::Ready(Ok(payload)),
            Slot::Failed(failure) => Poll::Ready(Err(*failure)),
            Slot::Closed | Slot::Open(..) => Poll::Pending,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.shared.state.borrow_mut();
        let state = &mut *state;
        let Some(slot) = state.slots.get_mut(place(self.id, state.first)) else { return };
        let slot = std::mem::replace(slot, Slot::Closed);
        state.bytes -= slot.bytes();
        state.trim();
        if state.is_polling && matches!(slot, Slot::Open(Wait::Timer, _)) {
            state.decisions.push(EventKind::TimerCancelled { id: self.id });
        }
    }
}
