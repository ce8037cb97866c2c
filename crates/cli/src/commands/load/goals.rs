//! The objectives of `narrows load`: which were kept, and which cannot be kept any more whatever still comes.
//!
//! Whether a load can still keep an objective is judged by its extremes: the best and the worst that could still come is
//! added to what has come, and if the objective is missed either way, it is lost. How much can still come is known of a
//! load of so many requests and of an open one; of workers that send for a time it is reckoned from the fastest second
//! so far, twice over.

use std::time::Duration;

use narrows_lab::experiment::{Metric, Objective, Op};
use narrows_model::comparison::Kept;
use narrows_model::evidence::{LoadTotals, RequestOfLoad};
use narrows_model::load::{LoadModel, LoadSecond};

use super::plan::SCENARIO;

/// How many times the throughput of the fastest second is held possible for all the time that is left.
const HEADROOM: f64 = 2.0;
/// A latency above every bound, in nanoseconds: 73 minutes, the largest that distributions distinguish.
const LATENCY_WORST_NS: u64 = (1 << 42) - 1;
/// A time above every planned one, in seconds.
const TIME_WORST_S: f64 = 1e9;
const MIDDLE_NS: i64 = 500_000_000;

/// What has come of the counted part of a load, the seconds after the warm-up.
#[derive(Debug, Default)]
pub(super) struct Counted {
    warmup_ns: i64,
    first_ns: Option<i64>,
    /// The first second that counts.
    begun_ns: Option<i64>,
    last_ns: i64,
    /// Requests that ended in the second under way, and in the fastest one.
    ended_now: u64,
    ended_most: u64,
    pub(super) totals: LoadTotals,
}

impl Counted {
    pub(super) fn after(warmup: Duration) -> Self {
        Self { warmup_ns: i64::try_from(warmup.as_nanos()).unwrap_or(i64::MAX), ..Self::default() }
    }

    /// Takes in the seconds that are over; a second counts when its middle lies after the warm-up.
    pub(super) fn add(&mut self, rows: &[LoadSecond]) {
        for row in rows {
            let first_ns = *self.first_ns.get_or_insert(row.start_ns);
            if row.start_ns - first_ns + MIDDLE_NS < self.warmup_ns {
                continue;
            }
            let begun_ns = *self.begun_ns.get_or_insert(row.start_ns);
            if row.start_ns != self.last_ns {
                (self.last_ns, self.ended_now) = (row.start_ns, 0);
            }
            self.ended_now += ended(row.succeeded, row.errors.total());
            self.ended_most = self.ended_most.max(self.ended_now);
            self.totals.add(row);
            self.totals.seconds = (row.start_ns - begun_ns) as f64 / 1e9 + 1.0;
        }
    }

    /// Sets the time to what it really took, when the load is over.
    pub(super) fn end(&mut self, ended_ns: i64) {
        self.totals.seconds = self.begun_ns.map_or(0.0, |begun_ns| (ended_ns - begun_ns).max(0) as f64 / 1e9);
    }

    /// All of it as the load's one request.
    pub(super) fn request(&self) -> RequestOfLoad {
        RequestOfLoad { scenario: SCENARIO.to_owned(), request: String::new(), totals: self.totals.clone() }
    }

    /// The first of some objectives that is lost. `model` is what is being sent.
    pub(super) fn first_lost<'a>(&self, objectives: &'a [Objective], model: &LoadModel) -> Option<&'a Objective> {
        if self.totals.seconds <= 0.0 {
            return None;
        }
        let futures = self.futures(model);
        let is_lost = |objective: &&Objective| {
            // Between two extremes, "exactly" may still be met; but no error can be taken back.
            let is_judged =
                objective.op != Op::Equal || (objective.metric == Metric::ErrorRate && objective.bound == 0.0);
            is_judged && futures.iter().all(|future| objective.evaluate(future).kept == Kept::No)
        };
        objectives.iter().find(is_lost)
    }

    /// The extremes of how the load may end: all that is left succeeds at once, succeeds as late as can be, fails.
    fn futures(&self, model: &LoadModel) -> [LoadTotals; 3] {
        let ended = ended(self.totals.succeeded, self.totals.errors.total());
        let limits = model.limits();
        let soonest = match (limits.iterations, limits.duration) {
            (None, Some(duration)) => duration.as_secs_f64().max(self.totals.seconds),
            _ => self.totals.seconds,
        };
        let latest = TIME_WORST_S;
        let left = match (limits.iterations, limits.rate_max, limits.duration) {
            (Some(iterations), ..) => iterations.saturating_sub(ended),
            (None, Some(rate), Some(duration)) => {
                ((rate * duration.as_secs_f64() * HEADROOM).ceil() as u64).saturating_sub(ended)
            }
            (None, ..) => (self.ended_most as f64 * HEADROOM * (soonest - self.totals.seconds)).ceil() as u64,
        };
        let succeed = |seconds: f64, latency_ns: u64| {
            let mut future = LoadTotals { seconds, ..self.totals.clone() };
            future.succeeded += left;
            future.latency.record_n(latency_ns, left);
            future
        };
        let mut failed = LoadTotals { seconds: latest, ..self.totals.clone() };
        failed.errors.reset += left;
        [succeed(soonest, 0), succeed(latest, LATENCY_WORST_NS), failed]
    }
}

