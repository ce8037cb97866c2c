//! The end of a schedule of nodes: nothing fails any more, all that was begun goes on to its end, and is judged.

use std::time::Duration;

use super::cluster::Cluster;
use super::host::Process;
use super::tally::Tally;
use crate::client::Status;
use crate::ids::{InstanceId, PartitionId};
use crate::partition::Partition;
use crate::partition::simulation::verdict::Verdict;
use crate::store::Batching;

/// Rounds after which a hub that is not at rest never will be.
const ROUNDS_MAX: usize = 3_000;
/// Less than a beat: nodes that are awake keep their leases.
const ROUND: Duration = Duration::from_millis(40);
/// Steps of a node's thread from one beat to the moves that follow, and of a move.
const STEPS: usize = 6;

impl Cluster {
    /// Nothing fails, no node comes or goes, and no more requests come.
    pub(super) fn rest(&mut self) {
        self.is_calm = true;
        self.nodes.iter_mut().for_each(|node| node.is_paused = false);
        if self.nodes.iter().all(|node| node.is_leaving || self.is_replaced(node)) {
            self.start();
        }
        for _ in 0..ROUNDS_MAX {
            self.round();
            if self.is_still() && !self.wake() {
                return;
            }
        }
        panic!("it does not come to rest: {}", self.unrest());
    }

    fn round(&mut self) {
        self.pass(ROUND);
        for _ in 0..STEPS {
            // One that leaves may be gone afterwards.
            for n in (0..self.nodes.len()).rev() {
                self.keep(n);
            }
            while self.arrive() {}
            (0..self.nodes.len()).for_each(|n| self.go_on(n));
        }
        for n in 0..self.nodes.len() {
            let ids: Vec<PartitionId> = self.nodes[n].hosts.keys().copied().collect();
            for id in ids {
                self.turns(n, id);
                self.begin_commit(n, id);
            }
        }
        while self.arrive() {}
        for n in 0..self.nodes.len() {
            let ids: Vec<PartitionId> = self.nodes[n].hosts.keys().copied().collect();
            ids.into_iter().for_each(|id| self.confirm(n, id));
            while self.run_activity(n) {}
            while self.chore(n) {}
        }
        while self.deliver() {}
    }

    /// Takes all that has come in.
    fn turns(&mut self, n: usize, id: PartitionId) {
        let most = if self.setting.batching == Batching::Group { usize::MAX } else { 1 };
        for _ in 0..=self.nodes[n].hosts[&id].node.inbox.len() {
            self.turn_with(n, id, most);
        }
    }

    /// Whether each partition runs once and has nothing to do.
    fn is_still(&self) -> bool {
        let runs_once = |id: PartitionId| {
            let mut on = self.nodes.iter().filter_map(|node| node.hosts.get(&id));
            matches!((on.next(), on.next()), (Some(host), None) if Some(&host.epoch) == self.epochs.get(&id))
        };
        let is_idle = |node: &Process| {
            let at_rest = node.hosts.values().all(|host| {
                let (partition, counts) = (&host.node.partition, host.node.partition.counts());
                host.is_open() && host.is_drained() && !partition.is_busy() && counts.outbox == 0
            });
            node.moves.is_empty() && node.tasks.is_empty() && node.chores.is_empty() && at_rest
        };
        (0..self.setting.partitions).map(PartitionId).all(runs_once) && self.nodes.iter().all(is_idle)
    }

    fn unrest(&self) -> String {
        let of = |node: &Process| {
            let hosts = node.hosts.iter().map(|(id, host)| {
                let (counts, failed, inbox) = (host.node.partition.counts(), &host.failed, host.node.inbox.len());
                format!("\n  {id} epoch {} {failed:?} {inbox} {counts:?}", host.epoch.0)
            });
            format!("\n{}, {} moves:{}", node.name, node.moves.len(), hosts.collect::<String>())
        };
        self.nodes.iter().map(of).collect()
    }

    /// Resumes suspended orchestrations. Says whether anything will still happen.
    fn wake(&mut self) -> bool {
        let hosts = || self.nodes.iter().flat_map(|node| node.hosts.values());
        if hosts().any(|host| host.node.partition.next_due().is_some()) {
            return true;
        }
        let all = hosts().flat_map(|host| host.node.partition.table.from(0).map(|(_, instance)| instance));
        let suspended: Vec<InstanceId> =
            all.filter(|instance| instance.status() == Status::Suspended).map(|instance| instance.id.clone()).collect();
        for id in &suspended {
            let drawn = self.workload.resume(id);
            self.put(drawn);
        }
        !suspended.is_empty()
    }

    /// Panics unless every promise was kept.
    pub(super) fn judge(&mut self) -> Tally {
        let mut partitions: Vec<&mut Partition> = Vec::new();
        for node in &mut self.nodes {
            partitions.extend(node.hosts.values_mut().map(|host| &mut host.node.partition));
        }
        let mut verdict = Verdict {
            audit: &self.audit,
            acknowledged: self.acknowledged.iter().collect(),
            unknown: &self.unknown,
            waiting: self.pending.iter().map(|pending| &pending.wish).collect(),
            partitions,
        };
        self.tally.notes = verdict.give();
        self.tally.steps = self.trace.steps();
        self.tally.orchestrations = self.audit.begun.len() as u64;
        self.tally.acknowledged = self.acknowledged.len() as u64;
        self.tally.left_unknown = self.unknown.len() as u64;
        self.tally
    }
}
