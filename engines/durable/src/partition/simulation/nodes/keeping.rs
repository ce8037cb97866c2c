//! The thread of a node, one step at a time, and the moves that it begins. It does as `node/control.rs` and
//! `node/moves.rs` do, with the same decisions.

use std::sync::Arc;

use super::cluster::Cluster;
use super::host::{Host, LEASE, MoveState, Packet, Phase};
use crate::codec::FORMAT;
use crate::hub::{Renewal, Term};
use crate::ids::{Epoch, PartitionId};
use crate::node::moves::Leave;
use crate::node::record::Record;
use crate::node::steward::Move;
use crate::store::{Owner, SharedStore, Store, StoreError};

impl Cluster {
    /// The thread of an awake node goes on.
    pub(super) fn keep(&mut self, n: usize) {
        let (now, node) = (self.now, &mut self.nodes[n]);
        let instant = node.instant(now);
        match std::mem::replace(&mut node.phase, Phase::Idle) {
            // It waits for the store.
            phase @ (Phase::Saying { .. } | Phase::Looking) => node.phase = phase,
            Phase::Idle => {
                if std::mem::take(&mut node.has_news) {
                    node.steward.news();
                    node.phase = Phase::Looking;
                }
                let due = node.steward.due(instant);
                if due.repeat {
                    node.repeat(None);
                }
                if due.beat || (node.is_leaving && !node.has_announced) {
                    node.has_announced = node.is_leaving;
                    node.phase = Phase::Saying { begun: now };
                } else if node.is_leaving {
                    self.end(n);
                } else if !node.may_act(now) {
                    node.phase = Phase::Idle;
                    let moves = node.steward.end(Leave::AtOnce);
                    self.begin(n, moves);
                } else if matches!(node.phase, Phase::Idle) {
                    self.settle(n);
                }
            }
            Phase::Said { begun, said } => {
                let renewed = node.fence.renew(node.tick(begun), node.tick(now));
                node.steward.heard(said, node.instant(begun), instant);
                let lost: Vec<String> = node.steward.lost().cloned().collect();
                lost.iter().for_each(|name| self.store.forget(name).expect("forgotten"));
                if node.steward.is_replaced() {
                    return self.replaced(n);
                }
                if node.may_act(now) && !node.is_leaving {
                    node.phase = Phase::Looking;
                }
                if renewed == Renewal::TooLate || !node.may_act(now) {
                    let moves = node.steward.end(Leave::AtOnce);
                    self.begin(n, moves);
                }
            }
            Phase::Looked(owners) => {
                let changed: Vec<PartitionId> = {
                    let before = node.steward.owners();
                    let is_new = |owner: &&Owner| before.get(usize::from(owner.partition.0)) != Some(*owner);
                    owners.iter().filter(is_new).map(|owner| owner.partition).collect()
                };
                node.steward.own(owners, instant);
                changed.into_iter().for_each(|id| node.repeat(Some(id)));
                self.settle(n);
            }
        }
    }

    fn settle(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        let hosts = &node.hosts;
        let has_failed = |id| hosts.get(&id).is_some_and(|host: &Host| host.failed.is_some());
        let instant = node.instant(self.now);
        let moves = node.steward.settle(instant, has_failed);
        self.begin(n, moves);
    }

    /// A node that leaves gives everything back, and is gone once it has.
    fn end(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        let how = if node.may_act(self.now) { Leave::Orderly } else { Leave::AtOnce };
        let moves = node.steward.end(how);
        self.begin(n, moves);
        if self.nodes[n].steward.is_empty() {
            let node = self.nodes.remove(n);
            self.trace.step(format!("{} has left", node.name));
            self.tally.closed += 1;
            self.store.forget(&node.name).expect("forgotten");
            self.announce(node.run);
        }
    }

    fn begin(&mut self, n: usize, moves: Vec<Move>) {
        for one in moves {
            self.trace.step(format!("{}: {one:?}", self.nodes[n].name));
            match one {
                Move::Take(owner) => {
                    let term = self.nodes[n].fence.term();
                    self.nodes[n].moves.push(MoveState::Taking(owner, term));
                }
                Move::Disown(id, epoch) => self.nodes[n].moves.push(MoveState::Releasing(id, epoch)),
                Move::Leave(id, Leave::AtOnce) => self.drop_host(n, id),
                Move::Leave(id, Leave::Orderly) => {
                    let host = self.nodes[n].hosts.get_mut(&id).expect("it runs here");
                    host.is_closing = true;
                    self.nodes[n].moves.push(MoveState::Leaving(id));
                }
            }
        }
    }

    /// A partition ends where it is. What is under way to its log may still arrive.
    fn drop_host(&mut self, n: usize, id: PartitionId) {
        let (run, instant) = (self.nodes[n].run, self.nodes[n].instant(self.now));
        let host = self.nodes[n].hosts.remove(&id).expect("it runs here");
        let has_failed = host.failed.as_ref().is_some_and(|error| !matches!(error, StoreError::Fenced { .. }));
        self.lose(run, host);
        self.nodes[n].steward.left(id, has_failed, instant);
        self.nodes[n].has_news = true;
    }

    /// A call to the store arrives there, also if its node stands still or is gone. Says whether there was one.
    pub(super) fn arrive(&mut self) -> bool {
        let count = self.nodes.len() + 1;
        let first = self.chance.below(count);
        (first..first + count).any(|at| {
            let n = at % count;
            if n == self.nodes.len() { self.stray_arrives() } else { self.arrive_of(n) }
        })
    }

