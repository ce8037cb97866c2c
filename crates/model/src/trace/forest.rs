//! The spans of a trace as trees.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Span, SpanId, Trace};

/// In place of a parent's position where there is none.
const NONE: u32 = u32::MAX;

/// The spans of a trace as trees, whatever the spans say. Positions are those in the trace.
///
/// Of several spans with one id, the first is the parent of those that name it; later ones have no children. A loop of
/// parents is cut: its first span has none. A span whose parent did not arrive has none either.
#[derive(Debug)]
pub struct Forest<'a> {
    trace: &'a Trace,
    spans: &'a [Span],
    by_id: HashMap<SpanId, u32>,
    parents: Vec<u32>,
    children: Children,
}

/// The children of all spans, one after another.
#[derive(Debug)]
struct Children {
    /// For each span, the position of its first child in `all`; one more than there are spans.
    first: Vec<u32>,
    all: Vec<u32>,
}

impl<'a> Forest<'a> {
    /// Maximum depth that is followed. Spans below it are not part of what is concluded.
    pub const DEPTH_MAX: u32 = 1_000;

    /// The trees of a trace. Spans beyond the first 4 billion are left out.
    pub fn new(trace: &'a Trace) -> Self {
        let spans = &trace.spans[..trace.spans.len().min(NONE as usize - 1)];
        let mut by_id = HashMap::with_capacity(spans.len());
        for (at, span) in (0..).zip(spans) {
            by_id.entry(span.span_id).or_insert(at);
        }
        let parent_of = |span: &Span| span.parent_id.and_then(|id| by_id.get(&id)).copied().unwrap_or(NONE);
        let mut parents: Vec<u32> = spans.iter().map(parent_of).collect();
        cut_loops(&mut parents);
        let children = Children::new(&parents, spans);
        Self { trace, spans, by_id, parents, children }
    }

    /// The trees of each trace, in their order.
    pub fn of_all(traces: &'a [Trace]) -> Vec<Self> {
        traces.iter().map(Self::new).collect()
    }

    /// The trace.
    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// The spans, by start time.
    pub fn spans(&self) -> &'a [Span] {
        self.spans
    }

    /// The span at a position.
    pub fn span(&self, at: usize) -> &'a Span {
        &self.spans[at]
    }

    /// Position of the first span with this id.
    pub fn find(&self, id: SpanId) -> Option<usize> {
        self.by_id.get(&id).map(|at| *at as usize)
    }

    /// Position of a span of this trace, which is another than that of [`Forest::find`] if an earlier one has its id.
    /// `None` for a copy of a span and for a span of another trace.
    pub fn position(&self, span: &Span) -> Option<usize> {
        let first = self.find(span.span_id)?;
        (first..self.spans.len()).find(|at| std::ptr::eq(&self.spans[*at], span))
    }

    /// Parent of a span.
    pub fn parent(&self, at: usize) -> Option<usize> {
        Some(self.parents[at]).filter(|parent| *parent != NONE).map(|parent| parent as usize)
    }

    /// Children of a span, by start; of those that start together the longest first.
    pub fn children(&self, parent: usize) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + '_ {
        self.children.all[self.children.range(parent)].iter().map(|at| *at as usize)
    }

    /// The children of all spans, one after another, to be put into another order: [`Forest::range`] has those of one.
    pub fn all_children(&self) -> &[u32] {
        &self.children.all
    }

    /// Range of a span's children in [`Forest::all_children`].
    pub fn range(&self, parent: usize) -> std::ops::Range<usize> {
        self.children.range(parent)
    }

    /// The span itself, its parent, and so on: up to a span without a parent, at most [`Forest::DEPTH_MAX`] spans.
    pub fn upwards(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(at), |at| self.parent(*at)).take(Self::DEPTH_MAX as usize)
    }

    /// The earliest span without a parent.
    pub fn root(&self) -> Option<usize> {
        self.parents.iter().position(|parent| *parent == NONE)
    }
}

