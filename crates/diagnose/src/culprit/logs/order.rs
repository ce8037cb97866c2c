//! Who calls whom, as far as logs need to know: as traces show it, as services log within one trace, and as error
//! messages name services.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::messages::LoggingPair;

use super::kinds::JudgedKind;

/// Traces in which two services must log, and in which both must log errors.
const TRACES_MIN: u64 = 5;
const FAILED_MIN: u64 = 3;
/// Share of these traces that must agree on an order.
const SHARE_MIN: f64 = 0.8;
/// Share of a service's traces in which one that calls it logs too, and share in which one that is called sometimes does
/// at most.
const CALLER_SHARE: f64 = 0.95;
const CALLEE_SHARE: f64 = 0.9;
/// Letters of a name from which a message is taken to mention the service.
const NAME_MIN: usize = 4;

/// Callees by caller.
type Callees<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Calls between services, in tiers: what traces show, what the order of errors says, what errors name, and what the order
/// of other lines says. That order shows for two services that a third one calls one after the other too, so that a tier
/// says nothing of services that one before it knows.
#[derive(Debug, Default)]
pub(super) struct CallOrder<'a> {
    tiers: Vec<Tier<'a>>,
}

#[derive(Debug, Default)]
struct Tier<'a> {
    /// Calls that this tier shows.
    own: Callees<'a>,
    /// These, and those of the tiers before.
    all: Callees<'a>,
}

