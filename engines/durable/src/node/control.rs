//! The thread of a node that beats, looks who has what, and moves partitions.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::balance::goal;
use super::directory::Peer;
use super::lending;
use super::moves::{self, Leave};
use super::record::{Members, PartitionLoad, Record};
use super::{NodeOptions, Shared};
use crate::codec::FORMAT;
use crate::error::Error;
use crate::hub::{Tenure, Tick};
use crate::ids::PartitionId;
use crate::store::{Owner, StoreError};

/// How often partitions look for messages that were lost, at most.
const REPEAT: Duration = Duration::from_millis(200);
/// How soon after a beat another one follows that reads what others have just said.
const NEWS: Duration = Duration::from_millis(50);
/// Partitions that are recovered at the same time.
const TAKING_MAX: usize = 4;

/// After so many leases of silence a node that has crashed is forgotten.
const FORGET_LEASES: u32 = 20;

fn lease_ms(options: &NodeOptions) -> u64 {
    u64::try_from(options.lease.as_millis()).unwrap_or(u64::MAX)
}

/// What has become of a move.
pub(super) enum Moved {
    Taken(PartitionId, Result<Tenure, Error>),
    Left(PartitionId, Result<(), StoreError>),
}

#[derive(Default)]
struct Mail {
    moved: Vec<Moved>,
    has_news: bool,
    has_moved: bool,
    ending: Option<Leave>,
}

/// How others reach the thread.
#[derive(Default)]
pub(super) struct Control {
    mail: Mutex<Mail>,
    bell: Condvar,
    /// What `nodes` and `health` report.
    seen: Mutex<Seen>,
}

/// What the thread has seen last.
#[derive(Clone, Default)]
pub(super) struct Seen {
    pub(super) members: Members,
    /// Why partitions that are not running could not be taken, or have stopped.
    pub(super) errors: BTreeMap<PartitionId, StoreError>,
    /// Why the node has ended by itself.
    pub(super) ended: Option<String>,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn moved(&self, moved: Moved) {
        self.lock().moved.push(moved);
        self.bell.notify_one();
    }

    /// A partition has changed hands somewhere.
    pub(super) fn news(&self) {
        self.lock().has_news = true;
        self.bell.notify_one();
    }

    /// Has the thread look again at what should be where.
    fn turn(&self) {
        self.lock().has_moved = true;
    }

    /// Has the thread give everything back and end.
    pub(super) fn end(&self, how: Leave) {
        self.lock().ending = Some(how);
        self.bell.notify_one();
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn see(&self, see: impl FnOnce(&mut Seen)) {
        see(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn wait(&self, until: Instant) -> Mail {
        let timeout = until.saturating_duration_since(Instant::now());
        let is_quiet =
            |mail: &mut Mail| mail.moved.is_empty() && !mail.has_news && !mail.has_moved && mail.ending.is_none();
        let waited = self.bell.wait_timeout_while(self.lock(), timeout, is_quiet);
        std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn wait_for_moves(&self, until: Instant) -> Vec<Moved> {
        let timeout = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(10));
        let waited = self.bell.wait_timeout_while(self.lock(), timeout, |mail| mail.moved.is_empty());
        std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).0.moved)
    }
}

/// A partition, as far as this node has to do with it.
enum Place {
    Elsewhere,
    Taking,
    Here(Tenure),
    Leaving,
}

/// The thread itself.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    members: Members,
    owners: Vec<Owner>,
    places: Vec<Place>,
    /// Not to be taken before this moment, after a move failed.
    not_before: Vec<Instant>,
    beats: u64,
    beat_due: Instant,
    beaten: Instant,
    repeat_due: Instant,
    /// Events that each partition had counted, and when.
    counted: Vec<u64>,
    counted_at: Instant,
    is_leaving: bool,
}

