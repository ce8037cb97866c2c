//! The throughput of one physical partition: a number of request units for each second of the store's clock.
//!
//! Seconds are tumbling windows. A request is admitted while the window's budget is not yet used up, whatever it will
//! cost, because the cost of a query is known only once it has run: the last request of a second may overdraw, as in
//! Cosmos DB. The overdraft is forgiven with the next second and nothing unused is carried over.

use std::time::Duration;

use crate::charge::Charge;

/// What is used of the running second.
#[derive(Debug)]
pub(crate) struct Budget {
    per_second: Charge,
    second: u64,
    used: Charge,
}

impl Budget {
    pub(crate) fn new(per_second: Charge) -> Self {
        Self { per_second, second: 0, used: Charge::ZERO }
    }

    /// Whether a request may run at `now`; if not, how long until the next second begins.
    pub(crate) fn admit(&mut self, now: Duration) -> Result<(), Duration> {
        // Callers read the clock before they queue for the partition: one that comes late belongs to the later second.
        if now.as_secs() > self.second {
            self.second = now.as_secs();
            self.used = Charge::ZERO;
        }
        if self.used < self.per_second {
            return Ok(());
        }
        Err(Duration::from_secs(self.second + 1).saturating_sub(now))
    }

    /// Books what an admitted request has cost.
    pub(crate) fn spend(&mut self, charge: Charge) {
        self.used = self.used + charge;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted_at(budget: &mut Budget, now_ms: u64, charge: Charge, limit: usize) -> usize {
        (0..limit)
            .take_while(|_| {
                let admitted = budget.admit(Duration::from_millis(now_ms)).is_ok();
                if admitted {
                    budget.spend(charge);
                }
                admitted
            })
            .count()
    }

    #[test]
    fn the_request_that_crosses_the_line_is_the_last_one() {
        let mut budget = Budget::new(Charge::from_hundredths(10_000));
        // 31 pages are 99.20 RU, so the 32nd is still admitted and overdraws to 102.40.
        assert_eq!(admitted_at(&mut budget, 0, Charge::query_page(0), 1_000), 32);
        assert_eq!(budget.admit(Duration::from_millis(250)), Err(Duration::from_millis(750)));
    }

    #[test]
    fn a_budget_used_up_exactly_admits_no_more() {
        let mut budget = Budget::new(Charge::from_hundredths(400));
        assert_eq!(admitted_at(&mut budget, 0, Charge::from_hundredths(200), 1_000), 2);
    }

    #[test]
    fn each_second_starts_afresh_without_debt_or_savings() {
        let mut budget = Budget::new(Charge::from_hundredths(10_000));
        for second in [0, 1, 7] {
            assert_eq!(admitted_at(&mut budget, second * 1_000 + 999, Charge::query_page(0), 1_000), 32);
        }
    }

    #[test]
    fn a_late_reader_of_the_clock_gets_no_second_of_its_own() {
        let mut budget = Budget::new(Charge::from_hundredths(100));
        assert_eq!(admitted_at(&mut budget, 1_000, Charge::from_hundredths(100), 10), 1);
        assert_eq!(budget.admit(Duration::from_millis(999)), Err(Duration::from_millis(1_001)));
    }
}
