//! The throughput of one physical partition: a number of request units for each of its seconds.
//!
//! Seconds are tumbling windows. A request is admitted while the second's units are not used up, whatever it will cost,
//! because the cost of a query is known only once it has run. Its cost beyond them is a debt that the next seconds pay, as
//! in Cosmos DB (stackoverflow.com/questions/63003768), whose waits of more than a second are debts of more than a second
//! (github.com/Azure/azure-cosmos-dotnet-v3/issues/3727). Unused units are not carried over. A refused request costs units
//! too, as that service reports (github.com/Azure/azure-sdk-for-java/issues/20288), but all refusals of a time no more than one
//! second provides. A strict budget, as in Microsoft's
//! emulator, has no debts: what would go beyond it is undone and refused, and refusals are free.
//!
//! Physical partitions are different machines whose seconds do not begin together. No source says how far apart they are:
//! here each partition has a phase that is drawn once.

use std::time::Duration;

use crate::charge::Charge;
use crate::random;

const SECOND: Duration = Duration::from_secs(1);

/// Time from the begin of the clock's seconds to the begin of a partition's, at most a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Phase(Duration);

impl Phase {
    /// The phase of a range of a store with `seed`.
    pub(crate) fn of_range(seed: u64, range: u32) -> Self {
        Self(SECOND.mul_f64(random::unit(seed, u64::from(range))))
    }

    /// The number of the second `now` lies in; 0 is the one that the store's start cuts short.
    fn second_at(self, now: Duration) -> u64 {
        (now + SECOND - self.0).as_secs()
    }

    /// Time from `now` to the end of second `second`; zero if that has passed.
    fn rest_of(self, second: u64, now: Duration) -> Duration {
        (Duration::from_secs(second) + self.0).saturating_sub(now)
    }
}

/// Treatment of the request that goes beyond a second's budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Excess {
    /// It is served, the next seconds pay what it costs beyond the budget, and later requests are refused until that is
    /// paid: as in Cosmos DB.
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
    phase: Phase,
    second: u64,
    /// Includes the debt of earlier seconds.
    used: Charge,
}

impl Budget {
    pub(crate) fn new(per_second: Charge, phase: Phase) -> Self {
        Self { excess: Excess::Overdraw, per_second, phase, second: 0, used: Charge::ZERO }
    }

    pub(crate) fn with(self, excess: Excess) -> Self {
        Self { excess, ..self }
    }

    /// Whether an admitted request may cost this much.
    pub(crate) fn covers(&self, charge: Charge) -> bool {
        self.excess == Excess::Overdraw || self.used + charge <= self.per_second
    }

    /// How long until a second begins that has units left.
    pub(crate) fn rest(&self, now: Duration) -> Duration {
        let seconds_of_debt = self.used.times(self.per_second).saturating_sub(1);
        self.phase.rest_of(self.second, now) + Duration::from_secs(seconds_of_debt)
    }

    /// Units that each second provides.
    pub(crate) fn per_second(&self) -> Charge {
        self.per_second
    }

    /// Provides `per_second` from the running second on; the used part of that stays used.
    pub(crate) fn provision(&mut self, per_second: Charge, now: Duration) {
        self.advance(now);
        self.per_second = per_second;
    }

    /// Whether a request may run at `now`. If not, [`Budget::refusal`] is booked as long as the debt is less than a second's
    /// units, and the error is how long until a second
    /// begins that has units left.
    pub(crate) fn admit(&mut self, now: Duration) -> Result<(), Duration> {
        self.advance(now);
        if self.used < self.per_second {
            return Ok(());
        }
        // However many are refused, they take no more than a second's units: clients that never wait do not block the others
        // for minutes after they have ended.
        if self.used < self.per_second + self.per_second {
            self.spend(self.refusal());
        }
        Err(self.rest(now))
    }

    /// Books the cost of an admitted request.
    pub(crate) fn spend(&mut self, charge: Charge) {
        self.used = self.used + charge;
    }

    /// The cost of a refused request.
    pub(crate) fn refusal(&self) -> Charge {
        match self.excess {
            Excess::Overdraw => Charge::REFUSAL,
            Excess::Strict => Charge::ZERO,
        }
    }

    /// Goes on to the second of `now`. The units of the seconds in between pay debts.
    fn advance(&mut self, now: Duration) {
        // Callers read the clock before they queue for the partition: one that comes late belongs to the later second.
        let seconds = self.phase.second_at(now).saturating_sub(self.second);
        self.used = self.used.less(self.per_second, seconds);
        self.second += seconds;
    }
}

#[cfg(test)]
impl Phase {
    /// That of a partition whose seconds begin with those of the clock.
    pub(crate) const ZERO: Self = Self(Duration::ZERO);
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::*;

    const PAGE: Charge = Charge::from_hundredths(320);

    fn budget(hundredths: u64) -> Budget {
        Budget::new(Charge::from_hundredths(hundredths), Phase::ZERO)
    }

    /// Requests that are admitted one after another until the first refusal.
    fn admitted_at(budget: &mut Budget, now_ms: u64, charge: Charge) -> usize {
        (0..1_000)
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
        assert_eq!(admitted_at(&mut budget, 0, PAGE), 32);
        assert_eq!(budget.admit(Duration::from_millis(250)), Err(Duration::from_millis(750)));
    }

    #[test]
    fn a_strict_budget_is_never_exceeded() {
        let mut budget = budget(10_000).with(Excess::Strict);
        for _ in 0..31 {
            assert!(budget.admit(Duration::ZERO).is_ok() && budget.covers(PAGE));
            budget.spend(PAGE);
        }
        // 99.20 RU are used.
        assert!(!budget.covers(PAGE) && budget.covers(Charge::from_hundredths(80)));
        assert_eq!(budget.rest(Duration::from_millis(250)), Duration::from_millis(750));
        assert_eq!(
            admitted_at(&mut budget, 1_000, Charge::from_hundredths(5_000)),
            2,
            "no debt, and refusals are free"
        );
        assert_eq!(admitted_at(&mut budget, 2_000, Charge::from_hundredths(5_000)), 2);
    }

