//! The load as reports show it: its requests by scenario and step, its arrivals, its errors by kind, each over the
//! finished repetitions of a variant.
//!
//! Repetitions are added up, counts and seconds alike, so a rate here is their mean and not their median.

use narrows_model::comparison::Outcome;
use narrows_model::evidence::{LoadTotals, RequestOfLoad, TrialEvidence};
use narrows_model::load::{ErrorCounts, ErrorKind};
use narrows_model::run::TrialState;
use narrows_model::units;

use crate::figures::known;

/// One request of the load over the variants.
#[derive(Debug)]
pub(crate) struct ComparedRequest {
    /// Its step; its scenario too, where there are several.
    pub(crate) name: String,
    /// Variant and numbers, in the order of the variants; variants without it are left out.
    pub(crate) variants: Vec<(String, LoadTotals)>,
}

/// The requests of all variants in the order of the load; empty when the load has one request only, about which the
/// variants already show all.
pub(crate) fn compared_requests(outcome: &Outcome) -> Vec<ComparedRequest> {
    let variants: Vec<_> = variants(outcome).into_iter().map(|(name, trials)| (name, requests_of(&trials))).collect();
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for request in variants.iter().flat_map(|(_, requests)| requests) {
        let key = (request.scenario.as_str(), request.request.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.len() < 2 {
        return Vec::new();
    }
    let is_one_scenario = keys.iter().all(|(scenario, _)| *scenario == keys[0].0);
    let compared = |(scenario, request): &(&str, &str)| ComparedRequest {
        name: name_of(scenario, request, is_one_scenario),
        variants: variants
            .iter()
            .filter_map(|(variant, requests)| {
                let found = requests.iter().find(|r| r.scenario == *scenario && r.request == *request)?;
                Some((variant.clone(), found.totals.clone()))
            })
            .collect(),
    };
    keys.iter().map(compared).collect()
}

fn name_of(scenario: &str, request: &str, is_one_scenario: bool) -> String {
    match (scenario, request) {
        (scenario, "") => scenario.to_owned(),
        (_, request) if is_one_scenario => request.to_owned(),
        (scenario, request) => format!("{scenario} · {request}"),
    }
}

/// The variants that have an open model, with all their load.
pub(crate) fn arrivals(outcome: &Outcome) -> Vec<(String, LoadTotals)> {
    totals(outcome).into_iter().filter(|(_, totals)| totals.due > 0).collect()
}

/// The variants, each with all its load.
pub(crate) fn totals(outcome: &Outcome) -> Vec<(String, LoadTotals)> {
    let added = |trials: Vec<&TrialEvidence>| {
        trials.iter().fold(LoadTotals::default(), |mut sum, trial| {
            sum.merge(&trial.counted_load());
            sum
        })
    };
    variants(outcome).into_iter().map(|(name, trials)| (name, added(trials))).collect()
}

/// The finished trials of each variant, in the order of the comparison.
fn variants(outcome: &Outcome) -> Vec<(String, Vec<&TrialEvidence>)> {
    let trials_of = |variant: &str| {
        let is_its = |t: &&TrialEvidence| t.trial.variant == variant && t.trial.state == TrialState::Done;
        outcome.evidence.trials.iter().filter(is_its).collect()
    };
    let names = outcome.comparison.variants.iter().map(|variant| &variant.variant);
    names.map(|name| (name.clone(), trials_of(name))).collect()
}

fn requests_of(trials: &[&TrialEvidence]) -> Vec<RequestOfLoad> {
    let mut all: Vec<RequestOfLoad> = Vec::new();
    for request in trials.iter().flat_map(|trial| trial.requests_of_load()) {
        match all.iter_mut().find(|r| r.scenario == request.scenario && r.request == request.request) {
            Some(known) => known.totals.merge(&request.totals),
            None => all.push(request),
        }
    }
    all
}

/// Successes per second; a dash if unknown.
pub(crate) fn rate(totals: &LoadTotals) -> String {
    known(totals.known_rate(), units::rate)
}

/// The kinds of errors there are with their counts: `10 status, 2 check`; empty without errors.
pub(crate) fn errors_by_kind(errors: ErrorCounts) -> String {
    let kinds = ErrorKind::ALL.iter().filter(|kind| errors.of(**kind) > 0);
    let counts: Vec<String> =
        kinds.map(|kind| format!("{} {}", units::count(errors.of(*kind)), kind.as_str())).collect();
    counts.join(", ")
}

/// Repeated requests, and requests without a response when the load was stopped: a label, and the count with an
/// explanation. Only those that occurred.
pub fn repeated_and_cut(load: &LoadTotals) -> Vec<(&'static str, String)> {
    let notes = [
        ("repeated", load.repeated, "sent again, because a kept connection broke before the response"),
        ("cut", load.cut, "no response when the load was stopped; neither successes nor errors"),
    ];
    let occurred = notes.into_iter().filter(|note| note.1 > 0);
    occurred.map(|(label, count, meaning)| (label, format!("{} ({meaning})", units::count(count)))).collect()
}

/// A count with its share of the iterations due: `1,200 (4.2 %)`.
pub(crate) fn share_of_due(count: u64, due: u64) -> String {
    match count {
        0 => "0".to_owned(),
        n => format!("{} ({})", units::count(n), units::percent(n as f64 / due.max(1) as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn one_request_needs_no_table_and_two_add_up_to_the_variant() {
        let plain = fixture::outcome();
        assert_eq!((compared_requests(&plain).len(), arrivals(&plain).len()), (0, 0));
        let open = fixture::open_outcome();
        let requests = compared_requests(&open);
        assert_eq!(requests.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["list", "pay"]);
        for (at, (variant, whole)) in totals(&open).into_iter().enumerate() {
            let parts = requests.iter().map(|request| &request.variants[at]);
            assert!(parts.clone().all(|(name, _)| *name == variant));
            assert_eq!(parts.clone().map(|(_, part)| part.ended()).sum::<u64>(), whole.ended());
            assert!((parts.map(|(_, part)| part.rate()).sum::<f64>() - whole.rate()).abs() < 1e-9);
            assert_eq!(whole.due, 66_000, "only the first step says what was due");
        }
    }

    #[test]
    fn repetitions_are_added_and_unfinished_trials_left_out() {
        let mut open = fixture::open_outcome();
        let mut again = open.evidence.trials[0].clone();
        again.trial.repetition = 2;
        let mut cut = again.clone();
        cut.trial.state = TrialState::Interrupted;
        open.evidence.trials.extend([again, cut]);
        let (once, twice) = (totals(&fixture::open_outcome()).remove(0).1, totals(&open).remove(0).1);
        assert_eq!((twice.due, twice.seconds, twice.rate()), (2 * once.due, 2.0 * once.seconds, once.rate()));
    }

    #[test]
    fn names_say_as_much_as_is_needed() {
        let cases = [
            (("shop", "", false), "shop"),
            (("shop", "list", true), "list"),
            (("shop", "buy/pay", false), "shop · buy/pay"),
        ];
        for ((scenario, request, is_one), expected) in cases {
            assert_eq!(name_of(scenario, request, is_one), expected);
        }
        let errors = ErrorCounts { check: 2, timeout: 1200, ..ErrorCounts::default() };
        assert_eq!(errors_by_kind(errors), "1,200 timeout, 2 check");
        assert_eq!((share_of_due(0, 0), share_of_due(5, 100)), ("0".into(), "5 (5.0 %)".into()));
    }
}