impl Children {
    fn new(parents: &[u32], spans: &[Span]) -> Self {
        let mut first = vec![0_u32; parents.len() + 1];
        for parent in parents.iter().filter(|parent| **parent != NONE) {
            first[*parent as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut free = first.clone();
        let mut all = vec![0_u32; first.last().map_or(0, |count| *count as usize)];
        for (child, parent) in (0..).zip(parents).filter(|(_, parent)| **parent != NONE) {
            let slot = &mut free[*parent as usize];
            all[*slot as usize] = child;
            *slot += 1;
        }
        let mut children = Self { first, all };
        for parent in 0..parents.len() {
            let range = children.range(parent);
            let key = |at: &u32| (spans[*at as usize].start_ns, Reverse(spans[*at as usize].end_ns), *at);
            if range.len() > 1 {
                children.all[range].sort_unstable_by_key(key);
            }
        }
        children
    }

    fn range(&self, parent: usize) -> std::ops::Range<usize> {
        self.first[parent] as usize..self.first[parent + 1] as usize
    }
}

/// Takes the parent from the first span of each loop.
fn cut_loops(parents: &mut [u32]) {
    const NEW: u32 = 0;
    let mut seen_in = vec![NEW; parents.len()];
    for from in 0..parents.len() {
        let pass = from as u32 + 1;
        let mut at = from;
        while seen_in[at] == NEW {
            seen_in[at] = pass;
            match parents[at] {
                NONE => break,
                parent if seen_in[parent as usize] == pass => cut(parents, parent),
                parent => at = parent as usize,
            }
        }
    }
}

/// Takes the parent from the first span of the loop that this one is in.
fn cut(parents: &mut [u32], within: u32) {
    let (mut first, mut at) = (within, parents[within as usize]);
    while at != within {
        first = first.min(at);
        at = parents[at as usize];
    }
    parents[first as usize] = NONE;
}

#[cfg(test)]
mod tests {
    use super::super::{SpanFacts, SpanKind, SpanStatus};
    use super::*;

    fn span(id: u8, parent: Option<u8>, start_ns: i64, end_ns: i64) -> Span {
        Span {
            trace_id: [1; 16],
            span_id: [id; 8],
            parent_id: parent.map(|parent| [parent; 8]),
            service: "shop".into(),
            scope: String::new(),
            name: format!("span {id}"),
            kind: SpanKind::Internal,
            start_ns,
            end_ns,
            status: SpanStatus::Unset,
            status_message: String::new(),
            facts: SpanFacts::default(),
            attributes: Default::default(),
            weight: 1.0,
        }
    }

    fn trace(spans: Vec<Span>) -> Trace {
        Trace { id: [1; 16], spans, weight: 1.0 }
    }

    fn parents(forest: &Forest<'_>) -> Vec<Option<usize>> {
        (0..forest.spans().len()).map(|at| forest.parent(at)).collect()
    }

    #[test]
    fn children_come_by_start_and_the_longer_first() {
        let spans = vec![span(1, None, 0, 10), span(2, Some(1), 1, 2), span(3, Some(1), 1, 9), span(4, Some(1), 5, 6)];
        let trace = trace(spans);
        let forest = Forest::new(&trace);
        assert_eq!(forest.children(0).collect::<Vec<_>>(), [2, 1, 3]);
        assert_eq!(forest.children(1).count(), 0);
        assert_eq!((forest.root(), forest.upwards(3).collect::<Vec<_>>()), (Some(0), vec![3, 0]));
    }

    #[test]
    fn loops_are_cut_at_their_first_span() {
        let spans =
            vec![span(1, Some(3), 0, 9), span(2, Some(1), 1, 8), span(3, Some(2), 2, 7), span(4, Some(4), 3, 4)];
        let trace = trace(spans);
        assert_eq!(parents(&Forest::new(&trace)), [None, Some(0), Some(1), None]);
    }

    #[test]
    fn the_first_span_with_an_id_has_the_children() {
        let spans = vec![span(1, None, 0, 9), span(2, Some(1), 1, 8), span(2, Some(1), 2, 7), span(3, Some(2), 3, 4)];
        let trace = trace(spans);
        let forest = Forest::new(&trace);
        assert_eq!(parents(&forest), [None, Some(0), Some(0), Some(1)]);
        assert_eq!((forest.find([2; 8]), forest.position(&trace.spans[2])), (Some(1), Some(2)));
        assert_eq!(forest.position(&trace.spans[2].clone()), None);
    }

    #[test]
    fn a_span_whose_parent_did_not_arrive_is_a_root() {
        let trace = trace(vec![span(1, Some(9), 0, 9), span(2, Some(8), 1, 8)]);
        let forest = Forest::new(&trace);
        assert_eq!((parents(&forest), forest.root()), (vec![None, None], Some(0)));
    }
}
