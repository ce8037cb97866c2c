//! A handle on a process: a pidfd, which never refers to another process.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::processes::Identity;

/// A process that exists or existed.
#[derive(Debug)]
pub(crate) struct Handle {
    pid: i32,
    fd: OwnedFd,
}

impl Handle {
    /// Opens the process that has this number now. Errors when there is none, when no file descriptor is left, and on
    /// kernels before Linux 5.3.
    pub(crate) fn open(pid: i32) -> Result<Self, Errno> {
        let number = if pid > 0 { Pid::from_raw(pid) } else { None };
        let number = number.ok_or(Errno::SRCH)?;
        Ok(Self { pid, fd: pidfd_open(number, PidfdFlags::empty())? })
    }

    /// Its number. What is read of `/proc` by it may be about another process, once this one has been waited for.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Identity. None once it has ended.
    pub(crate) fn identity(&self) -> Option<Identity> {
        // The order matters: a process that runs after its number was looked up had the number then.
        Identity::from_pid(self.pid).filter(|_| !self.has_ended())
    }

    /// Sends it a signal. Whether it got one: not when it is gone, nor when it belongs to another user.
    pub(crate) fn send(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.fd, signal).is_ok()
    }

    /// Whether all its threads have ended, waited for or not.
    pub(crate) fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_handle_never_refers_to_another_process() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let handle = Handle::open(child.id() as i32).unwrap();
        assert!(!handle.has_ended());
        assert!(handle.send(Signal::KILL));
        assert!(!child.wait().unwrap().success());
        assert!(handle.has_ended());
        assert!(!handle.send(Signal::KILL), "a process that was waited for gets no signal");
    }

    #[test]
    fn numbers_that_mean_groups_to_kill_open_nothing() {
        for pid in [0, -1, i32::MIN] {
            assert_eq!(Handle::open(pid).unwrap_err(), Errno::SRCH);
        }
    }
}
