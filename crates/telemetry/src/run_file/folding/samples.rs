//! Selects which sampled requests of a minute are kept, and their weights. Pure.
//!
//! As many are kept as the load engine keeps of one second: the slowest, with unchanged weights, and an even selection
//! of errors and of the rest. The selection is systematic, with probability proportional to weight (Madow 1949, "On the
//! theory of systematic sampling, II"), in order of time: the sum of weights is unchanged, and the minute is covered
//! evenly.

use std::collections::BTreeMap;

const SLOWEST_MAX: usize = 4;
const ERRORS_MAX: usize = 4;
const REST_MAX: usize = 24;

/// A sampled request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    pub(super) id: i64,
    pub(super) latency_ns: i64,
    pub(super) has_failed: bool,
    /// Number of requests that it represents, positive.
    pub(super) weight: f64,
}

/// The ids of the selected samples, with their weights.
pub(super) fn chosen(candidates: &[Candidate]) -> BTreeMap<i64, f64> {
    let (errors, mut others): (Vec<Candidate>, Vec<Candidate>) =
        candidates.iter().partition(|candidate| candidate.has_failed);
    others.sort_by_key(|candidate| std::cmp::Reverse(candidate.latency_ns));
    let mut rest = others.split_off(SLOWEST_MAX.min(others.len()));
    rest.sort_by_key(|candidate| candidate.id);
    let slowest = others.iter().map(|candidate| (candidate.id, candidate.weight));
    slowest.chain(evenly(&errors, ERRORS_MAX)).chain(evenly(&rest, REST_MAX)).collect()
}

/// A selection of at most `most` candidates that represents all of them.
fn evenly(candidates: &[Candidate], most: usize) -> Vec<(i64, f64)> {
    if candidates.len() <= most {
        return candidates.iter().map(|candidate| (candidate.id, candidate.weight)).collect();
    }
    let total: f64 = candidates.iter().map(|candidate| candidate.weight).sum();
    let step = total / most as f64;
    let mut kept: Vec<(i64, f64)> = Vec::with_capacity(most);
    let (mut passed, mut hits) = (0.0, 0_usize);
    for candidate in candidates {
        passed += candidate.weight;
        let reached = ((passed / step + 0.5).floor() as usize).min(most);
        if reached > hits {
            kept.push((candidate.id, (reached - hits) as f64 * step));
            hits = reached;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidates(of: &[(i64, bool, f64)]) -> Vec<Candidate> {
        let candidate = |(id, (latency_ns, has_failed, weight)): (i64, &(i64, bool, f64))| Candidate {
            id,
            latency_ns: *latency_ns,
            has_failed: *has_failed,
            weight: *weight,
        };
        (0..).zip(of).map(candidate).collect()
    }

    proptest! {
        #[test]
        fn weights_add_up_and_the_slowest_are_left(
            of in prop::collection::vec((0..1_000_000i64, prop::bool::weighted(0.1), 0.5..500.0f64), 0..400),
        ) {
            let candidates = candidates(&of);
            let kept = chosen(&candidates);
            prop_assert!(kept.len() <= SLOWEST_MAX + ERRORS_MAX + REST_MAX);
            for has_failed in [false, true] {
                let of_kind = |candidate: &&Candidate| candidate.has_failed == has_failed;
                let before: f64 = candidates.iter().filter(of_kind).map(|candidate| candidate.weight).sum();
                let after: f64 = candidates.iter().filter(of_kind).filter_map(|one| kept.get(&one.id)).sum();
                prop_assert!((before - after).abs() <= 1e-9 * before.max(1.0), "{before} became {after}");
            }
            let mut slow: Vec<&Candidate> = candidates.iter().filter(|candidate| !candidate.has_failed).collect();
            slow.sort_by_key(|candidate| std::cmp::Reverse(candidate.latency_ns));
            prop_assert!(slow.iter().take(SLOWEST_MAX).all(|one| kept.get(&one.id) == Some(&one.weight)));
        }
    }

    #[test]
    fn few_stay_as_they_are() {
        let few = candidates(&[(5, false, 1.0), (7, true, 2.5), (1, false, 9.0)]);
        assert_eq!(chosen(&few), BTreeMap::from([(0, 1.0), (1, 2.5), (2, 9.0)]));
    }

    #[test]
    fn the_rest_is_chosen_evenly_over_the_minute() {
        let many = candidates(&[(10, false, 1.0); 2400]);
        let kept = chosen(&many);
        let early = kept.keys().filter(|id| **id < 1200).count();
        assert_eq!((kept.len(), early), (28, 16), "the slowest four are the first of equals");
    }
}
