//! Waiting for sockets, to the nanosecond.
//!
//! Level-triggered epoll: on loopback it costs no more than edge-triggered or io_uring, and a socket is registered
//! once in its life. `epoll_wait` knows only milliseconds; the part of a wait below one is spent in `ppoll` on the
//! epoll descriptor itself, which every kernel has, where `epoll_pwait2` needs Linux 5.11.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

const EVENTS_MAX: usize = 256;
const MS_NS: i64 = 1_000_000;

/// What a socket is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ready {
    /// The key that the socket was registered with.
    pub(super) key: u64,
    pub(super) flags: EventFlags,
}

/// See the module.
pub(super) struct Poller {
    epoll: OwnedFd,
    events: Vec<Ready>,
}

impl Poller {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, events: Vec::with_capacity(EVENTS_MAX) })
    }

    pub(super) fn add(&self, socket: impl AsFd, key: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll, socket, EventData::new_u64(key), flags)
    }

    pub(super) fn modify(&self, socket: impl AsFd, key: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.epoll, socket, EventData::new_u64(key), flags)
    }

    /// Waits until a socket is ready or `timeout_ns` have passed; 0 or less does not wait. Gives how many are ready.
    pub(super) fn wait(&mut self, timeout_ns: i64) -> usize {
        self.events.clear();
        let mut whole_ms = timeout_ns.max(0) / MS_NS * MS_NS;
        if timeout_ns > 0 && whole_ms == 0 {
            let mut this = [PollFd::new(&self.epoll, PollFlags::IN)];
            if matches!(poll(&mut this, Some(&timespec(timeout_ns))), Ok(0)) {
                return 0;
            }
            whole_ms = 0;
        }
        let mut ready = [const { MaybeUninit::<Event>::uninit() }; EVENTS_MAX];
        // An interrupted wait is a short one.
        if let Ok((ready, _)) = epoll::wait(&self.epoll, &mut ready, Some(&timespec(whole_ms))) {
            self.events.extend(ready.iter().map(|event| Ready { key: event.data.u64(), flags: event.flags }));
        }
        self.events.len()
    }

    /// One of those that the last wait found.
    pub(super) fn ready(&self, index: usize) -> Ready {
        self.events[index]
    }
}

fn timespec(ns: i64) -> Timespec {
    Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    #[test]
    fn it_waits_no_less_than_asked_and_sees_what_is_ready() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&far, 7, EventFlags::IN).unwrap();
        for timeout_ns in [300_000, 2 * MS_NS] {
            let begun = Instant::now();
            assert_eq!(poller.wait(timeout_ns), 0);
            assert!(begun.elapsed().as_nanos() as i64 >= timeout_ns);
        }
        near.write_all(b"x").unwrap();
        for timeout_ns in [-1, 0, 300_000, i64::MAX / 4] {
            assert_eq!(poller.wait(timeout_ns), 1);
            assert_eq!(poller.ready(0).key, 7);
        }
        poller.modify(&far, 8, EventFlags::OUT).unwrap();
        assert_eq!((poller.wait(0), poller.ready(0)), (1, Ready { key: 8, flags: EventFlags::OUT }));
    }
}
