//! A virtual user: one connection and one request at a time.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::epoll::EventFlags;

use super::response::ResponseParser;
use crate::flows::Position;
use crate::sampling::Ended;
use crate::trace_context::TraceContext;

/// What a user is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Nothing, until the load has room for it.
    Resting,
    /// Its next request has a time, and a timer.
    Waiting,
    /// Its request is not written whole; perhaps it is still connecting.
    Sending,
    /// Its request is written, the answer is not whole.
    Receiving,
}

/// How often the current request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    /// Again, because the server had closed the kept connection.
    Second,
}

/// A connection to the target.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// Answers it has brought.
    pub(super) answers: u64,
    /// Just before the call that opened it, in Unix nanoseconds.
    pub(super) opened_ns: i64,
    /// Whether it took any byte, which shows that it is connected.
    pub(super) is_proven: bool,
    pub(super) watched: Watched,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, opened_ns: i64) -> Self {
        Self { socket, answers: 0, opened_ns, is_proven: false, watched: Watched::Not }
    }
}

/// What the poller watches a connection for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watched {
    Not,
    ForAnswer,
    /// Room to write, and an answer that comes before the request is whole.
    ForRoom,
}

impl Watched {
    pub(super) fn events(self) -> EventFlags {
        match self {
            Watched::Not => EventFlags::empty(),
            Watched::ForAnswer => EventFlags::IN,
            Watched::ForRoom => EventFlags::IN | EventFlags::OUT,
        }
    }
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
    pub(super) connection: Option<Connection>,
    /// Tells the events of this connection from those of the ones before it.
    pub(super) generation: u32,
    pub(super) parser: ResponseParser,
    pub(super) request: Vec<u8>,
    pub(super) written: usize,
    pub(super) attempt: Attempt,
    pub(super) trace: TraceContext,
    pub(super) intended_ns: i64,
    pub(super) begun_ns: i64,
    pub(super) sent_ns: i64,
    pub(super) first_byte_ns: i64,
    /// When the connection first took bytes of the current attempt.
    pub(super) writing_ns: i64,
    /// When the request was written whole.
    pub(super) written_ns: i64,
    pub(super) deadline_ns: i64,
    /// The last time that its pace said "send".
    pub(super) tick_ns: i64,
    /// What it waits after a connection was refused.
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
            connection: None,
            generation: 0,
            parser: ResponseParser::new(),
            request: Vec::new(),
            written: 0,
            attempt: Attempt::First,
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

    pub(super) fn is_busy(&self) -> bool {
        matches!(self.activity, Activity::Sending | Activity::Receiving)
    }

    /// The current request as it stands at its end, without a status.
    pub(super) fn ended(&self, done_ns: i64) -> Ended {
        Ended {
            vu: self.vu,
            intended_ns: self.intended_ns,
            sent_ns: if self.sent_ns == 0 { self.begun_ns } else { self.sent_ns },
            done_ns,
            status: 0,
            error: None,
            bytes: self.parser.bytes(),
            trace_id: self.trace.sampled_id(),
        }
    }
}
