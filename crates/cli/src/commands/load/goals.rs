//! What the objectives of `narrows load` are judged on: the seconds after the warm-up. Whether they can still be met
//! while the load lasts is [`narrows_lab::outlook`]'s rule.

use std::time::Duration;

use narrows_model::evidence::{LoadTotals, RequestOfLoad};
use narrows_model::load::LoadSecond;

use super::plan::SCENARIO;

const MIDDLE_NS: i64 = 500_000_000;

/// What has come of the counted part of a load, the seconds after the warm-up.
#[derive(Debug, Default)]
pub(super) struct Counted {
    warmup_ns: i64,
    first_ns: Option<i64>,
    /// The first second that counts.
    begun_ns: Option<i64>,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at: i64, succeeded: u64, failed: u64) -> LoadSecond {
        let mut row = LoadSecond { start_ns: 5_000_000_000 + at * 1_000_000_000, succeeded, ..LoadSecond::default() };
        row.errors.status = failed;
        row
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut counted = Counted::after(Duration::from_secs(2));
        counted.add(&[second(0, 9, 9), second(1, 9, 9)]);
        assert_eq!(counted.totals, LoadTotals::default());
        counted.add(&[second(2, 7, 0), second(3, 5, 0)]);
        assert_eq!((counted.totals.succeeded, counted.totals.errors.total(), counted.totals.seconds), (12, 0, 2.0));
        counted.end(5_000_000_000 + 3_500_000_000);
        assert_eq!(counted.totals.seconds, 1.5);
    }
}
