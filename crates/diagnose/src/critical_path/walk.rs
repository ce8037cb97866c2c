//! The walk along the critical path: from a request's end backwards, always into the child that finished last.
//!
//! This is the last-finishing-child walk of CRISP (Zhang et al., USENIX ATC 2022) and of Jaeger's user interface, with
//! a list of work in place of recursion. A child is on the path when it ended no later than the instant that the walk
//! has come to; one tick of clock is allowed, so that a child that ends as the next begins is not lost, as it is where
//! the comparison is strict.
//!
//! Children that outlive their parent come after all others: only time in which no other child was waited for is theirs.

use super::timed_forest::TimedForest;
use super::times::Role;

/// By how much the end of a child may pass the beginning of the next and still come before it, nanoseconds: the
/// resolution of the coarsest clocks that libraries use, a microsecond.
pub const TICK_NS: i64 = 1_000;

/// The critical path of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CriticalPath {
    /// Intervals of time, last first, without gaps or overlaps: together they are the request's time.
    pub sections: Vec<Section>,
    /// Spans at or below the request's first, parents before their children. Spans without a waiter are left out, with
    /// all below them.
    pub standings: Vec<PathSpan>,
}

/// An interval of time that the request spent in a span and in none of its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The span, as its position in the trace.
    pub span: usize,
    /// Its first instant, nanoseconds.
    pub start_ns: i64,
    /// The first instant after it.
    pub end_ns: i64,
}

/// Relation of a span to the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathSpan {
    /// The span, as its position in the trace.
    pub span: usize,
    /// On the path or beside it.
    pub place: PathPosition,
}

/// On the path or beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathPosition {
    /// The request waited for it.
    OnPath {
        /// How much sooner the request would have ended if the span, with what is below it, took no time and everything
        /// else took as long as it did, nanoseconds.
        drag_ns: i64,
    },
    /// Something else was waited for while it was under way.
    Beside {
        /// Time by which it could grow before the request waits for it, nanoseconds.
        slack_ns: i64,
        /// The sibling that was waited for instead, as its position in the trace.
        waited_for: usize,
    },
}

/// Gaps of their parents that children who outlive them are walked through for; in more, the child's time is its own.
const FILLED_MAX: usize = 1_000;

/// Work that is still to be walked through.
#[derive(Default)]
struct Work {
    intervals: Vec<Interval>,
    /// Gaps that were filled so far.
    filled: usize,
}

/// Part of a span that is still to be walked through, from `at_ns` back to `floor_ns`.
struct Interval {
    span: usize,
    at_ns: i64,
    floor_ns: i64,
    place: PathPosition,
}

pub(super) fn walk(tree: &TimedForest<'_>, entry: usize) -> CriticalPath {
    let placed = tree.placed(entry);
    let place = PathPosition::OnPath { drag_ns: placed.length_ns() };
    let mut path = CriticalPath { sections: Vec::new(), standings: vec![PathSpan { span: entry, place }] };
    let first = Interval { span: entry, at_ns: placed.end_ns, floor_ns: placed.start_ns, place };
    let mut work = Work { intervals: vec![first], filled: 0 };
    while let Some(interval) = work.intervals.pop() {
        go_back(tree, &interval, &mut path, &mut work);
    }
    path.sections.sort_unstable_by_key(|section| std::cmp::Reverse(section.start_ns));
    path
}

