//! The network between a client and a cloud store: a fixed delay and an exponentially distributed one on top.
//!
//! Half of a request's latency is waited before the store looks at it and half after, so that a budget is judged when
//! the request would arrive and every response, a refusal too, travels back. The second wait ends at a point in time
//! counted from the request's arrival, so lateness of the first does not add up. Waits use tokio's timer: it has a
//! resolution of 1 ms and rounds up, as does the kernel's wait below it, so a response leaves 1 to 2 ms later than
//! drawn, even with a latency of a fraction of a millisecond. No latency at all waits for nothing.
//!
//! Draws are taken from a seeded sequence in the order of arrival: the n-th request of a run meets the n-th draw.
//! Deliberately absent: loss, reordering, bandwidth.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::config::Config;
use crate::random;

/// A draw is cut at this multiple of the mean; e⁻²⁰ of all draws, 2 in a thousand million, lie beyond.
const DRAW_MEANS_MAX: u32 = 20;

/// Where each request's latency comes from.
#[derive(Debug)]
pub(crate) struct Latency {
    delay: Duration,
    jitter: Duration,
    seed: u64,
    drawn: AtomicU64,
}

impl Latency {
    pub(crate) fn new(config: &Config) -> Self {
        Self { delay: config.delay, jitter: config.jitter, seed: config.seed, drawn: AtomicU64::new(0) }
    }

    /// Does `work` in the middle of the next request's latency.
    pub(crate) async fn around<T>(&self, work: impl Future<Output = T>) -> T {
        let latency = self.draw();
        if latency.is_zero() {
            return work.await;
        }
        let arrived = Instant::now();
        sleep_until(arrived + latency / 2).await;
        let looked_at = Instant::now();
        let done = work.await;
        sleep_until(arrived + latency + looked_at.elapsed()).await;
        done
    }

    /// The fixed delay and the next draw of an exponential distribution, by inversion: −mean · ln(1 − u).
    fn draw(&self) -> Duration {
        if self.jitter.is_zero() {
            return self.delay;
        }
        let uniform = random::unit(self.seed, self.drawn.fetch_add(1, Ordering::Relaxed));
        let means = -(1.0 - uniform).ln();
        self.delay + self.jitter.mul_f64(means.min(f64::from(DRAW_MEANS_MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(delay_ms: u64, jitter_ms: u64, seed: u64) -> Latency {
        let (delay, jitter) = (Duration::from_millis(delay_ms), Duration::from_millis(jitter_ms));
        Latency::new(&Config { delay, jitter, seed, ..Config::default() })
    }

    fn draws(latency: &Latency, count: usize) -> Vec<Duration> {
        (0..count).map(|_| latency.draw()).collect()
    }

    #[test]
    fn draws_are_exponential_on_top_of_the_delay() {
        let draws = draws(&latency(5, 10, 1), 100_000);
        let mean_ms = draws.iter().sum::<Duration>().as_secs_f64() * 1e3 / 100_000.0;
        // The standard error of the mean is 10 ms / √100 000 = 0.03 ms.
        assert!((mean_ms - 15.0).abs() < 0.15, "{mean_ms}");
        for (share, at_most_ms) in [(0.5, 5.0 + 10.0 * 2_f64.ln()), (0.95, 5.0 + 10.0 * 20_f64.ln())] {
            let below = draws.iter().filter(|draw| draw.as_secs_f64() * 1e3 <= at_most_ms).count() as f64 / 100_000.0;
            assert!((below - share).abs() < 0.01, "{below} of the draws are up to {at_most_ms} ms, expected {share}");
        }
        assert!(draws.iter().all(|draw| (Duration::from_millis(5)..=Duration::from_millis(205)).contains(draw)));
    }

    #[test]
    fn a_seed_repeats_a_run_and_another_does_not() {
        assert_eq!(draws(&latency(0, 10, 7), 50), draws(&latency(0, 10, 7), 50));
        assert_ne!(draws(&latency(0, 10, 7), 50), draws(&latency(0, 10, 8), 50));
        assert_eq!(draws(&latency(3, 0, 7), 3), [Duration::from_millis(3); 3]);
    }

    #[test]
    fn the_work_is_done_in_the_middle() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let begun = Instant::now();
            let looked_at = latency(30, 0, 1).around(async { begun.elapsed() }).await;
            assert_eq!((looked_at, begun.elapsed()), (Duration::from_millis(15), Duration::from_millis(30)));
        });
    }
}
