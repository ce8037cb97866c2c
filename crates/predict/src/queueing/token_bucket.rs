//! A store that provides so many units per second and refuses the calls beyond them, which are made again after a wait: a
//! bucket of tokens with retries. No formula holds for it, so it is simulated, call by call.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::random::Random;

/// Calls simulated.
const CALLS: usize = 20_000;
/// Attempts of one call at most.
const ATTEMPTS_MAX: u32 = 400;
/// Closer to its limit than this a store's backlog would outgrow the simulation.
const USED_MAX: f64 = 0.98;

/// The store, and how its callers repeat what it refuses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenBucket {
    /// Units that are provided per second.
    pub provisioned: f64,
    /// How they are provided.
    pub refill: Refill,
    /// Units of a call.
    pub charge: f64,
    /// Time between a refused attempt and the next one, seconds.
    pub wait_s: f64,
}

/// How units are provided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Refill {
    /// Bit by bit; so many may be saved up and spent at once. A call needs all of its units.
    Steady {
        /// The most that is saved up.
        burst: f64,
    },
    /// Anew each second, as stores with provisioned throughput do; nothing is saved up. A call is served while any is left.
    EachSecond,
}

/// Units that are left.
struct Tokens {
    left: f64,
    at_s: f64,
}

impl Tokens {
    /// Whether a call at this moment is served.
    fn serve(&mut self, bucket: &TokenBucket, now_s: f64) -> bool {
        let least = match bucket.refill {
            Refill::Steady { burst } => {
                self.left = (self.left + (now_s - self.at_s) * bucket.provisioned).min(burst);
                // Refilling adds rounding errors, which must not refuse a call.
                bucket.charge * (1.0 - 1e-9)
            }
            Refill::EachSecond => {
                if now_s.floor() > self.at_s.floor() {
                    self.left = bucket.provisioned;
                }
                f64::MIN_POSITIVE
            }
        };
        self.at_s = now_s;
        let is_served = self.left >= least;
        if is_served {
            self.left -= bucket.charge;
        }
        is_served
    }
}

impl TokenBucket {
    /// Refused attempts of a call, mean, when so many calls per second arrive at random. Beyond what is provided it is that
    /// just below the limit.
    pub fn refusals(&self, calls_per_s: f64) -> f64 {
        let limit = self.provisioned / self.charge;
        let rate = calls_per_s.min(USED_MAX * limit);
        if !(rate > 0.0 && rate.is_finite()) {
            return 0.0;
        }
        let mut random = Random::new();
        let first = match self.refill {
            Refill::Steady { burst } => burst,
            Refill::EachSecond => self.provisioned,
        };
        let (mut tokens, mut arrival_s) = (Tokens { left: first, at_s: 0.0 }, 0.0_f64);
        let mut attempts: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let (mut arrived, mut refused) = (0_usize, 0_u64);
        while arrived < CALLS || !attempts.is_empty() {
            let next = attempts.peek().map(|Reverse((at_ns, _))| *at_ns as f64 / 1e9);
            let is_new = arrived < CALLS && next.is_none_or(|next| arrival_s <= next);
            let (now_s, made) = if is_new {
                let now_s = arrival_s;
                arrived += 1;
                arrival_s += random.exponential() / rate;
                (now_s, 0)
            } else {
                let Some(Reverse((at_ns, made))) = attempts.pop() else { break };
                (at_ns as f64 / 1e9, made)
            };
            if tokens.serve(self, now_s) {
                continue;
            }
            refused += 1;
            if made < ATTEMPTS_MAX {
                attempts.push(Reverse((((now_s + self.wait_s) * 1e9) as u64, made + 1)));
            }
        }
        refused as f64 / CALLS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_are_repeated_at_once_wait_as_in_a_queue_with_constant_service() {
        // A bucket that holds one call serves one each 10 ms: M/D/1, whose mean wait is ρ D ÷ 2 (1 − ρ) (Kleinrock, Queueing
        // Systems, volume 1, section 5.6). Attempts that follow closely find the first free moment.
        for used in [0.3, 0.5, 0.7] {
            let bucket =
                TokenBucket { provisioned: 100.0, refill: Refill::Steady { burst: 1.0 }, charge: 1.0, wait_s: 0.0005 };
            let waited_s = bucket.refusals(100.0 * used) * bucket.wait_s;
            let expected_s = used * 0.01 / (2.0 * (1.0 - used));
            assert!((waited_s / expected_s - 1.0).abs() < 0.15, "{used}: {waited_s} {expected_s}");
        }
    }

    #[test]
    fn more_units_refuse_fewer_calls() {
        let bucket = |provisioned| TokenBucket { provisioned, refill: Refill::EachSecond, charge: 3.0, wait_s: 0.1 };
        let refusals: Vec<f64> =
            [310.0, 330.0, 400.0, 900.0].iter().map(|units| bucket(*units).refusals(100.0)).collect();
        assert!(refusals.is_sorted_by(|more, fewer| more >= fewer), "{refusals:?}");
        assert!(refusals[0] > 0.0 && refusals[3] == 0.0, "{refusals:?}");
        assert!(bucket(300.0).refusals(1e6).is_finite(), "more than is provided");
        assert_eq!(bucket(300.0).refusals(0.0), 0.0);
    }
}