/// Walks through one span: notes its own time, and its children for later.
fn go_back(tree: &TimedForest<'_>, interval: &Interval, path: &mut CriticalPath, work: &mut Work) {
    let children = tree.children(interval.span);
    let mut at_ns = interval.at_ns;
    let mut waited_for: Option<(usize, i64)> = None;
    for (position, child) in children.iter().enumerate().rev() {
        let child = *child as usize;
        let placed = tree.placed(child);
        // Of what fills a gap, only what is under way in it counts.
        let is_elsewhere = placed.start_ns > interval.at_ns || placed.end_ns < interval.floor_ns;
        if placed.role != Role::Within || is_elsewhere {
            continue;
        }
        let (start_ns, end_ns) = (placed.start_ns.max(interval.floor_ns), placed.end_ns.min(at_ns));
        let (place, walked_to_ns) = match waited_for {
            Some((instead, until_ns)) if placed.end_ns > at_ns.saturating_add(TICK_NS) => {
                (beside(interval.place, until_ns - placed.end_ns, instead), placed.end_ns)
            }
            _ => {
                own_time(tree, interval, end_ns.max(interval.floor_ns), at_ns, path, work);
                let next_ns = end_before(tree, &children[..position]);
                waited_for = Some((child, end_ns));
                at_ns = at_ns.min(end_ns).min(start_ns).max(interval.floor_ns);
                let lead_ns = next_ns.map_or(i64::MAX, |next| end_ns - next);
                (on_path(interval.place, (end_ns - start_ns).max(0), lead_ns), end_ns)
            }
        };
        path.standings.push(PathSpan { span: child, place });
        work.intervals.push(Interval { span: child, at_ns: walked_to_ns.max(start_ns), floor_ns: start_ns, place });
    }
    own_time(tree, interval, interval.floor_ns, at_ns, path, work);
}

/// The latest end among these, of those that can be waited for.
fn end_before(tree: &TimedForest<'_>, children: &[u32]) -> Option<i64> {
    let placed = children.iter().rev().map(|child| tree.placed(*child as usize));
    placed.filter(|placed| placed.role == Role::Within).map(|placed| placed.end_ns).next()
}

/// Position of a child that its parent waits for: it delays the request no more than its parent does.
fn on_path(parent: PathPosition, length_ns: i64, lead_ns: i64) -> PathPosition {
    match parent {
        PathPosition::OnPath { drag_ns } => {
            PathPosition::OnPath { drag_ns: length_ns.min(lead_ns.max(0)).min(drag_ns) }
        }
        beside @ PathPosition::Beside { .. } => beside,
    }
}

/// Position of a child that could take `spare_ns` longer within its parent.
fn beside(parent: PathPosition, spare_ns: i64, waited_for: usize) -> PathPosition {
    let above_ns = match parent {
        PathPosition::OnPath { .. } => 0,
        PathPosition::Beside { slack_ns, .. } => slack_ns,
    };
    PathPosition::Beside { slack_ns: above_ns + spare_ns.max(0), waited_for }
}