    fn arrive_of(&mut self, n: usize) -> bool {
        let store = Arc::clone(&self.store);
        let node = &mut self.nodes[n];
        match &node.phase {
            Phase::Saying { begun } => {
                node.beats += 1;
                let record = Record {
                    identity: node.identity.clone(),
                    run: node.run,
                    beat: node.beats,
                    address: node.name.clone(),
                    format: FORMAT,
                    lease_ms: LEASE.as_millis() as u64,
                    version: String::new(),
                    is_leaving: node.is_leaving,
                    waiting: None,
                    loads: Vec::new(),
                };
                let said = store.say(&node.name, &serde_json::to_vec(&record).expect("a record")).expect("said");
                node.phase = Phase::Said { begun: *begun, said };
                return true;
            }
            Phase::Looking => {
                node.phase = Phase::Looked(store.owners().expect("read"));
                return true;
            }
            _ => {}
        }
        let is_call = |moving: &MoveState| matches!(moving, MoveState::Taking(..) | MoveState::Releasing(..));
        if let Some(at) = node.moves.iter().position(is_call) {
            let moving = node.moves.swap_remove(at);
            let after = match moving {
                MoveState::Taking(owner, term) => MoveState::Taken(owner.partition, term, self.take(n, &owner)),
                MoveState::Releasing(id, epoch) => {
                    // By then another node may have it.
                    let _ = store.release(id, epoch);
                    MoveState::Released(id)
                }
                other => other,
            };
            self.nodes[n].moves.push(after);
            return true;
        }
        let is_under_way = |host: &Host| !host.node.under_way.is_empty() && host.written.is_none();
        let id = node.hosts.iter().find(|(_, host)| is_under_way(host)).map(|(id, _)| *id);
        id.is_some_and(|id| {
            self.append_arrives(n, id);
            true
        })
    }

    fn take(&mut self, n: usize, from: &Owner) -> Result<Epoch, StoreError> {
        let id = from.partition;
        let before = self.store.owners().expect("read").swap_remove(usize::from(id.0)).node;
        let epoch = self.store.take(id, from.epoch, &self.nodes[n].name)?;
        self.trace.step(format!("{} has taken {id}, epoch {}, from {before:?}", self.nodes[n].name, epoch.0));
        self.tally.moves += 1;
        let known = self.epochs.insert(id, epoch).unwrap_or(Epoch(0));
        assert!(epoch > known, "{id} was taken with epoch {} after {}", epoch.0, known.0);
        let other = self.nodes.iter().find(|node| Some(&node.name) == before.as_ref() && node.run != self.nodes[n].run);
        if let Some(other) = other.filter(|other| self.clocks_are_equal && !self.is_replaced(other)) {
            let may_act = other.may_act_for(id, self.now) && other.hosts[&id].epoch == known;
            assert!(!may_act, "{id} was taken from {}, whose lease runs", other.name);
        }
        Ok(epoch)
    }

    /// A move of an awake node goes on.
    pub(super) fn go_on(&mut self, n: usize) {
        let is_ready = |moving: &MoveState| !matches!(moving, MoveState::Taking(..) | MoveState::Releasing(..));
        let Some(at) = self.nodes[n].moves.iter().position(is_ready) else { return };
        let moving = self.nodes[n].moves.remove(at);
        let instant = self.nodes[n].instant(self.now);
        match moving {
            MoveState::Taken(id, term, Ok(epoch)) => self.recover(n, id, epoch, term),
            MoveState::Taken(id, _, Err(error)) => {
                assert!(matches!(error, StoreError::Fenced { .. }), "{error}");
                self.nodes[n].steward.left(id, false, instant);
            }
            MoveState::Leaving(id) => self.leave(n, id),
            MoveState::Released(id) => {
                self.nodes[n].steward.left(id, false, instant);
                self.announce(self.nodes[n].run);
            }
            calls => self.nodes[n].moves.push(calls),
        }
        if let Some(node) = self.nodes.get_mut(n) {
            node.has_news = true;
        }
    }

    fn recover(&mut self, n: usize, id: PartitionId, epoch: Epoch, term: Term) {
        let store: Arc<dyn Store> = Arc::clone(&self.store) as _;
        let mut partition = self.setting.partition(id, &self.program, Arc::clone(&store));
        partition.own_blobs(epoch);
        partition.recover(&*store).expect("what the store holds can be read");
        self.trace.step(format!("{id} runs on {} from {} on", self.nodes[n].name, partition.position().0));
        let node = &mut self.nodes[n];
        node.hosts.insert(id, Host::new(id, epoch, term, partition));
        if node.steward.taken(id, epoch) {
            node.repeat(Some(id));
        }
        self.announce(self.nodes[n].run);
        self.carry_out(n, id);
    }

    /// A partition that takes nothing more in ends once all is durable, or at once if it has failed.
    fn leave(&mut self, n: usize, id: PartitionId) {
        let host = &self.nodes[n].hosts[&id];
        if host.failed.is_some() {
            return self.drop_host(n, id);
        }
        if !host.is_drained() {
            return self.nodes[n].moves.push(MoveState::Leaving(id));
        }
        let host = self.nodes[n].hosts.remove(&id).expect("it runs here");
        let epoch = host.epoch;
        self.lose(self.nodes[n].run, host);
        self.nodes[n].moves.push(MoveState::Releasing(id, epoch));
    }

    /// Tells all nodes that a partition has changed hands.
    pub(super) fn announce(&mut self, from: u64) {
        let others: Vec<u64> = self.nodes.iter().map(|node| node.run).filter(|run| *run != from).collect();
        for other in others {
            self.ways.entry((from, other)).or_default().push_back(Packet::News);
        }
    }
}
