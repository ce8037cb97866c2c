//! Refusals of a store: the attempts of one operation second by second, and the wait after each refusal.
//!
//! Counts are over all spans, waits from traces. A gap counts as a wait only as far as the time that the refusal
//! requested explains it, because a program also pauses for reasons of its own.

use std::collections::BTreeMap;

use narrows_model::operation::{CallEvidence, OperationEvidence};
use narrows_model::trace::Span;

use crate::thresholds::Thresholds;

/// Length of the seconds over which calls are counted, nanoseconds.
pub(crate) const SECOND_NS: i64 = 1_000_000_000;

/// Outcome of one second of calls to one target.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Second {
    pub(crate) attempts: f64,
    pub(crate) throttled: f64,
}

/// The calls of one operation to one target, of every name.
#[derive(Debug, Clone, Default)]
pub(crate) struct TargetCalls<'a> {
    pub(crate) target: &'a str,
    pub(crate) is_database: bool,
    pub(crate) succeeded: f64,
    pub(crate) throttled: f64,
    pub(crate) attempts: f64,
    pub(crate) charge: f64,
    pub(crate) seconds: BTreeMap<i64, Second>,
}

impl<'a> TargetCalls<'a> {
    /// The targets that refused anything. `put_off_share` is the share of a target's failed attempts whose refusal
    /// requested a wait: these are refusals as well.
    pub(crate) fn by_target(operation: &'a OperationEvidence, put_off_share: impl Fn(&str) -> f64) -> Vec<Self> {
        let mut targets: BTreeMap<&str, TargetCalls<'a>> = BTreeMap::new();
        for call in &operation.calls {
            targets.entry(&call.target).or_default().add(call, put_off_share(&call.target));
        }
        targets.into_values().filter(|refused| refused.throttled > 0.0).collect()
    }

    fn add(&mut self, call: &'a CallEvidence, put_off_share: f64) {
        self.target = &call.target;
        self.is_database |= call.is_database;
        self.succeeded += call.succeeded;
        self.throttled += call.throttled + call.failed * put_off_share;
        self.attempts += call.attempts();
        self.charge += call.charge.unwrap_or(0.0);
        for second in &call.seconds {
            let sum = self.seconds.entry(second.start_ns).or_default();
            sum.attempts += second.succeeded + second.throttled + second.failed;
            sum.throttled += second.throttled + second.failed * put_off_share;
        }
    }

    pub(crate) fn share(&self) -> f64 {
        if self.attempts > 0.0 { self.throttled / self.attempts } else { 0.0 }
    }

    /// Charge for a call that is not refused.
    pub(crate) fn charge_of_one(&self) -> f64 {
        if self.succeeded > 0.0 { self.charge / self.succeeded } else { 0.0 }
    }

    pub(crate) fn hot(&self) -> impl Iterator<Item = (i64, &Second)> {
        self.seconds.iter().filter(|(_, second)| second.throttled > 0.0).map(|(start_ns, second)| (*start_ns, second))
    }

    pub(crate) fn busy_seconds(&self) -> usize {
        self.seconds.values().filter(|second| second.attempts > 0.0).count()
    }

    pub(crate) fn is_hot(&self, from_ns: i64, to_ns: i64) -> bool {
        self.seconds.range(from_ns - SECOND_NS + 1..to_ns).any(|(_, second)| second.throttled > 0.0)
    }
}

/// Target of a call, as the counts over all spans name it.
pub(crate) fn target_of(span: &Span) -> String {
    let facts = &span.facts;
    match (&facts.db_system, &facts.server_address, facts.server_port) {
        (Some(system), _, _) => system.clone(),
        (None, Some(address), Some(port)) => format!("{address}:{port}"),
        (None, Some(address), None) => address.clone(),
        (None, None, _) => String::new(),
    }
}

/// The wait after one refusal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) requested_ns: Option<f64>,
}

impl Gap {
    pub(crate) fn between(refused: &Span, next: &Span) -> Self {
        let requested_ns = refused.facts.retry_after_ns.map(|ns| ns as f64);
        Self { start_ns: refused.end_ns, end_ns: next.start_ns.max(refused.end_ns), requested_ns }
    }

