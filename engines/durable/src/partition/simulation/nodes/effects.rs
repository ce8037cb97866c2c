//! Effects of partitions: packets between nodes, activities, snapshots, and responses to those who asked.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::oneshot;

use super::cluster::Cluster;
use super::host::{Chore, Letter, Packet, Task};
use crate::error::Error;
use crate::hub::Fence;
use crate::hub::keeper::spent;
use crate::ids::{Epoch, PartitionId, Position};
use crate::options::Mode;
use crate::partition::input::{Effect, Input, Response};
use crate::partition::simulation::outside::PendingRequest;
use crate::partition::simulation::workload::Wish;
use crate::program::ActivityCall;
use crate::store::{Batching, Store as _};

impl Cluster {
    /// Carries out the effects of a partition, if its node may act.
    pub(super) fn carry_out(&mut self, n: usize, id: PartitionId) {
        let may_act = self.nodes[n].may_act_for(id, self.now);
        let host = self.nodes[n].hosts.get_mut(&id).expect("it runs here");
        let (epoch, durable) = (host.epoch, host.node.end_seen);
        let effects = std::mem::take(host.node.partition.effects());
        if effects.is_empty() {
            return;
        }
        if !may_act || host.failed.is_some() {
            if host.failed.is_none() {
                host.failed = Some(Fence::error(id));
                self.tally.lapsed += 1;
                self.trace.step(format!("{id} on {} finds the lease run out", self.nodes[n].name));
            }
            drop(effects);
            return self.take_responses(durable);
        }
        let is_speculative = self.setting.options.mode == Mode::Speculative;
        for effect in effects {
            let program = &self.program;
            let may_run_ahead = |call: &ActivityCall| is_speculative && program.is_idempotent(call.name.as_str());
            self.audit.leaves(id, &effect, may_run_ahead);
            self.do_one(n, id, epoch, effect);
        }
        self.take_responses(durable);
    }

    fn do_one(&mut self, n: usize, id: PartitionId, epoch: Epoch, effect: Effect) {
        match effect {
            Effect::Run(key, call) => self.nodes[n].tasks.push((id, epoch, key, call)),
            Effect::Send { to, first, messages } => match self.setting.batching {
                Batching::Group => self.post(n, to, Letter::Messages { from: id, first, messages }),
                Batching::EachStep => (first..).zip(messages).for_each(|(first, message)| {
                    self.post(n, to, Letter::Messages { from: id, first, messages: vec![message] });
                }),
            },
            Effect::Acknowledge { to, up_to } => self.post(n, to, Letter::Acknowledged { by: id, up_to }),
            Effect::Probe { to, up_to } => self.post(n, to, Letter::Probe { from: id, up_to }),
            Effect::Missing { to, first, before } => self.post(n, to, Letter::Missing { by: id, first, before }),
            Effect::Respond(reply, response) => drop(reply.send(response)),
            Effect::Keep(name, bytes) => self.nodes[n].chores.push_back(Chore::Keep(name, bytes)),
            Effect::Finish(finished) => self.nodes[n].chores.push_back(Chore::Finish(id, epoch, Box::new(finished))),
        }
    }

    /// Sends something to a partition: here, or where this node believes it to be.
    fn post(&mut self, n: usize, to: PartitionId, letter: Letter) {
        let node = &mut self.nodes[n];
        if node.hosts.contains_key(&to) {
            return node.put(to, letter.input());
        }
        let owner = node.steward.owners().get(usize::from(to.0)).and_then(|owner| owner.node.as_ref());
        let peers = node.steward.peers();
        let Some(peer) = owner.and_then(|owner| peers.get(owner)).filter(|peer| peer.run != node.run) else { return };
        self.ways.entry((node.run, peer.run)).or_default().push_back(Packet::To(to, Arc::new(letter)));
    }

