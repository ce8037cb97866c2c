//! World outside of the partitions: messages on their way, activities, responses, snapshots.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use tokio::sync::oneshot;

use crate::error::Error;
use crate::hub::keeper::spent;
use crate::ids::{PartitionId, Position};
use crate::message::Message;
use crate::options::Mode;
use crate::partition::input::{Effect, Input, Response};
use crate::partition::simulation::node::Node;
use crate::partition::simulation::workload::Wish;
use crate::partition::simulation::world::World;
use crate::partition::snapshot::FinishedSnapshot;
use crate::program::ActivityCall;
use crate::store::{Batching, Store};

/// A request whose response has not come.
pub(super) struct PendingRequest {
    pub(super) number: u64,
    pub(super) to: PartitionId,
    pub(super) wish: Wish,
    /// Position that has to be durable before the response; known once the request has been taken.
    pub(super) needs: Option<Position>,
    /// An event for an orchestration that ran before and after it was taken: it must be there.
    pub(super) must_be_heard: bool,
    pub(super) response: oneshot::Receiver<Result<Response, Error>>,
}

/// Tasks of the thread for snapshots.
pub(super) enum Chore {
    Keep(PartitionId, String, Vec<u8>),
    Finish(PartitionId, Box<FinishedSnapshot>),
    Cut(PartitionId, Position),
    Delete(String),
}

/// The way of messages from one partition to another. Acknowledgements and reports of gaps go another way than messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Way {
    pub(super) from: PartitionId,
    pub(super) to: PartitionId,
    pub(super) is_response: bool,
}

impl World {
    /// Carries out the effects of a partition.
    pub(super) fn carry_out(&mut self, at: usize) {
        let effects = std::mem::take(self.nodes[at].partition.effects());
        let from = self.nodes[at].id;
        let is_speculative = self.setting.options.mode == Mode::Speculative;
        for effect in effects {
            let program = &self.program;
            let may_run_ahead = |call: &ActivityCall| is_speculative && program.is_idempotent(call.name.as_str());
            self.audit.leaves(from, &effect, may_run_ahead);
            match effect {
                Effect::Run(key, call) => self.tasks.push((from, key, call)),
                Effect::Send { to, first, messages } => {
                    self.hand_over(Way { from, to, is_response: false }, first, messages);
                }
                Effect::Acknowledge { to, up_to } => {
                    let way = self.ways.entry(Way { from, to, is_response: true }).or_default();
                    way.push_back(Input::Acknowledged { by: from, up_to });
                }
                Effect::Probe { to, up_to } => {
                    let way = self.ways.entry(Way { from, to, is_response: false }).or_default();
                    way.push_back(Input::Probe { from, up_to });
                }
                Effect::Missing { to, first, before } => {
                    self.trace.step(format!("{from} misses {first} to {before} of {to}"));
                    let way = self.ways.entry(Way { from, to, is_response: true }).or_default();
                    way.push_back(Input::Missing { by: from, first, before });
                }
                Effect::Respond(reply, response) => drop(reply.send(response)),
                Effect::Keep(name, bytes) => self.chores.push_back(Chore::Keep(from, name, bytes)),
                Effect::Finish(finished) => self.finish_snapshot(from, finished),
            }
        }
        self.take_responses();
    }

    fn hand_over(&mut self, way: Way, first: u64, messages: Vec<Message>) {
        self.trace.step(format!("{} to {}: messages {first} and on, {} of them", way.from, way.to, messages.len()));
        let from = way.from;
        let way = self.ways.entry(way).or_default();
        match self.setting.batching {
            Batching::Group => way.push_back(Input::Messages { from, first, messages }),
            Batching::EachStep => way.extend((first..).zip(messages).map(|(first, message)| {
                let messages = vec![message];
                Input::Messages { from, first, messages }
            })),
        }
    }

