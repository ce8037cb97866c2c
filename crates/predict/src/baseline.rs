//! The system as it is: the model has to reproduce what was measured before it may say anything else.
//!
//! Time of a request that no queue explains is one delay, the same at every level of the load, chosen so that the model
//! misses the measured means as little as possible. With several levels that one number cannot hide a model that does not
//! hold: a queue that is missing shows as a mean that grows and a model that does not.

use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::prediction::{BaselineLevel, Doubt, Figures, Measure};

use crate::queueing::{self, Network, bounds, mva};
use crate::system::{Level, System};

/// How far the model may be off: a share of what was measured (Menascé, Almeida and Dowdy, *Performance by Design*,
/// call 10 % for throughput good).
const MISS_MAX: f64 = 0.10;
/// Standard errors that are noise. Latencies are taken to spread as much as their mean.
const ERRORS_MAX: f64 = 2.0;
/// Halvings of the interval in which the delay lies.
const FIT_STEPS: usize = 40;
/// Users whose arrivals exceed what is completed see at least the latency at this share of the highest rate.
const OVERLOAD_SHARE: f64 = 0.95;

/// The model under one load.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelFit {
    pub(crate) rate: f64,
    pub(crate) mean_s: f64,
    /// Wait of a request at each station.
    pub(crate) waits_s: Vec<f64>,
    /// Whether more arrives than is completed.
    pub(crate) is_overloaded: bool,
}

/// The model under these loads; `refusals_s` is the time that requests take longer under each because calls are refused.
pub(crate) fn modelled(system: &System, loads: &[LoadLevel], refusals_s: &[f64]) -> Vec<ModelFit> {
    let network = system.network();
    let stores = system.stores_rate_max();
    let is_closed = |load: &LoadLevel| load.arrivals.is_none();
    if loads.iter().all(is_closed) && refusals_s.iter().all(|refused_s| *refused_s == 0.0) {
        let users: Vec<u32> = loads.iter().map(|load| load.users).collect();
        let solutions = mva::closed(&network, &users);
        return solutions.into_iter().zip(&users).map(|(one, users)| closed(one, *users, &network, stores)).collect();
    }
    let one = |(load, refused_s): (&LoadLevel, &f64)| {
        let refused = Network { delay_s: network.delay_s + refused_s, ..network.clone() };
        match load.arrivals {
            Some(rate) => open(&refused, rate, stores),
            None => {
                let solution = with_refusals(&network, &refused, load.users, stores);
                closed(solution, load.users, &network, stores)
            }
        }
    };
    loads.iter().zip(refusals_s).map(one).collect()
}

/// A store that refuses single calls slows requests down by what that costs. One that is asked for more than it provides
/// completes what it provides, whatever a refusal costs.
fn with_refusals(network: &Network, refused: &Network, users: u32, rate_max: f64) -> queueing::Solution {
    let alone = mva::closed(network, &[users]).swap_remove(0);
    if alone.rate > rate_max { alone } else { mva::closed(refused, &[users]).swap_remove(0) }
}

/// A store lets requests through at its rate and makes the others wait.
fn closed(solution: queueing::Solution, users: u32, network: &Network, rate_max: f64) -> ModelFit {
    let rate = solution.rate.min(rate_max);
    let mean_s = if rate < solution.rate { f64::from(users) / rate - network.think_s } else { solution.response_s };
    ModelFit { rate, mean_s, waits_s: solution.waits_s, is_overloaded: false }
}

fn open(network: &Network, rate: f64, rate_max: f64) -> ModelFit {
    let is_within = rate < rate_max;
    match queueing::open(network, rate).filter(|_| is_within) {
        Some(one) => ModelFit { rate, mean_s: one.response_s, waits_s: one.waits_s, is_overloaded: false },
        None => {
            let limit = bounds::rate_max(network).min(rate_max);
            let near = queueing::open(network, OVERLOAD_SHARE * limit).unwrap_or_default();
            ModelFit { rate: limit, mean_s: near.response_s, waits_s: near.waits_s, is_overloaded: true }
        }
    }
}

/// The system with the delay that fits these levels best.
pub(crate) fn fitted(system: &System, levels: &[Level], refusals_s: &[f64]) -> System {
    let loads: Vec<LoadLevel> = levels.iter().map(|level| level.load).collect();
    let miss = |delay_s: f64| {
        let modelled = modelled(&System { delay_s, ..system.clone() }, &loads, refusals_s);
        let of = |(level, model): (&Level, &ModelFit)| {
            (level.requests as f64).sqrt() * (model.mean_s / level.mean_s() - 1.0).powi(2)
        };
        levels.iter().zip(&modelled).map(of).sum::<f64>()
    };
    let longest_s = levels.iter().map(Level::mean_s).fold(0.0, f64::max);
    System { delay_s: lowest(0.0, longest_s, miss), ..system.clone() }
}

