//! The threads that run activities.
//!
//! A thread takes the next activity and polls it once where it stands; most end there and cost no task and no further
//! hop. What is not ready goes on as a task of the hub's runtime. Activities may block: when what waits has not moved
//! for a while, further threads, up to a bound, take it up and end once nothing waits.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::error::Error;
use crate::failure::{Failure, FailureKind};
use crate::hub::fence::Fence;
use crate::hub::inbox::Inbox;
use crate::ids::PartitionId;
use crate::partition::{Input, Reply, Response, TaskKey};
use crate::payload::{PAYLOAD_BYTES_MAX, Payload};
use crate::program::{ActivityCall, ActivityFuture, Program};

/// Threads beyond the hub's own that make up for blocked ones.
const RELIEF_MAX: usize = 64;
/// How long what waits may stand still before a further thread comes.
const STANDSTILL: Duration = Duration::from_millis(50);

/// Purpose of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    /// It stays as long as the hub is open.
    Regular,
    /// It ends once nothing waits.
    Relief,
}

/// An activity that is to run, and for whom.
pub(crate) struct Task {
    pub(super) whom: Whom,
    pub(super) call: ActivityCall,
}

/// Who waits for the result of an activity.
pub(super) enum Whom {
    /// A partition of this process in its present run; a later run of it is another one.
    Partition(PartitionId, Arc<Inbox>, TaskKey),
    /// Another node.
    Node(Reply),
}

impl Whom {
    fn is_gone(&self) -> bool {
        match self {
            Self::Partition(_, inbox, _) => inbox.is_closed(),
            Self::Node(reply) => reply.is_closed(),
        }
    }

    /// Stops the partition of this node, because the node has lost its lease.
    fn lapse(&self) {
        if let Self::Partition(partition, inbox, _) = self {
            // The partition does not wait for activities that were not begun: it stops, and is recovered.
            inbox.fail(Fence::error(*partition));
        }
    }

    fn end(self, result: Result<Payload, Failure>) {
        let result = match result {
            Ok(payload) if payload.len() > PAYLOAD_BYTES_MAX => {
                let text =
                    format!("an activity returned {} bytes, expected at most {PAYLOAD_BYTES_MAX}", payload.len());
                Err(Failure::new(FailureKind::Payload, text))
            }
            result => result,
        };
        match self {
            // Of a partition that has stopped, the activity runs again when it is opened again.
            Self::Partition(_, inbox, task) => drop(inbox.push(Input::TaskDone { task, result })),
            // One that does not wait any more has run it elsewhere.
            Self::Node(reply) => drop(reply.send(result.map(Response::Ran).map_err(Error::Failed))),
        }
    }
}

impl Task {
    /// Activity to run.
    pub(crate) fn call(&self) -> &ActivityCall {
        &self.call
    }

    /// Hands over the result.
    pub(crate) fn end(self, result: Result<Payload, Failure>) {
        self.whom.end(result);
    }
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    idle: usize,
    /// How many activities threads have taken up.
    taken: u64,
    relief: usize,
    is_closed: bool,
}

/// State of the queue, as the watch finds it.
enum Backlog {
    Waits,
    Empty,
    Closed,
}

/// Activities that wait for a thread. Bounded by what partitions may have under way.
pub(super) struct Activities {
    queue: Mutex<Queue>,
    bell: Condvar,
    /// Rung when more wait than threads are idle.
    backlog: Notify,
    program: Arc<dyn Program>,
    fence: Option<Arc<Fence>>,
    runtime: Handle,
}

