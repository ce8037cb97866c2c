//! A virtual user: one connection and one request at a time.

use std::net::SocketAddr;

use crate::data::Draw;
use crate::flows::Position;
use crate::request::ResponseForm;
use crate::sampling::Ended;
use crate::session::Session;
use crate::trace_context::TraceContext;

/// What a user is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drivers) enum Activity {
    /// Nothing, until the load has room for it.
    Resting,
    /// Its next request has a time, and a timer.
    Waiting,
    /// Its request is not written whole; perhaps it is still connecting.
    Sending,
    /// Its request is written, the response is not complete.
    Receiving,
}

/// A connection to the target.
#[derive(Debug)]
pub(in crate::drivers) struct Connection<S> {
    pub(in crate::drivers) socket: S,
    /// Responses it has delivered.
    pub(in crate::drivers) responses: u64,
}

impl<S> Connection<S> {
    pub(in crate::drivers) fn new(socket: S) -> Self {
        Self { socket, responses: 0 }
    }
}

/// See the module. Times are Unix nanoseconds, 0 when they have not come yet.
#[derive(Debug)]
pub(in crate::drivers) struct User<S> {
    pub(in crate::drivers) scenario: usize,
    /// Where it is in its flow.
    pub(in crate::drivers) position: Position,
    pub(in crate::drivers) vu: u32,
    pub(in crate::drivers) target: SocketAddr,
    pub(in crate::drivers) activity: Activity,
    pub(in crate::drivers) connection: Option<Connection<S>>,
    /// Distinguishes the events of this connection from those of earlier ones.
    pub(in crate::drivers) generation: u32,
    /// The current request, as bytes of HTTP/1.1.
    pub(in crate::drivers) request: Vec<u8>,
    /// What the response to it looks like.
    pub(in crate::drivers) form: ResponseForm,
    /// Bytes of that response so far.
    pub(in crate::drivers) received: u64,
    /// What was drawn from the data sources for the current iteration.
    pub(in crate::drivers) draws: Vec<Draw>,
    /// What it remembers; none where iterations are single plain requests.
    pub(in crate::drivers) session: Option<Box<Session>>,
    pub(in crate::drivers) trace: TraceContext,
    pub(in crate::drivers) intended_ns: i64,
    pub(in crate::drivers) begun_ns: i64,
    pub(in crate::drivers) sent_ns: i64,
    pub(in crate::drivers) first_byte_ns: i64,
    /// When the connection first took bytes of the current attempt.
    pub(in crate::drivers) writing_ns: i64,
    /// When the request was written whole.
    pub(in crate::drivers) written_ns: i64,
    pub(in crate::drivers) deadline_ns: i64,
    /// The last time that its pace said "send".
    pub(in crate::drivers) tick_ns: i64,
    /// What it waits after a connection was refused.
    pub(in crate::drivers) back_off_ns: i64,
}

impl<S> User<S> {
    pub(in crate::drivers) fn new(scenario: usize, vu: u32, target: SocketAddr) -> Self {
        Self {
            scenario,
            position: Position::default(),
            vu,
            target,
            activity: Activity::Resting,
            connection: None,
            generation: 0,
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
            deadline_ns: i64::MAX,
            tick_ns: 0,
            back_off_ns: 0,
        }
    }

    pub(in crate::drivers) fn is_busy(&self) -> bool {
        matches!(self.activity, Activity::Sending | Activity::Receiving)
    }

    /// Whether its iteration goes on after a pause.
    pub(in crate::drivers) fn is_within_iteration(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_within_iteration())
    }

    /// Whether it is within an iteration.
    pub(in crate::drivers) fn is_at_work(&self) -> bool {
        self.is_busy() || self.is_within_iteration()
    }

    /// Whether its iteration has steps after the current request or pause.
    pub(in crate::drivers) fn has_steps_left(&self) -> bool {
        self.is_within_iteration() || (self.is_busy() && self.position.next().is_some())
    }

    /// Gives up what is left of its iteration.
    pub(in crate::drivers) fn leave_iteration(&mut self) {
        if let Some(session) = &mut self.session {
            session.take_upcoming();
        }
    }

    /// Makes its session ready for the next request, and returns how many bytes came before the current response: those
    /// that redirected to it.
    pub(in crate::drivers) fn end_request(&mut self) -> u64 {
        self.session.as_mut().map_or(0, |session| session.end_request())
    }

    /// The current request as it stands at its end, without a status.
    pub(in crate::drivers) fn ended(&self, done_ns: i64) -> Ended {
        Ended {
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
