//! One request and its answer, from the moment a user is due to the moment its next request has a time. A request
//! that is redirected is one with all that follow from it.
//!
//! A new socket is written to at once, which on loopback succeeds, and watched for room only when it does not take the
//! bytes. The clock is read before `connect` and before each such try, so a connection counts as made at the try that
//! succeeds.

use std::os::fd::OwnedFd;

use narrows_model::load::{Connections, ErrorKind};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, connect, recv, send};

use super::{Epoll, Worker};
use super::head::Reuse;
use super::poller::Ready;
use super::response::{Answer, AtClose};
use super::user::{Activity, Attempt, Connection, Watched};
use crate::drivers::{Wire, socket};
use crate::flows::Position;
use crate::recorder::Cause;
use crate::request::{Filling, header_of};
use crate::sampling::Ended;
use crate::session::{Failure, Hop, Judgement, Origin, STATUS_FAILED, Security, Sent};
use crate::trace_context::TraceContext;

/// The pause of a user after a refused connection doubles from the first to the second.
const BACK_OFF_NS_MIN: i64 = 10_000_000;
const BACK_OFF_NS_MAX: i64 = 1_000_000_000;
/// Reads from one socket before others get their turn.
const READS_MAX: usize = 16;

impl<W: Wire> Worker<'_, W> {
    /// Sends a user's next request, which is due at `intended_ns`: the next step of its iteration, or the first of a new
    /// one.
    pub(super) fn begin(&mut self, slot: usize, intended_ns: i64) {
        let begun_ns = self.now();
        if let Some(session) = &mut self.users[slot].session {
            match session.take_upcoming() {
                Some(step) => return self.send_step(slot, step, intended_ns, begun_ns),
                None => session.begin_iteration(),
            }
        }
        if !self.take_ticket(slot, begun_ns) {
            return;
        }
        let user = &mut self.users[slot];
        let position = self.shared.flows.draw(user.scenario, &mut self.random);
        let used = &self.shared.flows.steps()[position.row].sources_used;
        if self.shared.sources.draw_all(used, &mut self.random, &mut user.draws).is_none() {
            return self.run_dry(slot, begun_ns);
        }
        self.send_step(slot, position, intended_ns, begun_ns);
    }

    fn send_step(&mut self, slot: usize, position: Position, intended_ns: i64, begun_ns: i64) {
        let user = &mut self.users[slot];
        user.position = position;
        let request = &self.shared.flows.steps()[position.row].request;
        if let Some(tracing) = self.shared.plan.tracing {
            user.trace = TraceContext::draw(tracing, &mut self.random);
        }
        let filling = Filling {
            sources: self.shared.sources,
            draws: &user.draws,
            trace: &user.trace,
            session: user.session.as_deref(),
            now_ns: begun_ns,
        };
        request.render(filling, &mut self.scratch, &mut user.request);
        user.parser.expect(request.answer);
        user.activity = Activity::Sending;
        user.attempt = Attempt::First;
        user.written = 0;
        (user.intended_ns, user.begun_ns) = (intended_ns, begun_ns);
        (user.sent_ns, user.writing_ns, user.written_ns, user.first_byte_ns) = (0, 0, 0, 0);
        user.deadline_ns = begun_ns + self.timeout_ns;
        self.deadlines.watch(slot, user.deadline_ns);
        self.busy += 1;
        W::attempt(self, slot, begun_ns);
    }
}

impl Worker<'_> {
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
        let socket = socket::open(&user.target, self.shared.client_address(user.vu))?;
        let opened_ns = self.shared.clock.now_ns();
        match connect(&socket, &user.target) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        user.generation = user.generation.wrapping_add(1);
        user.connection = Some(Connection::new(socket, opened_ns));
        Ok(())
    }
}

impl<W: Wire> Worker<'_, W> {
    pub(super) fn disconnect(&mut self, slot: usize) {
        // Closing the only descriptor of a socket takes it out of epoll too.
        self.users[slot].connection = None;
        self.wire.give_up(slot);
    }
}

