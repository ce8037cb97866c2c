//! Refused attempts of a trace, and the waits after them, are gone.

use super::calls::{Group, Names, groups, is_refused};
use super::timed_tree::TimedTree;
use super::treatment::{Length, Treatment};

/// Takes refused attempts out of a trace, whatever else happens to its spans.
pub(super) fn drop_refused(tree: &TimedTree<'_>, names: &Names, treatments: &mut [Treatment]) {
    if !tree.order.iter().any(|at| is_refused(tree.span(*at))) {
        return;
    }
    for group in tree.entries().into_iter().flat_map(|entry| groups(tree, entry, names)) {
        drop_refused_of(tree, &group, treatments);
    }
}

fn drop_refused_of(tree: &TimedTree<'_>, group: &Group<'_>, treatments: &mut [Treatment]) {
    for attempts in &group.calls {
        for (place, at) in attempts.iter().copied().enumerate() {
            if is_refused(tree.span(at)) {
                treatments[at].length = Length::Fixed(0.0);
            }
            if place > 0 && is_refused(tree.span(attempts[place - 1])) {
                treatments[at].gap = 0.0;
            }
        }
    }
}
