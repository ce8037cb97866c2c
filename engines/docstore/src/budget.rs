//! The throughput of one physical partition: a number of request units for each of its seconds.
//!
//! Seconds are tumbling windows. A request is admitted while the window's budget is not yet used up, whatever it will
//! cost, because the cost of a query is known only once it has run: the last request of a second may overdraw, as in
//! Cosmos DB. The overdraft is forgiven with the next second and nothing unused is carried over. A strict budget has no
//! overdraft: what would go beyond it is undone and refused, as in Microsoft's emulator.
//!
//! Physical partitions are different machines whose seconds do not begin together. Here partition i of n begins its
//! seconds i/n of a second after those of the store's clock; time before its first is a separate, shorter second.

use std::time::Duration;

use crate::charge::Charge;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// When the seconds of partition `partition` of `partitions` begin. Times are counted in parts of a nanosecond, as many
/// as there are partitions, so that i/n of a second is a whole number of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stagger {
    pub(crate) partition: u32,
    pub(crate) partitions: u32,
}

impl Stagger {
    /// The number of the second `now` lies in; 0 is the one that the store's start cuts short.
    fn second_at(self, now: Duration) -> u128 {
        self.parts_since_second_0(now) / self.parts_per_second()
    }

    /// Time from `now` to the end of second `second`, rounded up to a nanosecond; zero if that has passed.
    fn rest_of(self, second: u128, now: Duration) -> Duration {
        let end = (second + 1) * self.parts_per_second();
        let nanos = end.saturating_sub(self.parts_since_second_0(now)).div_ceil(u128::from(self.partitions));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Second 0 would have begun (n − i)/n of a second before the store did; for partition 0 that is a whole second.
    fn parts_since_second_0(self, now: Duration) -> u128 {
        let ahead = u128::from(self.partitions.saturating_sub(self.partition)) * NANOS_PER_SECOND;
        now.as_nanos() * u128::from(self.partitions) + ahead
    }

    fn parts_per_second(self) -> u128 {
        u128::from(self.partitions) * NANOS_PER_SECOND
    }
}

/// Treatment of the request that goes beyond a second's budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Excess {
    /// It is served, and later ones of the same second are refused: as in Cosmos DB.
    #[default]
    Overdraw,
    /// It is refused, as in Microsoft's emulator. A request that costs more than a whole second provides is never served.
    Strict,
}

/// Units used of the running second.
#[derive(Debug)]
pub(crate) struct Budget {
    excess: Excess,
    per_second: Charge,
    stagger: Stagger,
    second: u128,
    used: Charge,
}

impl Budget {
    pub(crate) fn new(per_second: Charge, stagger: Stagger) -> Self {
        Self { excess: Excess::Overdraw, per_second, stagger, second: 0, used: Charge::ZERO }
    }

    pub(crate) fn with(self, excess: Excess) -> Self {
        Self { excess, ..self }
    }

    /// Whether an admitted request may cost this much.
    pub(crate) fn covers(&self, charge: Charge) -> bool {
        self.excess == Excess::Overdraw || self.used + charge <= self.per_second
    }

    /// How long until the partition's next second begins.
    pub(crate) fn rest(&self, now: Duration) -> Duration {
        self.stagger.rest_of(self.second, now)
    }

    /// Units that each second provides.
    pub(crate) fn per_second(&self) -> Charge {
        self.per_second
    }

    /// Provides `per_second` in seconds that begin by `stagger`; the used part of the running second stays used.
    pub(crate) fn provision(&mut self, per_second: Charge, stagger: Stagger, now: Duration) {
        let is_current = self.stagger.second_at(now) <= self.second;
        if !is_current {
            self.used = Charge::ZERO;
        }
        (self.per_second, self.stagger, self.second) = (per_second, stagger, stagger.second_at(now));
    }

    /// Whether a request may run at `now`; if not, how long until the partition's next second begins.
    pub(crate) fn admit(&mut self, now: Duration) -> Result<(), Duration> {
        // Callers read the clock before they queue for the partition: one that comes late belongs to the later second.
        let second = self.stagger.second_at(now);
        if second > self.second {
            self.second = second;
            self.used = Charge::ZERO;
        }
        if self.used < self.per_second {
            return Ok(());
        }
        Err(self.rest(now))
    }

    /// Books the cost of an admitted request.
    pub(crate) fn spend(&mut self, charge: Charge) {
        self.used = self.used + charge;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn budget(hundredths: u64) -> Budget {
        Budget::new(Charge::from_hundredths(hundredths), Stagger { partition: 0, partitions: 1 })
    }

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
        let mut budget = budget(10_000);
        // 31 pages are 99.20 RU, so the 32nd is still admitted and overdraws to 102.40.
        assert_eq!(admitted_at(&mut budget, 0, Charge::query_page(0, 0), 1_000), 32);
        assert_eq!(budget.admit(Duration::from_millis(250)), Err(Duration::from_millis(750)));
    }