fn ended(succeeded: u64, failed: u64) -> u64 {
    succeeded + failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_lab::experiment::parse_objective;
    use narrows_model::load::Arrivals;

    const MS: u64 = 1_000_000;

    fn second(at: i64, succeeded: u64, failed: u64, latency_ms: u64) -> LoadSecond {
        let mut row = LoadSecond { start_ns: 5_000_000_000 + at * 1_000_000_000, succeeded, ..LoadSecond::default() };
        row.errors.status = failed;
        row.latency.record_n(latency_ms * MS, succeeded);
        row
    }

    fn lost(rows: &[LoadSecond], objective: &str, model: &LoadModel) -> bool {
        let mut counted = Counted::after(Duration::ZERO);
        counted.add(rows);
        counted.first_lost(&[parse_objective(objective).unwrap()], model).is_some()
    }

    #[test]
    fn an_objective_is_lost_when_nothing_that_may_come_can_keep_it() {
        let of = |iterations| LoadModel::SharedIterations { vus: 1, iterations, max_duration: None };
        let timed = LoadModel::ConstantVus { vus: 1, duration: Duration::from_secs(10) };
        let open = LoadModel::ConstantArrivalRate {
            rate: 100.0,
            duration: Duration::from_secs(10),
            vus_max: 10,
            arrivals: Arrivals::Uniform,
        };
        // 100 requests in the first second: 90 of them slow, or 10 of them failed.
        let slow = [second(0, 10, 0, 1), second(0, 90, 0, 50)];
        let failing = [second(0, 90, 10, 1)];
        let cases = [
            (&slow[..], "max < 20ms", &timed, true),
            (&slow[..], "max < 60ms", &timed, false),
            (&slow[..], "p50 < 20ms", &of(150), true),
            (&slow[..], "p50 < 20ms", &of(300), false),
            (&slow[..], "p50 < 20ms", &timed, false),
            (&slow[..], "p95 < 20ms", &of(1_000), true),
            (&slow[..], "p99 < 20ms", &open, true),
            (&slow[..], "p95 < 20ms", &open, false),
            (&slow[..], "p50 > 100ms", &of(300), false),
            (&slow[..], "p50 > 100ms", &of(150), true),
            (&slow[..], "p50 == 3ms", &of(150), false),
            (&failing[..], "error_rate == 0", &timed, true),
            (&failing[..], "error_rate < 2%", &of(400), true),
            (&failing[..], "error_rate < 2%", &of(600), false),
            (&failing[..], "error_rate < 2%", &timed, false),
            (&slow[..], "rate >= 1000/s", &open, true),
            (&slow[..], "rate >= 150/s", &timed, false),
            (&slow[..], "rate >= 300/s", &timed, true),
            (&slow[..], "rate < 5/s", &timed, false),
        ];
        for (rows, objective, model, expected) in cases {
            assert_eq!(lost(rows, objective, model), expected, "{objective} of {model:?}");
        }
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut counted = Counted::after(Duration::from_secs(2));
        counted.add(&[second(0, 9, 9, 1), second(1, 9, 9, 1)]);
        let timed = LoadModel::ConstantVus { vus: 1, duration: Duration::from_secs(9) };
        assert!(counted.first_lost(&[parse_objective("error_rate == 0").unwrap()], &timed).is_none());
        counted.add(&[second(2, 7, 0, 1), second(3, 5, 0, 1)]);
        assert_eq!((counted.totals.succeeded, counted.totals.errors.total(), counted.totals.seconds), (12, 0, 2.0));
        counted.end(5_000_000_000 + 3_500_000_000);
        assert_eq!(counted.totals.seconds, 1.5);
    }
}
