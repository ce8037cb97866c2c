//! Explains a change by an outside disturbance, if there is one: the hypervisor, other programs, or the load generator.
//!
//! The window is cut into tenths. The disturbance must differ between them by a share of the machine's CPU; for the
//! generator, its delay must make up a share of the change in latency. The system must do worse in the tenths with more
//! disturbance. Then the calm tenths are judged alone. If the figures are steady there, the system is steady. If they
//! change there too and do not follow the disturbance, the system itself changes and nothing is explained.

use std::ops::Range;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::not_steady::{Calm, Disturbance, DisturbanceSource};
use narrows_model::run::Machine;
use narrows_model::series::names;

use super::steadiness::{Look, RESPONSES_MIN};
use crate::read::seconds::{Quantity, Second, total};
use crate::stats::mean_and_variance;

/// Number of parts that a window is cut into.
const PARTS: usize = 10;
const SECOND_NS: i64 = 1_000_000_000;
/// Causes before effects: a machine without free CPU makes the generator late.
const SOURCES: [DisturbanceSource; 3] =
    [DisturbanceSource::Hypervisor, DisturbanceSource::OtherPrograms, DisturbanceSource::Generator];
/// Share of a change in latency that the generator's delay must make up to explain it.
const LATENESS_SHARE: f64 = 0.2;
/// Share of a disturbance's spread over the window that it must reach in the calm part to count as growing there too.
const GROWTH_SHARE: f64 = 0.25;

/// The disturbance that explains why a window is not steady; `None` if nothing outside the system does.
pub(super) fn disturbance(trial: &TrialEvidence, look: &Look<'_, '_>) -> Option<Disturbance> {
    SOURCES.into_iter().find_map(|source| explained_by(source, trial, look))
}

fn explained_by(source: DisturbanceSource, trial: &TrialEvidence, look: &Look<'_, '_>) -> Option<Disturbance> {
    let course = Course::new(source, trial, look)?;
    if !course.is_enough(source, look) || course.correlation < look.thresholds.not_steady.unsteady_disturbed_correlation
    {
        return None;
    }
    let (calm, rest) = course.divided();
    let alone = Look { seconds: &calm, ..*look };
    let is_long = calm.len() >= look.thresholds.not_steady.unsteady_seconds && total(&calm).succeeded >= RESPONSES_MIN;
    let is_steady = is_long && alone.unrest().is_none();
    if is_long && !is_steady && !course.goes_on_in(&Course::new(source, trial, &alone)?, look) {
        return None;
    }
    let calm = match is_steady {
        true => Some(Calm {
            seconds: calm.len(),
            value: look.quantity.of(&total(&calm))?,
            disturbed: look.quantity.of(&total(&rest))?,
        }),
        false => None,
    };
    let Course { least, most, correlation, .. } = course;
    Some(Disturbance { source, least, most, correlation, calm })
}

/// The amount of a disturbance, and the quantity, over the parts of a window.
struct Course<'s> {
    parts: Vec<&'s [Second]>,
    amounts: Vec<f64>,
    least: f64,
    most: f64,
    /// Difference between the highest and the lowest value of the quantity.
    spread: f64,
    /// Above 0 if more disturbance makes the quantity worse.
    correlation: f64,
}

impl<'s> Course<'s> {
    /// `None` if either was not measured in one of the parts.
    fn new(source: DisturbanceSource, trial: &TrialEvidence, look: &Look<'_, 's>) -> Option<Self> {
        let parts = parts(look.seconds);
        let amounts: Vec<f64> = parts.iter().map(|part| amount(source, trial, part)).collect::<Option<_>>()?;
        let values: Vec<f64> = parts.iter().map(|part| look.quantity.of(&total(part))).collect::<Option<_>>()?;
        let worse = match look.quantity {
            Quantity::Rate => -1.0,
            Quantity::Latency => 1.0,
        };
        let correlation = worse * rank_correlation(&amounts, &values);
        let ((least, most), (lowest, highest)) = (extremes(&amounts), extremes(&values));
        Some(Self { parts, amounts, least, most, spread: highest - lowest, correlation })
    }

    /// Whether the disturbance differs by enough to matter.
    fn is_enough(&self, source: DisturbanceSource, look: &Look<'_, '_>) -> bool {
        let least = match (source, look.quantity) {
            (DisturbanceSource::Generator, Quantity::Rate) => return false,
            (DisturbanceSource::Generator, Quantity::Latency) => LATENESS_SHARE * self.spread,
            _ => look.thresholds.not_steady.unsteady_disturbed_share,
        };
        self.most - self.least >= least
    }

