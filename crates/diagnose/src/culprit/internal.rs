//! Internal spans of a service that vanish or appear, such as that of a cache that is no longer read.

use std::collections::BTreeSet;

use narrows_model::diff::SpanDiff;

use super::change::{Comparison, Difference, ERRORS_MIN};

/// Spans for each request of the service from which a kind is expected.
const EACH_MIN: f64 = 0.2;
/// Share of its former frequency below which a kind has vanished.
const LEFT_MAX: f64 = 0.1;
/// Kinds reported for each service.
const KINDS_MAX: usize = 5;

/// The internal spans of a service that vanished or appeared, by name; `visits` are its calls for each request.
pub(super) fn internal_spans(comparison: &Comparison, service: &str, visits: Difference) -> Vec<SpanDiff> {
    if visits.before <= 0.0 || visits.after <= 0.0 {
        return Vec::new();
    }
    let sides = comparison.operations.iter().flat_map(|(before, after, _)| [before, after]);
    let kinds = sides.filter_map(|side| side.calls_without_errors.internal.get(service));
    let names: BTreeSet<&String> = kinds.flat_map(|kinds| kinds.keys()).collect();
    let changed = names.into_iter().filter_map(|name| {
        let spans = comparison.difference_over(|one| {
            let calls = &one.calls_without_errors;
            (calls.internal.get(service).and_then(|kinds| kinds.get(name)), &calls.requests)
        });
        let each = (spans.before / visits.before, spans.after / visits.after);
        let is_expected = each.0.max(each.1) >= EACH_MIN && each.0.min(each.1) <= LEFT_MAX * each.0.max(each.1);
        let is_certain = spans.errors(spans.change()).abs() >= ERRORS_MIN;
        (is_expected && is_certain).then_some(SpanDiff { name: name.clone(), before: each.0, after: each.1 })
    });
    changed.take(KINDS_MAX).collect()
}
