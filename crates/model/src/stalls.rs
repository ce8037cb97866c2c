//! Stalls: times in which a system sends no response at all, found in the sampled requests of a load.
//!
//! A few slow requests say little by themselves: their work may be large, or they may wait for each other. That the whole
//! system stood still shows in two ways together: several slow requests get their responses at nearly the same moment,
//! and no quick one is served between their start and that moment, although many are at all other times.

use serde::{Deserialize, Serialize};

/// A request is slow from this factor of the median on.
const SLOW_FACTOR: f64 = 8.0;
/// No request is slow below this, nanoseconds.
const SLOW_NS_MIN: i64 = 10_000_000;
/// Responses belong to the end of one stall when the next comes within this share of its wait.
const END_SHARE: i64 = 4;
/// They do in any case within this time, nanoseconds.
const END_NS: i64 = 2_000_000;
/// Requests that must wait for the end of a stall.
const WAITING_MIN: usize = 2;
/// Share of a stall, at its start and at its end, that is not looked at: clocks and samples are not exact.
const EDGE_SHARE: i64 = 10;
/// Sampled requests below which there is no judgement.
const SAMPLES_MIN: usize = 20;
/// Most stalls that are kept.
const STALLS_MAX: usize = 10_000;

/// A successful request of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedRequest {
    /// When it was sent.
    pub sent_ns: i64,
    /// When its response was complete.
    pub done_ns: i64,
    /// Number of requests that it stands for, 1 or more.
    pub weight: f64,
}

impl TimedRequest {
    fn length_ns(&self) -> i64 {
        self.done_ns.saturating_sub(self.sent_ns)
    }
}

/// A time without responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When the request that waited longest was sent.
    pub start_ns: i64,
    /// When responses came again.
    pub end_ns: i64,
}

impl Stall {
    /// Length, nanoseconds.
    pub fn length_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// Stalls of a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stalls {
    /// Possible stalls in order of time, apart from one another.
    pub each: Vec<Stall>,
    /// Time from sending to response from which requests counted as slow, nanoseconds.
    pub slow_from_ns: i64,
    /// Sampled quick requests that would lie within the stalls if they were as frequent there as at other times.
    pub quick_expected: f64,
    /// Sampled quick requests that do.
    pub quick_seen: f64,
}

impl Stalls {
    /// Finds the stalls in a sample of successful requests.
    pub fn of(mut requests: Vec<TimedRequest>) -> Self {
        if requests.len() < SAMPLES_MIN {
            return Self::default();
        }
        requests.sort_by_key(|request| request.done_ns);
        let slow_from_ns = ((SLOW_FACTOR * median_ns(&requests)) as i64).max(SLOW_NS_MIN);
        let (slow, quick): (Vec<TimedRequest>, Vec<TimedRequest>) =
            requests.iter().copied().partition(|request| request.length_ns() >= slow_from_ns);
        let each = ends(&slow);
        let span_ns = requests.iter().map(|request| request.done_ns).max().unwrap_or(0)
            - requests.iter().map(|request| request.sent_ns).min().unwrap_or(0);
        let stalled_ns: i64 = each.iter().map(Stall::length_ns).sum();
        let within_ns = stalled_ns - 2 * stalled_ns / EDGE_SHARE;
        let outside_ns = (span_ns - stalled_ns).max(1);
        let is_within = |request: &&TimedRequest| {
            let at = each.partition_point(|stall| stall.end_ns <= request.sent_ns);
            each.get(at).is_some_and(|stall| {
                let edge_ns = stall.length_ns() / EDGE_SHARE;
                request.sent_ns >= stall.start_ns + edge_ns && request.done_ns <= stall.end_ns - edge_ns
            })
        };
        let quick_seen = quick.iter().filter(is_within).count() as f64;
        let quick_expected = (quick.len() as f64 - quick_seen) * within_ns as f64 / outside_ns as f64;
        Self { each, slow_from_ns, quick_expected, quick_seen }
    }

    /// Length of the stall in the middle, nanoseconds; 0 without one.
    pub fn median_ns(&self) -> i64 {
        middle(self.each.iter().map(Stall::length_ns).collect())
    }

