//! Processor time that is really used: the thread computes until its own clock has gone on by so much.
//!
//! It stands for what another language, its framework, JSON and TLS take in the original. The thread's clock counts
//! only while the thread runs, so a busy machine makes the work take longer and never smaller.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Steps between two looks at the clock: a few microseconds.
const STEPS_PER_LOOK: u32 = 2_000;

/// Uses `amount` of this thread's processor time.
pub(crate) fn burn(amount: Duration) {
    let end = thread_time().saturating_add(amount);
    let mut word = 1_u64;
    while thread_time() < end {
        for _ in 0..STEPS_PER_LOOK {
            word = std::hint::black_box(word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

fn thread_time() -> Duration {
    // The kernel's clock is never negative.
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_is_charged_for_at_least_what_was_asked() {
        for amount in [Duration::ZERO, Duration::from_micros(10), Duration::from_millis(3)] {
            let before = thread_time();
            burn(amount);
            assert!(thread_time() - before >= amount);
        }
    }
}
