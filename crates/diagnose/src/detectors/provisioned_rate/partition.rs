//! A partition's use of its provisioned rate, second by second.

use narrows_model::evidence::{PartitionThroughput, TrialEvidence};
use narrows_model::series::{SeriesKey, names};

use crate::read::Reading;
use crate::read::stores::readings;

/// Minimum length of joined readings, nanoseconds: a second, less the time by which a timer may be early.
const JOINED_NS: i64 = 900_000_000;
/// Nanoseconds in a second.
pub(super) const NS: f64 = 1e9;

/// One partition's use of its provisioned rate, in counted time.
pub(super) struct Partition {
    pub(super) name: String,
    pub(super) provisioned: f64,
    pub(super) is_fixed: bool,
    /// Parts of about a second each, or longer if the store reports less often.
    pub(super) parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    /// Share of the provisioned rate.
    share: f64,
}

impl Part {
    pub(super) fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / NS
    }
}

impl Partition {
    /// Returns `None` if the provisioned rate is unknown.
    pub(super) fn new(reading: &Reading<'_>, reported: &PartitionThroughput) -> Option<Self> {
        let trial = reading.trial;
        let (least, most) = provisioned(trial, reported)?;
        let change_max = reading.thresholds.provisioned_rate.provisioned_change_share;
        let mut parts = Vec::new();
        let mut open: Option<(i64, f64)> = None;
        for (from_ns, to_ns, rate) in readings(reported).filter(|(from, to, _)| from < to && trial.is_counted(*to - 1))
        {
            let amount = rate * to_ns.saturating_sub(from_ns) as f64 / NS;
            let (start_ns, sum) = open.take().map_or((from_ns, amount), |(start_ns, sum)| (start_ns, sum + amount));
            if to_ns.saturating_sub(start_ns) < JOINED_NS {
                open = Some((start_ns, sum));
                continue;
            }
            let rate = sum / (to_ns.saturating_sub(start_ns) as f64 / NS);
            parts.push(Part { from_ns: start_ns, to_ns, share: rate / most });
        }
        let is_fixed = most - least <= change_max * most;
        let name = reported.partition.clone();
        (!parts.is_empty()).then_some(Self { name, provisioned: most, is_fixed, parts })
    }

    pub(super) fn seconds(&self) -> f64 {
        self.parts.iter().map(Part::seconds).sum()
    }

    /// Use that is exceeded for at most this share of the time, as a share of the provisioned rate.
    pub(super) fn top(&self, left_out: f64) -> f64 {
        let mut parts = self.parts.clone();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        let mut left = left_out * self.seconds();
        let at = parts.iter().find(|part| {
            left -= part.seconds();
            left < 0.0
        });
        at.or(parts.last()).map_or(0.0, |part| part.share)
    }

    pub(super) fn peak(&self) -> f64 {
        self.parts.iter().map(|part| part.share).fold(0.0, f64::max)
    }

    pub(super) fn mean(&self) -> f64 {
        self.parts.iter().map(|part| part.share * part.seconds()).sum::<f64>() / self.seconds().max(f64::MIN_POSITIVE)
    }

    pub(super) fn full(&self, share: f64) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| part.share >= share)
    }

    pub(super) fn full_seconds(&self, share: f64) -> f64 {
        self.full(share).map(Part::seconds).sum()
    }
}

/// Lowest and highest provisioned rate of a partition over the trial, per second.
fn provisioned(trial: &TrialEvidence, reported: &PartitionThroughput) -> Option<(f64, f64)> {
    let is_its = |key: &SeriesKey| {
        key.name == names::THROUGHPUT_PROVISIONED
            && key.service == reported.service
            && key.labels.get(names::PARTITION).map_or("", String::as_str) == reported.partition
    };
    let values = || trial.series.iter().filter(|series| is_its(&series.key)).flat_map(|s| &s.points).map(|p| p.value);
    let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    (most > 0.0 && most.is_finite()).then_some((least, most))
}
