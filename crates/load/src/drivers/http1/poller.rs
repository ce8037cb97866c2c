//! Waiting for sockets, to the nanosecond.
//!
//! Level-triggered epoll: on loopback it costs no more than edge-triggered or io_uring, and a socket is registered
//! once in its life. The time to wake up is an [`Alarm`] among the sockets, so that a wait itself has no timeout.

use std::os::fd::AsFd;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollTimeout};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::drivers::alarm::Alarm;

const EVENTS_MAX: usize = 256;
/// No socket's key.
const ALARM: u64 = u64::MAX;

/// Readiness of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ready {
    /// The key that the socket was registered with.
    pub(super) key: u64,
    pub(super) flags: EventFlags,
}

/// See the module.
pub(super) struct Poller {
    epoll: Epoll,
    alarm: Alarm,
    ready: Vec<Ready>,
    /// How many of them have been taken.
    taken: usize,
}

impl Poller {
    pub(super) fn new() -> Result<Self, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC);
        let epoll = epoll.map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        let alarm = Alarm::new()?;
        // Edge-triggered, so that a ring is reported once and need not be read.
        epoll::add(&epoll.0, &alarm, EventData::new_u64(ALARM), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, alarm, ready: Vec::with_capacity(EVENTS_MAX), taken: 0 })
    }

    /// Watches a socket. Its key is below `u64::MAX`.
    pub(super) fn add(&self, socket: impl AsFd, key: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll.0, socket, EventData::new_u64(key), flags)
    }

    pub(super) fn modify(&self, socket: impl AsFd, key: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.epoll.0, socket, EventData::new_u64(key), flags)
    }

    /// Waits until a socket is ready or it is `wake_ns`, which is `wait_ns` from now; 0 or less does not wait.
    pub(super) fn wait(&mut self, wake_ns: i64, wait_ns: i64) {
        debug_assert_eq!(self.taken, self.ready.len(), "sockets were ready and not served");
        // Without an alarm, which the kernel has no reason to refuse, it looks again at once.
        let may_wait = wait_ns > 0 && self.alarm.set(wake_ns, wait_ns).is_ok();
        let mut events = [EpollEvent::empty(); EVENTS_MAX];
        let timeout = if may_wait { EpollTimeout::NONE } else { EpollTimeout::ZERO };
        // An interrupted wait is a short one.
        let count = self.epoll.wait(&mut events, timeout).unwrap_or(0);
        self.ready.clear();
        self.taken = 0;
        for event in &events[..count] {
            match event.data() {
                ALARM => self.alarm.has_rung(),
                key => {
                    let flags = EventFlags::from_bits_retain(event.events().bits() as u32);
                    self.ready.push(Ready { key, flags });
                }
            }
        }
    }

    /// The next of those that the last wait found.
    pub(super) fn next(&mut self) -> Option<Ready> {
        let ready = self.ready.get(self.taken).copied()?;
        self.taken += 1;
        Some(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    const MS_NS: i64 = 1_000_000;

    /// The sockets that a wait finds.
    fn waited(poller: &mut Poller, wake_ns: i64, wait_ns: i64) -> Vec<Ready> {
        poller.wait(wake_ns, wait_ns);
        std::iter::from_fn(|| poller.next()).collect()
    }

    #[test]
    fn it_waits_no_less_than_asked_and_sees_what_is_ready() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&far, 7, EventFlags::IN).unwrap();
        for (wake_ns, wait_ns) in [(1, 300_000), (1, 2 * MS_NS), (2, 2 * MS_NS)] {
            let begun = Instant::now();
            assert_eq!(waited(&mut poller, wake_ns, wait_ns), []);
            assert!(begun.elapsed().as_nanos() as i64 >= wait_ns);
        }
        near.write_all(b"x").unwrap();
        for wait_ns in [-1, 0, 300_000, i64::MAX / 4] {
            assert_eq!(waited(&mut poller, wait_ns, wait_ns), [Ready { key: 7, flags: EventFlags::IN }]);
        }
        poller.modify(&far, 8, EventFlags::OUT).unwrap();
        assert_eq!(waited(&mut poller, 0, 0), [Ready { key: 8, flags: EventFlags::OUT }]);
    }

    #[test]
    fn an_alarm_stays_set_while_sockets_are_served() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&far, 7, EventFlags::IN).unwrap();
        let (begun, wake_ns) = (Instant::now(), 5 * MS_NS);
        let left_ns = || wake_ns - begun.elapsed().as_nanos() as i64;
        near.write_all(b"x").unwrap();
        assert_eq!(waited(&mut poller, wake_ns, left_ns()).len(), 1);
        std::io::Read::read_exact(&mut far, &mut [0]).unwrap();
        // The same time again: nothing is armed anew, and it still rings then.
        assert_eq!(waited(&mut poller, wake_ns, left_ns()), []);
        assert!(left_ns() <= 0);
    }
}
