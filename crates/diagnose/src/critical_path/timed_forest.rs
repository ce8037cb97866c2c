//! A trace as a tree, whatever the spans say: loops are cut, missing parents and ids that appear twice do no harm.
//!
//! The first span with an id is the one that children find; later ones with the same id are spans without children. A
//! span that is its own ancestor loses its parent. What is nested deeper than a limit is left out.

use std::cmp::Reverse;
use std::collections::HashMap;

use narrows_model::trace::{Span, SpanId, Trace};

use super::times::{Placed, Role, placed_below, placed_root};

/// Maximum depth of spans; deeper ones count as time of the span at this depth.
const DEPTH_MAX: u32 = 1_000;
/// In place of a parent's position where there is none.
const NONE: u32 = u32::MAX;

/// A trace's spans as a tree, with the times at which they fit into one another. Positions are those in the trace.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    spans: &'a [Span],
    by_id: HashMap<SpanId, u32>,
    parents: Vec<u32>,
    placed: Vec<Placed>,
    children: Children,
    /// Of each span, the child that outlives it and starts first.
    outliving: HashMap<u32, u32>,
}

/// The children of all spans, one after another.
#[derive(Debug)]
struct Children {
    first: Vec<u32>,
    all: Vec<u32>,
}

impl Children {
    fn new(parents: &[u32]) -> Self {
        let mut first = vec![0_u32; parents.len() + 1];
        for parent in parents.iter().filter(|parent| **parent != NONE) {
            first[*parent as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut free = first.clone();
        let mut all = vec![0_u32; *first.last().unwrap_or(&0) as usize];
        for (child, parent) in parents.iter().enumerate().filter(|(_, parent)| **parent != NONE) {
            let slot = &mut free[*parent as usize];
            all[*slot as usize] = child as u32;
            *slot += 1;
        }
        Self { first, all }
    }

    fn range(&self, parent: usize) -> std::ops::Range<usize> {
        self.first[parent] as usize..self.first[parent + 1] as usize
    }
}

impl<'a> Tree<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Self {
        let spans = &trace.spans[..trace.spans.len().min(NONE as usize - 1)];
        let mut by_id = HashMap::with_capacity(spans.len());
        for (at, span) in spans.iter().enumerate() {
            by_id.entry(span.span_id).or_insert(at as u32);
        }
        let parent_of = |span: &Span| span.parent_id.and_then(|id| by_id.get(&id)).copied().unwrap_or(NONE);
        let mut parents: Vec<u32> = spans.iter().map(parent_of).collect();
        cut_loops(&mut parents);
        let children = Children::new(&parents);
        let placed = vec![Placed::default(); spans.len()];
        let mut tree = Self { spans, by_id, parents, placed, children, outliving: HashMap::new() };
        tree.place_all();
        tree.sort_children();
        tree
    }

    /// Gives every span its times, parents before their children.
    fn place_all(&mut self) {
        let roots = (0..self.spans.len()).filter(|at| self.parents[*at] == NONE);
        let mut queue: Vec<(u32, u32)> = roots.map(|at| (at as u32, 0)).collect();
        for (root, _) in &queue {
            self.placed[*root as usize] = placed_root(&self.spans[*root as usize]);
        }
        while let Some((parent, depth)) = queue.pop() {
            for at in self.children.range(parent as usize) {
                let child = self.children.all[at];
                let above = (&self.spans[parent as usize], self.placed[parent as usize]);
                let mut placed = placed_below(above, &self.spans[child as usize]);
                if depth >= DEPTH_MAX {
                    placed.role = Role::Detached;
                }
                self.placed[child as usize] = placed;
                if placed.role == Role::Outlives {
                    self.note_outliving(parent, child);
                }
                queue.push((child, depth + 1));
            }
        }
    }

    fn note_outliving(&mut self, parent: u32, child: u32) {
        let known = *self.outliving.entry(parent).or_insert(child);
        let starts_at = |at: u32| (self.placed[at as usize].start_ns, at);
        if starts_at(child) < starts_at(known) {
            self.outliving.insert(parent, child);
        }
    }

    /// By end; of those that end together the one that starts first comes last.
    fn sort_children(&mut self) {
        let placed = &self.placed;
        let key = |at: &u32| (placed[*at as usize].end_ns, Reverse(placed[*at as usize].start_ns), Reverse(*at));
        for parent in 0..self.spans.len() {
            let range = self.children.range(parent);
            if range.len() > 1 {
                self.children.all[range].sort_unstable_by_key(key);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn span(&self, at: usize) -> &'a Span {
        &self.spans[at]
    }

    pub(crate) fn placed(&self, at: usize) -> Placed {
        self.placed[at]
    }

    pub(crate) fn parent(&self, at: usize) -> Option<usize> {
        Some(self.parents[at]).filter(|parent| *parent != NONE).map(|parent| parent as usize)
    }

    /// The position of the first span with this id.
    pub(crate) fn find(&self, id: SpanId) -> Option<usize> {
        self.by_id.get(&id).map(|at| *at as usize)
    }

    /// The children of a span, by end.
    pub(crate) fn children(&self, parent: usize) -> &[u32] {
        &self.children.all[self.children.range(parent)]
    }

    pub(super) fn outliving(&self, parent: usize) -> Option<usize> {
        self.outliving.get(&(parent as u32)).map(|at| *at as usize)
    }

    /// The span above this one that has no parent in the trace.
    pub(super) fn top(&self, at: usize) -> usize {
        let mut top = at;
        while let Some(parent) = self.parent(top) {
            top = parent;
        }
        top
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
    use narrows_testkit::spans::{internal, server};

    use super::*;

    #[test]
    fn loops_are_cut_and_doubles_have_no_children() {
        let mut trace = server("shop", "GET /")
            .at(0.0, 10.0)
            .child(internal("a").at(1.0, 8.0).child(internal("b").at(2.0, 6.0)))
            .trace(1);
        trace.spans[0].parent_id = Some(trace.spans[2].span_id);
        let tree = Tree::new(&trace);
        assert_eq!((tree.parent(0), tree.parent(1), tree.parent(2)), (None, Some(0), Some(1)));
        trace.spans[0].parent_id = Some(trace.spans[0].span_id);
        trace.spans[2].span_id = trace.spans[1].span_id;
        trace.spans[2].parent_id = Some(trace.spans[0].span_id);
        let tree = Tree::new(&trace);
        assert_eq!((tree.parent(0), tree.parent(1), tree.parent(2)), (None, Some(0), Some(0)));
        assert_eq!(tree.find(trace.spans[2].span_id), Some(1));
    }

    #[test]
    fn children_stand_by_their_ends() {
        let child = |name: &str, start_ms, length_ms| internal(name).at(start_ms, length_ms);
        let trace = server("shop", "GET /")
            .at(0.0, 10.0)
            .children([child("late", 8.0, 2.0), child("long", 1.0, 9.0), child("early", 2.0, 1.0)])
            .trace(1);
        let tree = Tree::new(&trace);
        let names: Vec<&str> = tree.children(0).iter().map(|at| tree.span(*at as usize).name.as_str()).collect();
        assert_eq!(names, ["early", "late", "long"]);
    }
}