    #[test]
    fn a_strict_budget_is_never_exceeded() {
        let mut budget = budget(10_000).with(Excess::Strict);
        for _ in 0..31 {
            assert!(budget.admit(Duration::ZERO).is_ok() && budget.covers(Charge::query_page(0, 0)));
            budget.spend(Charge::query_page(0, 0));
        }
        // 99.20 RU are used.
        assert!(!budget.covers(Charge::query_page(0, 0)) && budget.covers(Charge::from_hundredths(80)));
        assert_eq!(budget.rest(Duration::from_millis(250)), Duration::from_millis(750));
    }

    #[test]
    fn a_budget_used_up_exactly_admits_no_more() {
        let mut budget = budget(400);
        assert_eq!(admitted_at(&mut budget, 0, Charge::from_hundredths(200), 1_000), 2);
    }

    #[test]
    fn each_second_starts_afresh_without_debt_or_savings() {
        let mut budget = budget(10_000);
        for second in [0, 1, 7] {
            assert_eq!(admitted_at(&mut budget, second * 1_000 + 999, Charge::query_page(0, 0), 1_000), 32);
        }
    }

    #[test]
    fn a_late_reader_of_the_clock_gets_no_second_of_its_own() {
        let mut budget = budget(100);
        assert_eq!(admitted_at(&mut budget, 1_000, Charge::from_hundredths(100), 10), 1);
        assert_eq!(budget.admit(Duration::from_millis(999)), Err(Duration::from_millis(1_001)));
    }

    #[test]
    fn the_seconds_of_partitions_begin_at_their_share_of_a_second() {
        for partition in 0..4 {
            let stagger = Stagger { partition, partitions: 4 };
            let mut budget = Budget::new(Charge::from_hundredths(100), stagger);
            let begins_ms = u64::from(partition) * 250;
            for second in [1_000, 2_000] {
                assert_eq!(admitted_at(&mut budget, second + begins_ms, Charge::from_hundredths(100), 10), 1);
                let late = Duration::from_millis(second + begins_ms + 999);
                assert_eq!(budget.admit(late), Err(Duration::from_millis(1)), "partition {partition}");
            }
        }
    }

    #[test]
    fn a_share_that_is_no_whole_nanosecond_is_kept_exactly() {
        let stagger = Stagger { partition: 1, partitions: 3 };
        let mut budget = Budget::new(Charge::from_hundredths(1), stagger);
        assert_eq!(admitted_at(&mut budget, 0, Charge::from_hundredths(1), 10), 1);
        // The first third ends at 333 333 333⅓ ns.
        let last = Duration::from_nanos(333_333_333);
        assert_eq!(budget.admit(last), Err(Duration::from_nanos(1)));
        assert_eq!(budget.admit(last + Duration::from_nanos(1)), Ok(()));
    }

    #[test]
    fn a_raise_counts_at_once_and_what_is_used_stays_used() {
        let mut budget = budget(200);
        let now = Duration::from_millis(1_500);
        assert_eq!(admitted_at(&mut budget, 1_500, Charge::from_hundredths(100), 10), 2);
        budget.provision(Charge::from_hundredths(500), Stagger { partition: 1, partitions: 2 }, now);
        assert_eq!(admitted_at(&mut budget, 1_500, Charge::from_hundredths(100), 10), 3);
        assert_eq!(budget.admit(now), Err(Duration::from_secs(1)), "this partition's seconds begin at a half");
        budget.provision(Charge::from_hundredths(100), Stagger { partition: 0, partitions: 1 }, now * 2);
        assert_eq!(admitted_at(&mut budget, 3_000, Charge::from_hundredths(100), 10), 1);
    }

    proptest! {
        #[test]
        fn a_client_that_waits_as_told_finds_the_next_second_and_no_earlier_one_does(
            partition in 0_u32..1_000,
            more in 1_u32..1_000,
            now_ns in 0_u64..1_000_000_000_000,
        ) {
            let stagger = Stagger { partition, partitions: partition + more };
            let now = Duration::from_nanos(now_ns);
            let second = stagger.second_at(now);
            let rest = stagger.rest_of(second, now);
            prop_assert!(!rest.is_zero() && rest <= Duration::from_secs(1));
            prop_assert_eq!(stagger.second_at(now + rest), second + 1);
            prop_assert_eq!(stagger.second_at(now + rest - Duration::from_nanos(1)), second);
        }
    }
}
