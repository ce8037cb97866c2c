//! Result of a load as a whole. The seconds were handed over while it lasted; here are their sum and the figures
//! that only make sense over all of it.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_model::evidence::LoadTotals;
use narrows_model::load::{ErrorCause, Spread};
use narrows_model::run::Validity;
use serde::{Deserialize, Serialize};

/// Result of a load, warm-up included.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadOutcome {
    /// When the first user could send. Seconds are counted from here.
    pub started_ns: i64,
    /// When the last request had ended, or the load's planned time if that came later.
    pub ended_ns: i64,
    /// The sum of all seconds; its `seconds` are the time from start to end.
    pub totals: LoadTotals,
    /// The sum of the seconds in windows that count, or of all of them if none does, as in a load that ended in its warm-up.
    /// Validity is judged by these.
    pub counted: LoadTotals,
    /// Fate of the iterations of open models; `None` if the plan has no such model.
    pub arrivals: Option<ArrivalTotals>,
    /// From how many of [`narrows_model::load::LoadPlan::client_addresses`] connections were opened; 1 when the kernel
    /// chose the address.
    pub client_addresses: usize,
    /// Bytes of the responses' bodies, without heads and framing, complete responses only.
    pub body_bytes: u64,
    /// Complete responses by HTTP status, successes and failures.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures and how often each occurred: all but those counted by status.
    pub causes: Vec<ErrorCause>,
    /// Where the time of a request went.
    pub phases: Phases,
    /// Times at which a user's pace said "send" and it was still waiting for a response, beyond the one that it
    /// makes up for by sending at once.
    pub ticks_missed: u64,
    /// Requests that had waited for the drain time or longer without a response when the load ended, before their timeout. They are errors of kind `timeout`.
    pub undrained: u64,
    /// Resources that each load thread used.
    pub threads: Vec<ThreadUse>,
    /// Whether the numbers can be trusted.
    pub validity: Validity,
}

/// Fate of the iterations of open models, all scenarios together. An iteration that is due begins or is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ArrivalTotals {
    /// See [`narrows_model::load::LoadSecond::due`].
    pub due: u64,
    /// See [`narrows_model::load::LoadSecond::late`].
    pub late: u64,
    /// See [`narrows_model::load::LoadSecond::dropped`].
    pub dropped: u64,
    /// From the load's start until nothing was due any more, in seconds.
    pub seconds: f64,
}

impl ArrivalTotals {
    pub(crate) fn of(totals: &LoadTotals, seconds: f64) -> Self {
        Self { due: totals.due, late: totals.late, dropped: totals.dropped, seconds }
    }

    /// Iterations due ÷ seconds; 0 when no time passed.
    pub fn offered(&self) -> f64 {
        self.per_second(self.due)
    }

    /// Iterations that began ÷ seconds; 0 when no time passed.
    pub fn achieved(&self) -> f64 {
        self.per_second(self.due.saturating_sub(self.dropped))
    }

    fn per_second(&self, iterations: u64) -> f64 {
        if self.seconds > 0.0 { iterations as f64 / self.seconds } else { 0.0 }
    }
}

/// Processor use of one load thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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

/// Where the time of requests went. Every new connection is measured, and every request with a complete response,
/// except those whose response came before the request was written to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Phases {
    /// From just before `connect` until the connection could be written to. Names are resolved before the load.
    pub connect: Spread,
    /// From there until the encryption stood; nothing without TLS.
    pub tls: Spread,
    /// Writing the request; on a kept connection, making it up too.
    pub write: Spread,
    /// From the request's last byte to the response's first; over TLS and HTTP/2, to the end of its head.
    pub wait: Spread,
    /// From the response's first bytes to its last.
    pub read: Spread,
}

impl Phases {
    pub(crate) fn merge(&mut self, other: &Phases) {
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        self.write.merge(&other.write);
        self.wait.merge(&other.wait);
        self.read.merge(&other.read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_was_offered_and_not_achieved() {
        let totals = ArrivalTotals { due: 100, late: 20, dropped: 10, seconds: 5.0 };
        assert_eq!((totals.offered(), totals.achieved()), (20.0, 18.0));
        assert_eq!(ArrivalTotals::default().offered(), 0.0);
    }

    #[test]
    fn a_thread_that_never_ran_used_nothing() {
        assert_eq!(ThreadUse::default().share(), 0.0);
        let half = ThreadUse { cpu: Duration::from_secs(1), wall: Duration::from_secs(2) };
        assert_eq!(half.share(), 0.5);
    }
}
