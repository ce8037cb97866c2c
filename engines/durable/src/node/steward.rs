//! Decisions of a node: when to beat, which partitions to take, to give back and to end.
//!
//! A state machine: its inputs are the time, the contents of the store and the results of moves; its outputs are actions.
//! It does no input or output and reads no clock, so that a simulation can drive several of them as their threads do.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::balance::goal;
use super::directory::Peer;
use super::moves::Leave;
use super::options::NodeOptions;
use super::record::{Identity, Member, Members};
use crate::ids::{Epoch, PartitionId};
use crate::store::Owner;

/// How often partitions look for messages that were lost, at most.
const REPEAT: Duration = Duration::from_millis(200);
/// How soon after a beat another one follows that reads what others have just said.
const NEWS: Duration = Duration::from_millis(50);
/// Partitions that are recovered at the same time.
const TAKING_MAX: usize = 4;
/// After so many leases of silence a node that has crashed is forgotten.
const FORGET_LEASES: u32 = 20;

/// A partition, as far as this node has to do with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Elsewhere,
    Taking,
    Here(Epoch),
    Leaving,
}

/// Task for a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Move {
    /// Take it from this owner.
    Take(Owner),
    /// End it.
    Leave(PartitionId, Leave),
    /// Give it up in the store, where it is this node's, though it does not run here.
    Disown(PartitionId, Epoch),
}

/// Tasks that are due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DueTasks {
    pub(crate) beat: bool,
    pub(crate) repeat: bool,
}

/// The decisions of one node.
#[derive(Debug)]
pub(crate) struct Steward {
    identity: Identity,
    /// Key of its identity.
    key: String,
    lease: Duration,
    beat: Duration,
    silence: Duration,
    members: Members,
    owners: Vec<Owner>,
    /// When each was first seen.
    owned: Vec<Instant>,
    places: Vec<Place>,
    /// Not to be taken before this moment, after a move failed.
    not_before: Vec<Instant>,
    beat_due: Instant,
    beaten: Instant,
    repeat_due: Instant,
}

impl Steward {
    pub(crate) fn new(options: &NodeOptions, identity: Identity, partitions: usize, now: Instant) -> Self {
        Self {
            key: identity.key(),
            identity,
            lease: options.lease,
            beat: options.beat(),
            silence: options.silence(),
            members: Members::default(),
            owners: Vec::new(),
            owned: vec![now; partitions],
            places: vec![Place::Elsewhere; partitions],
            not_before: vec![now; partitions],
            beat_due: now,
            beaten: now,
            repeat_due: now,
        }
    }

    /// When something is due next.
    pub(crate) fn next_due(&self) -> Instant {
        self.beat_due.min(self.repeat_due)
    }

    /// When the next beat is due.
    pub(crate) fn beat_due(&self) -> Instant {
        self.beat_due
    }

    /// A partition has changed hands somewhere: a node may have come, or be about to leave.
    pub(crate) fn news(&mut self) {
        self.beat_due = self.beat_due.min(self.beaten + NEWS);
    }

    /// Tasks that are due now, which count as done.
    pub(crate) fn due(&mut self, now: Instant) -> DueTasks {
        let due = DueTasks { beat: now >= self.beat_due, repeat: now >= self.repeat_due };
        if due.beat {
            self.beaten = now;
            self.beat_due = now + self.beat;
        }
        if due.repeat {
            self.repeat_due = now + REPEAT.min(self.beat);
        }
        due
    }

    /// Takes in what nodes say, as it was read after `begun`.
    pub(crate) fn heard(&mut self, said: Vec<(String, Vec<u8>)>, begun: Instant, now: Instant) {
        self.members.hear(said, begun, now);
    }

