//! Callers that begin their calls late and read the responses late: the gaps between the client spans and the server
//! spans of all their callees grow, whichever service they call.
//!
//! A gap is the callee's while it grows for one callee only: the call queues there, or is on the way. When it grows for
//! all callees of one caller, it is the caller that gets no thread or no CPU.

use std::collections::BTreeSet;

use super::change::{Comparison, Difference, ERRORS_MIN};

/// Callees of a caller from which it can be told that it is the caller.
const CALLEES_MIN: usize = 2;
/// Standard errors by which each single gap has grown.
const ERRORS_EACH: f64 = 2.0;

/// The callers whose gaps to all callees grew.
pub(super) fn starved(comparison: &Comparison) -> Vec<String> {
    let callers: BTreeSet<&String> = comparison.calls.keys().map(|(caller, _)| caller).collect();
    callers.into_iter().filter(|caller| is_starved(comparison, caller)).cloned().collect()
}

fn is_starved(comparison: &Comparison, caller: &str) -> bool {
    let of_caller = comparison.calls.iter().filter(|((from, callee), _)| from == caller && callee != caller);
    let gaps = of_caller.filter_map(|(pair, calls)| {
        let gaps = comparison.difference(|one| one.gaps.get(pair).map(|gaps| &gaps.own));
        (calls.before > 0.0 && calls.after > 0.0 && gaps.before > 0.0).then(|| of_each_call(&gaps, calls))
    });
    let gaps: Vec<Difference> = gaps.collect();
    let has_grown = |gap: &Difference| {
        gap.errors(gap.change()) >= ERRORS_EACH && (gap.after / gap.before).ln() >= comparison.between_trials
    };
    let change: f64 = gaps.iter().map(Difference::change).sum();
    let squared_error: f64 = gaps.iter().map(|gap| gap.squared_error).sum();
    gaps.len() >= CALLEES_MIN && gaps.iter().all(has_grown) && change >= ERRORS_MIN * squared_error.sqrt()
}

/// Mean gap of each call, from those of each request.
fn of_each_call(gaps: &Difference, calls: &Difference) -> Difference {
    Difference {
        before: gaps.before / calls.before,
        after: gaps.after / calls.after,
        squared_error: gaps.squared_error / (calls.middle() * calls.middle()),
    }
}