    /// The seconds of the parts with little disturbance, and the seconds of the others.
    fn divided(&self) -> (Vec<Second>, Vec<Second>) {
        let middle = f64::midpoint(self.least, self.most);
        let parts = self.parts.iter().zip(&self.amounts);
        let (calm, rest): (Vec<_>, Vec<_>) = parts.partition(|(_, amount)| **amount <= middle);
        let seconds = |parts: &[(&&[Second], &f64)]| parts.iter().flat_map(|(part, _)| part.iter().copied()).collect();
        (seconds(&calm), seconds(&rest))
    }

    /// Whether the quantity also follows the disturbance in the calm part: it is smaller there, but still grows.
    fn goes_on_in(&self, calm: &Course<'_>, look: &Look<'_, '_>) -> bool {
        calm.correlation >= look.thresholds.not_steady.unsteady_disturbed_correlation
            && calm.most - calm.least >= GROWTH_SHARE * (self.most - self.least)
    }
}

/// Tenths of the seconds, as equal as possible.
fn parts(seconds: &[Second]) -> Vec<&[Second]> {
    let count = PARTS.min(seconds.len());
    let at = |i: usize| seconds.len() * i / count.max(1);
    (0..count).map(|i| &seconds[at(i)..at(i + 1)]).collect()
}

fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(*value), most.max(*value)))
}

/// Amount of a disturbance in a part of a window; `None` if it was not measured.
fn amount(source: DisturbanceSource, trial: &TrialEvidence, part: &[Second]) -> Option<f64> {
    let time = part.first()?.start_ns..part.last()?.start_ns.saturating_add(SECOND_NS);
    let steal = || mean(trial, names::HOST_CPU_STEAL, "", 0, &time);
    match source {
        DisturbanceSource::Hypervisor => steal(),
        DisturbanceSource::OtherPrograms => {
            let used = mean(trial, names::HOST_CPU_UTILIZATION, "", 0, &time)?;
            let here = trial.services.iter().filter(|instance| instance.machine == Machine::Here);
            let replicas = here.map(|instance| (instance.service.as_str(), instance.replica));
            let own: f64 = replicas
                .chain([(names::GENERATOR, 0)])
                .filter_map(|(service, replica)| mean(trial, names::CPU_CORES, service, replica, &time))
                .sum();
            Some((used - steal().unwrap_or(0.0) - own / f64::from(trial.cores.max(1))).max(0.0))
        }
        DisturbanceSource::Generator => lateness_ns(trial, &time),
    }
}

/// Mean of one replica's series over a time range.
fn mean(trial: &TrialEvidence, name: &str, service: &str, replica: u32, time: &Range<i64>) -> Option<f64> {
    let series = crate::read::intervals::series_of(trial, name, service, replica)?;
    let points = series.points.iter().filter(|point| time.contains(&point.time_ns)).map(|point| point.value);
    mean_and_variance(&points.collect::<Vec<_>>()).map(|(mean, _)| mean)
}

/// Mean delay of requests behind their schedule. `None` if iterations of an open load waited for a user: that also
/// counts as lateness, but the system causes it.
fn lateness_ns(trial: &TrialEvidence, time: &Range<i64>) -> Option<f64> {
    let rows = || trial.seconds.iter().filter(|row| time.contains(&row.start_ns));
    let sent: u64 = rows().map(|row| row.lateness.count()).sum();
    let late_ns: u128 = rows().map(|row| row.lateness.sum_ns()).sum();
    (sent > 0 && rows().all(|row| row.late == 0)).then(|| late_ns as f64 / sent as f64)
}

/// Spearman's rank correlation, −1 to 1; 0 if all values of either are equal.
fn rank_correlation(one: &[f64], other: &[f64]) -> f64 {
    let (one, other) = (ranks(one), ranks(other));
    let middle = (one.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    let squares = product(&one, &one) * product(&other, &other);
    if squares > 0.0 { product(&one, &other) / squares.sqrt() } else { 0.0 }
}

/// The rank of each value, from 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_tell_what_goes_along() {
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 20.0, 400.0]), 1.0);
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        assert_eq!(rank_correlation(&[1.0, 1.0, 1.0], &[3.0, 2.0, 1.0]), 0.0);
        assert_eq!(ranks(&[5.0, 7.0, 5.0]), [1.5, 3.0, 1.5]);
        assert_eq!(rank_correlation(&[], &[]), 0.0);
    }
}
