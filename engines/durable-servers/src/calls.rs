//! Calls to a server: pauses between attempts, numbers that nobody else has, and errors.

use std::time::Duration;

use narrows_durable::store::{Location, StoreError};

/// The first wait before a call is tried again; doubled each time, up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How long to wait before attempt number `attempt`, counted from 1 for the first that failed.
pub(super) fn pause(attempt: u32) -> Duration {
    PAUSE_MIN.saturating_mul(1 << attempt.min(16).saturating_sub(1)).min(PAUSE_MAX)
}

/// A number that no other process has chosen, not negative.
pub(super) fn unique_number() -> i64 {
    use std::hash::{BuildHasher, Hasher};
    // Each is made with keys from the system's random numbers.
    let random = std::hash::RandomState::new().build_hasher().finish();
    i64::try_from(random >> 1).unwrap_or(0)
}

/// An error that the server or its client reported.
pub(super) fn refused(action: &'static str, place: Location, reason: String) -> StoreError {
    StoreError::Io { action, place, reason, is_full: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second() {
        assert_eq!(pause(1), PAUSE_MIN);
        assert_eq!(pause(2), PAUSE_MIN * 2);
        assert_eq!(pause(8), PAUSE_MAX);
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }
}
