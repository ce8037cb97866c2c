//! The load of a trial second by second, and what noise leaves of a mean over some of them.
//!
//! Seconds are not independent: queues and caches carry over. So they are joined into about ten blocks whose means are
//! compared (the method of batch means, Law, *Simulation Modeling and Analysis*), on a logarithmic scale; what
//! correlation r is left between neighbouring blocks widens the interval: n blocks then say as much as
//! n (1 − r) ÷ (1 + r) independent ones.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;

use crate::stats::blocks::{CORRELATION_MAX, correlation};
use crate::stats::{mean_and_variance, student_t_975};

/// Blocks of an estimate.
const BLOCKS: usize = 10;
/// With fewer there is no variance worth the name.
const BLOCKS_MIN: usize = 3;

/// One second of a trial, all scenarios together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Second {
    /// Its first instant.
    pub(crate) start_ns: i64,
    /// Number of seconds that it represents: more if several are joined.
    pub(crate) seconds: f64,
    /// Requests sent.
    pub(crate) sent: f64,
    /// Successful responses.
    pub(crate) succeeded: f64,
    /// Failed requests.
    pub(crate) failed: f64,
    /// Latency of the successful from intended send, added up, nanoseconds.
    pub(crate) latency_sum_ns: f64,
}

impl Second {
    fn add(&mut self, other: &Second) {
        self.seconds += other.seconds;
        self.sent += other.sent;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.latency_sum_ns += other.latency_sum_ns;
    }

    /// Successful responses per second.
    pub(crate) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.succeeded / self.seconds } else { 0.0 }
    }

    /// Mean latency, nanoseconds; none without a success.
    pub(crate) fn latency_ns(&self) -> Option<f64> {
        (self.succeeded > 0.0).then(|| self.latency_sum_ns / self.succeeded)
    }
}

/// The seconds whose middle lies between these instants, in order of time.
pub(crate) fn seconds_of(trial: &TrialEvidence, start_ns: i64, end_ns: i64) -> Vec<Second> {
    let mut seconds: BTreeMap<i64, Second> = BTreeMap::new();
    for row in trial.seconds.iter().filter(|row| (start_ns..end_ns).contains(&row.middle_ns())) {
        let fresh = Second { start_ns: row.start_ns, ..Second::default() };
        let second = seconds.entry(row.start_ns).or_insert(fresh);
        let longer = row.length_ns as f64 / 1e9 - second.seconds;
        second.add(&Second {
            start_ns: row.start_ns,
            seconds: longer.max(0.0),
            sent: row.sent as f64,
            succeeded: row.succeeded as f64,
            failed: row.errors.total() as f64,
            latency_sum_ns: row.latency.sum_ns() as f64,
        });
    }
    seconds.into_values().collect()
}

/// All of them joined.
pub(crate) fn total(seconds: &[Second]) -> Second {
    let mut sum = Second { start_ns: seconds.first().map_or(0, |second| second.start_ns), ..Second::default() };
    seconds.iter().for_each(|second| sum.add(second));
    sum
}

/// `count` blocks as equal as they can be, fewer when there are fewer seconds.
pub(crate) fn blocks(seconds: &[Second], count: usize) -> Vec<Second> {
    let count = count.min(seconds.len());
    let at = |i: usize| seconds.len() * i / count.max(1);
    (0..count).map(|i| total(&seconds[at(i)..at(i + 1)])).collect()
}

/// The estimated quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Successful responses per second.
    Rate,
    /// Mean latency of the successful.
    Latency,
}

impl Quantity {
    /// Of one block; `None` for a latency of nothing. A block without a response counts as half a response, so that its
    /// logarithm is some number.
    pub(crate) fn of(self, block: &Second) -> Option<f64> {
        match self {
            Quantity::Rate => (block.seconds > 0.0).then(|| block.succeeded.max(0.5) / block.seconds),
            Quantity::Latency => block.latency_ns().map(|ns| ns.max(1.0)),
        }
    }
}

/// The logarithm of a mean with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    log: f64,
    squared_error: f64,
    degrees: f64,
}

/// Relative difference of two means, as ratio − 1, with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// The best guess.
    pub(crate) ratio: f64,
    /// Lowest.
    pub(crate) low: f64,
    /// Highest.
    pub(crate) high: f64,
}

