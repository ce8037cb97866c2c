//! When a request ends after its spans were treated.
//!
//! A span starts after all siblings that had ended when it started, with the same gap; its parent ends after all of them,
//! with the same rest. So what was made in sequence stays in sequence, and what overlapped still may. This is the rule of
//! retiming in Z. Zhang et al., *CRISP: Critical Path Analysis of Large-Scale Microservice Architectures*, USENIX ATC
//! 2022. Queues are left as they are: what load makes of them is the queueing model's part.

use super::timed_tree::TimedTree;
use super::treatment::{Length, Start, Treatment};

/// How long each span takes with these treatments, one for each span of the trace; 0 for those that no other span waits for.
pub(crate) fn lengths_ns(tree: &TimedTree<'_>, treatments: &[Treatment]) -> Vec<f64> {
    assert_eq!(treatments.len(), tree.trace.spans.len(), "a treatment for each span");
    let mut lengths = vec![0.0; treatments.len()];
    // Children before their parents.
    for at in tree.order.iter().rev() {
        lengths[*at] = match treatments[*at].length {
            Length::Fixed(ns) => ns,
            Length::OfContent => content_ns(tree, *at, treatments, &lengths),
        };
    }
    lengths
}

/// A child in its parent, before and after.
struct Child {
    /// First instant, and first instant after, from the parent's start.
    old: (f64, f64),
    /// The same with the treatments; none as long as it is not placed.
    new: Option<(f64, f64)>,
}

