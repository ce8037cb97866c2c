//! Writes requests and reads responses, as sockets are ready for it.
//!
//! A new socket is written to at once, which on loopback succeeds, and watched for room only when it does not take the
//! bytes. The clock is read before `connect` and before each such try, so a connection counts as made at the try that
//! succeeds.

use narrows_model::load::ErrorKind;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, connect, recv, send};

use super::Epoll;
use super::connection::{Tcp, Watched};
use super::poller::Ready;
use super::response::AtClose;
use crate::drivers::socket;
use crate::drivers::worker::{Activity, Connection, Worker};
use crate::recorder::Cause;

/// Reads from one socket before others get their turn.
const READS_MAX: usize = 16;

/// Whether reading from a socket goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Goes,
    Over,
}

fn key(generation: u32, slot: usize) -> u64 {
    u64::from(generation) << 32 | slot as u64
}

impl Worker<'_, Epoll> {
    /// Sends the current request from its first byte, on a new connection if there is none.
    pub(super) fn attempt(&mut self, slot: usize, now: i64) {
        let user = &mut self.users[slot];
        if let Some(connection) = &mut user.connection {
            connection.socket.expect(user.form);
            return self.write(slot, now);
        }
        if let Err(errno) = self.connect(slot) {
            return self.fail(slot, ErrorKind::Connect, errno.into());
        }
        // The kernel may have made the whole connection within the call and still report "in progress".
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
        let mut tcp = Tcp::new(socket, opened_ns);
        tcp.expect(user.form);
        user.connection = Some(Connection::new(tcp));
        Ok(())
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
            // Between responses a server sends nothing but its close.
            Activity::Resting | Activity::Waiting => self.disconnect(slot),
            Activity::Receiving => self.read(slot),
            Activity::Sending => {
                let is_readable = !ready.flags.intersection(EventFlags::IN | EventFlags::HUP).is_empty();
                if connection.socket.is_proven && is_readable {
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
            let Some(Connection { socket: tcp, .. }) = &mut user.connection else { return };
            match send(&tcp.socket, &user.request[tcp.written..], SendFlags::NOSIGNAL) {
                Ok(bytes) => {
                    tcp.written += bytes;
                    self.wrote(slot, now);
                    if self.users[slot].activity == Activity::Receiving {
                        return self.watch(slot, Watched::ForResponse);
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
        let Some(Connection { socket: tcp, .. }) = &mut user.connection else { return };
        if user.sent_ns == 0 {
            user.sent_ns = now;
            self.recorder.sent(user.position.row, (user.begun_ns - user.intended_ns).max(0) as u64);
        }
        if user.writing_ns == 0 {
            user.writing_ns = now;
        }
        if !tcp.is_proven {
            tcp.is_proven = true;
            self.recorder.totals.phases.connect.add(tcp.opened_ns, now);
        }
        if tcp.written == user.request.len() {
            user.activity = Activity::Receiving;
            user.written_ns = self.shared.clock.now_ns();
        }
    }

    /// Has the poller watch a user's socket for what comes next; costs nothing when it does already.
    fn watch(&mut self, slot: usize, watched: Watched) {
        let user = &mut self.users[slot];
        let key = key(user.generation, slot);
        let Some(Connection { socket: tcp, .. }) = &mut user.connection else { return };
        let before = std::mem::replace(&mut tcp.watched, watched);
        let done = match (before, watched.events()) {
            (before, _) if before == watched => Ok(()),
            (Watched::Not, events) => self.wire.poller.add(&tcp.socket, key, events),
            (_, events) => self.wire.poller.modify(&tcp.socket, key, events),
        };
        if let Err(errno) = done {
            self.fail(slot, ErrorKind::Connect, errno.into());
        }
    }

    /// Reads what has come of the response.
    fn read(&mut self, slot: usize) {
        for _ in 0..READS_MAX {
            let Some(Connection { socket: tcp, .. }) = &self.users[slot].connection else { return };
            match recv(&tcp.socket, &mut self.wire.received[..], RecvFlags::empty()) {
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
        let Some(Connection { socket: tcp, .. }) = &mut user.connection else { return Turn::Over };
        if user.first_byte_ns == 0 {
            user.first_byte_ns = now;
        }
        let received = &self.wire.received[..bytes];
        let fed = match &mut user.session {
            None => tcp.parser.feed(received, &mut ()),
            Some(session) => {
                let wanted = self.shared.flows.steps()[user.position.row].rules.wanted;
                tcp.parser.feed(received, session.capture.want(wanted))
            }
        };
        user.received = tcp.parser.bytes();
        match fed {
            Ok(Some(response)) => self.complete(slot, response, now),
            Ok(None) if bytes == self.wire.received.len() => return Turn::Goes,
            Ok(None) => {}
            Err(problem) => self.fail(slot, ErrorKind::Protocol, Cause::Text(problem)),
        }
        Turn::Over
    }

    /// The server has closed the connection.
    fn closed(&mut self, slot: usize) {
        let Some(Connection { socket: tcp, .. }) = &mut self.users[slot].connection else { return };
        match tcp.parser.close() {
            AtClose::Whole(response) => {
                let now = self.now();
                self.complete(slot, response, now);
            }
            AtClose::Nothing => self.broken(slot, Cause::Text("the server closed the connection without a response")),
            AtClose::CutShort => {
                self.fail(slot, ErrorKind::Reset, Cause::Text("the server closed the connection during a response"));
            }
            AtClose::NotHttp(problem) => self.fail(slot, ErrorKind::Protocol, Cause::Text(problem)),
        }
    }

    /// The connection is of no use any more. If it had been kept and no byte of the response has come, the server may
    /// just have closed it as idle, and the request is sent once more: only once, as the new connection was not kept.
    fn broken(&mut self, slot: usize, cause: Cause) {
        let user = &mut self.users[slot];
        let Some(connection) = &user.connection else { return };
        if !connection.socket.is_proven {
            return self.fail(slot, ErrorKind::Connect, cause);
        }
        if connection.responses == 0 || user.received > 0 {
            return self.fail(slot, ErrorKind::Reset, cause);
        }
        user.activity = Activity::Sending;
        (user.writing_ns, user.written_ns) = (0, 0);
        self.recorder.totals.reconnects += 1;
        self.disconnect(slot);
        let now = self.now();
        self.attempt(slot, now);
    }
}