impl Activities {
    pub(super) fn new(program: Arc<dyn Program>, fence: Option<Arc<Fence>>, runtime: Handle) -> Self {
        Self { queue: Mutex::default(), bell: Condvar::new(), backlog: Notify::new(), program, fence, runtime }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts activities in.
    pub(super) fn push(&self, tasks: &mut Vec<Task>) {
        if tasks.is_empty() {
            return;
        }
        let mut queue = self.lock();
        queue.tasks.extend(tasks.drain(..));
        let wake = queue.idle.min(queue.tasks.len());
        let has_backlog = queue.tasks.len() > queue.idle;
        drop(queue);
        if has_backlog {
            self.backlog.notify_one();
        }
        for _ in 0..wake {
            self.bell.notify_one();
        }
    }

    /// Queues a single activity.
    pub(super) fn put_back(&self, task: Task) {
        self.push(&mut vec![task]);
    }

    /// How many wait for a thread.
    pub(super) fn waiting(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Takes out those that would wait longest, at most so many, and none that run here for another node.
    pub(super) fn take_last(&self, most: usize) -> Vec<Task> {
        let mut queue = self.lock();
        let mut taken = Vec::new();
        while taken.len() < most && queue.tasks.back().is_some_and(|task| matches!(task.whom, Whom::Partition(..))) {
            taken.extend(queue.tasks.pop_back());
        }
        taken
    }

    /// Lets the threads end as soon as they have nothing in hand.
    pub(super) fn close(&self) {
        let mut queue = self.lock();
        queue.is_closed = true;
        queue.tasks.clear();
        drop(queue);
        self.bell.notify_all();
        self.backlog.notify_one();
    }

    /// Sends a further thread whenever what waits stands still; ends when the hub closes.
    pub(super) async fn watch(self: Arc<Self>) {
        loop {
            self.backlog.notified().await;
            let mut seen = self.lock().taken;
            loop {
                tokio::time::sleep(STANDSTILL).await;
                match self.look(&mut seen) {
                    Backlog::Waits => {}
                    Backlog::Empty => break,
                    Backlog::Closed => return,
                }
            }
        }
    }

    fn look(self: &Arc<Self>, seen: &mut u64) -> Backlog {
        let mut queue = self.lock();
        if queue.is_closed {
            return Backlog::Closed;
        }
        if queue.tasks.is_empty() {
            return Backlog::Empty;
        }
        let stands_still = queue.taken == *seen;
        *seen = queue.taken;
        if stands_still && queue.relief < RELIEF_MAX {
            let relief = Arc::clone(self);
            let thread = std::thread::Builder::new().name("activity-relief".to_owned());
            // Without room for a further thread, those there are go on alone.
            if thread.spawn(move || relief.work(Duty::Relief)).is_ok() {
                queue.relief += 1;
            }
        }
        Backlog::Waits
    }

    fn next(&self, duty: Duty) -> Option<Task> {
        let mut queue = self.lock();
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(task) = queue.tasks.pop_front() {
                queue.taken += 1;
                return Some(task);
            }
            if duty == Duty::Relief {
                queue.relief -= 1;
                return None;
            }
            queue.idle += 1;
            queue = self.bell.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    /// The life of one thread.
    pub(super) fn work(&self, duty: Duty) {
        let _context = self.runtime.enter();
        while let Some(Task { whom, call }) = self.next(duty) {
            if self.fence.as_ref().is_some_and(|fence| !fence.holds()) {
                whom.lapse();
            }
            if whom.is_gone() {
                continue;
            }
            let name = call.name.clone();
            let begun = catch_unwind(AssertUnwindSafe(|| {
                let mut run = self.program.run(call);
                match run.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(result) => ActivityStart::Ended(result),
                    Poll::Pending => ActivityStart::Waits(run),
                }
            }));
            match begun {
                Ok(ActivityStart::Ended(result)) => whom.end(result),
                Ok(ActivityStart::Waits(run)) => {
                    let guarded = PanicGuard { run, name: name.as_str().to_owned() };
                    self.runtime.spawn(async move { whom.end(guarded.await) });
                }
                Err(panic) => whom.end(Err(panicked(name.as_str(), &*panic))),
            }
        }
    }
}

enum ActivityStart {
    Ended(Result<Payload, Failure>),
    Waits(ActivityFuture),
}

/// A run whose panics are failures.
struct PanicGuard {
    run: ActivityFuture,
    name: String,
}

impl Future for PanicGuard {
    type Output = Result<Payload, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        catch_unwind(AssertUnwindSafe(|| this.run.as_mut().poll(context)))
            .unwrap_or_else(|panic| Poll::Ready(Err(panicked(&this.name, &*panic))))
    }
}

fn panicked(activity: &str, panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(FailureKind::Panic, format!("activity {activity} panicked: {}", text.unwrap_or("no message")))
}
