//! Who calls whom: from what callers report of their calls, and from a call graph that was given.

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{Figures, Interval};
use super::shift::{Sample, Shift};
use super::{Change, FLOOR};
use crate::stats::median;

/// Callers and callees.
pub(super) struct Callees<'f> {
    pairs: BTreeSet<(&'f str, &'f str)>,
}

impl<'f> Callees<'f> {
    pub(super) fn of(figures: &'f Figures) -> Self {
        let pairs = figures.calls.keys().chain(&figures.edges);
        Self {
            pairs: pairs.map(|(caller, callee)| (caller.as_str(), callee.as_str())).filter(|(a, b)| a != b).collect(),
        }
    }

    /// Whether it is known of any service whom it calls.
    pub(super) fn is_known(&self) -> bool {
        !self.pairs.is_empty()
    }

    pub(super) fn of_service<'c>(&'c self, service: &'c str) -> impl Iterator<Item = &'f str> + 'c {
        self.pairs.iter().filter(move |(caller, _)| *caller == service).map(|(_, callee)| *callee)
    }

    fn callers<'c>(&'c self, service: &'c str) -> impl Iterator<Item = &'f str> + 'c {
        self.pairs.iter().filter(move |(_, callee)| *callee == service).map(|(caller, _)| *caller)
    }

    /// Calls of a service to another for each of its requests, after: as it counts them, else at most all requests of the
    /// callee.
    pub(super) fn calls_for_each(
        &self,
        caller: &str,
        callee: &str,
        services: &BTreeMap<&str, Change>,
        calls: &BTreeMap<(&str, &str), Change>,
    ) -> f64 {
        let rate = |change: Option<&Change>| change.and_then(|change| change.requests).map(|(_, after)| after);
        let made = rate(calls.get(&(caller, callee))).or_else(|| rate(services.get(callee)));
        match (made, rate(services.get(caller))) {
            (Some(made), Some(requests)) if requests > 0.0 => made / requests,
            _ => 1.0,
        }
    }

    /// Calls for each request of the caller, on a logarithmic scale, where callers count their calls.
    pub(super) fn rates(&self, figures: &'f Figures) -> BTreeMap<(&'f str, &'f str), Shift> {
        let mut rates = BTreeMap::new();
        for ((caller, callee), calls) in &figures.calls {
            let Some(requests) = figures.services.get(caller) else { continue };
            let before = ratios(&calls.before, &[&requests.before]);
            let after = ratios(&calls.after, &[&requests.after]);
            let shift = Shift::of(&before, &after, FLOOR);
            rates.extend(shift.map(|shift| ((caller.as_str(), callee.as_str()), shift)));
        }
        rates
    }

    /// Change of the requests of each service for each request of its callers; without a call graph, for each request of
    /// all other services. Services without callers receive the load itself and are left out.
    pub(super) fn unexplained_requests(&self, figures: &'f Figures) -> BTreeMap<&'f str, Shift> {
        let mut shifts = BTreeMap::new();
        for (service, sides) in &figures.services {
            let shift = if self.is_known() {
                let callers: Vec<_> = self.callers(service).filter_map(|caller| figures.services.get(caller)).collect();
                let of =
                    |of: fn(&super::Sides) -> &[Interval]| callers.iter().map(|sides| of(sides)).collect::<Vec<_>>();
                let (before, after) = (of(|sides| &sides.before), of(|sides| &sides.after));
                if callers.is_empty() {
                    continue;
                }
                Shift::of(&ratios(&sides.before, &before), &ratios(&sides.after, &after), FLOOR)
            } else {
                let others = Others::of(figures, service);
                Shift::of(
                    &others.ratios(&sides.before, |one| &one.before),
                    &others.ratios(&sides.after, |one| &one.after),
                    FLOOR,
                )
            };
            shifts.extend(shift.map(|shift| (service.as_str(), shift)));
        }
        shifts
    }

    /// The caller of a service most of whose callees changed with it.
    pub(super) fn responsible_caller(&self, service: &str, changed: &BTreeMap<&str, &Shift>) -> Option<&'f str> {
        let direction = changed.get(service)?.change;
        let share = |caller: &str| {
            let callees: Vec<&str> = self.of_service(caller).collect();
            let is_same = |callee: &&&str| changed.get(**callee).is_some_and(|shift| shift.change * direction > 0.0);
            callees.iter().filter(is_same).count() as f64 / callees.len() as f64
        };
        self.callers(service).max_by(|one, other| share(one).total_cmp(&share(other)))
    }
}

/// Logarithm of the requests of each interval ÷ those of others together.
fn ratios(intervals: &[Interval], others: &[&[Interval]]) -> Vec<Sample> {
    let mut sums: BTreeMap<i64, f64> = BTreeMap::new();
    for other in others.iter().flat_map(|side| side.iter()) {
        *sums.entry(other.time_ns).or_default() += other.requests.unwrap_or(0.0);
    }
    let ratio = |one: &Interval| {
        let value = (one.requests? / sums.get(&one.time_ns)?).ln();
        value.is_finite().then_some(Sample { time_ns: one.time_ns, value })
    };
    intervals.iter().filter_map(ratio).collect()
}

/// The other services, with their usual rates.
struct Others<'f> {
    sides: Vec<(&'f super::Sides, f64)>,
}

impl<'f> Others<'f> {
    fn of(figures: &'f Figures, service: &str) -> Self {
        let others = figures.services.iter().filter(|(name, _)| name.as_str() != service);
        let usual = |(_, sides): (&'f String, &'f super::Sides)| {
            let rates = sides.before.iter().filter_map(|one| one.requests).filter(|rate| *rate > 0.0);
            Some((sides, median(rates.collect())?))
        };
        Self { sides: others.filter_map(usual).collect() }
    }

    /// Logarithm of the requests of each interval ÷ the middle of what the others received compared with their usual rates.
    fn ratios(&self, intervals: &[Interval], side: fn(&super::Sides) -> &[Interval]) -> Vec<Sample> {
        let mut relative: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (sides, usual) in &self.sides {
            for one in side(sides) {
                let ratio = one.requests.filter(|rate| *rate > 0.0).map(|rate| (rate / usual).ln());
                relative.entry(one.time_ns).or_default().extend(ratio);
            }
        }
        let ratio = |one: &Interval| {
            let others = median(relative.remove(&one.time_ns)?)?;
            let value = one.requests?.ln() - others;
            value.is_finite().then_some(Sample { time_ns: one.time_ns, value })
        };
        intervals.iter().filter_map(ratio).collect()
    }
}