/// Time of the span in which no child was waited for; a child that outlives the span fills it as far as it goes.
fn own_time(
    tree: &TimedForest<'_>,
    interval: &Interval,
    start_ns: i64,
    end_ns: i64,
    path: &mut CriticalPath,
    work: &mut Work,
) {
    if start_ns >= end_ns || matches!(interval.place, PathPosition::Beside { .. }) {
        return;
    }
    let filler = tree.outliving(interval.span).filter(|child| tree.placed(*child).start_ns < end_ns);
    let own_end_ns = filler.map_or(end_ns, |child| tree.placed(child).start_ns.max(start_ns));
    if let Some(child) = filler {
        let place = PathPosition::OnPath { drag_ns: 0 };
        path.standings.push(PathSpan { span: child, place });
        if work.filled < FILLED_MAX {
            work.filled += 1;
            work.intervals.push(Interval { span: child, at_ns: end_ns, floor_ns: own_end_ns, place });
        } else if own_end_ns < end_ns {
            path.sections.push(Section { span: child, start_ns: own_end_ns, end_ns });
        }
    }
    if start_ns < own_end_ns {
        path.sections.push(Section { span: interval.span, start_ns, end_ns: own_end_ns });
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::{Forest, SpanKind, Trace};
    use narrows_testkit::spans::{SpanBuilder, client, internal, server};
    use proptest::prelude::*;

    use super::*;

    fn path_of(trace: &Trace) -> CriticalPath {
        walk(&TimedForest::new(&Forest::new(trace)), 0)
    }

    /// Name, start and end of the sections in order of time, milliseconds from the trace's start.
    fn sections(root: SpanBuilder) -> Vec<(String, i64, i64)> {
        let trace = root.trace(1);
        let origin = trace.spans[0].start_ns;
        let ms = |ns: i64| (ns - origin) / 1_000_000;
        let path = path_of(&trace);
        let told = path.sections.iter().rev();
        told.map(|s| (trace.spans[s.span].name.clone(), ms(s.start_ns), ms(s.end_ns))).collect()
    }

    fn named(sections: &[(String, i64, i64)]) -> Vec<(&str, i64, i64)> {
        sections.iter().map(|(name, start, end)| (name.as_str(), *start, *end)).collect()
    }

    fn request() -> SpanBuilder {
        server("shop", "r").at(0.0, 100.0)
    }

    fn child(name: &str, start_ms: f64, end_ms: f64) -> SpanBuilder {
        internal(name).at(start_ms, end_ms - start_ms)
    }

    #[test]
    fn the_walk_goes_into_the_child_that_finished_last() {
        let told = sections(request().children([
            child("a", 10.0, 50.0),
            child("b", 20.0, 60.0).child(child("c", 30.0, 40.0)),
            child("d", 70.0, 90.0),
        ]));
        let expected =
            [("r", 0, 20), ("b", 20, 30), ("c", 30, 40), ("b", 40, 60), ("r", 60, 70), ("d", 70, 90), ("r", 90, 100)];
        assert_eq!(named(&told), expected);
    }

    #[test]
    fn children_back_to_back_both_count() {
        let told = sections(request().children([child("a", 10.0, 50.0), child("b", 50.0, 80.0)]));
        assert_eq!(named(&told), [("r", 0, 10), ("a", 10, 50), ("b", 50, 80), ("r", 80, 100)]);
        let one_tick_late = sections(request().children([child("a", 10.0, 50.001), child("b", 50.0, 80.0)]));
        assert_eq!(named(&one_tick_late), named(&told));
        let more = sections(request().children([child("a", 10.0, 50.1), child("b", 50.0, 80.0)]));
        assert_eq!(named(&more), [("r", 0, 50), ("b", 50, 80), ("r", 80, 100)]);
    }

    #[test]
    fn what_is_not_waited_for_is_not_on_the_path() {
        let message = SpanBuilder::of_kind(SpanKind::Consumer, "message").at(50.0, 40.0);
        let told = sections(request().children([child("a", 10.0, 20.0), message, child("late", 110.0, 120.0)]));
        assert_eq!(named(&told), [("r", 0, 10), ("a", 10, 20), ("r", 20, 100)]);
    }

    #[test]
    fn what_outlives_its_parent_yields_to_what_ended_in_time() {
        let told = sections(request().children([
            child("a", 10.0, 30.0),
            child("b", 10.0, 90.0),
            child("background", 60.0, 300.0).child(child("below", 70.0, 95.0)),
        ]));
        assert_eq!(named(&told), [("r", 0, 10), ("b", 10, 90), ("below", 90, 95), ("background", 95, 100)]);
    }

    #[test]
    fn drag_is_what_the_request_would_gain() {
        let place = |path: &CriticalPath, at: usize| path.standings.iter().find(|s| s.span == at).map(|s| s.place);
        let ms = |ms: i64| ms * 1_000_000;
        let trace = request()
            .children([child("other", 10.0, 70.0), child("long", 11.0, 90.0).child(child("below", 12.0, 89.0))])
            .trace(1);
        let path = path_of(&trace);
        assert_eq!(place(&path, 0), Some(PathPosition::OnPath { drag_ns: ms(100) }));
        assert_eq!(place(&path, 1), Some(PathPosition::Beside { slack_ns: ms(20), waited_for: 2 }));
        assert_eq!(place(&path, 2), Some(PathPosition::OnPath { drag_ns: ms(20) }));
        assert_eq!(place(&path, 3), Some(PathPosition::OnPath { drag_ns: ms(20) }), "no more than its parent");
        let nested = request()
            .children([
                child("quick", 10.0, 50.0).children([child("a", 11.0, 20.0), child("b", 12.0, 45.0)]),
                child("slow", 10.0, 90.0),
            ])
            .trace(1);
        let path = path_of(&nested);
        let quick = nested.spans.iter().position(|span| span.name == "quick").unwrap();
        let a = nested.spans.iter().position(|span| span.name == "a").unwrap();
        assert!(matches!(place(&path, quick), Some(PathPosition::Beside { slack_ns, .. }) if slack_ns == ms(40)));
        assert!(matches!(place(&path, a), Some(PathPosition::Beside { slack_ns, .. }) if slack_ns == ms(65)));
    }

    /// Traces of any shape: parents, ids, times and kinds as they come.
    fn wild() -> impl Strategy<Value = Trace> {
        let kinds =
            prop::sample::select(vec![SpanKind::Internal, SpanKind::Client, SpanKind::Server, SpanKind::Consumer]);
        let span = (0_u8..12, prop::option::of(0_u8..14), -50_000_i64..50_000, -5_000_i64..60_000, kinds, 0_u8..3);
        prop::collection::vec(span, 1..12).prop_map(|drawn| {
            let mut trace = client("x").trace(1);
            let model = trace.spans.remove(0);
            for (id, parent, start, length, kind, service) in drawn {
                let mut span = model.clone();
                (span.span_id, span.parent_id) = ([id; 8], parent.map(|parent| [parent; 8]));
                (span.start_ns, span.end_ns, span.kind) = (start * 1_000, (start + length) * 1_000, kind);
                span.service = service.to_string();
                trace.spans.push(span);
            }
            trace.spans.sort_by_key(|span| span.start_ns);
            trace
        })
    }

    proptest! {
        #[test]
        fn sections_make_up_the_request_whatever_the_trace(trace in wild()) {
            let forest = Forest::new(&trace);
            let tree = TimedForest::new(&forest);
            for entry in 0..trace.spans.len() {
                let path = walk(&tree, entry);
                let placed = tree.placed(entry);
                let mut at_ns = placed.end_ns;
                for section in &path.sections {
                    prop_assert_eq!(section.end_ns, at_ns);
                    prop_assert!(section.start_ns < section.end_ns);
                    at_ns = section.start_ns;
                }
                prop_assert_eq!(at_ns, placed.start_ns);
                for standing in &path.standings {
                    match standing.place {
                        PathPosition::OnPath { drag_ns } => prop_assert!((0..=placed.length_ns()).contains(&drag_ns)),
                        PathPosition::Beside { slack_ns, .. } => prop_assert!((0..=placed.length_ns()).contains(&slack_ns)),
                    }
                }
            }
        }
    }

    #[test]
    fn a_wide_trace_and_a_deep_one_are_walked() {
        let mut trace = request().trace(1);
        let root = trace.spans[0].clone();
        let span_of = |number: u64, parent: u64| {
            let mut span = root.clone();
            (span.span_id, span.parent_id) = ((number + 2).to_be_bytes(), Some(parent.to_be_bytes()));
            span
        };
        trace.spans[0].span_id = 1_u64.to_be_bytes();
        trace.spans.extend((0..200_000).map(|number| span_of(number, 1)));
        for (at, span) in trace.spans.iter_mut().enumerate().skip(1) {
            (span.start_ns, span.end_ns) = (root.start_ns + at as i64 * 490, root.start_ns + at as i64 * 490 + 480);
        }
        let path = path_of(&trace);
        assert_eq!(path.standings.len(), 200_001);
        trace.spans.truncate(1);
        trace.spans.extend((0..100_000).map(|number| span_of(number, number + 1)));
        let path = path_of(&trace);
        assert_eq!((path.standings.len(), path.sections.len()), (1_001, 1));
    }

    #[test]
    fn a_child_that_fills_many_gaps_is_not_walked_through_for_each() {
        let gaps = (0..200).map(|n| child("a", f64::from(n) * 0.4 + 0.1, f64::from(n) * 0.4 + 0.3));
        let below = (0..200).map(|n| child("b", f64::from(n) * 0.5, f64::from(n) * 0.5 + 0.4));
        let trace = request().child(child("late", 0.0, 120.0).children(below)).children(gaps).trace(1);
        let path = path_of(&trace);
        assert!(path.standings.len() <= 8 * trace.spans.len(), "{} of {}", path.standings.len(), trace.spans.len());
        let whole: i64 = path.sections.iter().map(|section| section.end_ns - section.start_ns).sum();
        assert_eq!(whole, 100_000_000);
    }
}
