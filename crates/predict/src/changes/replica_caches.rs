//! Caches in the processes of a service. With more processes, fewer requests reach each cache, and its hit ratio falls.
//!
//! A cache shows as requests of one operation of which some call something and others nothing. Entries that are kept for so
//! long are found the more often the more requests come for them: with a mean of x requests in that time, x of x + 1 are
//! found. Twice as many processes halve x.

use std::collections::BTreeMap;

use super::Scene;
use crate::retime::groups;
use crate::system::System;

/// Requests with and without calls that have to be seen.
const REQUESTS_MIN: usize = 3;
/// Steps in which the rate and the calls that it takes follow each other.
const RATE_STEPS: usize = 8;

/// Operations of a service whose requests a cache serves in part.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Caches {
    /// Share of their requests that the cache does not serve, above 0 and below 1.
    pub(super) misses: f64,
    /// Their share of the requests of the load, above 0.
    share: f64,
    /// Time that a request takes longer which the cache does not serve, seconds.
    miss_s: f64,
    /// Share of the time of calls to each callee that they cause, 0 to 1.
    callees: BTreeMap<String, f64>,
}

/// Sums over requests.
#[derive(Debug, Default)]
struct Sums {
    seen: usize,
    weight: f64,
    time_s: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, time_s: f64) {
        self.seen += 1;
        self.weight += weight;
        self.time_s += weight * time_s;
    }

    fn mean_s(&self) -> f64 {
        self.time_s / self.weight
    }
}

impl Caches {
    /// Those of a service; `None` if its traces show none.
    pub(super) fn of(service: &str, scene: &Scene<'_>) -> Option<Self> {
        // Requests with calls and without, and the time in calls to each callee, by operation.
        let mut operations: BTreeMap<&str, (Sums, Sums, BTreeMap<String, f64>)> = BTreeMap::new();
        let mut all_s: BTreeMap<String, f64> = BTreeMap::new();
        let mut requests = 0.0;
        for traced in &scene.sample.traces {
            let tree = &traced.tree;
            requests += traced.weight;
            for entry in tree.entries().into_iter().filter(|at| tree.span(*at).service == service) {
                let (with, without, callees) = operations.entry(tree.span(entry).name.as_str()).or_default();
                let calls = groups(tree, entry, &scene.sample.names);
                let sums = if calls.is_empty() { without } else { with };
                sums.add(traced.weight, tree.length_ns(entry) / 1e9);
                for group in &calls {
                    let calls_s = group.attempts().map(|at| tree.length_ns(at) / 1e9).sum::<f64>() * traced.weight;
                    *callees.entry(group.callee.to_owned()).or_default() += calls_s;
                    *all_s.entry(group.callee.to_owned()).or_default() += calls_s;
                }
            }
        }
        let is_cached = |sums: &(Sums, Sums, BTreeMap<String, f64>)| {
            sums.0.seen >= REQUESTS_MIN && sums.1.seen >= REQUESTS_MIN && sums.0.mean_s() > sums.1.mean_s()
        };
        let (with, without, callees) =
            operations.into_values().filter(is_cached).max_by(|a, b| a.0.time_s.total_cmp(&b.0.time_s))?;
        let weight = with.weight + without.weight;
        let share_of = |(callee, calls_s): (String, f64)| {
            let share = calls_s / all_s.get(&callee)?;
            Some((callee, share))
        };
        Some(Self {
            misses: with.weight / weight,
            share: weight / requests,
            miss_s: with.mean_s() - without.mean_s(),
            callees: callees.into_iter().filter_map(share_of).collect(),
        })
    }

    /// Share of the requests that caches do not serve when each gets this share of the requests that it gets now.
    pub(super) fn misses_with(&self, load_share: f64) -> f64 {
        let found = (1.0 - self.misses) / self.misses * load_share;
        1.0 / (1.0 + found)
    }

    /// The calls of requests that this many times as many caches do not serve, under the rate that is left with them.
    pub(super) fn spread(&self, system: &mut System, growth: f64) {
        let before = system.clone();
        let rate_top = before.rate_top();
        let mut rate = rate_top;
        for _ in 0..RATE_STEPS {
            *system = before.clone();
            self.miss(system, self.misses_with(rate / rate_top / growth));
            // Half of each step, so that the two come together.
            rate = (rate + rate_top.min(system.rate_max())) / 2.0;
        }
    }

    fn miss(&self, system: &mut System, misses: f64) {
        for (callee, share) in &self.callees {
            system.scale_cpu(callee, 1.0 + share * (misses / self.misses - 1.0));
        }
        system.delay_s += self.share * (misses - self.misses) * self.miss_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_is_asked_half_as_often_finds_less() {
        let caches = Caches { misses: 0.25, share: 1.0, miss_s: 0.02, callees: BTreeMap::new() };
        assert!((caches.misses_with(1.0) - 0.25).abs() < 1e-12);
        assert!((caches.misses_with(0.5) - 0.4).abs() < 1e-12, "1.5 requests for an entry while it is kept, and not 3");
    }
}