    /// Time from the start of one stall to that of the next, the one in the middle, nanoseconds; 0 for fewer than two.
    pub fn apart_ns(&self) -> i64 {
        middle(self.each.windows(2).map(|pair| pair[1].start_ns - pair[0].start_ns).collect())
    }

    /// Share of the times from stall to stall that are within a fifth of the one in the middle, 0 to 1.
    pub fn regular_share(&self) -> f64 {
        let apart_ns = self.apart_ns();
        let pairs = self.each.windows(2).map(|pair| pair[1].start_ns - pair[0].start_ns);
        let alike = pairs.filter(|one| 5 * (one - apart_ns).abs() <= apart_ns).count();
        alike as f64 / self.each.len().saturating_sub(1).max(1) as f64
    }
}

/// The value in the middle; 0 of none.
fn middle(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// Weighted median time from sending to response, nanoseconds.
fn median_ns(requests: &[TimedRequest]) -> f64 {
    let mut lengths: Vec<(i64, f64)> = requests.iter().map(|one| (one.length_ns(), one.weight)).collect();
    lengths.sort_by_key(|(length_ns, _)| *length_ns);
    let half = lengths.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let middle = lengths.iter().find(|(_, weight)| {
        below += weight;
        below >= half
    });
    middle.map_or(0.0, |(length_ns, _)| *length_ns as f64)
}

/// Times at whose end several of these requests, in order of their end, got their responses.
fn ends(slow: &[TimedRequest]) -> Vec<Stall> {
    let is_one_end = |a: &TimedRequest, b: &TimedRequest| {
        b.done_ns - a.done_ns <= (a.length_ns().min(b.length_ns()) / END_SHARE).max(END_NS)
    };
    let mut found: Vec<Stall> = Vec::new();
    for group in slow.chunk_by(is_one_end).filter(|group| group.len() >= WAITING_MIN).take(STALLS_MAX) {
        let start_ns = group.iter().map(|request| request.sent_ns).min().unwrap_or(0);
        let stall = Stall { start_ns, end_ns: group[0].done_ns };
        if found.last().is_none_or(|last| last.end_ns <= stall.start_ns) {
            found.push(stall);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn request(sent_ms: i64, length_ms: i64) -> TimedRequest {
        TimedRequest { sent_ns: sent_ms * MS, done_ns: (sent_ms + length_ms) * MS, weight: 1.0 }
    }

    /// A request of 1 ms every 20 ms for ten seconds, but for times in which none is served.
    fn quick(is_served: impl Fn(i64) -> bool) -> Vec<TimedRequest> {
        (0..500).map(|n| n * 20).filter(|at| is_served(*at)).map(|at| request(at, 1)).collect()
    }

    #[test]
    fn a_system_that_stands_still_once_a_second_is_seen() {
        let mut requests = quick(|at| at % 1000 >= 100);
        requests.extend((0..10).flat_map(|second| [request(second * 1000, 98), request(second * 1000 + 1, 98)]));
        let stalls = Stalls::of(requests);
        assert_eq!((stalls.each.len(), stalls.median_ns(), stalls.apart_ns()), (10, 98 * MS, 1000 * MS));
        assert_eq!((stalls.quick_seen, stalls.regular_share()), (0.0, 1.0));
        assert!(stalls.quick_expected > 30.0, "{stalls:?}");
    }

    #[test]
    fn slow_requests_beside_quick_ones_are_no_stall() {
        let mut requests = quick(|_| true);
        requests.extend((0..10).flat_map(|second| [request(second * 1000, 98), request(second * 1000 + 1, 98)]));
        let stalls = Stalls::of(requests);
        assert!(stalls.quick_seen > 0.8 * stalls.quick_expected, "{stalls:?}");
        let mut alone = quick(|_| true);
        alone.extend((0..10).map(|second| request(second * 1000, 98)));
        assert_eq!(Stalls::of(alone).each, [], "one request at a time may have more work");
    }

    #[test]
    fn too_few_requests_are_no_evidence() {
        assert_eq!(Stalls::of(vec![request(0, 90), request(0, 90)]), Stalls::default());
    }
}
