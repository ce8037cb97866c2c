//! Differences if partitions run on several nodes: messages between them are lost, and a partition moves to
//! another node, from what is durable, while the others carry on.

use std::sync::Arc;

use crate::error::Error;
use crate::ids::{PartitionId, Position};
use crate::partition::input::{Effect, Input};
use crate::partition::simulation::digest::digest;
use crate::partition::simulation::node::Node;
use crate::partition::simulation::outside::{Chore, Way};
use crate::partition::simulation::world::World;
use crate::store::Store;

impl World {
    /// Whether the next message on this way is lost: only messages between nodes are.
    pub(super) fn loses(&mut self, way: Way) -> bool {
        let is_lost = self.setting.is_shared && !self.is_calm && way.from != way.to && self.chance.one_in(6);
        self.tally.lost += u64::from(is_lost);
        is_lost
    }

    /// Makes a partition look for messages that were lost.
    pub(super) fn repeat(&mut self, at: usize) {
        if self.nodes[at].is_up {
            self.trace.step(format!("{at} looks for what was lost"));
            self.nodes[at].inbox.push_back((None, Input::Repeat { to: None }));
        }
    }

    /// Makes all partitions with unacknowledged messages do so. Says whether there are any.
    pub(super) fn repeat_all(&mut self) -> bool {
        let has_open = |at: &usize| self.nodes[*at].partition.counts().outbox > 0;
        let all: Vec<usize> = (0..self.nodes.len()).filter(has_open).collect();
        all.iter().for_each(|at| self.repeat(*at));
        self.setting.is_shared && !all.is_empty()
    }

    /// A partition ends where it is and goes on elsewhere. What was under way to the log is written or is not.
    pub(super) fn relocate(&mut self, at: usize) {
        if self.chance.one_in(2) {
            self.begin_commit(at);
            self.end_commit(at);
        }
        if !self.nodes[at].is_up {
            return;
        }
        let id = self.nodes[at].id;
        self.trace.step(format!("{at} moves"));
        self.tally.moves += 1;
        self.leave(at, id);
        let store: Arc<dyn Store> = Arc::clone(&self.disk) as _;
        let mut partition = self.recovered(id, store);
        let (found, end) = (digest(&mut partition), partition.position());
        if let Some(noted) = self.nodes[at].states.get(&end) {
            assert_eq!(found, *noted, "what {id} recovers is not what it was at {}", end.0);
        }
        self.tally.replays += self.nodes[at].partition.counts().cursor_misses;
        self.nodes[at] = Node::new(id, partition);
        self.carry_out(at);
    }

    /// All that is in memory of a partition goes; those who wait for it learn nothing.
    fn leave(&mut self, at: usize, id: PartitionId) {
        let node = &mut self.nodes[at];
        node.waiting.clear();
        node.under_way.clear();
        node.inbox.clear();
        node.partition.stop(&Error::Closed);
        for effect in std::mem::take(node.partition.effects()) {
            if let Effect::Respond(reply, response) = effect {
                drop(reply.send(response));
            }
        }
        for pending in self.pending.iter_mut().filter(|pending| pending.to == id) {
            // Whatever response it gets now does not report that something is done.
            pending.needs = Some(Position(0));
        }
        self.take_responses();
        // Activities of an earlier owner are not heard, and its snapshots bear other names.
        self.tasks.retain(|(of, ..)| *of != id);
        let own = format!("p{id}/");
        self.chores.retain(|chore| match chore {
            Chore::Keep(of, ..) | Chore::Finish(of, _) | Chore::Cut(of, _) => *of != id,
            Chore::Delete(name) => !name.starts_with(&own),
        });
        self.snapshots_failed.remove(&id);
    }
}
