//! A trace's spans as a tree below its root, with the times at which they fit into one another.
//!
//! Times of a span that another clock took are moved into the call that it belongs to. A child that ends after its
//! parent was not waited for and is left out, with all below it.

use narrows_model::trace::{Forest, Span, SpanKind, Trace};

/// How much later than its parent a child may end and still be waited for.
const OVERHANG_NS_MAX: i64 = 1_000_000;

/// The spans below a root. Positions are those in the trace.
#[derive(Debug)]
pub(crate) struct TimedTree<'a> {
    pub(crate) trace: &'a Trace,
    /// The request of the load.
    pub(crate) root: usize,
    /// By start.
    children: Vec<Vec<usize>>,
    parents: Vec<Option<usize>>,
    /// First instant, and first instant after.
    times: Vec<(i64, i64)>,
    /// The spans that the root waits for, parents before their children.
    pub(crate) order: Vec<usize>,
}

impl<'a> TimedTree<'a> {
    /// `None` without a span that has no parent in the trace.
    pub(crate) fn new(trace: &'a Trace) -> Option<Self> {
        let forest = Forest::new(trace);
        let spans = forest.spans();
        let mut tree = Self {
            trace,
            root: forest.root()?,
            children: vec![Vec::new(); spans.len()],
            parents: vec![None; spans.len()],
            times: spans.iter().map(|span| (span.start_ns, span.end_ns.max(span.start_ns))).collect(),
            order: Vec::new(),
        };
        tree.place(&forest);
        Some(tree)
    }

    fn place(&mut self, forest: &Forest<'_>) {
        let mut open = vec![(self.root, 0)];
        while let Some((parent, depth)) = open.pop() {
            self.order.push(parent);
            let waited_for = forest.children(parent).filter_map(|child| Some((child, self.placed(parent, child)?)));
            let mut waited_for: Vec<(usize, (i64, i64))> = waited_for.collect();
            waited_for.sort_by_key(|(child, times)| (*times, *child));
            for (child, times) in waited_for.into_iter().filter(|_| depth < Forest::DEPTH_MAX) {
                self.times[child] = times;
                self.parents[child] = Some(parent);
                self.children[parent].push(child);
                open.push((child, depth + 1));
            }
        }
    }

    /// When a child passes within its parent; `None` if the parent does not wait for it.
    fn placed(&self, parent: usize, child: usize) -> Option<(i64, i64)> {
        let (from, to) = self.times[parent];
        let (start, end) = self.times[child];
        let (caller, called) = (self.span(parent), self.span(child));
        if called.kind == SpanKind::Consumer || start >= to && caller.service == called.service && end > to {
            return None;
        }
        let is_inside = from <= start && end <= to;
        let is_other_clock = caller.service != called.service;
        if is_inside {
            Some((start, end))
        } else if is_other_clock && end - start <= to - from {
            let start = from + (to - from - (end - start)) / 2;
            Some((start, start + end - self.times[child].0))
        } else if is_other_clock || end <= to + OVERHANG_NS_MAX {
            Some((start.clamp(from, to), end.clamp(from, to)))
        } else {
            None
        }
    }

    pub(crate) fn span(&self, at: usize) -> &'a Span {
        &self.trace.spans[at]
    }

    /// First instant, and first instant after.
    pub(crate) fn times(&self, at: usize) -> (i64, i64) {
        self.times[at]
    }

    pub(crate) fn length_ns(&self, at: usize) -> f64 {
        (self.times[at].1 - self.times[at].0) as f64
    }

    /// Those that are waited for, by start.
    pub(crate) fn children(&self, at: usize) -> &[usize] {
        &self.children[at]
    }

    pub(crate) fn parent(&self, at: usize) -> Option<usize> {
        self.parents[at]
    }

    /// The nearest server span at or above this one.
    pub(crate) fn entry(&self, at: usize) -> Option<usize> {
        let above = std::iter::successors(Some(at), |at| self.parent(*at));
        above.into_iter().find(|at| self.span(*at).kind == SpanKind::Server)
    }

    /// The server spans that the root waits for, itself included.
    pub(crate) fn entries(&self) -> Vec<usize> {
        let is_entry = |at: &usize| matches!(self.span(*at).kind, SpanKind::Server | SpanKind::Consumer);
        self.order.iter().copied().filter(is_entry).collect()
    }

    /// Time of a span in which none of its children is in progress.
    pub(crate) fn own_ns(&self, at: usize) -> f64 {
        let (mut covered_to, mut own) = (self.times[at].0, 0);
        for child in &self.children[at] {
            let (start, end) = self.times[*child];
            own += (start - covered_to).max(0);
            covered_to = covered_to.max(end);
        }
        (own + (self.times[at].1 - covered_to).max(0)) as f64
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{client, internal, server};

    use super::*;

    #[test]
    fn spans_are_put_into_their_parents() {
        let called = server("stock", "GET /stock").at(-50.0, 10.0);
        let trace = server("shop", "GET /")
            .at(0.0, 100.0)
            .children([
                client("GET").at(10.0, 20.0).child(called),
                internal("late").at(90.0, 50.0),
                internal("work").at(40.0, 10.0),
            ])
            .trace(1);
        let tree = TimedTree::new(&trace).expect("a root");
        let origin = tree.times(tree.root).0;
        let at = |name: &str| trace.spans.iter().position(|span| span.name == name).expect("a span");
        let (start, end) = tree.times(at("GET /stock"));
        assert_eq!((start - origin, end - origin), (15_000_000, 25_000_000), "moved into its call");
        assert_eq!(tree.parent(at("late")), None, "not waited for");
        assert_eq!(tree.own_ns(tree.root), 70e6);
        assert_eq!(tree.entry(at("GET")), Some(tree.root));
    }
}