    #[test]
    fn a_budget_used_up_exactly_admits_no_more() {
        assert_eq!(admitted_at(&mut budget(400), 0, Charge::from_hundredths(200)), 2);
    }

    #[test]
    fn the_next_seconds_pay_what_went_beyond_and_what_was_refused() {
        let mut budget = budget(10_000);
        assert_eq!(admitted_at(&mut budget, 0, PAGE), 32);
        for _ in 0..9 {
            assert!(budget.admit(Duration::ZERO).is_err());
        }
        // 2.40 RU beyond the budget and ten refusals are 6.20 RU of debt, so 93.80 RU are left.
        assert_eq!(admitted_at(&mut budget, 1_000, PAGE), 30);
        assert_eq!(admitted_at(&mut budget, 100_000, PAGE), 32, "debts are paid, and nothing unused is kept");
    }

    #[test]
    fn a_request_that_costs_several_seconds_is_paid_by_several() {
        let mut budget = budget(10_000);
        assert_eq!(budget.admit(Duration::ZERO), Ok(()));
        budget.spend(Charge::from_hundredths(35_000));
        assert_eq!(budget.admit(Duration::from_millis(100)), Err(Duration::from_millis(2_900)));
        assert_eq!(budget.admit(Duration::from_millis(2_999)), Err(Duration::from_millis(1)));
        // 50 RU are left to pay: beside a debt of more than a second, refusals cost nothing more.
        assert_eq!(admitted_at(&mut budget, 3_000, Charge::from_hundredths(5_000)), 1);
    }

    #[test]
    fn however_many_are_refused_they_take_a_second_at_most() {
        let mut budget = budget(10_000);
        assert_eq!(admitted_at(&mut budget, 0, PAGE), 32);
        for _ in 0..100_000 {
            assert!(budget.admit(Duration::from_millis(900)).is_err());
        }
        assert_eq!(admitted_at(&mut budget, 1_000, PAGE), 0);
        assert_eq!(admitted_at(&mut budget, 2_000, PAGE), 32);
    }

    /// Operations that clients complete in a minute, one after another. Each visits nine partitions in turn and waits for as
    /// long as a refusal says.
    fn completed_by(clients: u32) -> usize {
        let (call, pause) = (Duration::from_millis(46), Duration::from_millis(280));
        let mut budgets: Vec<Budget> =
            (0..9).map(|range| Budget::new(Charge::from_hundredths(10_000), Phase::of_range(1, range))).collect();
        // When a call arrives, at which partition, of which client.
        let mut calls: BinaryHeap<Reverse<(Duration, usize, u32)>> =
            (0..clients).map(|client| Reverse((Duration::from_millis(37) * client, 0, client))).collect();
        let mut completed = 0;
        while let Some(Reverse((now, partition, client))) = calls.pop() {
            if now > Duration::from_secs(60) {
                break;
            }
            let next = match budgets[partition].admit(now) {
                Err(wait) => (now + wait + call, partition, client),
                Ok(()) => {
                    budgets[partition].spend(PAGE);
                    let is_last = partition + 1 == budgets.len();
                    completed += usize::from(is_last);
                    if is_last { (now + call + pause, 0, client) } else { (now + call, partition + 1, client) }
                }
            };
            calls.push(Reverse(next));
        }
        completed
    }

    #[test]
    fn clients_that_wait_together_complete_less_the_more_they_are() {
        let completed = [13, 21, 33, 40, 60].map(completed_by);
        let [rising, peak, ..] = completed;
        assert!(rising < peak && completed[1..].is_sorted_by(|more, fewer| more > fewer), "{completed:?}");
        assert!(completed[3] * 100 < peak * 93, "{completed:?}");
    }

    #[test]
    fn a_late_reader_of_the_clock_gets_no_second_of_its_own() {
        let mut budget = budget(100);
        assert_eq!(admitted_at(&mut budget, 1_000, Charge::from_hundredths(100)), 1);
        assert_eq!(budget.admit(Duration::from_millis(999)), Err(Duration::from_millis(1_001)));
    }

    #[test]
    fn a_raise_counts_at_once_and_what_is_used_stays_used() {
        let mut budget = budget(200);
        let unit = Charge::from_hundredths(100);
        assert_eq!(admitted_at(&mut budget, 1_500, unit), 2);
        budget.provision(Charge::from_hundredths(500), Duration::from_millis(1_500));
        // One refusal is used as well.
        assert_eq!(admitted_at(&mut budget, 1_500, unit), 3);
        budget.provision(unit, Duration::from_millis(3_000));
        assert_eq!(admitted_at(&mut budget, 3_000, unit), 1);
    }

    proptest! {
        #[test]
        fn a_client_that_waits_as_told_finds_the_next_second_and_no_earlier_one_does(
            seed in any::<u64>(),
            range in any::<u32>(),
            now_ns in 0_u64..1_000_000_000_000,
        ) {
            let phase = Phase::of_range(seed, range);
            let now = Duration::from_nanos(now_ns);
            let second = phase.second_at(now);
            let rest = phase.rest_of(second, now);
            prop_assert!(!rest.is_zero() && rest <= SECOND);
            prop_assert_eq!(phase.second_at(now + rest), second + 1);
            prop_assert_eq!(phase.second_at(now + rest - Duration::from_nanos(1)), second);
        }
    }
}
