//! Short commands that a service needs beside itself: its setup, a data folder, files of SQL.
//!
//! Each is a process of the run as a service is: marked, in the guard's sight, its output kept under the service, ended
//! by a signal to the run. They run one at a time, without caps, and have a timeout.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use narrows_model::units;
use narrows_telemetry::Store;
use rustix::process::Signal;

use crate::Error;
use crate::components::process::{Process, Spec};
use crate::guard::Guard;
use crate::progress::Progress;

const POLL: Duration = Duration::from_millis(20);
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Parts of a run that short commands need.
pub(crate) struct Workshop<'a> {
    pub(crate) mark: &'a str,
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) guard: &'a mut Guard,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) progress: &'a mut dyn Progress,
}

/// A command that did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandFailure {
    /// `exited with code 1`; `None` if it was still running after the timeout.
    ended: Option<String>,
    /// Its last output.
    pub(crate) last_lines: Vec<String>,
}

impl CommandFailure {
    /// Outcome within this timeout: `exited with code 1`, `took longer than 10m`.
    pub(crate) fn how(&self, timeout: Duration) -> String {
        let too_long = || format!("took longer than {}", units::duration(timeout.as_nanos() as f64));
        self.ended.clone().unwrap_or_else(too_long)
    }
}

impl Workshop<'_> {
    /// Runs a command to its end. Errors when it cannot be started and when a signal came.
    pub(crate) fn run(&mut self, spec: &Spec, timeout: Duration) -> Result<Result<(), CommandFailure>, Error> {
        Ok(self.last_output(spec, timeout)?.map(drop))
    }

    /// As [`Self::run`], and returns the last output of a command that succeeded.
    pub(crate) fn last_output(
        &mut self,
        spec: &Spec,
        timeout: Duration,
    ) -> Result<Result<Vec<String>, CommandFailure>, Error> {
        let deadline = Instant::now() + timeout;
        let mut process = Process::start(spec, None, self.mark, self.store, self.guard)?;
        let ended = loop {
            if let Some(how) = process.ended() {
                break Some(how);
            }
            if self.stop.load(Ordering::Relaxed) {
                process.stop(Signal::TERM, STOP_TIMEOUT, self.guard);
                return Err(Error::Interrupted);
            }
            if Instant::now() > deadline {
                break None;
            }
            std::thread::sleep(POLL);
        };
        let succeeded = process.succeeded();
        let last_lines = process.last_lines().last_words();
        process.stop(Signal::TERM, STOP_TIMEOUT, self.guard);
        Ok(if succeeded { Ok(last_lines) } else { Err(CommandFailure { ended, last_lines }) })
    }
}
