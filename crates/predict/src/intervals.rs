//! Intervals of predictions.
//!
//! They come from a bootstrap (B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap*, 1993): traces are drawn again
//! with replacement, levels get random weights, the model is fitted anew each time, and 90 % of the results lie within. They are widened
//! by the largest of three: how far the model misses the baseline, the noise of what was measured, and a least error, for a
//! changed system is known less well than a measured one. What is removed of a request's time is known with an error too,
//! which is large beside a rest that is small. Where one level does not tell how CPU of a request depends on the load, the
//! interval holds both ends of what it may be. An error of the latency is one of the rate as far as users wait for responses
//! rather than think, and near a limit one of the limit is one of the rate.

use narrows_model::prediction::{Estimate, Figures, Forecast};

use crate::system::Level;

/// The part of the draws below the interval, and above it.
const TAIL: f64 = 0.05;
/// The least error of the latency of a changed system, a share: half of the recorded predictions of systems that the model
/// reproduces are off by more.
const ERROR_MIN: f64 = 0.15;
/// The least error of a rate, a share: two levels of the same load differ by as much.
const RATE_ERROR_MIN: f64 = 0.05;
/// Least share of waiting by which the error of a latency near a limit is divided: near one that users hardly notice it is known
/// no less well.
const WAITING_SHARE_MIN: f64 = 0.1;
/// Standard errors on each side of an interval of 90 %.
const ERRORS_OF_INTERVAL: f64 = 1.64;
/// Error of the time that a change removes from a request, or adds to it, a share: that of a known part (`system/`), half of
/// which the model takes for unexplained time that goes with it.
const REMOVED_ERROR: f64 = 0.05;

/// The value that a share of all weight is at or below; none without values.
pub(crate) fn quantile(values: &[(f64, f64)], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let weight: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut seen = 0.0;
    let reached = sorted.iter().find(|(_, of)| {
        seen += of;
        seen >= share * weight
    });
    reached.or(sorted.last()).map(|(value, _)| *value)
}

/// Errors of a model of a changed system, as shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ModelError {
    rate: f64,
    latency: f64,
}

/// How much users wait. By Little's law an error of the latency is one of the rate for the share of the time in which they wait
/// for a response; near a limit an error of the limit is one of the rate, and of the latency as many times more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Waiting {
    /// Share of the time in which users wait for a response, above 0 to 1; 1 for arrivals.
    pub(crate) share: f64,
    /// Share of the requests under loads near a limit, 0 to 1.
    pub(crate) limited_share: f64,
}

/// Noise of measured figures, as shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Noise {
    /// Of a mean latency, with 90 % of its errors.
    latency: f64,
    /// Of a rate: it counts whole requests.
    rate: f64,
}

impl Noise {
    /// Of these levels together. Few latencies tell little of how they vary: one more is taken to vary like an exponential time.
    pub(crate) fn new(levels: &[Level]) -> Self {
        let requests: f64 = levels.iter().map(|level| level.requests as f64).sum();
        let squares: f64 = levels.iter().map(|level| level.requests as f64 * level.variation().powi(2)).sum();
        let variation = ((squares + 1.0) / (requests + 1.0)).sqrt();
        let requests = requests.max(1.0);
        Self { latency: ERRORS_OF_INTERVAL * variation / requests.sqrt(), rate: 1.0 / requests }
    }
}

impl ModelError {
    /// Of a model that is off by this share, with such noise of what was measured. `removed_share` is the time that the change removes from a request or adds to it ÷ the latency with the change.
    pub(crate) fn new(miss_share: f64, noise: Noise, removed_share: f64, waiting: Waiting) -> Self {
        let error = miss_share.max(ERROR_MIN).max(noise.latency) + REMOVED_ERROR * removed_share;
        let limited = waiting.limited_share;
        let rate = error * (limited + (1.0 - limited) * waiting.share);
        let latency = error * (1.0 - limited + limited / waiting.share.max(WAITING_SHARE_MIN));
        Self { rate: rate.max(RATE_ERROR_MIN).max(noise.rate), latency }
    }
}

