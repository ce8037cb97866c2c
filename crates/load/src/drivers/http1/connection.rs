//! A TCP connection: how far the current request and its response are on it, and how they go on.
//!
//! Each step makes the system calls that are possible now and reports what came of them. Steps fail with what the
//! request fails with.

use std::os::fd::OwnedFd;

use narrows_model::load::ErrorKind;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, connect, recv, send};

use super::poller::Poller;
use super::response::{AtClose, ResponseParser};
use crate::clock::Clock;
use crate::drivers::socket;
use crate::drivers::transport::{Event, Failure, Order, Repeat, Response, Reuse};
use crate::recorder::Cause;
use crate::request::ResponseForm;
use crate::session::Sink;

/// Reads from one socket before others get their turn.
const READS_MAX: usize = 16;

/// See the module. Times are Unix nanoseconds.
#[derive(Debug)]
pub(super) struct Tcp {
    socket: OwnedFd,
    /// Distinguishes it from all connections of this thread, also from earlier ones of the same slot.
    pub(super) key: u64,
    parser: ResponseParser,
    pub(super) stage: Stage,
    /// Bytes of the current request that it took.
    written: usize,
    /// Just before the call that opened it.
    opened_ns: i64,
    /// When the first bytes of the current response came; 0 before.
    first_byte_ns: i64,
    /// Whether it took any byte, which shows that it is connected.
    pub(super) is_proven: bool,
    /// Whether it delivered a response before the current request.
    is_kept: bool,
    watched: Interest,
}

/// How far the current request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// No request is in progress.
    Idle,
    /// The request is not written whole; perhaps the connection is not made yet.
    Sending,
    /// The request is written, the response is not complete.
    Receiving,
}

/// Events that the poller watches a connection for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interest {
    Not,
    ForResponse,
    /// Room to write, and a response that comes before the request is whole.
    ForRoom,
}

impl Interest {
    fn events(self) -> EventFlags {
        match self {
            Interest::Not => EventFlags::empty(),
            Interest::ForResponse => EventFlags::IN,
            Interest::ForRoom => EventFlags::IN | EventFlags::OUT,
        }
    }
}

impl Tcp {
    /// A connection for its first request. It may still be in the making.
    ///
    /// # Errors
    /// Error of the kernel when it refuses at once.
    pub(super) fn open(key: u64, order: &Order, clock: Clock) -> Result<Self, Errno> {
        let socket = socket::open(&order.target, order.from)?;
        let opened_ns = clock.now_ns();
        match connect(&socket, &order.target) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let mut tcp = Self {
            socket,
            key,
            parser: ResponseParser::new(),
            stage: Stage::Sending,
            written: 0,
            opened_ns,
            first_byte_ns: 0,
            is_proven: false,
            is_kept: false,
            watched: Interest::Not,
        };
        tcp.parser.expect(order.form);
        Ok(tcp)
    }

    /// Makes a kept connection ready for another request from its first byte, and for its response.
    pub(super) fn expect(&mut self, form: ResponseForm) {
        debug_assert_eq!(self.stage, Stage::Idle, "one request at a time");
        self.stage = Stage::Sending;
        self.written = 0;
        self.first_byte_ns = 0;
        self.is_kept = true;
        self.parser.expect(form);
    }

    /// Writes what is left of the current request, and has the poller watch for what comes next. `now` is just before.
    pub(super) fn write(
        &mut self,
        request: &[u8],
        now: i64,
        clock: Clock,
        poller: &Poller,
        report: &mut impl FnMut(Event),
    ) -> Result<(), Failure> {
        while self.stage == Stage::Sending {
            match send(&self.socket, &request[self.written..], SendFlags::NOSIGNAL) {
                Ok(bytes) => {
                    self.took(bytes, now, report);
                    if self.written == request.len() {
                        self.stage = Stage::Receiving;
                        report(Event::Written { at_ns: clock.now_ns() });
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.watch(poller, Interest::ForRoom),
                Err(errno) => return Err(self.broken(errno.into())),
            }
        }
        self.watch(poller, Interest::ForResponse)
    }

    /// Takes note of bytes that the connection took. The first prove that it is connected.
    fn took(&mut self, bytes: usize, now: i64, report: &mut impl FnMut(Event)) {
        if !self.is_proven {
            self.is_proven = true;
            report(Event::Connected { opened_ns: self.opened_ns, connected_ns: now, secured_ns: None });
        }
        if self.written == 0 {
            report(Event::Sent { at_ns: now, delay_ns: 0 });
        }
        self.written += bytes;
    }

    /// Costs nothing when the poller watches for it already.
    fn watch(&mut self, poller: &Poller, watched: Interest) -> Result<(), Failure> {
        let before = std::mem::replace(&mut self.watched, watched);
        let done = match (before, watched.events()) {
            (before, _) if before == watched => Ok(()),
            (Interest::Not, events) => poller.add(&self.socket, self.key, events),
            (_, events) => poller.modify(&self.socket, self.key, events),
        };
        done.map_err(|errno| self.failure(ErrorKind::Connect, errno.into()))
    }

    /// Reads what has come of the response: [`Event::Received`] or [`Event::Response`].
    pub(super) fn read(&mut self, buffer: &mut [u8], sink: &mut impl Sink, clock: Clock) -> Result<Event, Failure> {
        for _ in 0..READS_MAX {
            match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return self.closed(clock),
                Ok((bytes, _)) => {
                    let now = clock.now_ns();
                    if self.first_byte_ns == 0 {
                        self.first_byte_ns = now;
                    }
                    match self.parser.feed(&buffer[..bytes], sink) {
                        Ok(Some(response)) => return Ok(self.complete(response, now)),
                        Ok(None) if bytes == buffer.len() => {}
                        Ok(None) => break,
                        Err(problem) => return Err(self.failure(ErrorKind::Protocol, Cause::Text(problem))),
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(self.broken(errno.into())),
            }
        }
        Ok(Event::Received { bytes: self.parser.bytes() })
    }

    /// A connection whose request is not written whole cannot carry another.
    fn complete(&mut self, response: Response, done_ns: i64) -> Event {
        let reuse = if self.stage == Stage::Receiving { response.reuse } else { Reuse::Closed };
        self.stage = Stage::Idle;
        Event::Response { response: Response { reuse, ..response }, first_byte_ns: self.first_byte_ns, done_ns }
    }

    /// The server has closed the connection.
    fn closed(&mut self, clock: Clock) -> Result<Event, Failure> {
        match self.parser.close() {
            AtClose::Whole(response) => Ok(self.complete(response, clock.now_ns())),
            AtClose::Nothing => Err(self.broken(Cause::Text("the server closed the connection without a response"))),
            AtClose::CutShort => {
                let cause = Cause::Text("the server closed the connection during a response");
                Err(self.failure(ErrorKind::Reset, cause))
            }
            AtClose::NotHttp(problem) => Err(self.failure(ErrorKind::Protocol, Cause::Text(problem))),
        }
    }

    /// The connection is of no use any more.
    fn broken(&self, cause: Cause) -> Failure {
        if !self.is_proven {
            return self.failure(ErrorKind::Connect, cause);
        }
        let repeat = match self.written {
            _ if !self.is_kept || self.parser.bytes() > 0 => Repeat::Never,
            0 => Repeat::Unsent,
            _ => Repeat::IfIdempotent,
        };
        Failure { repeat, ..self.failure(ErrorKind::Reset, cause) }
    }

    fn failure(&self, kind: ErrorKind, cause: Cause) -> Failure {
        Failure { received: self.parser.bytes(), ..Failure::new(kind, cause) }
    }
}
