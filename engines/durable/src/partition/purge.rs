//! Purges: ended orchestrations are forgotten together with their sub-orchestrations.
//!
//! An orchestration is forgotten after all below it, in as many frames as that needs, so that a crash in between leaves
//! nothing that cannot be found from above. While a purge waits for the next frame, a message to its orchestration is
//! put off, which begins it anew after a crash; without one, it goes on from its place in memory. Chains may be longer
//! than any stack, so nothing here calls itself.

use std::collections::HashSet;

use crate::client::Filter;
use crate::error::Error;
use crate::ids::InstanceId;
use crate::message::{Message, MessageKind};
use crate::partition::Partition;
use crate::partition::input::{Reply, Response};
use crate::partition::queries::LOOKED_AT_MAX;
use crate::partition::table::Instance;
use crate::partition::timers::AT_ONCE;
use crate::partition::view::all_subs;

/// Instances that one question purges before it says where to go on.
const PURGED_MAX: usize = 2_000;

/// Part of a purge that one frame has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PurgeProgress {
    /// Instances that are gone here. Sub-orchestrations of other partitions are sent messages.
    pub(super) count: u64,
    /// Whether it is all done.
    pub(super) is_over: bool,
}

/// A purge on its way.
#[derive(Debug, Default)]
pub(super) struct Purge {
    /// Path from the purged orchestration down to the present one.
    path: Vec<Level>,
    /// Handles that have been on the path: an identifier may be used again further down.
    seen: HashSet<u64>,
    count: u64,
    replies: Vec<PurgeReply>,
    /// The message that begins it anew after a crash.
    message: u64,
}

/// One that is forgotten once those below it are.
#[derive(Debug)]
struct Level {
    handle: u64,
    subs: Vec<InstanceId>,
}

/// Where to send the number of instances that were purged.
#[derive(Debug)]
pub(super) struct PurgeReply {
    pub(super) reply: Reply,
    /// How many were purged before, for the same request.
    pub(super) before: u64,
    /// Where that goes on.
    pub(super) next: Option<u64>,
}

impl Purge {
    pub(super) fn into_replies(self) -> impl Iterator<Item = Reply> {
        self.replies.into_iter().map(|to| to.reply)
    }

    fn enter(&mut self, handle: u64, instance: &Instance) {
        if self.seen.insert(handle) {
            let subs = instance.execution().map(all_subs).unwrap_or_default();
            self.path.push(Level { handle, subs });
        }
    }
}

impl Partition {
    /// Forgets an ended orchestration with its sub-orchestrations, or an idle entity, as far as the frame has room.
    pub(super) fn purge(&mut self, id: &InstanceId) -> Result<PurgeProgress, Error> {
        let Some(handle) = self.table.handle(id) else { return Ok(PurgeProgress { count: 0, is_over: true }) };
        let mut purge = match self.purges.remove(&handle) {
            Some(purge) => {
                // It has come, unless this was requested again before.
                if self.timers.undefer(purge.message).is_some() {
                    self.log.frame.undeferred(purge.message);
                }
                purge
            }
            None if is_busy(self.table.known(handle)) => {
                return Err(Error::Conflict { instance: id.clone(), state: "is running", action: "purged" });
            }
            None => {
                let mut purge = Purge::default();
                purge.enter(handle, self.table.known(handle));
                purge
            }
        };
        let before = purge.count;
        self.go_on(&mut purge);
        let purged = PurgeProgress { count: purge.count - before, is_over: purge.path.is_empty() };
        if purged.is_over {
            self.conclude_purge(purge);
        } else {
            purge.message = self.defer_until(AT_ONCE, Message { to: id.clone(), kind: MessageKind::Purge });
            self.purges.insert(handle, purge);
        }
        Ok(purged)
    }