    pub(crate) fn length_ns(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64
    }

    /// Whether it is the wait that the response requested; `None` if the response requested none.
    pub(crate) fn is_as_requested(&self, thresholds: &Thresholds) -> Option<bool> {
        let requested_ns = self.requested_ns?;
        let longest_ns =
            thresholds.throttling.retry_after_factor_max * requested_ns + thresholds.throttling.retry_after_slack_ns;
        Some((thresholds.throttling.retry_after_share_min * requested_ns..=longest_ns).contains(&self.length_ns()))
    }

    /// The part of it that the refusal explains: none of a gap that is too short, the requested wait of one that is too
    /// long.
    pub(crate) fn explained(&self, thresholds: &Thresholds) -> Option<(i64, i64)> {
        let Some(requested_ns) = self.requested_ns else { return Some((self.start_ns, self.end_ns)) };
        if self.length_ns() < thresholds.throttling.retry_after_share_min * requested_ns {
            return None;
        }
        let longest_ns =
            thresholds.throttling.retry_after_factor_max * requested_ns + thresholds.throttling.retry_after_slack_ns;
        Some((self.start_ns, self.end_ns.min(self.start_ns.saturating_add(longest_ns as i64))))
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::operations::{operation, store_calls};

    use super::*;

    #[test]
    fn seconds_of_all_names_are_added() {
        let mut counted = operation("shop", "GET /", 3, 1.0, 1.0);
        let calls = |name| store_calls(name, [(9.0, 1.0, 27.0), (9.0, 0.0, 27.0), (0.0, 0.0, 0.0)]);
        counted.calls = vec![calls("read"), calls("query")];
        let [refused] = &TargetCalls::by_target(&counted, |_| 0.0)[..] else { panic!("one target") };
        assert_eq!((refused.attempts, refused.share(), refused.charge_of_one()), (38.0, 2.0 / 38.0, 3.0));
        assert_eq!((refused.hot().count(), refused.busy_seconds()), (1, 2));
        let start_ns = narrows_testkit::TRIAL_START_NS;
        assert!(refused.is_hot(start_ns + SECOND_NS - 1, start_ns + 2 * SECOND_NS));
        assert!(!refused.is_hot(start_ns + SECOND_NS, start_ns + 2 * SECOND_NS));
    }

    #[test]
    fn attempts_that_are_put_off_are_refused() {
        let mut counted = operation("shop", "GET /", 1, 1.0, 1.0);
        counted.calls = vec![store_calls("read", [(9.0, 0.0, 27.0)])];
        counted.calls[0].failed = 4.0;
        counted.calls[0].seconds[0].failed = 4.0;
        assert!(TargetCalls::by_target(&counted, |_| 0.0).is_empty(), "it failed");
        let [refused] = &TargetCalls::by_target(&counted, |_| 0.5)[..] else { panic!("one target") };
        assert_eq!((refused.throttled, refused.attempts, refused.hot().count()), (2.0, 13.0, 1));
    }

    #[test]
    fn a_gap_is_explained_as_far_as_was_told() {
        let gap = |requested_ms: Option<f64>, ms: i64| Gap {
            start_ns: 0,
            end_ns: ms * 1_000_000,
            requested_ns: requested_ms.map(|ms| ms * 1e6),
        };
        for (requested_ms, ms, is_as_requested, explained_ms) in [
            (None, 70, None, Some(70)),
            (Some(100.0), 79, Some(false), None),
            (Some(100.0), 80, Some(true), Some(80)),
            (Some(100.0), 250, Some(true), Some(250)),
            (Some(100.0), 400, Some(false), Some(250)),
        ] {
            let gap = gap(requested_ms, ms);
            assert_eq!(gap.is_as_requested(&Thresholds::default()), is_as_requested, "{gap:?}");
            assert_eq!(gap.explained(&Thresholds::default()), explained_ms.map(|ms| (0, ms * 1_000_000)), "{gap:?}");
        }
    }
}
