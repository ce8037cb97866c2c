//! The thread of a node that beats, reads the owners of partitions, and moves partitions, as its [`Steward`] decides.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::directory::Peer;
use super::farewell;
use super::lending;
use super::mail::MoveResult;
use super::moves::{self, Leave};
use super::record::{PartitionLoad, Record};
use super::steward::{Move, Steward};
use super::{NodeOptions, Shared};
use crate::codec::FORMAT;
use crate::error::Error;
use crate::hub::{Renewal, Tenure, Tick};
use crate::ids::PartitionId;
use crate::store::StoreError;

fn lease_ms(options: &NodeOptions) -> u64 {
    u64::try_from(options.lease.as_millis()).unwrap_or(u64::MAX)
}

/// The thread itself.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    steward: Steward,
    /// Partitions that run here.
    tenures: Vec<Option<Tenure>>,
    beats: u64,
    /// Events that each partition had counted, and when.
    counted: Vec<u64>,
    counted_at: Instant,
    is_leaving: bool,
}

impl Keeper {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let (count, now) = (shared.meters.len(), Instant::now());
        Self {
            steward: Steward::new(&shared.options, shared.identity.clone(), count, now),
            shared,
            tenures: (0..count).map(|_| None).collect(),
            beats: 0,
            counted: vec![0; count],
            counted_at: now,
            is_leaving: false,
        }
    }

    /// Beats once, before the thread begins.
    ///
    /// # Errors
    /// If the store is out of reach, or a node with another format or lease is alive.
    pub(super) fn join(&mut self) -> Result<(), Error> {
        self.beat()?;
        for (_, member) in self.steward.alive() {
            let name = &member.record.identity.name;
            if member.record.format != FORMAT {
                let value = format!("{FORMAT}");
                let expected = format!("{}, the format of node {name}", member.record.format);
                return Err(Error::BadOption { option: "format", value, expected });
            }
            let (ours, theirs) = (lease_ms(&self.shared.options), member.record.lease_ms);
            if ours != theirs {
                let (value, expected) = (format!("{ours} ms"), format!("{theirs} ms, the lease of node {name}"));
                return Err(Error::BadOption { option: "lease", value, expected });
            }
        }
        Ok(self.look()?)
    }

    /// Works until the node is closed.
    pub(super) fn run(mut self) {
        loop {
            let mail = self.shared.control.wait(self.steward.next_due());
            mail.moved.into_iter().for_each(|moved| self.moved(moved));
            match mail.ending {
                Some(Leave::AtOnce) => return self.end(Leave::AtOnce),
                Some(Leave::Orderly) => return self.leave(),
                None => {}
            }
            if !self.step(mail.has_news, mail.has_moved) {
                return self.end(Leave::AtOnce);
            }
        }
    }

    /// Does the work that is due. Says whether the node goes on.
    fn step(&mut self, has_news: bool, has_moved: bool) -> bool {
        if has_news {
            self.steward.news();
        }
        let due = self.steward.due(Instant::now());
        if due.beat {
            // A beat that fails is tried again; without one for long enough the lease runs out.
            let beaten = self.beat();
            self.shared.directory.note(None, beaten.as_ref().err());
            if self.steward.is_replaced() {
                let text = format!("another node is called {:?} and has taken its place", self.shared.options.name);
                self.shared.control.see(|seen| seen.ended = Some(text));
                return false;
            }
            if matches!(beaten, Ok(Renewal::TooLate)) {
                // Others may be about to take any of them.
                let moves = self.steward.end(Leave::AtOnce);
                self.carry_out(moves);
            }
        }
        if due.repeat {
            self.repeat();
            self.lend();
        }
        if !self.shared.fence.holds() {
            let moves = self.steward.end(Leave::AtOnce);
            self.carry_out(moves);
            return true;
        }
        if due.beat || has_news || has_moved {
            // As with a beat.
            if let Err(error) = self.look() {
                self.shared.directory.note(None, Some(&error));
            }
        }
        let tenures = &self.tenures;
        let has_failed = |partition: PartitionId| {
            let tenure = tenures[usize::from(partition.0)].as_ref();
            tenure.is_some_and(|tenure| tenure.failure().is_some())
        };
        let moves = self.steward.settle(Instant::now(), has_failed);
        self.carry_out(moves);
        true
    }

    fn beat(&mut self) -> Result<Renewal, StoreError> {
        let (begun, reading) = (Tick::now(), Instant::now());
        self.beats += 1;
        let record = self.record();
        let bytes = serde_json::to_vec(&record).unwrap_or_default();
        let said = self.shared.store.say(&self.shared.identity.key(), &bytes)?;
        let renewed = self.shared.fence.renew(begun, Tick::now());
        self.steward.heard(said, reading, Instant::now());
        for key in self.steward.lost() {
            // If that fails, the next beat tries it again.
            let _ = self.shared.store.forget(key);
        }
        self.shared.directory.meet(self.steward.peers());
        self.shared.prune();
        let members = self.steward.members().clone();
        self.shared.control.see(|seen| seen.members = members);
        Ok(renewed)
    }

    fn record(&mut self) -> Record {
        let elapsed = self.counted_at.elapsed().as_secs_f64().max(1e-3);
        self.counted_at = Instant::now();
        let mut loads = Vec::new();
        for (at, tenure) in self.tenures.iter().enumerate() {
            let Some(tenure) = tenure else { continue };
            let counts = self.shared.meters[at].read().counts;
            let waited = self.shared.engine.post().inbox(tenure.id).map_or(Duration::ZERO, |inbox| inbox.waited_max());
            let events = counts.events.saturating_sub(self.counted[at]);
            self.counted[at] = counts.events;
            loads.push(PartitionLoad {
                partition: tenure.id.0,
                pending: counts.activities_open + counts.outbox,
                instances: counts.instances,
                events_per_s: events as f64 / elapsed,
                waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
            });
        }
        Record {
            identity: self.shared.identity.clone(),
            run: self.shared.run,
            beat: self.beats,
            address: self.shared.exchange.address(),
            format: FORMAT,
            lease_ms: lease_ms(&self.shared.options),
            version: self.shared.options.version.clone(),
            is_leaving: self.is_leaving,
            waiting: self.shared.options.lend_beyond.map(|_| self.shared.engine.activities_waiting()),
            loads,
        }
    }

    /// Reads who has what. Receivers that have changed hands are probed.
    fn look(&mut self) -> Result<(), StoreError> {
        let owners = self.shared.store.owners()?;
        self.steward.own(owners, Instant::now());
        self.tell_owners();
        Ok(())
    }

    /// Lets the parts of the node know who has what, and probes receivers that have changed hands.
    fn tell_owners(&self) {
        for changed in self.shared.directory.own(self.steward.owners().to_vec()) {
            self.here().for_each(|tenure| tenure.repeat(Some(changed)));
        }
    }

    fn here(&self) -> impl Iterator<Item = &Tenure> {
        self.tenures.iter().flatten()
    }

    /// Has partitions look for messages that were lost.
    fn repeat(&self) {
        let has_open = |tenure: &&Tenure| self.shared.meters[usize::from(tenure.id.0)].read().counts.outbox > 0;
        self.here().filter(has_open).for_each(|tenure| tenure.repeat(None));
    }

    /// Gives activities to nodes on which none waits, if too many wait here.
    fn lend(&self) {
        let Some(beyond) = self.shared.options.lend_beyond else { return };
        let takes = |(_, member): &(&String, &super::record::Member)| {
            member.record.run != self.shared.run && !member.record.is_leaving && member.record.waiting == Some(0)
        };
        let peers = self.steward.alive().filter(takes).map(|(_, member)| Peer::of(member));
        lending::lend(&self.shared, &peers.collect::<Vec<_>>(), beyond);
    }

    fn moved(&mut self, moved: MoveResult) {
        let (partition, tenure, error) = match moved {
            MoveResult::Taken(partition, Ok(tenure)) => (partition, Some(tenure), None),
            MoveResult::Taken(partition, Err(Error::Store(error))) => (partition, None, Some(error)),
            MoveResult::Taken(partition, Err(_)) => (partition, None, None),
            MoveResult::Left(partition, left) => (partition, None, left.err()),
        };
        let at = usize::from(partition.0);
        // A partition that another node has taken first is no error.
        let error = error.filter(|error| !matches!(error, StoreError::Fenced { .. }));
        match tenure {
            Some(tenure) => {
                let is_new = self.steward.taken(partition, tenure.epoch);
                if is_new {
                    self.counted[at] = 0;
                    self.tell_owners();
                }
                self.tenures[at] = Some(tenure);
            }
            None => self.steward.left(partition, error.is_some(), Instant::now()),
        }
        self.shared.directory.note(Some(partition), error.as_ref());
        self.shared.control.see(|seen| match error {
            Some(error) => drop(seen.errors.insert(partition, error)),
            None => drop(seen.errors.remove(&partition)),
        });
        self.shared.control.turn();
        self.shared.directory.changed();
    }

    /// Begins moves. Without room for a thread, a partition that was to leave is dropped, and all is tried again.
    fn carry_out(&mut self, moves: Vec<Move>) {
        for one in moves {
            let (partition, begun) = match one {
                Move::Take(owner) => (owner.partition, moves::take(&self.shared, owner)),
                Move::Disown(partition, epoch) => (partition, moves::disown(&self.shared, partition, epoch)),
                Move::Leave(partition, how) => {
                    let tenure = self.tenures[usize::from(partition.0)].take();
                    (partition, tenure.map_or(Ok(()), |tenure| moves::leave(&self.shared, tenure, how)))
                }
            };
            if begun.is_err() {
                self.steward.left(partition, false, Instant::now());
            }
        }
    }

    /// Gives everything back in order, so that the others take it at once.
    fn leave(mut self) {
        self.is_leaving = true;
        // Without it the others take free partitions a little later.
        let _ = self.beat();
        self.shared.exchange.announce();
        let is_orderly = self.shared.fence.holds();
        self.end(if is_orderly { Leave::Orderly } else { Leave::AtOnce });
        if is_orderly {
            self.take_leave();
        }
    }

    /// Waits, within limits, until no other node waits for a response of this one, beating meanwhile.
    fn take_leave(&mut self) {
        let until = Instant::now() + farewell::LONGEST;
        while Instant::now() < until && self.shared.farewell.say(&self.shared) {
            self.beat_if_due();
        }
    }

    fn beat_if_due(&mut self) {
        if self.steward.due(Instant::now()).beat {
            // As always.
            let _ = self.beat();
        }
    }

    /// Ends all partitions and waits for that, beating meanwhile.
    fn end(&mut self, how: Leave) {
        loop {
            let moves = self.steward.end(how);
            self.carry_out(moves);
            if self.steward.is_empty() {
                return;
            }
            let mail = self.shared.control.wait_for_moves(self.steward.beat_due());
            mail.into_iter().for_each(|moved| self.moved(moved));
            if how == Leave::Orderly {
                self.beat_if_due();
            }
        }
    }
}
