//! Waiting for sockets, to the nanosecond.
//!
//! Level-triggered epoll: on loopback it costs no more than edge-triggered or io_uring, and a socket is registered
//! once in its life. A wait is one call of `epoll_pwait2`. Where that is missing, before Linux 5.11 or behind a filter
//! that does not know it, `epoll_wait` knows only milliseconds, and the part of a wait below one is spent in `ppoll` on
//! the epoll descriptor itself.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollTimeout};
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

/// The unit in which the kernel lets epoll wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
    Nanosecond,
    Millisecond,
}

/// See the module.
pub(super) struct Poller {
    epoll: Epoll,
    precision: Precision,
    events: Vec<Ready>,
}

impl Poller {
    pub(super) fn new() -> Result<Self, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let epoll = epoll.map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        Ok(Self { epoll, precision: Precision::Nanosecond, events: Vec::with_capacity(EVENTS_MAX) })
    }

    pub(super) fn add(&self, socket: impl AsFd, key: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll.0, socket, EventData::new_u64(key), flags)
    }

    pub(super) fn modify(&self, socket: impl AsFd, key: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.epoll.0, socket, EventData::new_u64(key), flags)
    }

    /// Waits until a socket is ready or `timeout_ns` have passed; 0 or less does not wait. Gives how many are ready.
    pub(super) fn wait(&mut self, timeout_ns: i64) -> usize {
        self.events.clear();
        if self.precision == Precision::Nanosecond {
            let mut ready = [const { MaybeUninit::<Event>::uninit() }; EVENTS_MAX];
            match epoll::wait(&self.epoll.0, &mut ready, Some(&timespec(timeout_ns.max(0)))) {
                Ok((ready, _)) => {
                    self.events.extend(ready.iter().map(|event| Ready { key: event.data.u64(), flags: event.flags }));
                    return self.events.len();
                }
                Err(Errno::NOSYS | Errno::PERM) => self.precision = Precision::Millisecond,
                // An interrupted wait is a short one.
                Err(_) => return 0,
            }
        }
        self.wait_in_milliseconds(timeout_ns.max(0));
        self.events.len()
    }

    fn wait_in_milliseconds(&mut self, timeout_ns: i64) {
        let whole_ms = u16::try_from(timeout_ns / MS_NS).unwrap_or(u16::MAX);
        if timeout_ns > 0 && whole_ms == 0 {
            let mut this = [PollFd::new(&self.epoll.0, PollFlags::IN)];
            if matches!(poll(&mut this, Some(&timespec(timeout_ns))), Ok(0)) {
                return;
            }
        }
        let mut ready = [EpollEvent::empty(); EVENTS_MAX];
        let count = self.epoll.wait(&mut ready, EpollTimeout::from(whole_ms)).unwrap_or(0);
        let flags = |event: &EpollEvent| EventFlags::from_bits_retain(event.events().bits() as u32);
        self.events.extend(ready[..count].iter().map(|event| Ready { key: event.data(), flags: flags(event) }));
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
        for precision in [Precision::Nanosecond, Precision::Millisecond] {
            let (mut near, far) = UnixStream::pair().unwrap();
            let mut poller = Poller { precision, ..Poller::new().unwrap() };
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
}
