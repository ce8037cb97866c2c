//! What a load came to, as a whole. The seconds were handed over while it lasted; here are their sum and the figures
//! that only make sense over all of it.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_model::evidence::LoadTotals;
use narrows_model::load::{ErrorCause, Spread};
use narrows_model::run::Validity;

/// What a load came to, warm-up included.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadOutcome {
    /// When the first user could send. Seconds are counted from here.
    pub started_ns: i64,
    /// When the last request had ended, or the load's planned time if that came later.
    pub ended_ns: i64,
    /// The sum of all seconds; its `seconds` are the time from start to end.
    pub totals: LoadTotals,
    /// Bytes of the answers' bodies, without heads and framing, whole answers only.
    pub body_bytes: u64,
    /// Whole answers by HTTP status, successes and failures.
    pub statuses: BTreeMap<u16, u64>,
    /// What went wrong without a whole answer, and how often.
    pub causes: Vec<ErrorCause>,
    /// Where the time of a request went.
    pub phases: Phases,
    /// Times at which a user's pace said "send" and it was still waiting for an answer, beyond the one that it makes
    /// up for by sending at once.
    pub ticks_missed: u64,
    /// Requests sent again on a new connection, because the server had closed the kept one before answering.
    pub reconnects: u64,
    /// Requests without an answer when the load was told to stop; neither successes nor errors.
    pub abandoned: u64,
    /// What each load thread used.
    pub threads: Vec<ThreadUse>,
    /// Whether the numbers can be trusted.
    pub validity: Validity,
}

/// Processor use of one load thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadUse {
    /// CPU time, user and system.
    pub cpu: Duration,
    /// How long it ran.
    pub wall: Duration,
}

impl ThreadUse {
    /// CPU time ÷ wall time, 0 to 1.
    pub fn share(self) -> f64 {
        if self.wall.is_zero() { 0.0 } else { self.cpu.as_secs_f64() / self.wall.as_secs_f64() }
    }
}

/// Where the time of requests went. Every new connection is measured, and every request with a whole answer, but for
/// those that were answered before they were written to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// From just before `connect` until the connection could be written to. Names are resolved before the load.
    pub connect: Spread,
    /// Writing the request; on a kept connection, making it up too.
    pub write: Spread,
    /// From the request's last byte to the answer's first.
    pub wait: Spread,
    /// From the answer's first bytes to its last.
    pub read: Spread,
}

impl Phases {
    pub(crate) fn merge(&mut self, other: &Phases) {
        self.connect.merge(&other.connect);
        self.write.merge(&other.write);
        self.wait.merge(&other.wait);
        self.read.merge(&other.read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_never_ran_used_nothing() {
        assert_eq!(ThreadUse::default().share(), 0.0);
        let half = ThreadUse { cpu: Duration::from_secs(1), wall: Duration::from_secs(2) };
        assert_eq!(half.share(), 0.5);
    }
}