    fn go_on(&mut self, purge: &mut Purge) {
        while let Some(level) = purge.path.last_mut() {
            match level.subs.pop() {
                Some(sub) if self.settings.partition_of(&sub) != self.settings.id => {
                    self.send(Message { to: sub, kind: MessageKind::Purge });
                }
                Some(sub) => {
                    let found = self.table.handle(&sub).map(|handle| (handle, self.table.known(handle)));
                    let ended = found.filter(|(_, instance)| instance.execution().is_some() && !is_busy(instance));
                    if let Some((handle, instance)) = ended {
                        purge.enter(handle, instance);
                    }
                }
                None => {
                    let handle = level.handle;
                    purge.path.pop();
                    purge.count += self.forget_ended(handle);
                }
            }
            if self.is_full() {
                break;
            }
        }
    }

    /// Forgets one, unless that has happened since it was found. Gives how many are gone.
    fn forget_ended(&mut self, handle: u64) -> u64 {
        let Some(instance) = self.table.get(handle) else { return 0 };
        let after = instance.execution().map_or(0, |execution| execution.generation + 1);
        self.generations.raise(after);
        self.forget(handle);
        1
    }

    /// Ends the purge of an instance that is gone.
    pub(super) fn end_purge(&mut self, handle: u64) {
        if let Some(purge) = self.purges.remove(&handle) {
            self.timers.undefer(purge.message);
            self.log.frame.undeferred(purge.message);
            self.conclude_purge(purge);
        }
    }

    fn conclude_purge(&mut self, purge: Purge) {
        for PurgeReply { reply, before, next } in purge.replies {
            self.output.respond(reply, Ok(Response::Count(before + purge.count, next)));
        }
    }

    /// Purges one, and responds when that is done.
    pub(super) fn purge_for(&mut self, id: &InstanceId, to: PurgeReply) {
        match self.purge(id) {
            Err(error) => self.output.respond(to.reply, Err(error)),
            Ok(PurgeProgress { count, is_over: true }) => {
                self.output.respond(to.reply, Ok(Response::Count(to.before + count, to.next)));
            }
            Ok(_) => self.wait_for_purge(id, to),
        }
    }

    fn wait_for_purge(&mut self, id: &InstanceId, to: PurgeReply) {
        let purge = self.table.handle(id).and_then(|handle| self.purges.get_mut(&handle));
        purge.expect("what is not over is under way").replies.push(to);
    }

    /// Whether an instance is being purged and one frame had no room for that.
    pub(crate) fn is_purging(&self, id: &InstanceId) -> bool {
        self.table.handle(id).is_some_and(|handle| self.purges.contains_key(&handle))
    }

    /// Purges ended orchestrations that pass, from a place on, and says how many and where to go on.
    pub(super) fn purge_all(&mut self, filter: &Filter, from: u64, reply: Reply) {
        let (ids, next) = self.ended(filter, from);
        let mut count = 0;
        for (handle, id) in ids {
            if self.is_full() {
                return self.output.respond(reply, Ok(Response::Count(count, Some(handle))));
            }
            match self.purge(&id) {
                Ok(PurgeProgress { count: more, is_over: true }) => count += more,
                Ok(_) => return self.wait_for_purge(&id, PurgeReply { reply, before: count, next: Some(handle) }),
                Err(_) => {}
            }
        }
        self.output.respond(reply, Ok(Response::Count(count, next)));
    }

    fn ended(&self, filter: &Filter, from: u64) -> (Vec<(u64, InstanceId)>, Option<u64>) {
        let mut ids = Vec::new();
        for (looks, (handle, instance)) in self.table.from(from).enumerate() {
            if looks == LOOKED_AT_MAX || ids.len() == PURGED_MAX {
                return (ids, Some(handle));
            }
            if instance.status().is_ended() && filter.passes(instance) {
                ids.push((handle, instance.id.clone()));
            }
        }
        (ids, None)
    }
}

fn is_busy(instance: &Instance) -> bool {
    match (instance.execution(), instance.entity()) {
        (Some(execution), _) => !execution.status.is_ended(),
        (_, Some(entity)) => entity.lock.is_some() || !entity.queue.is_empty() || !entity.arrived.is_empty(),
        _ => false,
    }
}
