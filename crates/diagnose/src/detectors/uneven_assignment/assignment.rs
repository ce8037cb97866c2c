//! Number of partitions that each replica of a service has for nearly all of an interval.

use narrows_model::evidence::TrialEvidence;
use narrows_model::series::{Series, partitions};

use crate::read::intervals::Interval;
use crate::stats::median;
use crate::thresholds::Thresholds;

/// Maximum plausible partitions; a consumer that reports more uses another unit.
const PARTITIONS_MAX: f64 = 100_000.0;

/// Partitions reported by the replicas of one service.
pub(super) struct Assignment<'a> {
    /// The metric's name as received.
    pub(super) metric: &'a str,
    series: Vec<&'a Series>,
}

impl<'a> Assignment<'a> {
    /// Returns `None` if no replica reports its partitions. All must use the same metric.
    pub(super) fn of(trial: &'a TrialEvidence, service: &str) -> Option<Self> {
        let series = partitions::of(trial, service);
        Some(Self { metric: series.first()?.key.name.as_str(), series })
    }

    /// Number of partitions that a replica has for nearly all of an interval; `None` if it does not report them or
    /// their number changes.
    pub(super) fn to(&self, replica: u32, interval: &Interval, thresholds: &Thresholds) -> Option<usize> {
        let values = |series: &Series| -> Vec<f64> {
            let points = series.points.iter().filter(|point| interval.contains(point.time_ns));
            points.map(|point| point.value).collect()
        };
        let its = self.series.iter().filter(|series| series.key.replica == replica).map(|series| values(series));
        // Consumers closed before or opened later have no readings here.
        let reported: Vec<Vec<f64>> = its.filter(|values| !values.is_empty()).collect();
        let held: Option<Vec<usize>> = reported.into_iter().map(|values| held(values, thresholds)).collect();
        held.filter(|held| !held.is_empty()).map(|held| held.into_iter().sum())
    }
}

/// The number in nearly all readings.
fn held(values: Vec<f64>, thresholds: &Thresholds) -> Option<usize> {
    let count = values.len();
    let usual = median(values.clone())?;
    let alike = values.iter().filter(|value| **value == usual).count();
    let is_held = count >= thresholds.uneven_assignment.assignment_readings
        && alike as f64 >= thresholds.uneven_assignment.assignment_held_share * count as f64
        && (0.0..=PARTITIONS_MAX).contains(&usual)
        && usual.fract() == 0.0;
    is_held.then_some(usual as usize)
}