    /// A packet arrives, is lost, or arrives and comes again. What is for a node that stands still waits.
    pub(super) fn deliver(&mut self) -> bool {
        let is_paused = |run: u64| self.nodes.iter().any(|node| node.run == run && node.is_paused);
        let ready = self.ways.iter().filter(|((_, to), packets)| !packets.is_empty() && !is_paused(*to));
        let ready: Vec<(u64, u64)> = ready.map(|(way, _)| *way).collect();
        if ready.is_empty() {
            return false;
        }
        let way = self.chance.pick(&ready);
        let packets = self.ways.get_mut(&way).expect("it is there");
        let Some(packet) = packets.pop_front() else { return false };
        if !self.is_calm && self.chance.one_in(6) {
            self.tally.lost += 1;
            self.trace.step(format!("a packet from n{} to n{} is lost", way.0, way.1));
            return true;
        }
        if !self.is_calm && self.chance.one_in(10) {
            self.tally.doubled += 1;
            packets.push_back(packet.clone());
        }
        let Some(node) = self.nodes.iter_mut().find(|node| node.run == way.1) else { return true };
        self.trace.step(format!("n{} has something from n{}", way.1, way.0));
        match packet {
            Packet::News => node.has_news = true,
            Packet::To(to, letter) => node.put(to, letter.input()),
        }
        true
    }

    pub(super) fn run_activity(&mut self, n: usize) -> bool {
        let (may_act, node) = (self.nodes[n].may_act(self.now), &mut self.nodes[n]);
        if node.tasks.is_empty() {
            return false;
        }
        let at = self.chance.below(node.tasks.len());
        let (id, epoch, key, call): Task = node.tasks.swap_remove(at);
        let host = node.hosts.get_mut(&id).filter(|host| host.epoch == epoch && host.failed.is_none());
        // Activities of a partition that has gone run elsewhere.
        let Some(host) = host else { return true };
        if !may_act {
            host.failed = Some(Fence::error(id));
            self.tally.lapsed += 1;
            return true;
        }
        let mut run = self.program.run(call);
        let Poll::Ready(result) = run.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { return true };
        self.audit.ran(id, key);
        self.trace.step(format!("activity {key:?} of {id} has run on {}", node.name));
        if host.is_open() {
            host.node.inbox.push_back((None, Input::TaskDone { task: key, result }));
        }
        true
    }

    /// Does a step of the thread for snapshots. It does not look at the lease.
    pub(super) fn chore(&mut self, n: usize) -> bool {
        let Some(chore) = self.nodes[n].chores.pop_front() else { return false };
        match chore {
            Chore::Keep(name, bytes) => {
                self.trace.step(format!("{} keeps {name}", self.nodes[n].name));
                self.store.put_blob(&name, &bytes).expect("kept");
            }
            Chore::Finish(id, epoch, finished) => {
                self.trace.step(format!("{} keeps {}", self.nodes[n].name, finished.name));
                self.store.put_blob(&finished.name, &finished.list).expect("kept");
                self.tally.snapshots += 1;
                let cut = self.store.truncate(id, epoch, finished.before);
                if let (Err(error), Some(host)) = (cut, self.nodes[n].hosts.get_mut(&id))
                    && host.epoch == epoch
                {
                    host.failed.get_or_insert(error);
                }
                for name in spent(&*self.store, &finished) {
                    self.store.delete_blob(&name).expect("deleted");
                }
            }
        }
        true
    }

    /// Takes responses in, all of one partition whose log is known to be durable up to here.
    pub(super) fn take_responses(&mut self, durable: Position) {
        for mut pending in std::mem::take(&mut self.pending) {
            match pending.response.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => self.pending.push(pending),
                Err(oneshot::error::TryRecvError::Closed) => self.unknown.push(pending.wish),
                Ok(response) => self.responded(&pending, response, durable),
            }
        }
    }

    fn responded(&mut self, pending: &PendingRequest, response: Result<Response, Error>, durable: Position) {
        let needs = pending.needs.expect("it was taken");
        assert!(needs <= durable, "request {} gets its response before it is durable", pending.number);
        self.trace.step(format!("response {}: {response:?}", pending.number).chars().take(300).collect());
        match (response, &pending.wish) {
            (Err(Error::Closed | Error::Stopped { .. }), wish) => self.unknown.push(wish.clone()),
            (Ok(Response::View(Some(view))), Wish::Wait { id }) => {
                assert!(view.status.is_ended(), "waiters were told, but {id} is {:?}", view.status);
            }
            (Ok(Response::Each(results)), Wish::Each(wishes)) => {
                let done = wishes.iter().zip(results).filter(|(_, result)| result.is_ok());
                self.acknowledged.extend(done.map(|(wish, _)| wish.clone()));
            }
            (Ok(_), wish) => self.acknowledged.push(wish.clone()),
            _ => {}
        }
    }
}
