//! Output of a partition besides frames: effects, and the gate at which they wait for the log.

use crate::error::Error;
use crate::ids::PartitionId;
use crate::partition::gate::{Gate, GatedEffect};
use crate::partition::input::{Effect, Reply, Response};
use crate::partition::outbox::{Gap, Outbox};

/// Messages that are sent again together with a probe.
const PROBE_MESSAGES: usize = 16;

/// Effects that may leave, in order, and those that wait.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) gate: Gate,
    pub(super) effects: Vec<Effect>,
}

impl Output {
    /// Responds to a client once the present step is durable.
    pub(super) fn respond(&mut self, reply: Reply, response: Result<Response, Error>) {
        self.gate.stage(GatedEffect::Respond(reply, response));
    }

    /// Responds to clients with an error at once.
    pub(super) fn refuse(&mut self, replies: impl Iterator<Item = Reply>, error: &Error) {
        self.effects.extend(replies.map(|reply| Effect::Respond(reply, Err(error.clone()))));
    }

    /// Hands the receiver the messages it has not been given, at most `lot` at once.
    pub(super) fn hand_over(&mut self, outbox: &mut Outbox, to: PartitionId, lot: usize) {
        loop {
            let (first, messages) = outbox.hand_over(to, lot);
            if messages.is_empty() {
                return;
            }
            self.effects.push(Effect::Send { to, first, messages });
        }
    }

    /// Asks a partition which unacknowledged messages it is missing. The first few go along, at most `lot`, as they
    /// may be all.
    pub(super) fn probe(&mut self, outbox: &mut Outbox, to: PartitionId, lot: usize) {
        let Some(up_to) = outbox.unconfirmed(to) else { return };
        let (first, messages) = outbox.again(to, Gap::ALL, lot.min(PROBE_MESSAGES));
        self.effects.push(Effect::Send { to, first, messages });
        self.effects.push(Effect::Probe { to, up_to });
    }

    /// Hands the receiver a gap of missing messages again, at most `lot` at once.
    pub(super) fn resend(&mut self, outbox: &mut Outbox, to: PartitionId, gap: Gap, lot: usize) {
        let mut next = gap.first;
        loop {
            let (first, messages) = outbox.again(to, Gap { first: next, ..gap }, lot);
            if messages.is_empty() {
                return;
            }
            next = first + messages.len() as u64;
            self.effects.push(Effect::Send { to, first, messages });
        }
    }

    /// Drops everything and gives the replies of the responses that waited at the gate.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Reply> + '_ {
        self.effects.clear();
        self.gate.drain().filter_map(|effect| match effect {
            GatedEffect::Respond(reply, _) => Some(reply),
            _ => None,
        })
    }
}
