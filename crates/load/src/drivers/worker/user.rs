//! A virtual user: one connection and one request at a time.

use std::net::SocketAddr;

use crate::data::Draw;
use crate::drivers::transport::Exchanges;
use crate::flows::Position;
use crate::request::ResponseForm;
use crate::sampling::FinishedRequest;
use crate::session::{Capture, Session};
use crate::trace_context::TraceContext;

/// Activity of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Nothing, until the load has room for it.
    Resting,
    /// Its next request has a time, and a timer.
    Waiting,
    /// Its request is with the transport, and has not ended.
    Busy,
}

/// See the module. Times are Unix nanoseconds, 0 when they have not come yet.
#[derive(Debug)]
pub(super) struct User {
    pub(super) scenario: usize,
    /// Where it is in its flow.
    pub(super) position: Position,
    pub(super) vu: u32,
    pub(super) target: SocketAddr,
    pub(super) activity: Activity,
    /// Whether it has a connection that can carry its next request.
    pub(super) is_connected: bool,
    /// The current request, as bytes of HTTP/1.1.
    pub(super) request: Vec<u8>,
    /// Shape of the response to it.
    pub(super) form: ResponseForm,
    /// Bytes of that response so far.
    pub(super) received: u64,
    /// Draws from the data sources for the current iteration.
    pub(super) draws: Vec<Draw>,
    /// Its state; `None` where iterations are single plain requests.
    pub(super) session: Option<Box<Session>>,
    pub(super) trace: TraceContext,
    pub(super) intended_ns: i64,
    pub(super) begun_ns: i64,
    pub(super) sent_ns: i64,
    pub(super) first_byte_ns: i64,
    /// When the connection took the first bytes of the last attempt: a redirect or a retry is another.
    pub(super) writing_ns: i64,
    /// When the connection took the last bytes.
    pub(super) written_ns: i64,
    /// Whether the current attempt is a repetition, until its first bytes are sent.
    pub(super) is_repeat: bool,
    pub(super) deadline_ns: i64,
    /// The last time that its pace said "send".
    pub(super) tick_ns: i64,
    /// Pause after a connection was refused.
    pub(super) back_off_ns: i64,
}

impl User {
    pub(super) fn new(scenario: usize, vu: u32, target: SocketAddr) -> Self {
        Self {
            scenario,
            position: Position::default(),
            vu,
            target,
            activity: Activity::Resting,
            is_connected: false,
            request: Vec::new(),
            form: ResponseForm::WithBody,
            received: 0,
            draws: Vec::new(),
            session: None,
            trace: TraceContext::default(),
            intended_ns: 0,
            begun_ns: 0,
            sent_ns: 0,
            first_byte_ns: 0,
            writing_ns: 0,
            written_ns: 0,
            is_repeat: false,
            deadline_ns: i64::MAX,
            tick_ns: 0,
            back_off_ns: 0,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.activity == Activity::Busy
    }

    /// Whether its iteration goes on after a pause.
    pub(super) fn is_within_iteration(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_within_iteration())
    }

    /// Whether it is within an iteration.
    pub(super) fn is_at_work(&self) -> bool {
        self.is_busy() || self.is_within_iteration()
    }

    /// Whether its iteration has steps after the current request or pause.
    pub(super) fn has_steps_left(&self) -> bool {
        self.is_within_iteration() || (self.is_busy() && self.position.next().is_some())
    }

    /// Gives up what is left of its iteration.
    pub(super) fn leave_iteration(&mut self) {
        if let Some(session) = &mut self.session {
            session.take_upcoming();
        }
    }

    /// Makes its session ready for the next request, and returns how many bytes came before the current response: those
    /// that redirected to it.
    pub(super) fn end_request(&mut self) -> u64 {
        self.session.as_mut().map_or(0, |session| session.end_request())
    }

    /// The current request as it stands at its end, without a status.
    pub(super) fn ended(&self, done_ns: i64) -> FinishedRequest {
        FinishedRequest {
            vu: self.vu,
            intended_ns: self.intended_ns,
            sent_ns: if self.sent_ns == 0 { self.begun_ns } else { self.sent_ns },
            done_ns,
            status: 0,
            error: None,
            bytes: self.received,
            trace_id: self.trace.sampled_id(),
        }
    }
}

impl Exchanges for Vec<User> {
    fn request(&self, slot: usize) -> &[u8] {
        &self[slot].request
    }

    fn capture(&mut self, slot: usize) -> Option<&mut Capture> {
        self[slot].session.as_mut().map(|session| &mut session.capture)
    }
}