impl Worker<'_> {

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
            (Watched::Not, events) => self.wire.poller.add(&connection.socket, key, events),
            (_, events) => self.wire.poller.modify(&connection.socket, key, events),
        };
        if let Err(errno) = done {
            self.fail(slot, ErrorKind::Connect, errno.into());
        }
    }

    /// Reads what has come of the answer.
    fn read(&mut self, slot: usize) {
        for _ in 0..READS_MAX {
            let Some(connection) = &self.users[slot].connection else { return };
            match recv(&connection.socket, &mut self.wire.received[..], RecvFlags::empty()) {
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
        let received = &self.wire.received[..bytes];
        let fed = match &mut user.session {
            None => user.parser.feed(received, &mut ()),
            Some(session) => {
                let wanted = self.shared.flows.steps()[user.position.row].rules.wanted;
                user.parser.feed(received, session.capture.want(wanted))
            }
        };
        match fed {
            Ok(Some(answer)) => self.complete(slot, answer, now),
            Ok(None) if bytes == self.wire.received.len() => return Turn::Goes,
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
}

impl<W: Wire> Worker<'_, W> {
    /// Ends the current request, or the part of it that was redirected, with a whole answer.
    pub(in crate::drivers) fn complete(&mut self, slot: usize, answer: Answer, now: i64) {
        if self.users[slot].session.is_some() {
            return self.judge(slot, answer, now);
        }
        let error = (answer.status >= STATUS_FAILED).then_some(ErrorKind::Status);
        let ended = Ended { status: answer.status, error, ..self.users[slot].ended(now) };
        self.settle(slot, answer, ended);
        self.end_iteration(slot, now);
    }

    /// Counts the current request, which has a whole answer.
    fn settle(&mut self, slot: usize, answer: Answer, ended: Ended) {
        let user = &mut self.users[slot];
        self.recorder.answered(user.position.row, ended);
        let totals = &mut self.recorder.totals;
        if user.written_ns != 0 {
            totals.phases.write.add(user.writing_ns, user.written_ns);
            totals.phases.wait.add(user.written_ns, user.first_byte_ns);
            totals.phases.read.add(user.first_byte_ns, ended.done_ns);
        }
        user.back_off_ns = 0;
        self.busy -= 1;
        self.keep_connection(slot, answer);
    }

    /// Keeps the connection that has brought an answer, if it can carry another request.
    fn keep_connection(&mut self, slot: usize, answer: Answer) {
        self.recorder.totals.body_bytes += answer.body_bytes;
        let user = &mut self.users[slot];
        let kept = answer.reuse == Reuse::Open
            && user.activity == Activity::Receiving
            && self.shared.plan.connections == Connections::KeepAlive;
        match &mut user.connection {
            Some(connection) if kept => connection.answers += 1,
            connection => *connection = None,
        }
    }

    /// Looks at a whole answer as its step's rules say.
    fn judge(&mut self, slot: usize, answer: Answer, now: i64) {
        let user = &mut self.users[slot];
        let step = &self.shared.flows.steps()[user.position.row];
        let Some(session) = &mut user.session else { return };
        let origin = Origin {
            security: if self.shared.plan.tls.is_some() { Security::Tls } else { Security::Plain },
            host: header_of(&user.request, "host").unwrap_or(b""),
            address: user.target,
        };
        let sent = Sent { request: &user.request, method: step.request.method(), origin };
        match step.rules.judge(answer.status, session, sent, now, &mut self.decoder) {
            Judgement::Succeeded => self.conclude(slot, answer, now, None),
            Judgement::Failed(failure) => self.conclude(slot, answer, now, Some(failure)),
            Judgement::Redirected(hop) => self.follow(slot, answer, &hop, now),
        }
    }

    /// Ends the current request with a judged answer.
    fn conclude(&mut self, slot: usize, answer: Answer, now: i64, failure: Option<Failure>) {
        let user = &mut self.users[slot];
        let ended = user.ended(now);
        let bytes = ended.bytes + user.end_request();
        let error = failure.as_ref().map(|failure| failure.kind);
        let position = user.position;
        self.settle(slot, answer, Ended { status: answer.status, error, bytes, ..ended });
        match failure {
            None => match position.next() {
                Some(step) => self.go_on(slot, step, now),
                None => self.end_iteration(slot, now),
            },
            Some(failure) => {
                if let Some(cause) = failure.cause {
                    self.recorder.caused(failure.kind, cause);
                }
                self.end_iteration(slot, now);
            }
        }
    }

    /// Goes on with an iteration, after the pause that follows its last step.
    fn go_on(&mut self, slot: usize, step: Position, now: i64) {
        if !self.may_go_on(slot, now) {
            return self.rest(slot);
        }
        let user = &mut self.users[slot];
        let think_ns = self.shared.flows.steps()[user.position.row].think_ns;
        if let Some(session) = &mut user.session {
            session.go_on_at(step);
        }
        if think_ns > 0 {
            self.wait_until(slot, now + think_ns);
        } else {
            self.begin(slot, now);
        }
    }

    /// Sends the request that a redirect asks for, as a part of the current one.
    fn follow(&mut self, slot: usize, answer: Answer, hop: &Hop, now: i64) {
        self.keep_connection(slot, answer);
        let user = &mut self.users[slot];
        if let Some(session) = &mut user.session {
            session.redirected_bytes += answer.bytes;
        }
        let filling = Filling {
            sources: self.shared.sources,
            draws: &user.draws,
            trace: &user.trace,
            session: user.session.as_deref(),
            now_ns: now,
        };
        let request = &self.shared.flows.steps()[user.position.row].request;
        let form = request.render_hop(hop, filling, &mut self.scratch, &mut user.request);
        user.parser.expect(form);
        user.activity = Activity::Sending;
        user.attempt = Attempt::First;
        user.written = 0;
        (user.writing_ns, user.written_ns, user.first_byte_ns) = (0, 0, 0);
        W::attempt(self, slot, now);
    }

    /// Ends the current request without a whole answer.
    pub(in crate::drivers) fn fail(&mut self, slot: usize, kind: ErrorKind, cause: Cause) {
        let now = self.now();
        let user = &mut self.users[slot];
        let ended = user.ended(now);
        let bytes = ended.bytes + user.end_request();
        self.recorder.failed(user.position.row, Ended { bytes, ..ended }, kind, cause);
        if kind == ErrorKind::Connect {
            user.back_off_ns = (user.back_off_ns * 2).clamp(BACK_OFF_NS_MIN, BACK_OFF_NS_MAX);
        }
        self.disconnect(slot);
        self.busy -= 1;
        self.end_iteration(slot, now);
    }
}

impl Wire for Epoll {
    type Socket = OwnedFd;

    #[inline]
    fn attempt(worker: &mut Worker<'_>, slot: usize, now: i64) {
        worker.attempt(slot, now);
    }

    fn farewell(&mut self) {}

    #[inline]
    fn give_up(&mut self, _: usize) {}

    #[inline]
    fn wait(worker: &mut Worker<'_>, wait_ns: i64) {
        for index in 0..worker.wire.poller.wait(wait_ns) {
            worker.serve(worker.wire.poller.ready(index));
        }
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
