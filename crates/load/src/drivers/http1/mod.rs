//! HTTP/1.1 without TLS: the transport of the hot path.
//!
//! In the steady state of a kept connection a request costs one `send` and one `recv`; sockets are registered with
//! epoll once, responses are parsed where they lie, and three readings of the clock stand for five events.
//!
//! A new socket is written to at once, which on loopback succeeds, and watched for room only when it does not take the
//! bytes. The clock is read before `connect` and before each such try, so a connection counts as made at the try that
//! succeeds.
//!
//! Not here: TLS, HTTP/2, pipelining, and what is sent when, which the worker decides.

use std::collections::VecDeque;

use narrows_model::load::ErrorKind;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::transport::{Event, Exchanges, Failure, Order, Transport};
use crate::clock::Clock;

mod connection;
#[cfg(test)]
mod fuzz;
mod head;
mod poller;
mod response;

use connection::{Stage, Tcp};
use poller::{Poller, Ready};

const RECEIVE_BYTES: usize = 64 * 1024;
/// The most events of one step: read, connected, sent, written, failed.
const EVENTS_MAX: usize = 5;

/// Connections of one load thread.
pub(crate) struct Epoll {
    clock: Clock,
    poller: Poller,
    /// By slot.
    lines: Vec<Line>,
    received: Vec<u8>,
    /// Events of the last step. All are taken before the next step, so there are no more than [`EVENTS_MAX`].
    events: VecDeque<(usize, Event)>,
}

/// The connections of a slot, one after another.
#[derive(Default)]
struct Line {
    /// How many there were, modulo 2^32.
    generation: u32,
    tcp: Option<Tcp>,
}

fn key(generation: u32, slot: usize) -> u64 {
    u64::from(generation) << 32 | slot as u64
}

fn slot_of(key: u64) -> usize {
    (key & u64::from(u32::MAX)) as usize
}

impl Epoll {
    /// # Errors
    /// When the kernel gives no epoll descriptor.
    pub(crate) fn new(clock: Clock) -> Result<Self, Errno> {
        Ok(Self {
            clock,
            poller: Poller::new()?,
            lines: Vec::new(),
            received: vec![0; RECEIVE_BYTES],
            events: VecDeque::with_capacity(EVENTS_MAX),
        })
    }

    fn connect(&mut self, slot: usize, order: &Order) -> Result<(), Errno> {
        let line = &mut self.lines[slot];
        let generation = line.generation.wrapping_add(1);
        line.tcp = Some(Tcp::open(key(generation, slot), order, self.clock)?);
        line.generation = generation;
        Ok(())
    }

    /// Acts on a socket that is ready.
    fn serve(&mut self, ready: Ready, exchanges: &mut impl Exchanges) {
        let slot = slot_of(ready.key);
        let Some(Line { tcp: Some(tcp), .. }) = self.lines.get(slot) else { return };
        if tcp.key != ready.key {
            return;
        }
        match tcp.stage {
            // Between responses a server sends nothing but its close.
            Stage::Idle => {
                self.close(slot);
                self.events.push_back((slot, Event::Closed));
            }
            Stage::Receiving => {
                self.read(slot, exchanges);
            }
            Stage::Sending => {
                let is_readable = !ready.flags.intersection(EventFlags::IN | EventFlags::HUP).is_empty();
                let goes_on = !(tcp.is_proven && is_readable) || self.read(slot, exchanges);
                if goes_on {
                    let now = self.clock.now_ns();
                    self.write(slot, exchanges.request(slot), now);
                }
            }
        }
    }

    fn write(&mut self, slot: usize, request: &[u8], now: i64) {
        let Self { clock, poller, lines, events, .. } = self;
        let Line { tcp: Some(tcp), .. } = &mut lines[slot] else { return };
        let mut report = |event| events.push_back((slot, event));
        if let Err(failure) = tcp.write(request, now, *clock, poller, &mut report) {
            tcp.stage = Stage::Idle;
            report(Event::Failed(failure));
        }
    }

    /// Returns whether the request goes on.
    fn read(&mut self, slot: usize, exchanges: &mut impl Exchanges) -> bool {
        let Self { clock, lines, received, events, .. } = self;
        let Line { tcp: Some(tcp), .. } = &mut lines[slot] else { return false };
        let read = match exchanges.capture(slot) {
            None => tcp.read(received, &mut (), *clock),
            Some(capture) => tcp.read(received, capture, *clock),
        };
        let event = read.unwrap_or_else(|failure| {
            tcp.stage = Stage::Idle;
            Event::Failed(failure)
        });
        events.push_back((slot, event));
        tcp.stage != Stage::Idle
    }
}

impl Transport for Epoll {
    #[inline]
    fn send(&mut self, slot: usize, order: Order, exchanges: &mut impl Exchanges) {
        if self.lines.len() <= slot {
            self.lines.resize_with(slot + 1, Line::default);
        }
        let now = if let Some(tcp) = &mut self.lines[slot].tcp {
            tcp.expect(order.form);
            order.now_ns
        } else {
            if let Err(errno) = self.connect(slot, &order) {
                let failure = Failure::new(ErrorKind::Connect, errno.into());
                return self.events.push_back((slot, Event::Failed(failure)));
            }
            // The kernel may have made the whole connection within the call and still report "in progress".
            self.clock.now_ns()
        };
        self.write(slot, exchanges.request(slot), now);
    }

    // Closing the only descriptor of a socket takes it out of epoll too.
    #[inline]
    fn close(&mut self, slot: usize) {
        if let Some(line) = self.lines.get_mut(slot) {
            line.tcp = None;
        }
        self.events.retain(|(of, _)| *of != slot);
    }

    fn has_dialled(&self, slot: usize) -> bool {
        self.lines.get(slot).is_some_and(|line| line.generation > 0)
    }

    #[inline]
    fn wait(&mut self, wake_ns: i64, wait_ns: i64) {
        self.poller.wait(wake_ns, wait_ns);
    }

    #[inline]
    fn next(&mut self, exchanges: &mut impl Exchanges) -> Option<(usize, Event)> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let ready = self.poller.next()?;
            self.serve(ready, exchanges);
        }
    }

    fn farewell(&mut self) {
        self.lines.clear();
    }
}
