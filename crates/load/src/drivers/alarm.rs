//! The time to wake up, as a descriptor that becomes readable then.
//!
//! A timeout of a wait would be armed and disarmed with every wait, though the time to wake up is the same over many;
//! an alarm is armed once for each such time. It knows nanoseconds on every kernel.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

/// See the module.
pub(super) struct Alarm {
    timer: OwnedFd,
    /// Never `i64::MAX` while it is armed.
    at_ns: i64,
}

impl Alarm {
    /// # Errors
    /// When the kernel gives no timer.
    pub(super) fn new() -> Result<Self, Errno> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self { timer: timerfd_create(TimerfdClockId::Monotonic, flags)?, at_ns: i64::MAX })
    }

    /// Sets the time at which it rings: a moment `at_ns` on any axis, which is `wait_ns` from now, more than 0. Costs
    /// nothing when that is the time already.
    pub(super) fn set(&mut self, at_ns: i64, wait_ns: i64) -> Result<(), Errno> {
        if at_ns == self.at_ns {
            return Ok(());
        }
        let value = Timespec { tv_sec: wait_ns / 1_000_000_000, tv_nsec: wait_ns % 1_000_000_000 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        self.at_ns = at_ns;
        Ok(())
    }

    /// Takes note that it rang: whatever it is set to next is a new time.
    pub(super) fn has_rung(&mut self) {
        self.at_ns = i64::MAX;
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

impl AsRawFd for Alarm {
    fn as_raw_fd(&self) -> RawFd {
        self.timer.as_raw_fd()
    }
}
