//! How long the event loop of Node.js lags, as `perf_hooks` measures it and the runtime's metrics report it.
//!
//! A timer fires every 10 ms and the time from one turn to the next is recorded, so an idle loop has a delay of 10 ms
//! too: what is blocked is what lies above the smallest delay. An event that comes at any time waits longer than the
//! mean delay suggests, because long turns are more likely to be hit: with d the delay and b what is blocked of it, the
//! mean wait is E[b²] ÷ 2 E[d].

use narrows_model::evidence::TrialEvidence;

use crate::read::intervals::{Interval, series_of};
use crate::read::runtimes::seconds_of_unit;
use crate::stats::median;

/// Resolution of a delay, seconds: the interval of the timer.
const TIMER_SECONDS: f64 = 0.010;

/// The loop of one replica in an interval, medians of the readings; times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoopDelay {
    pub(crate) readings: usize,
    pub(crate) mean_ns: f64,
    pub(crate) least_ns: f64,
    pub(crate) p99_ns: Option<f64>,
    /// The mean wait of an event.
    pub(crate) wait_ns: f64,
    /// Share of the time, 0 to 1.
    pub(crate) blocked_share: f64,
    /// Share of the time in callbacks, 0 to 1.
    pub(crate) utilization: Option<f64>,
}

impl LoopDelay {
    /// None with fewer readings than these, and without a mean.
    pub(crate) fn of(
        trial: &TrialEvidence,
        service: &str,
        replica: u32,
        interval: &Interval,
        readings_min: usize,
    ) -> Option<Self> {
        let gauge = |name: &str| {
            let series = series_of(trial, name, service, replica)?;
            let here = series.points.iter().filter(|point| interval.contains(point.time_ns));
            let values: Vec<f64> = here.map(|point| point.value).collect();
            let count = values.len();
            let unit = if name.ends_with("utilization") { 1.0 } else { seconds_of_unit(&series.key.unit, 1.0) };
            Some((median(values).filter(|_| count >= readings_min)? * unit, count))
        };
        let delay = |part: &str| gauge(&format!("nodejs.eventloop.delay.{part}"));
        let (mean, readings) = delay("mean")?;
        let value = |part: &str| delay(part).map(|(seconds, _)| seconds.max(0.0));
        let least = value("min").unwrap_or(TIMER_SECONDS).min(mean);
        let deviation = value("stddev").unwrap_or(0.0);
        let blocked = mean - least;
        let turn = blocked + least.max(TIMER_SECONDS);
        Some(Self {
            readings,
            mean_ns: mean * 1e9,
            least_ns: least * 1e9,
            p99_ns: value("p99").map(|seconds| seconds * 1e9),
            wait_ns: (blocked * blocked + deviation * deviation) / (2.0 * turn) * 1e9,
            blocked_share: blocked / turn,
            utilization: gauge("nodejs.eventloop.utilization").map(|(share, _)| share.clamp(0.0, 1.0)),
        })
    }
}
