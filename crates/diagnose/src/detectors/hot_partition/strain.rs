//! Strain on the fullest of several places: its use, and the latency of calls to it.

use narrows_model::evidence::{PartitionThroughput, TrialEvidence};
use narrows_model::finding::evidence::hot_partition::{PlaceKind, PlaceLatency, PlaceUse};
use narrows_model::series::{SeriesKey, names};

use crate::read::calls::median_of;
use crate::read::place_loads::Group;
use crate::stats::finite;
use crate::thresholds::Thresholds;

/// The fullest place compared with the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strain {
    /// Use of the fullest place and mean use of the others, as shares of their limits, or in units if a limit is
    /// unknown.
    pub(super) used: Option<(f64, f64)>,
    /// Whether the uses are shares of a limit.
    pub(super) is_share: bool,
    /// Median length of a visit to the fullest place and to the others, nanoseconds.
    pub(super) latency_ns: Option<(f64, f64)>,
}

impl Strain {
    /// Whether the fullest place uses so much more that it is a sign of strain.
    pub(super) fn is_used(&self, thresholds: &Thresholds) -> bool {
        self.used.is_some_and(|(hot, others)| {
            let is_material = !self.is_share || hot >= thresholds.hot_partition.hot_use_share;
            hot > 0.0 && is_material && hot >= thresholds.hot_partition.hot_strain_ratio * others
        })
    }

    /// Whether the fullest place is so much slower that it is a sign of strain.
    pub(super) fn is_slow(&self, thresholds: &Thresholds) -> bool {
        self.latency_ns.is_some_and(|(hot, others)| {
            hot >= thresholds.hot_partition.hot_strain_ratio * others
                && hot - others >= thresholds.hot_partition.hot_latency_ns
        })
    }

    pub(super) fn place_use(&self, thresholds: &Thresholds) -> Option<PlaceUse> {
        let (is_share, is_strained) = (self.is_share, self.is_used(thresholds));
        self.used.map(|(hot, others)| PlaceUse { hot: finite(hot), others: finite(others), is_share, is_strained })
    }

    pub(super) fn place_latency(&self, thresholds: &Thresholds) -> Option<PlaceLatency> {
        let is_strained = self.is_slow(thresholds);
        self.latency_ns.map(|(hot, others)| PlaceLatency {
            hot_ns: finite(hot),
            others_ns: finite(others),
            is_strained,
        })
    }
}

/// Median length of a visit to the fullest place and to the others, nanoseconds.
pub(super) fn latency(group: &Group<'_>, hot: &str) -> Option<(f64, f64)> {
    let of = |is_meant: &dyn Fn(&str) -> bool| {
        let places = group.places.iter().filter(|(place, _)| is_meant(place));
        let lengths: Vec<(f64, f64)> =
            places.flat_map(|(_, visits)| visits).map(|v| (v.span.duration_ns() as f64, v.weight)).collect();
        (!lengths.is_empty()).then(|| median_of(&lengths, |pair| *pair))
    };
    Some((of(&|place| place == hot)?, of(&|place| place != hot)?))
}

/// Mean use of the fullest place and of the others.
pub(super) fn used(trial: &TrialEvidence, kind: PlaceKind, name: &str, hot: &str, places: &[String]) -> Strain {
    let of_place: Vec<(bool, f64, Option<f64>)> = match kind {
        PlaceKind::Partition => {
            let reported = trial.throughput().into_iter().filter(|partition| partition.service == name);
            reported.filter_map(|p| Some((p.partition == hot, mean_spent(trial, &p)?, p.provisioned))).collect()
        }
        PlaceKind::Replica => {
            let replicas = trial.services.iter().filter(|instance| instance.service == name);
            replicas
                .filter_map(|instance| {
                    let cores = mean_cores(trial, name, instance.replica)?;
                    Some((instance.replica.to_string() == hot, cores, instance.cpu_limit_cores))
                })
                .collect()
        }
        PlaceKind::Server | PlaceKind::Topic => Vec::new(),
    };
    let is_share = !of_place.is_empty() && of_place.iter().all(|(_, _, limit)| limit.is_some_and(|limit| limit > 0.0));
    let value =
        |(_, value, limit): &(bool, f64, Option<f64>)| limit.filter(|_| is_share).map_or(*value, |limit| value / limit);
    let others: Vec<f64> = of_place.iter().filter(|place| !place.0).map(value).collect();
    let own = of_place.iter().find(|place| place.0).map(value);
    let is_known = !others.is_empty() && of_place.len() == places.len();
    let others = others.iter().sum::<f64>() / others.len().max(1) as f64;
    Strain { used: own.filter(|_| is_known).map(|own| (own, others)), is_share, latency_ns: None }
}

fn mean_spent(trial: &TrialEvidence, partition: &PartitionThroughput) -> Option<f64> {
    mean(partition.consumed.iter().filter(|point| trial.is_counted(point.time_ns)).map(|point| point.value))
}

fn mean_cores(trial: &TrialEvidence, service: &str, replica: u32) -> Option<f64> {
    let is_its = |key: &SeriesKey| key.name == names::CPU_CORES && key.service == service && key.replica == replica;
    let points = trial.series.iter().filter(|series| is_its(&series.key)).flat_map(|series| &series.points);
    mean(points.filter(|point| trial.is_counted(point.time_ns)).map(|point| point.value))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}
