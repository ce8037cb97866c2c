//! One request and its answer, from the moment a user is due to the moment its next request has a time.
//!
//! A new socket is written to at once, which on loopback succeeds, and watched for room only when it does not take the
//! bytes. The clock is read before `connect` and before each such try, so a connection counts as made at the try that
//! succeeds.

use narrows_model::load::{Connections, ErrorKind};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with};

use super::Worker;
use super::head::Reuse;
use super::poller::Ready;
use super::response::{Answer, AtClose};
use super::user::{Activity, Attempt, Connection, Watched};
use crate::recorder::Cause;
use crate::sampling::Ended;
use crate::trace_context::TraceContext;

/// The pause of a user after a refused connection doubles from the first to the second.
const BACK_OFF_NS_MIN: i64 = 10_000_000;
const BACK_OFF_NS_MAX: i64 = 1_000_000_000;
/// Reads from one socket before others get their turn.
const READS_MAX: usize = 16;
/// What the status of a failed answer begins at.
const STATUS_FAILED: u16 = 400;

impl Worker<'_> {
    /// Sends a user's next request, which is due at `intended_ns`.
    pub(super) fn begin(&mut self, slot: usize, intended_ns: i64) {
        let begun_ns = self.now();
        let user = &mut self.users[slot];
        let scenario = user.scenario;
        if !self.shared.schedules[scenario].take_ticket(begun_ns - self.shared.start_ns) {
            // Time to see that this scenario is over.
            self.next_tick_ns = begun_ns;
            return self.rest(slot);
        }
        let position = self.shared.flows.draw(scenario, &mut self.random);
        user.position = position;
        let request = &self.shared.flows.steps()[position.row].request;
        if let Some(tracing) = self.shared.plan.tracing {
            user.trace = TraceContext::draw(tracing, &mut self.random);
        }
        request.render(self.shared.sources, &user.trace, &mut self.random, &mut self.scratch, &mut user.request);
        user.parser.expect(request.answer);
        user.activity = Activity::Sending;
        user.attempt = Attempt::First;
        user.written = 0;
        (user.intended_ns, user.begun_ns) = (intended_ns, begun_ns);
        (user.sent_ns, user.writing_ns, user.written_ns, user.first_byte_ns) = (0, 0, 0, 0);
        user.deadline_ns = begun_ns + self.timeout_ns;
        self.next_deadline_ns = self.next_deadline_ns.min(user.deadline_ns);
        self.busy += 1;
        self.attempt(slot, begun_ns);
    }

    /// Sends the current request from its first byte, on a new connection if there is none.
    fn attempt(&mut self, slot: usize, now: i64) {
        if self.users[slot].connection.is_some() {
            return self.write(slot, now);
        }
        if let Err(errno) = self.connect(slot) {
            return self.fail(slot, ErrorKind::Connect, errno.into());
        }
        // The kernel may have made the whole connection within the call, and says "in progress" all the same.
        let now = self.now();
        self.write(slot, now);
    }

    fn connect(&mut self, slot: usize) -> Result<(), Errno> {
        let user = &mut self.users[slot];
        let family = if user.target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        set_tcp_nodelay(&socket, true)?;
        let opened_ns = self.shared.clock.now_ns();
        match connect(&socket, &user.target) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        user.generation = user.generation.wrapping_add(1);
        user.connection = Some(Connection::new(socket, opened_ns));
        Ok(())
    }

    pub(super) fn disconnect(&mut self, slot: usize) {
        // Closing the only descriptor of a socket takes it out of epoll too.
        self.users[slot].connection = None;
    }

    /// Acts on a socket that is ready.
    pub(super) fn serve(&mut self, ready: Ready) {
        let slot = (ready.key & u64::from(u32::MAX)) as usize;
        let user = &self.users[slot];
        let Some(connection) = &user.connection else { return };
        if key(user.generation, slot) != ready.key {
            return;
        }
        match user.activity {
            // Between answers a server says nothing but that it closes.
            Activity::Resting | Activity::Waiting => self.disconnect(slot),
            Activity::Receiving => self.read(slot),
            Activity::Sending => {
                if connection.is_proven && !ready.flags.intersection(EventFlags::IN | EventFlags::HUP).is_empty() {
                    self.read(slot);
                }
                if self.users[slot].activity == Activity::Sending {
                    let now = self.now();
                    self.write(slot, now);
                }
            }
        }
    }

    /// Writes what is left of the current request.
    fn write(&mut self, slot: usize, now: i64) {
        loop {
            let user = &mut self.users[slot];
            let Some(connection) = &mut user.connection else { return };
            match send(&connection.socket, &user.request[user.written..], SendFlags::NOSIGNAL) {
                Ok(bytes) => {
                    user.written += bytes;
                    self.wrote(slot, now);
                    if self.users[slot].activity == Activity::Receiving {
                        return self.watch(slot, Watched::ForAnswer);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.watch(slot, Watched::ForRoom),
                Err(errno) => return self.broken(slot, errno.into()),
            }
        }
    }

    /// Takes note of bytes that the connection took.
    fn wrote(&mut self, slot: usize, now: i64) {
        let user = &mut self.users[slot];
        if user.sent_ns == 0 {
            user.sent_ns = now;
            self.recorder.sent(user.position.row, (user.begun_ns - user.intended_ns).max(0) as u64);
        }
        if user.writing_ns == 0 {
            user.writing_ns = now;
        }
        if let Some(connection) = user.connection.as_mut().filter(|connection| !connection.is_proven) {
            connection.is_proven = true;
            self.recorder.totals.phases.connect.add(connection.opened_ns, now);
        }
        if user.written == user.request.len() {
            user.activity = Activity::Receiving;
            user.written_ns = self.shared.clock.now_ns();
        }
    }

    /// Has the poller watch a user's socket for what comes next; costs nothing when it does already.
    fn watch(&mut self, slot: usize, watched: Watched) {
        let user = &mut self.users[slot];
        let key = key(user.generation, slot);
        let Some(connection) = &mut user.connection else { return };
        let before = std::mem::replace(&mut connection.watched, watched);
        let done = match (before, watched.events()) {
            (before, _) if before == watched => Ok(()),
            (Watched::Not, events) => self.poller.add(&connection.socket, key, events),
            (_, events) => self.poller.modify(&connection.socket, key, events),
        };
        if let Err(errno) = done {
            self.fail(slot, ErrorKind::Connect, errno.into());
        }
    }

    /// Reads what has come of the answer.
    fn read(&mut self, slot: usize) {
        for _ in 0..READS_MAX {
            let Some(connection) = &self.users[slot].connection else { return };
            match recv(&connection.socket, &mut self.received[..], RecvFlags::empty()) {
                Ok((0, _)) => return self.closed(slot),
                Ok((bytes, _)) => {
                    if self.took(slot, bytes) == Turn::Over {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(errno) => return self.broken(slot, errno.into()),
            }
        }
    }

    fn took(&mut self, slot: usize, bytes: usize) -> Turn {
        let now = self.now();
        let user = &mut self.users[slot];
        if user.first_byte_ns == 0 {
            user.first_byte_ns = now;
        }
        match user.parser.feed(&self.received[..bytes]) {
            Ok(Some(answer)) => self.complete(slot, answer, now),
            Ok(None) if bytes == self.received.len() => return Turn::Goes,
            Ok(None) => {}
            Err(problem) => self.fail(slot, ErrorKind::Protocol, Cause::Text(problem)),
        }
        Turn::Over
    }

    /// The server has closed the connection.
    fn closed(&mut self, slot: usize) {
        match self.users[slot].parser.close() {
            AtClose::Whole(answer) => {
                let now = self.now();
                self.complete(slot, answer, now);
            }
            AtClose::Nothing => self.broken(slot, Cause::Text("the server closed the connection without an answer")),
            AtClose::CutShort => {
                self.fail(slot, ErrorKind::Reset, Cause::Text("the server closed the connection within an answer"));
            }
            AtClose::NotHttp(problem) => self.fail(slot, ErrorKind::Protocol, Cause::Text(problem)),
        }
    }

    /// The connection is of no use any more. If it had been kept and nothing of the answer has come, the server may
    /// just have grown tired of it, and the request is sent once more.
    fn broken(&mut self, slot: usize, cause: Cause) {
        let user = &mut self.users[slot];
        let Some(connection) = &user.connection else { return };
        if !connection.is_proven {
            return self.fail(slot, ErrorKind::Connect, cause);
        }
        if connection.answers == 0 || user.parser.bytes() > 0 || user.attempt == Attempt::Second {
            return self.fail(slot, ErrorKind::Reset, cause);
        }
        user.attempt = Attempt::Second;
        user.activity = Activity::Sending;
        user.written = 0;
        (user.writing_ns, user.written_ns) = (0, 0);
        self.recorder.totals.reconnects += 1;
        self.disconnect(slot);
        let now = self.now();
        self.attempt(slot, now);
    }

    fn complete(&mut self, slot: usize, answer: Answer, now: i64) {
        let user = &mut self.users[slot];
        let error = (answer.status >= STATUS_FAILED).then_some(ErrorKind::Status);
        self.recorder.answered(user.position.row, Ended { status: answer.status, error, ..user.ended(now) });
        let totals = &mut self.recorder.totals;
        totals.body_bytes += answer.body_bytes;
        if user.written_ns != 0 {
            totals.phases.write.add(user.writing_ns, user.written_ns);
            totals.phases.wait.add(user.written_ns, user.first_byte_ns);
            totals.phases.read.add(user.first_byte_ns, now);
        }
        user.back_off_ns = 0;
        let kept = answer.reuse == Reuse::Open
            && user.activity == Activity::Receiving
            && self.shared.plan.connections == Connections::KeepAlive;
        match &mut user.connection {
            Some(connection) if kept => connection.answers += 1,
            connection => *connection = None,
        }
        self.busy -= 1;
        self.next(slot, now);
    }

    /// Ends the current request without a whole answer.
    pub(super) fn fail(&mut self, slot: usize, kind: ErrorKind, cause: Cause) {
        let now = self.now();
        let user = &mut self.users[slot];
        self.recorder.failed(user.position.row, user.ended(now), kind, cause);
        if kind == ErrorKind::Connect {
            user.back_off_ns = (user.back_off_ns * 2).clamp(BACK_OFF_NS_MIN, BACK_OFF_NS_MAX);
        }
        self.disconnect(slot);
        self.busy -= 1;
        self.next(slot, now);
    }

    /// Decides when a user whose request has just ended sends again.
    fn next(&mut self, slot: usize, done_ns: i64) {
        if !self.may_send(slot, done_ns) {
            return self.rest(slot);
        }
        let due_ns = self.due_ns(slot, done_ns);
        if due_ns > done_ns {
            self.wait_until(slot, due_ns);
        } else {
            self.begin(slot, due_ns);
        }
    }

    /// A pace is a ticker that holds one tick: a user that missed several sends at once for one of them, and the
    /// others are counted and gone.
    fn due_ns(&mut self, slot: usize, done_ns: i64) -> i64 {
        let user = &mut self.users[slot];
        let schedule = &self.shared.schedules[user.scenario];
        let ready_ns = done_ns + schedule.think_ns.max(user.back_off_ns);
        let Some(pace_ns) = schedule.pace_ns else { return ready_ns };
        let tick_ns = user.tick_ns + pace_ns;
        let missed = (ready_ns - tick_ns).max(0) / pace_ns;
        user.tick_ns = tick_ns + missed * pace_ns;
        self.recorder.totals.ticks_missed += missed as u64;
        ready_ns.max(tick_ns)
    }
}

/// Whether reading from a socket goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Goes,
    Over,
}

fn key(generation: u32, slot: usize) -> u64 {
    u64::from(generation) << 32 | slot as u64
}