    /// Takes responses in. They are looked for at once, so state that is durable now was durable as they were sent.
    pub(super) fn take_responses(&mut self) {
        for mut pending in std::mem::take(&mut self.pending) {
            match pending.response.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => self.pending.push(pending),
                Err(oneshot::error::TryRecvError::Closed) => self.unknown.push(pending.wish),
                Ok(response) => self.responded(&pending, response),
            }
        }
    }

    fn responded(&mut self, pending: &PendingRequest, response: Result<Response, Error>) {
        let durable = self.disk.end(pending.to);
        let needs = pending.needs.expect("it was taken");
        assert!(needs <= durable, "request {} gets its response before it is durable: {durable:?}", pending.number);
        match (&response, &pending.wish) {
            (Err(Error::Closed | Error::Stopped { .. }), wish) => self.unknown.push(wish.clone()),
            (Ok(Response::View(Some(view))), Wish::Wait { id }) => {
                assert!(view.status.is_ended(), "waiters were told, but {id} is {:?}", view.status);
            }
            (Ok(Response::Done), Wish::Raise { to, token }) => {
                let is_kept = self.audit.raised.contains(token) || self.audit.deferred.contains(token);
                assert!(is_kept || !pending.must_be_heard, "event {token:?} of {to} is acknowledged and lost");
            }
            (Ok(Response::Each(results)), Wish::Each(wishes)) => {
                let done = wishes.iter().zip(results).filter(|(_, result)| result.is_ok());
                self.acknowledged.extend(done.map(|(wish, _)| (pending.to, wish.clone())));
            }
            (Ok(_), wish) => self.acknowledged.push((pending.to, wish.clone())),
            _ => {}
        }
        self.trace.step(format!("response {}: {response:?}", pending.number).chars().take(300).collect());
    }

    pub(super) fn deliver(&mut self) -> bool {
        let ways: Vec<Way> = self.ways.iter().filter(|(_, lots)| !lots.is_empty()).map(|(way, _)| *way).collect();
        if ways.is_empty() {
            return false;
        }
        let way = self.chance.pick(&ways);
        let Some(input) = self.ways.get_mut(&way).and_then(VecDeque::pop_front) else { return false };
        if self.loses(way) {
            self.trace.step(format!("{way:?} loses something"));
            return true;
        }
        self.trace.step(format!("{way:?} delivers"));
        if let Input::Messages { from, first, messages } = &input
            && self.chance.one_in(10)
        {
            let (from, first, messages) = (*from, *first, messages.clone());
            self.ways.entry(way).or_default().push_back(Input::Messages { from, first, messages });
        }
        let node = &mut self.nodes[usize::from(way.to.0)];
        if node.is_up {
            node.inbox.push_back((None, input));
        }
        true
    }

    pub(super) fn run_activity(&mut self) -> bool {
        if self.tasks.is_empty() {
            return false;
        }
        let drawn = self.chance.below(self.tasks.len());
        let (at, key, call) = self.tasks.swap_remove(drawn);
        let mut run = self.program.run(call);
        let Poll::Ready(result) = run.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { return true };
        self.audit.ran(at, key);
        self.trace.step(format!("activity {key:?} of {at} has run: {}", result.is_ok()));
        let node = &mut self.nodes[usize::from(at.0)];
        if node.is_up {
            node.inbox.push_back((None, Input::TaskDone { task: key, result }));
        }
        true
    }

    fn finish_snapshot(&mut self, of: PartitionId, finished: FinishedSnapshot) {
        assert!(finished.before <= self.disk.end(of), "a snapshot of {of} is finished before it is durable");
        self.chores.push_back(Chore::Finish(of, Box::new(finished)));
    }

    /// Does a step of the thread for snapshots, which may fail.
    pub(super) fn chore(&mut self) -> bool {
        let Some(chore) = self.chores.pop_front() else { return false };
        self.trouble(30);
        match chore {
            Chore::Keep(of, name, bytes) => {
                self.trace.step(format!("{name} is kept"));
                self.trace.bytes(&bytes);
                if self.disk.put_blob(&name, &bytes).is_err() {
                    self.snapshots_failed.insert(of);
                }
            }
            Chore::Finish(of, finished) => self.keep_list(of, &finished),
            Chore::Cut(of, before) => {
                let at = usize::from(of.0);
                if self.nodes[at].is_up && self.disk.cut(of, before).is_err() {
                    self.stop(at);
                }
            }
            // A blob that cannot be deleted now is deleted with the next snapshot.
            Chore::Delete(name) => drop(self.disk.delete_blob(&name)),
        }
        self.disk.machine.no_trouble();
        true
    }

    fn keep_list(&mut self, of: PartitionId, finished: &FinishedSnapshot) {
        if self.snapshots_failed.remove(&of) || self.disk.put_blob(&finished.name, &finished.list).is_err() {
            return self.trace.step(format!("a snapshot of {of} is given up"));
        }
        self.tally.snapshots += 1;
        self.chores.push_back(Chore::Cut(of, finished.before));
        self.chores.extend(spent(&*self.disk, finished).into_iter().map(Chore::Delete));
    }

    /// Whether nothing is on its way.
    pub(super) fn is_still(&self) -> bool {
        let is_idle = |node: &Node| node.inbox.is_empty() && node.waiting.is_empty() && node.under_way.is_empty();
        let nothing_due = |node: &Node| node.end_seen == self.disk.end(node.id) && !node.partition.is_busy();
        self.tasks.is_empty()
            && self.chores.is_empty()
            && self.ways.values().all(VecDeque::is_empty)
            && self.nodes.iter().all(|node| is_idle(node) && nothing_due(node))
    }
}