impl<'a> CallOrder<'a> {
    pub(super) fn new(
        calls: &'a BTreeSet<(String, String)>,
        found: &'a BTreeMap<String, Vec<JudgedKind>>,
        before: &[&'a TrialEvidence],
        after: &[&'a TrialEvidence],
    ) -> Self {
        let mut order = Self::default();
        order.add(calls.iter().map(|(caller, callee)| (caller.as_str(), callee.as_str())).collect());
        order.add(callers_by(after, |pair, _| by_errors(pair)));
        order.add(mentions(found));
        order.add(callers_by(before, by_lines));
        order
    }

    /// Adds a tier of those pairs of caller and callee of which no tier before knows who calls the other.
    fn add(&mut self, calls: Vec<(&'a str, &'a str)>) {
        let mut tier =
            Tier { own: Callees::new(), all: self.tiers.last().map_or_else(Callees::new, |last| last.all.clone()) };
        for (caller, callee) in calls.into_iter().filter(|(caller, callee)| self.is_known(caller, callee).is_none()) {
            tier.own.entry(caller).or_default().insert(callee);
            tier.all.entry(caller).or_default().insert(callee);
        }
        self.tiers.push(tier);
    }

    /// Whether requests of the first service lead to the other; `None` if none do in either direction, as far as is known.
    fn is_known(&self, one: &str, other: &str) -> Option<bool> {
        self.tiers.iter().find_map(|tier| tier.is_known(one, other))
    }

    /// True if requests of a service lead to another, and not the other way round.
    pub(super) fn is_caller(&self, service: &str, other: &str) -> bool {
        self.is_known(service, other) == Some(true)
    }
}

impl Tier<'_> {
    /// Single calls go before what several of them imply. Of services that call each other, neither is the caller.
    fn is_known(&self, one: &str, other: &str) -> Option<bool> {
        let calls = |from: &str, to: &str| self.own.get(from).is_some_and(|callees| callees.contains(to));
        match (calls(one, other), calls(other, one)) {
            (true, false) => return Some(true),
            (false, true) => return Some(false),
            _ => {}
        }
        match (leads_to(&self.all, one, other), leads_to(&self.all, other, one)) {
            (false, false) => None,
            (there, back) => Some(there && !back),
        }
    }
}

/// True if calls of a service lead to another.
fn leads_to(callees: &Callees<'_>, service: &str, other: &str) -> bool {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut next: Vec<&str> = vec![service];
    while let Some(caller) = next.pop() {
        for callee in callees.get(caller).into_iter().flatten() {
            if *callee == other {
                return true;
            }
            if seen.insert(callee) {
                next.push(callee);
            }
        }
    }
    false
}

/// Number of traces in which each service logs.
type Traces<'a> = BTreeMap<&'a str, u64>;

/// Caller and callee of all pairs of a side of which it is known.
fn callers_by<'a>(
    side: &[&'a TrialEvidence],
    is_caller: impl Fn(&LoggingPair, &Traces<'a>) -> Option<bool>,
) -> Vec<(&'a str, &'a str)> {
    let mut callers = Vec::new();
    for trial in side {
        let traces: Traces<'_> =
            trial.messages.traces.iter().map(|(service, count)| (service.as_str(), *count)).collect();
        for pair in &trial.messages.pairs {
            match is_caller(pair, &traces) {
                Some(true) => callers.push((pair.one.as_str(), pair.other.as_str())),
                Some(false) => callers.push((pair.other.as_str(), pair.one.as_str())),
                None => {}
            }
        }
    }
    callers
}

/// Whether a count is most of a total, or the rest of it is; `None` if neither.
fn majority(count: u64, total: u64) -> Option<bool> {
    let share = count as f64 / total.max(1) as f64;
    match () {
        () if share >= SHARE_MIN => Some(true),
        () if share <= 1.0 - SHARE_MIN => Some(false),
        () => None,
    }
}

/// Whether the first of a pair calls the other: it logs an error after it.
fn by_errors(pair: &LoggingPair) -> Option<bool> {
    if pair.failed < FAILED_MIN {
        return None;
    }
    majority(pair.failed_earlier, pair.failed).map(|is_earlier| !is_earlier)
}

/// Whether the first of a pair calls the other: it logs before and after it, or in more traces, or before it.
fn by_lines(pair: &LoggingPair, traces: &Traces<'_>) -> Option<bool> {
    if pair.traces < TRACES_MIN {
        return None;
    }
    let share = |of: &str| pair.traces as f64 / traces.get(of).copied().unwrap_or(0).max(1) as f64;
    let (one, other) = (share(&pair.one), share(&pair.other));
    match () {
        () if majority(pair.around, pair.traces) == Some(true) => Some(true),
        () if majority(pair.within, pair.traces) == Some(true) => Some(false),
        () if other >= CALLER_SHARE && one <= CALLEE_SHARE => Some(true),
        () if one >= CALLER_SHARE && other <= CALLEE_SHARE => Some(false),
        () => majority(pair.earlier, pair.traces),
    }
}

/// Services and other services with differing messages that their errors name.
fn mentions(found: &BTreeMap<String, Vec<JudgedKind>>) -> Vec<(&str, &str)> {
    let mut mentions = Vec::new();
    for (service, kinds) in found {
        for kind in kinds.iter().filter(|kind| kind.diff.is_error) {
            let is_named = |other: &&String| *other != service && names(&kind.diff.template, other);
            mentions.extend(found.keys().filter(is_named).map(|other| (service.as_str(), other.as_str())));
        }
    }
    mentions
}

/// True if a message holds the name of a service as a word.
fn names(message: &str, service: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    service.len() >= NAME_MIN
        && message.match_indices(service).any(|(at, _)| {
            !message[..at].ends_with(is_of_name) && !message[at + service.len()..].starts_with(is_of_name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(traces: u64, around: u64, earlier: u64) -> LoggingPair {
        let (one, other) = ("cart".to_owned(), "stock".to_owned());
        LoggingPair { one, other, traces, around, within: 0, earlier, failed: 0, failed_earlier: 0 }
    }

    #[test]
    fn a_caller_logs_around_its_callee_or_more_often_or_first() {
        let of = |cart: u64, stock: u64| Traces::from([("cart", cart), ("stock", stock)]);
        assert_eq!(by_lines(&pair(10, 9, 0), &of(10, 10)), Some(true));
        assert_eq!(by_lines(&pair(10, 0, 0), &of(40, 10)), Some(true));
        assert_eq!(by_lines(&pair(10, 0, 10), &of(10, 40)), Some(false));
        assert_eq!(by_lines(&pair(10, 0, 9), &of(10, 10)), Some(true));
        assert_eq!(by_lines(&pair(10, 0, 1), &of(10, 10)), Some(false));
        assert_eq!(by_lines(&pair(10, 0, 5), &of(10, 10)), None);
        assert_eq!(by_lines(&pair(4, 4, 4), &of(4, 4)), None, "too few");
        let failed = LoggingPair { failed: 6, failed_earlier: 1, ..pair(10, 0, 0) };
        assert_eq!(by_errors(&failed), Some(true), "its error comes after that of the other");
    }

    #[test]
    fn the_order_of_lines_does_not_undo_what_traces_show() {
        let traced = BTreeSet::from([("checkout".to_owned(), "payment".to_owned())]);
        let mut order = CallOrder::default();
        order.add(traced.iter().map(|(caller, callee)| (caller.as_str(), callee.as_str())).collect());
        order.add(vec![("payment", "stock"), ("stock", "checkout"), ("payment", "checkout")]);
        assert!(order.is_caller("checkout", "payment") && !order.is_caller("payment", "checkout"));
        assert!(order.is_caller("stock", "checkout") && order.is_caller("payment", "stock"));
    }

    #[test]
    fn a_name_is_a_word_of_the_message() {
        assert!(names("cannot reach http://cart:*", "cart") && names("cart: no response", "cart"));
        assert!(!names("cartridge is empty", "cart") && !names("cannot reach web", "web"));
    }
}