/// Where a function with one valley is lowest: golden-section search.
fn lowest(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    const RATIO: f64 = 0.618_033_988_749_895;
    let inner = |low: f64, high: f64| (high - RATIO * (high - low), low + RATIO * (high - low));
    let (mut a, mut b) = inner(low, high);
    let (mut at_a, mut at_b) = (of(a), of(b));
    for _ in 0..FIT_STEPS {
        if at_a <= at_b {
            (high, b, at_b) = (b, a, at_a);
            a = inner(low, high).0;
            at_a = of(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = inner(low, high).1;
            at_b = of(b);
        }
    }
    (low + high) / 2.0
}

/// Measurement of a level.
pub(crate) fn measured(level: &Level) -> Figures {
    Figures { rate: level.rate(), mean_ns: level.mean_s() * 1e9, p95_ns: level.p95_s() * 1e9 }
}

/// Measured and modelled beside each other.
pub(crate) fn compared(levels: &[Level], model: &[ModelFit]) -> Vec<BaselineLevel> {
    let one = |(level, model): (&Level, &ModelFit)| BaselineLevel {
        label: level.label.clone(),
        load: level.load,
        requests: level.requests,
        measured: measured(level),
        model_rate: model.rate,
        model_mean_ns: model.mean_s * 1e9,
    };
    levels.iter().zip(model).map(one).collect()
}

/// Doubts about a model that has this baseline.
pub(crate) fn doubts(baseline: &[BaselineLevel]) -> Vec<Doubt> {
    let missed =
        baseline.iter().flat_map(misses).max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(excess, _)| *excess > 0.0);
    let one_level = (baseline.len() < 2).then_some(Doubt::OneLevel);
    missed.map(|(_, doubt)| doubt).into_iter().chain(one_level).collect()
}

/// By how much each figure of a level is missed beyond what is allowed, with the doubt that it gives.
fn misses(level: &BaselineLevel) -> [(f64, Doubt); 2] {
    let allowed = MISS_MAX.max(ERRORS_MAX / (level.requests as f64).sqrt());
    [
        (Measure::Rate, level.measured.rate, level.model_rate),
        (Measure::Mean, level.measured.mean_ns, level.model_mean_ns),
    ]
    .map(|(measure, measured, model)| {
        let doubt = Doubt::BaselineMissed { label: level.label.clone(), measure, measured, model };
        ((model / measured - 1.0).abs() - allowed, doubt)
    })
}

/// How far the model is off on average: the root of the mean square of its misses of mean latency, as shares.
pub(crate) fn miss_share(baseline: &[BaselineLevel]) -> f64 {
    let weight: f64 = baseline.iter().map(|level| level.requests as f64).sum();
    let of =
        |level: &BaselineLevel| level.requests as f64 * (level.model_mean_ns / level.measured.mean_ns - 1.0).powi(2);
    (baseline.iter().map(of).sum::<f64>() / weight).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_point_of_a_valley_is_found() {
        assert!((lowest(0.0, 10.0, |x| (x - 3.2).powi(2)) - 3.2).abs() < 1e-6);
        assert!(lowest(0.0, 10.0, |x| x) < 1e-6);
    }

    #[test]
    fn a_miss_beyond_ten_per_cent_and_beyond_noise_is_a_serious_doubt() {
        let level = |requests, model_mean_ns| BaselineLevel {
            label: "4 users".into(),
            load: LoadLevel { users: 4, arrivals: None },
            requests,
            measured: Figures { rate: 10.0, mean_ns: 100.0, p95_ns: 200.0 },
            model_rate: 10.0,
            model_mean_ns,
        };
        let serious = |levels: &[BaselineLevel]| doubts(levels).iter().any(Doubt::is_serious);
        assert!(!serious(&[level(10_000, 108.0), level(10_000, 95.0)]));
        assert!(serious(&[level(10_000, 108.0), level(10_000, 115.0)]));
        assert!(!serious(&[level(10_000, 108.0), level(100, 115.0)]), "within noise");
        assert_eq!(doubts(&[level(10_000, 100.0)]), [Doubt::OneLevel]);
    }
}
