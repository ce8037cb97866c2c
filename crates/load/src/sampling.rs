//! Which requests of a second are kept whole: the slowest, some errors, and an even sample of the rest.
//!
//! Each kept request carries the number it stands for, and these weights add up to all requests that ended, so that
//! counts over samples stay unbiased. The rest is sampled by reservoir (Vitter 1985, "Random sampling with a
//! reservoir", algorithm R), which needs no knowledge of how many will come.

use narrows_model::load::{ErrorKind, Sample};
use narrows_model::trace::TraceId;

use crate::random::Random;
use crate::recorder::RowName;

const SLOWEST_MAX: usize = 4;
const ERRORS_MAX: usize = 4;
const REST_MAX: usize = 24;

/// A request that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FinishedRequest {
    pub(crate) vu: u32,
    pub(crate) intended_ns: i64,
    pub(crate) sent_ns: i64,
    pub(crate) done_ns: i64,
    pub(crate) status: u16,
    pub(crate) error: Option<ErrorKind>,
    pub(crate) bytes: u64,
    pub(crate) trace_id: Option<TraceId>,
}

impl FinishedRequest {
    /// From intended send to the end, in nanoseconds.
    pub(crate) fn latency_ns(&self) -> u64 {
        self.done_ns.saturating_sub(self.intended_ns).max(0) as u64
    }

    /// From actual send to the end, in nanoseconds.
    pub(crate) fn service_ns(&self) -> u64 {
        self.done_ns.saturating_sub(self.sent_ns).max(0) as u64
    }
}

/// The sample of one second of one scenario on one thread.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    slowest: Vec<FinishedRequest>,
    /// Where the fastest of them stands, and its latency: what another has to exceed.
    fastest: usize,
    fastest_ns: u64,
    errors: Reservoir<ERRORS_MAX>,
    rest: Reservoir<REST_MAX>,
}

impl Sampler {
    /// Takes note of a request.
    pub(crate) fn offer(&mut self, ended: &FinishedRequest, random: &mut Random) {
        if ended.error.is_some() {
            return self.errors.offer(ended, random);
        }
        if self.slowest.len() == SLOWEST_MAX {
            if ended.latency_ns() <= self.fastest_ns {
                return self.rest.offer(ended, random);
            }
            let other = std::mem::replace(&mut self.slowest[self.fastest], *ended);
            self.rest.offer(&other, random);
        } else {
            self.slowest.push(*ended);
        }
        let latencies = self.slowest.iter().map(FinishedRequest::latency_ns).enumerate();
        if let Some((fastest, fastest_ns)) = latencies.min_by_key(|(_, latency_ns)| *latency_ns) {
            (self.fastest, self.fastest_ns) = (fastest, fastest_ns);
        }
    }

    /// Hands over the sample, weights set, and begins anew.
    pub(crate) fn take(&mut self, name: &RowName) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(self.slowest.len() + self.errors.kept.len() + self.rest.kept.len());
        samples.extend(self.slowest.drain(..).map(|ended| sample(ended, name, 1.0)));
        self.errors.take(name, &mut samples);
        self.rest.take(name, &mut samples);
        samples
    }
}

#[derive(Debug, Default)]
struct Reservoir<const MAX: usize> {
    kept: Vec<FinishedRequest>,
    offered: u64,
}

impl<const MAX: usize> Reservoir<MAX> {
    fn offer(&mut self, ended: &FinishedRequest, random: &mut Random) {
        self.offered += 1;
        if self.kept.len() < MAX {
            self.kept.push(*ended);
        } else if let Some(place) = self.kept.get_mut(random.below(self.offered) as usize) {
            *place = *ended;
        }
    }

    fn take(&mut self, name: &RowName, samples: &mut Vec<Sample>) {
        let weight = self.offered as f64 / self.kept.len().max(1) as f64;
        samples.extend(self.kept.drain(..).map(|ended| sample(ended, name, weight)));
        self.offered = 0;
    }
}

fn sample(ended: FinishedRequest, name: &RowName, weight: f64) -> Sample {
    Sample {
        scenario: name.scenario.clone(),
        request: name.request.clone(),
        vu: ended.vu,
        agent: None,
        intended_ns: ended.intended_ns,
        sent_ns: ended.sent_ns,
        done_ns: ended.done_ns,
        status: ended.status,
        error: ended.error,
        bytes: ended.bytes,
        trace_id: ended.trace_id,
        weight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name() -> RowName {
        RowName { scenario: "a".into(), request: String::new() }
    }

    fn ended(latency_ns: i64, error: Option<ErrorKind>) -> FinishedRequest {
        FinishedRequest {
            vu: 0,
            intended_ns: 1_000,
            sent_ns: 1_000,
            done_ns: 1_000 + latency_ns,
            status: 200,
            error,
            bytes: 1,
            trace_id: None,
        }
    }

    proptest! {
        #[test]
        fn weights_add_up_and_the_slowest_are_there(
            latencies in proptest::collection::vec((0i64..1_000, proptest::bool::weighted(0.1)), 0..400),
            seed: u64,
        ) {
            let mut random = Random::new(seed, 0);
            let mut sampler = Sampler::default();
            for (latency, failed) in &latencies {
                sampler.offer(&ended(*latency, failed.then_some(ErrorKind::Reset)), &mut random);
            }
            let samples = sampler.take(&name());
            let weight = |failed: bool| {
                samples.iter().filter(|s| s.error.is_some() == failed).map(|s| s.weight).sum::<f64>()
            };
            let count = |failed: bool| latencies.iter().filter(|l| l.1 == failed).count() as f64;
            prop_assert!((weight(true) - count(true)).abs() < 1e-6);
            prop_assert!((weight(false) - count(false)).abs() < 1e-6);
            prop_assert!(samples.len() <= SLOWEST_MAX + ERRORS_MAX + REST_MAX);
            let mut sorted: Vec<i64> = latencies.iter().filter(|l| !l.1).map(|l| l.0).collect();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let mut slowest: Vec<i64> = samples[..sorted.len().min(SLOWEST_MAX)].iter().map(|s| s.done_ns - 1_000).collect();
            slowest.sort_unstable_by(|a, b| b.cmp(a));
            prop_assert_eq!(&slowest[..], &sorted[..slowest.len()]);
            prop_assert_eq!(sampler.take(&name()), []);
        }
    }

    #[test]
    fn the_rest_is_sampled_evenly() {
        let mut random = Random::new(3, 0);
        let mut early = 0;
        for _ in 0..1_000 {
            let mut sampler = Sampler::default();
            for i in 0..200 {
                sampler.offer(&ended(i, None), &mut random);
            }
            early += sampler.take(&name())[SLOWEST_MAX..].iter().filter(|s| s.done_ns < 1_098).count();
        }
        assert!((11_400..12_600).contains(&early), "{early} of 24,000 from the first half");
    }
}
