//! Tests whether the figures of a window declared steady stay the same from its start to its end.
//!
//! There are three ways to be unsteady: a *trend* (the halves differ, a line through the blocks has a slope that
//! exceeds noise, and the Mann-Kendall test finds one direction), a *start* (the first fifth differs from the rest,
//! which has no trend), and a *wave* (the seconds repeat after a period that fits into the window few times). Each must
//! exceed noise; small changes do not count.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::not_steady::{Disturbance, Unrest};

use super::disturbance::disturbance;
use crate::read::intervals::Interval;
use crate::read::seconds::{Change, Estimate, Quantity, Second, blocks, has_slope, seconds_of, total};
use crate::stats::mean_and_variance;
use crate::thresholds::Thresholds;

/// Number of blocks for the trend test.
const TREND_BLOCKS: usize = 10;
/// Minimum responses in a window; with fewer, its blocks differ by chance.
pub(super) const RESPONSES_MIN: f64 = 100.0;
/// The start is the window's length divided by this.
const START_PART: usize = 5;
/// Shortest wave sought, in seconds: queues and timers cause shorter ones.
const WAVE_SECONDS_MIN: usize = 5;
/// Maximum number of parts a window is cut into to find a wave. In a longer window, a wave that fits only a few times
/// is longer than a part.
const WAVE_PARTS_MAX: usize = 1_200;
/// Correlation of n pairs of values that chance reaches at one of several lags, in standard errors of 1 ÷ √n.
const WAVE_ERRORS: f64 = 3.5;
/// Numbers of whole waves in a window that make it unsteady. With more, its mean is the same whichever part is cut off.
const WAVES: std::ops::RangeInclusive<usize> = 3..=10;
/// Maximum correlation of a trough. A trough must lie between two crests: its seconds have nothing in common with those
/// now.
const TROUGH_CORRELATION: f64 = 0.2;

/// Unrest of one window in one quantity.
#[derive(Debug, Clone)]
pub(crate) struct Unsteady<'a> {
    pub(crate) interval: &'a Interval,
    pub(crate) quantity: Quantity,
    pub(crate) unrest: Unrest,
    /// Size of the unrest, as a share of the quantity.
    pub(crate) share: f64,
    /// The outside disturbance that explains it.
    pub(crate) disturbance: Option<Disturbance>,
}

impl Unsteady<'_> {
    /// Whether no part of the window is known to be steady.
    pub(crate) fn is_unreliable(&self) -> bool {
        self.disturbance.as_ref().is_none_or(|disturbance| disturbance.calm.is_none())
    }
}

/// The unsteady windows among those long enough to tell, each with its unrest in each quantity.
pub(crate) fn unsteady<'a>(
    trial: &TrialEvidence,
    intervals: &'a [Interval],
    thresholds: &Thresholds,
) -> Vec<Unsteady<'a>> {
    let long: Vec<(&Interval, Vec<Second>)> = intervals
        .iter()
        .filter(|interval| interval.is_steady)
        .map(|interval| (interval, seconds_of(trial, interval.start_ns, interval.end_ns)))
        .filter(|(_, seconds)| seconds.len() >= thresholds.not_steady.unsteady_seconds)
        .filter(|(_, seconds)| total(seconds).succeeded >= RESPONSES_MIN)
        .collect();
    let looks = 2 * long.len();
    let each = long.iter().flat_map(|(interval, seconds)| {
        [Quantity::Rate, Quantity::Latency].map(|quantity| Look { interval, seconds, quantity, looks, thresholds })
    });
    each.filter_map(|look| look.unsteady(trial)).collect()
}

/// One quantity of one window.
#[derive(Clone, Copy)]
pub(super) struct Look<'a, 's> {
    pub(super) interval: &'a Interval,
    pub(super) seconds: &'s [Second],
    pub(super) quantity: Quantity,
    /// Number of windows times quantities examined in the trial.
    pub(super) looks: usize,
    pub(super) thresholds: &'s Thresholds,
}

