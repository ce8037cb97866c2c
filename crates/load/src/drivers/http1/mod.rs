//! HTTP/1.1 without TLS: the wire of the hot path.
//!
//! In the steady state of a kept connection a request costs one `send` and one `recv`; sockets are registered with
//! epoll once, responses are parsed where they lie, and three readings of the clock stand for five events.
//!
//! Not here: TLS, HTTP/2, pipelining, and what is sent when, which is the [`Worker`]'s.

use rustix::io::Errno;

use super::Wire;
use super::worker::Worker;

mod connection;
mod exchange;
#[cfg(test)]
mod fuzz;
mod head;
mod poller;
mod response;

use connection::Tcp;
use poller::Poller;

const RECEIVE_BYTES: usize = 64 * 1024;

/// Sockets of one load thread.
pub(crate) struct Epoll {
    poller: Poller,
    received: Vec<u8>,
}

impl Epoll {
    /// # Errors
    /// When the kernel gives no epoll descriptor.
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self { poller: Poller::new()?, received: vec![0; RECEIVE_BYTES] })
    }
}

impl Wire for Epoll {
    type Socket = Tcp;

    #[inline]
    fn attempt(worker: &mut Worker<'_, Self>, slot: usize, now: i64) {
        worker.attempt(slot, now);
    }

    fn farewell(&mut self) {}

    // Closing the only descriptor of a socket takes it out of epoll too.
    #[inline]
    fn give_up(&mut self, _: usize) {}

    #[inline]
    fn wait(worker: &mut Worker<'_, Self>, wake_ns: i64, wait_ns: i64) {
        for index in 0..worker.wire.poller.wait(wake_ns, wait_ns) {
            worker.serve(worker.wire.poller.ready(index));
        }
    }
}