impl Change {
    /// True if noise does not explain it.
    pub(crate) fn is_significant(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

impl Estimate {
    /// `None` if fewer than three blocks have a value.
    pub(crate) fn from_seconds(seconds: &[Second], quantity: Quantity) -> Option<Self> {
        let known = blocks(seconds, BLOCKS).iter().filter_map(|block| quantity.of(block)).collect::<Vec<_>>();
        if known.len() < BLOCKS_MIN {
            return None;
        }
        let logs: Vec<f64> = known.iter().map(|value| value.ln()).collect();
        let (_, variance) = mean_and_variance(&logs)?;
        let n = logs.len() as f64;
        let correlation = correlation(&logs).clamp(0.0, CORRELATION_MAX);
        let independent = n * (1.0 - correlation) / (1.0 + correlation);
        let log = quantity.of(&total(seconds))?.ln();
        Some(Self { log, squared_error: variance / independent, degrees: n - 1.0 })
    }

    /// From this one to another: Welch's interval, degrees of freedom after Satterthwaite, for the most striking of
    /// several `comparisons`.
    pub(crate) fn change_to(&self, other: &Estimate, comparisons: usize) -> Change {
        let variance = self.squared_error + other.squared_error;
        let squares = self.squared_error.powi(2) / self.degrees + other.squared_error.powi(2) / other.degrees;
        let degrees = if squares > 0.0 { variance.powi(2) / squares } else { f64::MAX };
        let width = student_t_975(degrees) * variance.sqrt() * widening(comparisons);
        let log = other.log - self.log;
        Change { ratio: log.exp_m1(), low: (log - width).exp_m1(), high: (log + width).exp_m1() }
    }
}

/// How much wider an interval is that is the most striking of several, as Bonferroni's would be: the square of the normal
/// quantile at 1 − 0.025 ÷ k grows by 1.73 ln k, to within 1 % up to k = 30.
fn widening(comparisons: usize) -> f64 {
    const GROWTH: f64 = 1.73 / (1.959_964 * 1.959_964);
    (1.0 + GROWTH * (comparisons.max(1) as f64).ln()).sqrt()
}

/// True if these go one way: the slope of the least-squares line through their logarithms has an interval without zero.
/// Correlation between neighbours that remains without the line widens it.
pub(crate) fn has_slope(values: &[f64], comparisons: usize) -> bool {
    let n = values.len() as f64;
    if values.len() <= BLOCKS_MIN || values.iter().any(|value| *value <= 0.0) {
        return false;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = logs.iter().sum::<f64>() / n;
    let place = |at: usize| at as f64 - (n - 1.0) / 2.0;
    let squares: f64 = (0..logs.len()).map(|at| place(at).powi(2)).sum();
    let slope = logs.iter().enumerate().map(|(at, log)| place(at) * (log - mean)).sum::<f64>() / squares;
    let rest: Vec<f64> = logs.iter().enumerate().map(|(at, log)| log - mean - slope * place(at)).collect();
    let variance = rest.iter().map(|value| value.powi(2)).sum::<f64>() / (n - 2.0);
    let correlation = correlation(&rest).clamp(0.0, CORRELATION_MAX);
    let error = (variance / squares * (1.0 + correlation) / (1.0 - correlation)).sqrt();
    slope.abs() > student_t_975(n - 2.0) * error * widening(comparisons)
}

#[cfg(test)]
mod tests {
    use narrows_model::run::WindowKind;
    use narrows_testkit::trial::TrialBuilder;

    use super::*;

    fn seconds(rates: impl IntoIterator<Item = (f64, f64)>) -> Vec<Second> {
        let trial = TrialBuilder::new("a").window(WindowKind::Steady, 4, rates).second_step("pay", 30.0).build();
        seconds_of(&trial, trial.windows[0].start_ns, trial.windows[0].end_ns)
    }

    fn estimate(rates: impl IntoIterator<Item = f64>) -> Estimate {
        Estimate::from_seconds(&seconds(rates.into_iter().map(|rate| (rate, 10.0))), Quantity::Rate).unwrap()
    }

    #[test]
    fn scenarios_of_a_second_are_added() {
        let found = seconds([(10.0, 10.0), (20.0, 10.0)]);
        assert_eq!(found.iter().map(|second| second.succeeded).collect::<Vec<_>>(), [20.0, 40.0]);
        let all = total(&found);
        assert_eq!((all.seconds, all.rate(), all.latency_ns()), (2.0, 30.0, Some(20e6)));
        assert_eq!(blocks(&found, 10).len(), 2);
        assert_eq!(blocks(&[], 10), []);
    }

    #[test]
    fn a_change_is_significant_when_noise_is_smaller() {
        let noisy = |mean: f64, noise: f64| {
            estimate((0..20).map(move |s| mean * (1.0 + noise * [1.0, 0.8, -1.0, -0.5, -0.3][s % 5])))
        };
        let change = noisy(1000.0, 0.02).change_to(&noisy(800.0, 0.02), 1);
        assert!((change.ratio + 0.2).abs() < 0.01 && change.is_significant(), "{change:?}");
        let change = noisy(1000.0, 0.6).change_to(&noisy(900.0, 0.6), 1);
        assert!(!change.is_significant(), "{change:?}");
        let (one, many) = (noisy(1000.0, 0.1), noisy(1100.0, 0.1));
        assert!(one.change_to(&many, 9).low < one.change_to(&many, 1).low);
    }

    #[test]
    fn a_slope_beats_noise() {
        let growing: Vec<f64> = (1..=10).map(|at| 250.0 + 400.0 * f64::from(at)).collect();
        assert!(has_slope(&growing, 2));
        assert!(!has_slope(&[1.0, 1.2, 0.9, 1.1, 0.8, 1.3, 1.0, 0.9, 1.2, 1.0], 1));
        assert!(!has_slope(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0], 1), "one peak");
        assert!(!has_slope(&[1.0; 10], 1) && !has_slope(&[0.0, 1.0, 2.0, 3.0], 1) && !has_slope(&[], 1));
    }

    #[test]
    fn too_few_seconds_are_no_estimate() {
        assert_eq!(Estimate::from_seconds(&seconds([(10.0, 1.0); 2]), Quantity::Rate), None);
        assert_eq!(Estimate::from_seconds(&seconds([(0.0, 1.0); 9])[..0], Quantity::Latency), None);
        assert!(Estimate::from_seconds(&seconds([(0.0, 1.0); 9]), Quantity::Rate).is_some());
    }
}