fn content_ns(tree: &TimedTree<'_>, at: usize, treatments: &[Treatment], lengths: &[f64]) -> f64 {
    let own = treatments[at].own;
    let children = tree.children(at);
    let from = tree.times(at).0;
    let old = |child: &usize| ((tree.times(*child).0 - from) as f64, (tree.times(*child).1 - from) as f64);
    let mut placed: Vec<Child> = children.iter().map(|child| Child { old: old(child), new: None }).collect();
    let mut by_end: Vec<usize> = (0..children.len()).collect();
    by_end.sort_by(|a, b| placed[*a].old.1.total_cmp(&placed[*b].old.1).then(a.cmp(b)));
    // Of those that had ended before the child at hand: how many, the last end, and the last end now.
    let (mut ended, mut old_base, mut new_base) = (0, 0.0_f64, 0.0_f64);
    for (position, child) in children.iter().enumerate() {
        let start = placed[position].old.0;
        while let Some(next) = by_end.get(ended).map(|next| &placed[*next]).filter(|next| next.old.1 <= start) {
            let Some((_, end)) = next.new else { break };
            (old_base, new_base) = (old_base.max(next.old.1), new_base.max(end));
            ended += 1;
        }
        let treatment = &treatments[*child];
        let sibling = |wanted: usize| {
            let position = children.iter().position(|child| *child == wanted);
            position.and_then(|position| Some((placed[position].old, placed[position].new?)))
        };
        let gap = |old_base: f64| (start - old_base).max(0.0) * treatment.gap * own;
        let new_start = match treatment.start {
            Start::InOrder => new_base + gap(old_base),
            Start::With(first) => sibling(first).map_or(new_base, |(_, new)| new.0),
            Start::After(before) => sibling(before).map_or(new_base, |(old, new)| new.1 + gap(old.1)),
        };
        placed[position].new = Some((new_start, new_start + lengths[*child]));
    }
    let last_old = placed.iter().map(|child| child.old.1).fold(0.0, f64::max);
    let last_new = placed.iter().filter_map(|child| child.new).map(|new| new.1).fold(0.0, f64::max);
    last_new + (tree.length_ns(at) - last_old).max(0.0) * own
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::Trace;
    use narrows_testkit::spans::{SpanBuilder, client, internal, server};
    use proptest::prelude::*;

    use super::*;

    fn request(children: impl IntoIterator<Item = SpanBuilder>) -> Trace {
        server("shop", "GET /").at(0.0, 100.0).children(children).trace(1)
    }

    /// The milliseconds that a request takes with these treatments by name.
    fn took(trace: &Trace, treated: &[(&str, Treatment)]) -> f64 {
        let tree = TimedTree::new(trace).expect("a root");
        let of = |name: &str| treated.iter().find(|(known, _)| *known == name).map_or_else(Treatment::default, |t| t.1);
        let treatments: Vec<Treatment> = trace.spans.iter().map(|span| of(&span.name)).collect();
        lengths_ns(&tree, &treatments)[tree.root] / 1e6
    }

    fn position(trace: &Trace, name: &str) -> usize {
        trace.spans.iter().position(|span| span.name == name).expect("a span")
    }

    fn three() -> Trace {
        request([client("a").at(10.0, 20.0), client("b").at(35.0, 30.0), client("c").at(70.0, 10.0)])
    }

    #[test]
    fn what_is_left_alone_stays() {
        assert_eq!(took(&three(), &[]), 100.0);
        let overlapping = request([client("a").at(10.0, 50.0), client("b").at(20.0, 20.0), client("c").at(60.0, 30.0)]);
        assert_eq!(took(&overlapping, &[]), 100.0);
    }

    #[test]
    fn a_call_that_is_gone_brings_the_rest_forward() {
        assert_eq!(took(&three(), &[("b", Treatment::gone())]), 70.0);
        assert_eq!(took(&three(), &[("b", Treatment::gone_with_gap())]), 65.0);
        let beside = request([client("a").at(10.0, 50.0), client("b").at(20.0, 20.0)]);
        assert_eq!(took(&beside, &[("b", Treatment::gone())]), 100.0, "not waited for");
        assert_eq!(took(&beside, &[("a", Treatment::gone())]), 80.0, "the other one is waited for then");
    }

    #[test]
    fn calls_that_start_together_take_as_long_as_the_longest() {
        let trace = three();
        let with = Treatment { start: Start::With(position(&trace, "a")), ..Treatment::default() };
        assert_eq!(took(&trace, &[("b", with), ("c", with)]), 60.0);
    }

    #[test]
    fn a_second_attempt_stays_behind_the_first() {
        let trace = three();
        let with = Treatment { start: Start::With(position(&trace, "a")), ..Treatment::default() };
        let after = Treatment { start: Start::After(position(&trace, "b")), ..Treatment::default() };
        // b from 10 to 40, c from 45 to 55, and the rest of 20.
        assert_eq!(took(&trace, &[("b", with), ("c", after)]), 75.0);
    }

    #[test]
    fn own_time_shrinks_with_the_gaps() {
        let half = Treatment { own: 0.5, ..Treatment::default() };
        assert_eq!(took(&three(), &[("GET /", half)]), 80.0);
        let nested = request([internal("work").at(20.0, 60.0).child(client("a").at(30.0, 20.0))]);
        assert_eq!(took(&nested, &[("work", half)]), 80.0);
    }

    proptest! {
        #[test]
        fn no_trace_takes_longer_when_spans_are_gone(
            spans in prop::collection::vec((0.0_f64..90.0, 0.0_f64..10.0, prop::bool::ANY), 1..12),
        ) {
            let names: Vec<String> = (0..spans.len()).map(|at| format!("s{at}")).collect();
            let child = |((start, length, _), name): (&(f64, f64, bool), &String)| client(name).at(*start, *length);
            let trace = request(spans.iter().zip(&names).map(child));
            let gone: Vec<(&str, Treatment)> = spans
                .iter()
                .zip(&names)
                .filter(|((_, _, is_gone), _)| *is_gone)
                .map(|(_, name)| (name.as_str(), Treatment::gone()))
                .collect();
            prop_assert!((took(&trace, &[]) - 100.0).abs() < 1e-6);
            prop_assert!(took(&trace, &gone) <= 100.0 + 1e-6);
        }
    }
}