/// Estimates of all figures, each with the error that it is widened by.
pub(crate) fn each_figure(error: ModelError, estimate: impl Fn(fn(&Figures) -> f64, f64) -> Estimate) -> Forecast {
    Forecast {
        rate: estimate(|figures| figures.rate, error.rate),
        mean_ns: estimate(|figures| figures.mean_ns, error.latency),
        p95_ns: estimate(|figures| figures.p95_ns, error.latency),
    }
}

/// An expected value with the interval that draws give it, widened by an error of the model as a factor, so that no end is
/// below zero.
pub(crate) fn spread(value: f64, draws: Vec<f64>, error: f64) -> Estimate {
    let weighted: Vec<(f64, f64)> = draws.into_iter().filter(|draw| draw.is_finite()).map(|draw| (draw, 1.0)).collect();
    let low = quantile(&weighted, TAIL).unwrap_or(value).min(value);
    let high = quantile(&weighted, 1.0 - TAIL).unwrap_or(value).max(value);
    Estimate { value, low: low / (1.0 + error), high: high * (1.0 + error) }
}

/// An estimate whose interval reaches as far as that of another does.
pub(crate) fn widened(estimate: Estimate, other: &Estimate) -> Estimate {
    Estimate { low: estimate.low.min(other.low), high: estimate.high.max(other.high), ..estimate }
}

/// Cases between which the truth lies. Their value is the geometric mean, as errors are factors.
pub(crate) fn joined(cases: Vec<Estimate>) -> Estimate {
    let count = cases.len().max(1) as f64;
    Estimate {
        value: (cases.iter().map(|case| case.value.ln()).sum::<f64>() / count).exp(),
        low: cases.iter().map(|case| case.low).fold(f64::INFINITY, f64::min),
        high: cases.iter().map(|case| case.high).fold(0.0, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_count_weights() {
        let values = [(3.0, 1.0), (1.0, 8.0), (2.0, 1.0)];
        assert_eq!(quantile(&values, 0.5), Some(1.0));
        assert_eq!(quantile(&values, 0.85), Some(2.0));
        assert_eq!(quantile(&values, 1.0), Some(3.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_error_of_a_rate_is_that_of_the_latency_as_far_as_users_wait() {
        let waiting = |share| Waiting { share, limited_share: 0.0 };
        let many = Noise { latency: 0.01, rate: 0.001 };
        assert_eq!(ModelError::new(0.02, many, 0.0, waiting(0.5)), ModelError { rate: 0.075, latency: 0.15 });
        assert_eq!(ModelError::new(0.4, many, 0.0, waiting(0.01)), ModelError { rate: 0.05, latency: 0.4 });
        let few = ModelError::new(0.02, Noise { latency: 0.82, rate: 0.25 }, 0.0, waiting(0.01));
        assert_eq!(few, ModelError { rate: 0.25, latency: 0.82 }, "few requests");
        let limited = ModelError::new(0.02, many, 0.0, Waiting { share: 0.5, limited_share: 1.0 });
        assert_eq!(limited, ModelError { rate: 0.15, latency: 0.3 });
        let large = ModelError::new(0.02, many, 20.0, waiting(0.01));
        assert_eq!(
            large,
            ModelError { rate: 0.05, latency: 1.15 },
            "a part of 21 is left, the rate is that of thinking"
        );
    }

    #[test]
    fn an_interval_holds_the_value_and_the_error_of_the_model() {
        let estimate = spread(100.0, (90..=110).map(f64::from).collect(), 0.1);
        assert!(estimate.low < 0.9 * 92.0 && estimate.high > 1.1 * 108.0, "{estimate:?}");
        assert_eq!(spread(16.0, Vec::new(), 1.0), Estimate { value: 16.0, low: 8.0, high: 32.0 });
        let joined = joined(vec![spread(10.0, Vec::new(), 0.0), spread(20.0, Vec::new(), 0.0)]);
        assert_eq!((joined.low, joined.high), (10.0, 20.0));
        assert!((joined.value - 200.0_f64.sqrt()).abs() < 1e-9, "{joined:?}");
    }
}
