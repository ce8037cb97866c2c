//! A process remembered for later.

use std::fmt;
use std::io;
use std::process::Child;
use std::str::FromStr;

use rustix::process::Signal;

use crate::processes::Handle;
use crate::processes::stat::Stat;

/// A process: its number and when it started. As text, `PID TICKS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    /// Its number, above 1.
    pub(crate) pid: i32,
    /// When it started, in clock ticks since boot.
    pub(crate) started_ticks: u64,
}

impl Identity {
    /// The process that has this number now, which may have ended but not been waited for. None without one.
    pub(crate) fn from_pid(pid: i32) -> Option<Self> {
        Self::read(pid).ok()
    }

    /// A child of this process that was not waited for yet. Errors when `/proc` cannot be read.
    pub(crate) fn of_child(child: &Child) -> io::Result<Self> {
        let pid = child.id();
        Self::read(pid as i32)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot read /proc/{pid}/stat: {error}")))
    }

    fn read(pid: i32) -> io::Result<Self> {
        Ok(Self { pid, started_ticks: Stat::read(pid)?.started_ticks })
    }

    /// Whether its number is still its own: it runs, or has ended and not been waited for.
    pub(crate) fn is_there(&self) -> bool {
        Self::from_pid(self.pid) == Some(*self)
    }

    /// Sends it a signal, unless it is gone.
    pub(crate) fn send(&self, signal: Signal) {
        // The order matters: after the handle is open, the start time tells whose handle it is.
        if let Ok(handle) = Handle::open(self.pid)
            && self.is_there()
        {
            handle.send(signal);
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.started_ticks)
    }
}

impl FromStr for Identity {
    type Err = ();

    /// Errors on anything but two numbers, and on process 1 and below, which are never a run's.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (pid, started_ticks) = text.split_once(' ').ok_or(())?;
        let identity =
            Self { pid: pid.parse().map_err(|_| ())?, started_ticks: started_ticks.parse().map_err(|_| ())? };
        if identity.pid > 1 { Ok(identity) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_signal_spares_whoever_has_the_number_now() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let own = Identity::of_child(&child).unwrap();
        for other in [own.started_ticks - 1, own.started_ticks + 1] {
            let stale = Identity { started_ticks: other, ..own };
            assert!(!stale.is_there());
            stale.send(Signal::KILL);
        }
        // Had a stale identity reached it, the kill would show as the cause of its end.
        own.send(Signal::TERM);
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
        assert!(!own.is_there());
    }

    #[test]
    fn identities_pass_through_text() {
        let identity = Identity { pid: 77, started_ticks: 123_456 };
        assert_eq!(identity.to_string().parse(), Ok(identity));
        for damaged in ["", "77", "77 ", "x 5", "77 x", "1 5", "0 5", "-77 5", "77 5 6", "77 -5"] {
            assert_eq!(damaged.parse::<Identity>(), Err(()), "{damaged}");
        }
    }
}