    /// All nodes that have not been forgotten.
    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    /// Nodes that are alive.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (&String, &Member)> {
        self.members.alive(self.silence)
    }

    /// Where nodes are that are alive.
    pub(crate) fn peers(&self) -> BTreeMap<String, Peer> {
        self.alive().map(|(key, member)| (key.clone(), Peer::of(member))).collect()
    }

    /// Nodes to forget: those that have been silent for a long time, or, once replaced, for one lease.
    pub(crate) fn lost(&self) -> impl Iterator<Item = &String> {
        let is_lost = move |member: &Member| {
            let leases = if self.members.is_replaced(&member.record.identity) { 1 } else { FORGET_LEASES };
            self.members.silent(member) > self.lease * leases
        };
        self.members.all().filter(move |(_, member)| is_lost(member)).map(|(key, _)| key)
    }

    /// Takes in who has what.
    pub(crate) fn own(&mut self, owners: Vec<Owner>, now: Instant) {
        for (at, owner) in owners.iter().enumerate().take(self.owned.len()) {
            if self.owners.get(at) != Some(owner) {
                self.owned[at] = now;
            }
        }
        self.owners = owners;
    }

    pub(crate) fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// Whether another node was opened later under the name of this one.
    pub(crate) fn is_replaced(&self) -> bool {
        self.members.is_replaced(&self.identity)
    }

    /// A partition runs here. Says whether its owner was not known to be this node.
    pub(crate) fn taken(&mut self, partition: PartitionId, epoch: Epoch) -> bool {
        let at = usize::from(partition.0);
        self.places[at] = Place::Here(epoch);
        // A node knows its own partitions without the store.
        let Some(owner) = self.owners.get_mut(at).filter(|owner| owner.epoch < epoch) else { return false };
        *owner = Owner { partition, epoch, node: Some(self.key.clone()) };
        true
    }

    /// A partition does not run here, because it has left, could not be taken or could not be given up. After a failure
    /// it is not taken at once.
    pub(crate) fn left(&mut self, partition: PartitionId, has_failed: bool, now: Instant) {
        let at = usize::from(partition.0);
        self.places[at] = Place::Elsewhere;
        if has_failed {
            self.not_before[at] = now + self.beat;
        }
    }

    /// Ends all partitions.
    pub(crate) fn end(&mut self, how: Leave) -> Vec<Move> {
        (0..self.places.len()).filter_map(|at| self.end_one(at, how)).collect()
    }

    /// Whether no partition is here, comes or goes.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.iter().all(|place| *place == Place::Elsewhere)
    }

    /// Ends partitions that are lost or have failed, and moves those that should be elsewhere.
    pub(crate) fn settle(&mut self, now: Instant, has_failed: impl Fn(PartitionId) -> bool) -> Vec<Move> {
        let mut moves = Vec::new();
        for at in 0..self.owners.len() {
            let Place::Here(epoch) = self.places[at] else { continue };
            if self.owners[at].epoch > epoch || has_failed(self.owners[at].partition) {
                moves.extend(self.end_one(at, Leave::AtOnce));
            }
        }
        let wanted = self.wanted();
        self.take(&wanted, now, &mut moves);
        self.disown(&wanted, now, &mut moves);
        self.give(&wanted, &mut moves);
        moves
    }

    /// Which partitions should be this node's, and whether they can be taken now.
    fn wanted(&self) -> Allocation {
        let me = self.key.as_str();
        let alive: Vec<(&str, bool)> =
            self.alive().map(|(key, member)| (key.as_str(), member.record.is_leaving)).collect();
        let members: Vec<&str> = alive.iter().filter(|(_, is_leaving)| !is_leaving).map(|(key, _)| *key).collect();
        let owners: Vec<Option<&str>> = self.owners.iter().map(|owner| owner.node.as_deref()).collect();
        let is_gone = |owner: &str, seen: &Instant| {
            self.members.is_replaced_by_key(owner) || self.members.is_lost(owner, *seen, self.silence)
        };
        let can_take =
            |(owner, seen): (&Option<&str>, &Instant)| owner.is_none_or(|owner| owner == me || is_gone(owner, seen));
        let mine = goal(&members, &owners).into_iter().map(|place| place.is_some_and(|at| members[at] == me));
        Allocation { mine: mine.collect(), can_take: owners.iter().zip(&self.owned).map(can_take).collect() }
    }

    fn take(&mut self, wanted: &Allocation, now: Instant, moves: &mut Vec<Move>) {
        let taking = self.places.iter().filter(|place| **place == Place::Taking).count();
        let is_free = |at: &usize| wanted.mine[*at] && wanted.can_take[*at] && self.is_idle(*at, now);
        let free: Vec<usize> = (0..wanted.mine.len()).filter(is_free).take(TAKING_MAX.saturating_sub(taking)).collect();
        for at in free {
            self.places[at] = Place::Taking;
            moves.push(Move::Take(self.owners[at].clone()));
        }
    }

    fn is_idle(&self, at: usize, now: Instant) -> bool {
        self.places[at] == Place::Elsewhere && now >= self.not_before[at]
    }

    /// Gives up partitions that are this node's by the store alone and are to go to another: the store had noted them for it,
    /// then taking it failed, and so did giving it back.
    fn disown(&mut self, wanted: &Allocation, now: Instant, moves: &mut Vec<Move>) {
        for at in 0..wanted.mine.len() {
            let is_owned = self.owners[at].node.as_deref() == Some(self.key.as_str());
            if is_owned && !wanted.mine[at] && self.is_idle(at, now) {
                self.places[at] = Place::Leaving;
                moves.push(Move::Disown(self.owners[at].partition, self.owners[at].epoch));
            }
        }
    }

    /// Gives one partition back, once the one before has been taken up.
    fn give(&mut self, wanted: &Allocation, moves: &mut Vec<Move>) {
        let has_free = self.owners.iter().any(|owner| owner.node.is_none());
        if has_free || self.places.contains(&Place::Leaving) {
            return;
        }
        let is_surplus = |at: &usize| !wanted.mine[*at] && matches!(self.places[*at], Place::Here(_));
        if let Some(at) = (0..wanted.mine.len()).find(is_surplus) {
            moves.extend(self.end_one(at, Leave::Orderly));
        }
    }

    fn end_one(&mut self, at: usize, how: Leave) -> Option<Move> {
        let Place::Here(_) = self.places[at] else { return None };
        self.places[at] = Place::Leaving;
        let partition = PartitionId(u16::try_from(at).unwrap_or(u16::MAX));
        Some(Move::Leave(partition, how))
    }
}

/// By partition.
struct Allocation {
    mine: Vec<bool>,
    can_take: Vec<bool>,
}
