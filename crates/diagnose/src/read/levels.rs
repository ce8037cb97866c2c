//! The levels of a load that rises in steps: what each steady interval carried, and how sure that is.

use narrows_model::evidence::TrialEvidence;

use crate::read::Reading;
use crate::read::intervals::Interval;
use crate::read::seconds::{Estimate, Quantity, Second, seconds_of, total};

/// One steady interval with what it carried.
#[derive(Debug, Clone)]
pub(crate) struct Level<'a> {
    pub(crate) interval: &'a Interval,
    pub(crate) seconds: Vec<Second>,
    /// Of its throughput.
    pub(crate) rate: Estimate,
}

impl<'a> Level<'a> {
    /// `None` if the interval is not steady or too short for an estimate.
    pub(crate) fn new(trial: &TrialEvidence, interval: &'a Interval) -> Option<Self> {
        let seconds = seconds_of(trial, interval.start_ns, interval.end_ns);
        let rate =
            Estimate::from_seconds(&seconds, Quantity::Rate).filter(|_| interval.is_steady && interval.rate > 0.0)?;
        Some(Self { interval, seconds, rate })
    }

    /// Its first and its second half.
    pub(crate) fn halves(&self) -> (Second, Second) {
        let (first, second) = self.seconds.split_at(self.seconds.len() / 2);
        (total(first), total(second))
    }

    /// Failed requests ÷ all that ended.
    pub(crate) fn error_rate(&self) -> f64 {
        let all = total(&self.seconds);
        let ended = all.succeeded + all.failed;
        if ended > 0.0 { all.failed / ended } else { 0.0 }
    }
}

/// The levels of a trial in order of time.
pub(crate) fn levels<'a>(reading: &Reading<'a>) -> Vec<Level<'a>> {
    reading.intervals.iter().filter_map(|interval| Level::new(reading.trial, interval)).collect()
}
