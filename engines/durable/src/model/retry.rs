//! Retry policy of calls.

use std::time::Duration;

use crate::failure::{Failure, FailureKind};

/// How often a call is made, and how long it pauses between attempts.
///
/// Made again are calls that failed with an error of user code, a panic or a timeout, unless
/// [`RetryPolicy::only_if`] says otherwise.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    attempts_max: u32,
    pause: Duration,
    factor: f64,
    pause_max: Duration,
    attempt_timeout: Option<Duration>,
    only_if: fn(&Failure) -> bool,
}

impl RetryPolicy {
    /// At most `attempts_max` attempts, at least 1, with the same pause between them.
    #[must_use]
    pub fn new(attempts_max: u32, pause: Duration) -> Self {
        Self {
            attempts_max: attempts_max.max(1),
            pause,
            factor: 1.0,
            pause_max: Duration::from_secs(3600),
            attempt_timeout: None,
            only_if: is_worth_another,
        }
    }

    /// Multiplies the pause by `factor` after each attempt, up to `pause_max`. A factor below 1 counts as 1.
    #[must_use]
    pub fn backoff(mut self, factor: f64, pause_max: Duration) -> Self {
        self.factor = if factor > 1.0 { factor } else { 1.0 };
        self.pause_max = pause_max;
        self
    }

    /// Gives an attempt up after this long; the next is made even if the first still runs somewhere.
    #[must_use]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// Makes another attempt only after failures of which this says so. It must decide by the failure alone.
    #[must_use]
    pub fn only_if(mut self, judge: fn(&Failure) -> bool) -> Self {
        self.only_if = judge;
        self
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.attempt_timeout
    }

    /// The pause before the next attempt, after `made` of them; `None` if there is none.
    pub(super) fn pause_after(&self, made: u32, failure: &Failure) -> Option<Duration> {
        if made >= self.attempts_max || !(self.only_if)(failure) {
            return None;
        }
        let seconds = self.pause.as_secs_f64() * self.factor.powi(i32::try_from(made).unwrap_or(i32::MAX) - 1);
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(self.pause_max).min(self.pause_max))
    }
}

fn is_worth_another(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::Application | FailureKind::Panic | FailureKind::Timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_end() {
        let policy = RetryPolicy::new(5, Duration::from_millis(100)).backoff(2.0, Duration::from_millis(350));
        let failure = Failure::application("no");
        let pauses: Vec<_> = (1..=5).map(|made| policy.pause_after(made, &failure).map(|p| p.as_millis())).collect();
        assert_eq!(pauses, [Some(100), Some(200), Some(350), Some(350), None]);
    }

    #[test]
    fn permanent_failures_are_not_retried() {
        let policy = RetryPolicy::new(5, Duration::ZERO);
        for kind in FailureKind::ALL {
            let expected = matches!(kind, FailureKind::Application | FailureKind::Panic | FailureKind::Timeout);
            assert_eq!(policy.pause_after(1, &Failure::new(kind, "")).is_some(), expected, "{kind:?}");
        }
        let never = policy.only_if(|failure| failure.message == "again");
        assert!(never.pause_after(1, &Failure::application("no")).is_none());
        assert!(never.pause_after(1, &Failure::application("again")).is_some());
    }

    #[test]
    fn odd_numbers_do_no_harm() {
        let failure = Failure::application("no");
        let policy = RetryPolicy::new(u32::MAX, Duration::MAX).backoff(f64::INFINITY, Duration::from_secs(1));
        assert_eq!(policy.pause_after(u32::MAX - 1, &failure), Some(Duration::from_secs(1)));
        let policy = RetryPolicy::new(0, Duration::ZERO).backoff(f64::NAN, Duration::ZERO);
        assert_eq!(policy.pause_after(1, &failure), None);
    }
}