impl Keeper {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let (count, now) = (shared.meters.len(), Instant::now());
        Self {
            shared,
            members: Members::default(),
            owners: Vec::new(),
            places: (0..count).map(|_| Place::Elsewhere).collect(),
            not_before: vec![now; count],
            beats: 0,
            beat_due: now,
            beaten: now,
            repeat_due: now,
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
        let silence = self.shared.options.silence();
        for (name, member) in self.members.alive(Instant::now(), silence) {
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
            let until = self.beat_due.min(self.repeat_due);
            let mail = self.shared.control.wait(until);
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

    /// Does what is due. Says whether the node goes on.
    fn step(&mut self, has_news: bool, has_moved: bool) -> bool {
        let now = Instant::now();
        if has_news {
            // A node may have come, or be about to leave.
            self.beat_due = self.beat_due.min(self.beaten + NEWS);
        }
        let is_due = now >= self.beat_due;
        if is_due {
            self.beaten = now;
            self.beat_due = now + self.shared.options.beat();
            // A beat that fails is tried again; without one for long enough the lease runs out.
            let beaten = self.beat();
            self.shared.directory.note(None, beaten.err().as_ref());
        }
        if now >= self.repeat_due {
            self.repeat_due = now + REPEAT.min(self.shared.options.beat());
            self.repeat();
            self.lend();
        }
        if !self.shared.fence.holds() {
            self.leave_all(Leave::AtOnce);
            return true;
        }
        if is_due || has_news || has_moved {
            // As with a beat.
            let _ = self.look();
        }
        if self.is_replaced() {
            let text = format!("another node is called {:?} and has taken its place", self.shared.options.name);
            self.shared.control.see(|seen| seen.ended = Some(text));
            return false;
        }
        self.settle();
        true
    }

    fn beat(&mut self) -> Result<(), StoreError> {
        let begun = Tick::now();
        self.beats += 1;
        let record = self.record();
        let bytes = serde_json::to_vec(&record).unwrap_or_default();
        let said = self.shared.store.say(&self.shared.options.name, &bytes)?;
        self.shared.fence.renew(begun);
        let now = Instant::now();
        self.members.hear(said, now);
        let alive = self.members.alive(now, self.shared.options.silence());
        let peer = |(name, member): (&String, &super::record::Member)| {
            (name.clone(), Peer { run: member.record.run, address: member.record.address.clone() })
        };
        let peers: BTreeMap<String, Peer> = alive.map(peer).collect();
        let is_forgotten = |member: &super::record::Member| member.age(now) > self.shared.options.lease * FORGET_LEASES;
        for (name, _) in self.members.all().filter(|(_, member)| is_forgotten(member)) {
            // If that fails, the next beat tries it again.
            let _ = self.shared.store.forget(name);
        }
        self.shared.directory.meet(peers);
        self.shared.prune();
        let members = self.members.clone();
        self.shared.control.see(|seen| seen.members = members);
        Ok(())
    }

    fn record(&mut self) -> Record {
        let elapsed = self.counted_at.elapsed().as_secs_f64().max(1e-3);
        self.counted_at = Instant::now();
        let mut loads = Vec::new();
        for (at, place) in self.places.iter().enumerate() {
            let Place::Here(tenure) = place else { continue };
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

    /// Reads who has what. Messages to partitions that have changed hands go out again.
    fn look(&mut self) -> Result<(), StoreError> {
        self.owners = self.shared.store.owners()?;
        for changed in self.shared.directory.own(self.owners.clone()) {
            self.here().for_each(|tenure| tenure.repeat(Some(changed)));
        }
        Ok(())
    }

    fn here(&self) -> impl Iterator<Item = &Tenure> {
        self.places.iter().filter_map(|place| if let Place::Here(tenure) = place { Some(tenure) } else { None })
    }

    /// Has partitions look for messages that were lost.
    fn repeat(&self) {
        let has_open = |tenure: &&Tenure| self.shared.meters[usize::from(tenure.id.0)].read().counts.outbox > 0;
        self.here().filter(has_open).for_each(|tenure| tenure.repeat(None));
    }

    /// Gives activities to nodes on which none waits, if too many wait here.
    fn lend(&self) {
        let Some(beyond) = self.shared.options.lend_beyond else { return };
        let alive = self.members.alive(Instant::now(), self.shared.options.silence());
        let takes = |(_, member): &(&String, &super::record::Member)| {
            member.record.run != self.shared.run && !member.record.is_leaving && member.record.waiting == Some(0)
        };
        let peer = |(_, member): (&String, &super::record::Member)| Peer {
            run: member.record.run,
            address: member.record.address.clone(),
        };
        lending::lend(&self.shared, &alive.filter(takes).map(peer).collect::<Vec<_>>(), beyond);
    }

    /// Whether another node of the same name has taken a partition from this one.
    fn is_replaced(&self) -> bool {
        let name = Some(&self.shared.options.name);
        let is_lost = |tenure: &Tenure| {
            let owner = self.owner(tenure.id);
            owner.is_some_and(|owner| owner.node.as_ref() == name && owner.epoch > tenure.epoch)
        };
        self.here().any(is_lost)
    }

    fn owner(&self, partition: PartitionId) -> Option<&Owner> {
        self.owners.get(usize::from(partition.0))
    }

    fn moved(&mut self, moved: Moved) {
        let (partition, place, error) = match moved {
            Moved::Taken(partition, Ok(tenure)) => (partition, Place::Here(tenure), None),
            Moved::Taken(partition, Err(Error::Store(error))) => (partition, Place::Elsewhere, Some(error)),
            Moved::Taken(partition, Err(_)) => (partition, Place::Elsewhere, None),
            Moved::Left(partition, left) => (partition, Place::Elsewhere, left.err()),
        };
        let at = usize::from(partition.0);
        if let Place::Here(tenure) = &place {
            // What this node has, it knows without the store.
            if let Some(owner) = self.owners.get_mut(at).filter(|owner| owner.epoch < tenure.epoch) {
                *owner = Owner { partition, epoch: tenure.epoch, node: Some(self.shared.options.name.clone()) };
                self.counted[at] = 0;
                self.shared.directory.own(self.owners.clone());
                self.here().for_each(|tenure| tenure.repeat(Some(partition)));
            }
        }
        // A partition that another node has taken first is no error.
        let error = error.filter(|error| !matches!(error, StoreError::Fenced { .. }));
        if error.is_some() {
            self.not_before[at] = Instant::now() + self.shared.options.beat();
        }
        self.shared.directory.note(Some(partition), error.as_ref());
        self.shared.control.see(|seen| match error {
            Some(error) => drop(seen.errors.insert(partition, error)),
            None => drop(seen.errors.remove(&partition)),
        });
        self.places[at] = place;
        self.shared.control.turn();
        self.shared.directory.changed();
    }

    /// Ends what is lost or has failed, and moves what should be elsewhere.
    fn settle(&mut self) {
        for at in 0..self.places.len() {
            let Place::Here(tenure) = &self.places[at] else { continue };
            let is_lost = self.owners.get(at).is_some_and(|owner| owner.epoch > tenure.epoch);
            if is_lost || tenure.failure().is_some() {
                self.end_one(at, Leave::AtOnce);
            }
        }
        let now = Instant::now();
        let me = self.shared.options.name.clone();
        let alive: Vec<(&str, bool)> = self
            .members
            .alive(now, self.shared.options.silence())
            .map(|(name, member)| (name.as_str(), member.record.is_leaving))
            .collect();
        let members: Vec<&str> = alive.iter().filter(|(_, is_leaving)| !is_leaving).map(|(name, _)| *name).collect();
        let is_alive = |name: &str| alive.iter().any(|(other, _)| *other == name);
        let owners: Vec<Option<&str>> = self.owners.iter().map(|owner| owner.node.as_deref()).collect();
        let mine: Vec<bool> =
            goal(&members, &owners).into_iter().map(|place| place.is_some_and(|at| members[at] == me)).collect();
        let can_take: Vec<bool> =
            owners.iter().map(|owner| owner.is_none_or(|owner| owner == me || !is_alive(owner))).collect();
        let has_free = owners.iter().any(Option::is_none);
        let owned: Vec<bool> = owners.iter().map(|owner| owner.is_some_and(|owner| owner == me)).collect();
        self.take(&mine, &can_take, now);
        self.disown(&mine, &owned, now);
        self.give(&mine, has_free);
    }

    fn take(&mut self, mine: &[bool], can_take: &[bool], now: Instant) {
        let taking = self.places.iter().filter(|place| matches!(place, Place::Taking)).count();
        let free = |at: &usize| {
            mine[*at] && can_take[*at] && matches!(self.places[*at], Place::Elsewhere) && now >= self.not_before[*at]
        };
        let wanted: Vec<usize> = (0..mine.len()).filter(free).take(TAKING_MAX.saturating_sub(taking)).collect();
        for at in wanted {
            let (partition, seen) = (self.owners[at].partition, self.owners[at].epoch);
            // Without room for a thread it is tried again.
            if moves::take(&self.shared, partition, seen).is_ok() {
                self.places[at] = Place::Taking;
            }
        }
    }

    /// Gives up what is this node's by the store alone and is to go to another: the store had noted that this node has it,
    /// then taking it failed, and so did giving it back.
    fn disown(&mut self, mine: &[bool], owned: &[bool], now: Instant) {
        for at in 0..self.places.len() {
            let is_idle = matches!(self.places[at], Place::Elsewhere) && now >= self.not_before[at];
            if owned[at] && !mine[at] && is_idle {
                let (partition, epoch) = (self.owners[at].partition, self.owners[at].epoch);
                // Without room for a thread it is tried again.
                if moves::disown(&self.shared, partition, epoch).is_ok() {
                    self.places[at] = Place::Leaving;
                }
            }
        }
    }

    /// Gives one partition back, once the one before has been taken up.
    fn give(&mut self, mine: &[bool], has_free: bool) {
        if has_free || self.places.iter().any(|place| matches!(place, Place::Leaving)) {
            return;
        }
        let surplus = (0..mine.len()).find(|at| !mine[*at] && matches!(self.places[*at], Place::Here(_)));
        if let Some(at) = surplus {
            self.end_one(at, Leave::Orderly);
        }
    }

    fn end_one(&mut self, at: usize, how: Leave) {
        if let Place::Here(tenure) = std::mem::replace(&mut self.places[at], Place::Leaving)
            && moves::leave(&self.shared, tenure, how).is_err()
        {
            // There is no room for a thread. The partition was dropped, and is taken anew.
            self.places[at] = Place::Elsewhere;
        }
    }

    fn leave_all(&mut self, how: Leave) {
        for at in 0..self.places.len() {
            if matches!(self.places[at], Place::Here(_)) {
                self.end_one(at, how);
            }
        }
    }

    /// Gives everything back in order, so that the others take it at once.
    fn leave(mut self) {
        self.is_leaving = true;
        // Without it the others take what is free a little later.
        let _ = self.beat();
        self.shared.exchange.announce();
        let is_orderly = self.shared.fence.holds();
        self.end(if is_orderly { Leave::Orderly } else { Leave::AtOnce });
    }

    /// Ends all partitions and waits for that, beating meanwhile.
    fn end(mut self, how: Leave) {
        loop {
            self.leave_all(how);
            if self.places.iter().all(|place| matches!(place, Place::Elsewhere)) {
                return;
            }
            let mail = self.shared.control.wait_for_moves(self.beat_due);
            mail.into_iter().for_each(|moved| self.moved(moved));
            if how == Leave::Orderly && Instant::now() >= self.beat_due {
                self.beat_due = Instant::now() + self.shared.options.beat();
                // As always.
                let _ = self.beat();
            }
        }
    }
}
