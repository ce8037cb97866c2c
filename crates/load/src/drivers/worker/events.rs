//! Effect of the transport's events on users. Every change of a user that a connection causes is made here or from
//! here.

use narrows_model::load::Retry;

use super::Worker;
use crate::drivers::transport::{Event, Failure, Repeat, Response, Transport};
use crate::request::is_idempotent;

impl<T: Transport> Worker<'_, T> {
    /// Applies what the transport has to report. A request that begins by that may add to it. Must follow whatever may
    /// begin a request, before the clock is read again.
    pub(super) fn apply_events(&mut self) {
        while let Some((slot, event)) = self.transport.next(&mut self.users) {
            self.apply(slot, event);
        }
    }

    fn apply(&mut self, slot: usize, event: Event) {
        debug_assert_eq!(self.users[slot].is_busy(), event != Event::Closed, "{event:?}");
        match event {
            Event::Connected { opened_ns, connected_ns, secured_ns } => {
                let phases = &mut self.recorder.totals.phases;
                phases.connect.add(opened_ns, connected_ns);
                if let Some(secured_ns) = secured_ns {
                    phases.tls.add(connected_ns, secured_ns);
                }
            }
            Event::Sent { at_ns, delay_ns } => self.sent(slot, at_ns, delay_ns),
            Event::Written { at_ns } => self.users[slot].written_ns = at_ns,
            Event::Received { bytes } => self.users[slot].received = bytes,
            Event::Response { response, first_byte_ns, done_ns } => {
                self.responded(slot, response, first_byte_ns, done_ns);
            }
            Event::Failed(failure) if self.may_repeat(slot, failure.repeat) => self.repeat(slot, failure.repeat),
            Event::Failed(Failure { kind, cause, received, .. }) => {
                self.users[slot].received = received;
                self.fail(slot, kind, cause);
            }
            Event::Closed => self.users[slot].is_connected = false,
        }
    }

    /// A request that is redirected or repeated counts as sent once. A repeated one also counts as repeated, once it is
    /// sent again.
    fn sent(&mut self, slot: usize, at_ns: i64, delay_ns: i64) {
        self.close_seconds(at_ns);
        let user = &mut self.users[slot];
        user.writing_ns = at_ns;
        if std::mem::take(&mut user.is_repeat) {
            self.recorder.repeated(user.position.row);
        }
        if user.sent_ns == 0 {
            user.sent_ns = at_ns;
            // Delays of this program count, those of the target do not.
            let lateness_ns = user.begun_ns - user.intended_ns + delay_ns;
            self.recorder.sent(user.position.row, lateness_ns.max(0) as u64);
        }
    }

    fn responded(&mut self, slot: usize, response: Response, first_byte_ns: i64, done_ns: i64) {
        self.close_seconds(done_ns);
        let user = &mut self.users[slot];
        user.first_byte_ns = first_byte_ns;
        user.received = response.bytes;
        self.complete(slot, response, done_ns);
    }

    fn may_repeat(&self, slot: usize, repeat: Repeat) -> bool {
        let may_send_twice = self.shared.plan.retry == Retry::Idempotent;
        match repeat {
            Repeat::Never => false,
            Repeat::IfIdempotent => may_send_twice && is_idempotent(&self.users[slot].request),
            Repeat::Unprocessed => may_send_twice,
            Repeat::Unsent => true,
        }
    }

    /// Repeats a request. This happens once only, because the new connection is not a kept one.
    fn repeat(&mut self, slot: usize, repeat: Repeat) {
        let user = &mut self.users[slot];
        (user.writing_ns, user.written_ns) = (0, 0);
        user.is_repeat = repeat != Repeat::Unsent;
        self.disconnect(slot);
        let now = self.now();
        self.hand_over(slot, now);
    }
}
