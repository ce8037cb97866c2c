//! Beginning a transaction again after the database undid it, with growing and random pauses and a limit.
//!
//! Only whole transactions are begun again, and only after a deadlock, a conflict between nodes or a wait for a lock
//! that took too long: then the database says itself that nothing of the transaction is left. The pause is drawn evenly
//! from nothing up to a ceiling that doubles ("full jitter", as the AWS Architecture Blog calls it), so that two
//! transactions that met do not meet again.

use std::time::Duration;

/// The first ceiling of a pause.
const PAUSE_FIRST: Duration = Duration::from_millis(4);
/// The last one.
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// The most retries that a setting may request.
pub(crate) const RETRIES_MAX: u32 = 100;

/// How often a transaction is begun again, at most; 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retries {
    pub(crate) max: u32,
}

impl Retries {
    /// How long to pause before retry number `retry`, counted from 0; `None` if there shall be no more. `random` is any
    /// number.
    pub(crate) fn pause(self, retry: u32, random: u64) -> Option<Duration> {
        if retry >= self.max {
            return None;
        }
        let ceiling = PAUSE_FIRST.saturating_mul(1 << retry.min(16)).min(PAUSE_MAX);
        let ceiling_ns = u64::try_from(ceiling.as_nanos()).unwrap_or(u64::MAX);
        Some(Duration::from_nanos(random % (ceiling_ns + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_double_up_to_the_last_and_then_there_is_an_end() {
        let retries = Retries { max: 100 };
        for (retry, ceiling_ms) in [(0, 4), (1, 8), (5, 128), (6, 250), (7, 250), (99, 250)] {
            let ceiling = Duration::from_millis(ceiling_ms);
            let pauses: Vec<Duration> =
                [0, 1, 3_999_999, u64::MAX, 250_000_000].iter().filter_map(|&r| retries.pause(retry, r)).collect();
            assert_eq!(pauses[0], Duration::ZERO);
            assert!(pauses.len() == 5 && pauses.iter().all(|pause| *pause <= ceiling), "{retry}: {pauses:?}");
            let ceiling_ns = u64::try_from(ceiling.as_nanos()).unwrap();
            assert_eq!(retries.pause(retry, ceiling_ns), Some(ceiling), "{retry}");
        }
        assert_eq!(retries.pause(100, 1), None);
        assert_eq!(Retries { max: 0 }.pause(0, 1), None);
    }
}