impl<'a> Look<'a, '_> {
    fn unsteady(&self, trial: &TrialEvidence) -> Option<Unsteady<'a>> {
        let (unrest, share) = self.unrest()?;
        let disturbance = disturbance(trial, self);
        Some(Unsteady { interval: self.interval, quantity: self.quantity, unrest, share, disturbance })
    }

    /// Kind of unrest of the window, and the size of the change.
    pub(super) fn unrest(&self) -> Option<(Unrest, f64)> {
        self.trend().or_else(|| self.start()).or_else(|| self.wave())
    }

    /// Change from one part to another; `None` if noise explains it or it is smaller than `least`.
    fn change(&self, before: &[Second], after: &[Second], least: f64) -> Option<Change> {
        let of = |part| Estimate::from_seconds(part, self.quantity);
        let change = of(before)?.change_to(&of(after)?, self.looks);
        (change.is_significant() && change.ratio.abs() >= least).then_some(change)
    }

    fn mean(&self, part: &[Second]) -> f64 {
        self.quantity.of(&total(part)).unwrap_or(0.0)
    }

    fn trend(&self) -> Option<(Unrest, f64)> {
        let (first, second) = self.seconds.split_at(self.seconds.len() / 2);
        let (first, second) = (self.mean(first), self.mean(second));
        let ratio = if first > 0.0 { second / first - 1.0 } else { 0.0 };
        let blocks = blocks(self.seconds, TREND_BLOCKS);
        let values: Vec<f64> = blocks.iter().filter_map(|block| self.quantity.of(block)).collect();
        let z = mann_kendall(&values);
        let goes_one_way = z.abs() >= self.thresholds.not_steady.unsteady_trend && (z > 0.0) == (ratio > 0.0);
        let is_shown =
            goes_one_way && has_slope(&values, self.looks) && ratio.abs() >= self.thresholds.not_steady.unsteady_share;
        is_shown.then_some((Unrest::Trend { first, second, z }, ratio.abs()))
    }

    fn start(&self) -> Option<(Unrest, f64)> {
        let seconds = self.seconds.len() / START_PART;
        let (start, rest) = self.seconds.split_at(seconds);
        let change = self.change(start, rest, self.thresholds.not_steady.unsteady_start_share)?;
        let (early, late) = rest.split_at(rest.len() / 2);
        let is_settled = self.change(early, late, self.thresholds.not_steady.unsteady_share).is_none();
        let unrest = Unrest::Start { start: self.mean(start), rest: self.mean(rest), seconds };
        is_settled.then_some((unrest, change.ratio.abs()))
    }

    fn wave(&self) -> Option<(Unrest, f64)> {
        let parts = blocks(self.seconds, WAVE_PARTS_MAX);
        let values: Vec<f64> = parts.iter().filter_map(|part| self.quantity.of(part)).collect();
        let (mean, variance) = mean_and_variance(&values)?;
        let spread = if mean > 0.0 { variance.sqrt() / mean } else { 0.0 };
        let period = period(&values, self.thresholds.not_steady.unsteady_wave_correlation)?;
        let is_told = spread >= self.thresholds.not_steady.unsteady_share && WAVES.contains(&(values.len() / period));
        let seconds = period * self.seconds.len() / parts.len().max(1);
        is_told.then_some((Unrest::Wave { seconds, spread }, spread))
    }
}

/// Standard normal score of the Mann-Kendall statistic (Mann 1945, Kendall 1955); 0 with fewer than four values. Equal
/// values count for neither side.
fn mann_kendall(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() < 4 {
        return 0.0;
    }
    let pairs = values.iter().enumerate().flat_map(|(at, one)| values[at + 1..].iter().map(move |other| (one, other)));
    let s: f64 = pairs.map(|(one, other)| if other > one { 1.0 } else { -f64::from(u8::from(other < one)) }).sum();
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    if s == 0.0 { 0.0 } else { (s - s.signum()) / deviation }
}

/// Period of the values: the lag of the first crest of their correlation that reaches `least` and has a trough before
/// it. `None` without such a crest.
fn period(values: &[f64], least: f64) -> Option<usize> {
    let longest = values.len() / WAVES.start();
    let correlations: Vec<f64> = (0..=longest + 1).map(|lag| correlation_at(values, lag)).collect();
    let is_crest = |lag: usize| {
        let by_chance = WAVE_ERRORS / ((values.len() - lag) as f64).sqrt();
        correlations[lag] >= least.max(by_chance)
            && correlations[lag] > correlations[lag - 1]
            && correlations[lag] >= correlations[lag + 1]
    };
    let has_trough = |lag: usize| correlations[1..lag].iter().any(|r| *r <= TROUGH_CORRELATION);
    (WAVE_SECONDS_MIN..=longest).find(|lag| is_crest(*lag) && has_trough(*lag))
}

/// Correlation of each value with the one `lag` later; 0 if there are too few values or all are equal.
fn correlation_at(values: &[f64], lag: usize) -> f64 {
    let Some((mean, variance)) = mean_and_variance(values).filter(|_| values.len() > lag + 1) else { return 0.0 };
    let pairs = values.iter().zip(&values[lag..]);
    let products: f64 = pairs.map(|(one, other)| (one - mean) * (other - mean)).sum();
    let count = (values.len() - lag) as f64;
    if variance > 0.0 { products / count / variance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mann_and_kendall_tell_a_trend_from_noise() {
        let rising: Vec<f64> = (0..10).map(f64::from).collect();
        // S = 45, its deviation √125 = 11.18.
        assert!((mann_kendall(&rising) - 44.0 / 125.0_f64.sqrt()).abs() < 1e-12);
        let falling: Vec<f64> = rising.iter().map(|value| -value).collect();
        assert_eq!(mann_kendall(&falling), -mann_kendall(&rising));
        assert!(mann_kendall(&[1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0, 5.0]).abs() < 1.0);
        assert_eq!(mann_kendall(&[2.0; 10]), 0.0);
        assert_eq!(mann_kendall(&[]), 0.0);
    }

    #[test]
    fn a_wave_has_its_period_and_other_things_none() {
        let wave: Vec<f64> = (0..60).map(|s| if s % 12 < 6 { 100.0 } else { 50.0 }).collect();
        assert_eq!(period(&wave, 0.6), Some(12));
        assert_eq!(period(&(0..60).map(f64::from).collect::<Vec<_>>(), 0.6), None);
        assert_eq!(period(&[1.0; 60], 0.6), None);
        assert_eq!(period(&[], 0.6), None);
    }
}
