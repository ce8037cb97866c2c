//! A trace's spans with the times at which they fit into one another.

use std::cmp::Reverse;
use std::collections::HashMap;

use narrows_model::trace::{Forest, Span, SpanId};

use super::times::{Role, SpanTimes, placed_below, placed_root};

/// The trees of a trace, with the times at which their spans fit into one another. Spans deeper than
/// [`Forest::DEPTH_MAX`] count as time of the span at this depth.
#[derive(Debug)]
pub(crate) struct TimedForest<'a> {
    forest: &'a Forest<'a>,
    placed: Vec<SpanTimes>,
    /// Children of all spans, those of each by end, in the ranges of the forest.
    children: Vec<u32>,
    /// Of each span, the child that outlives it and starts first.
    outliving: HashMap<u32, u32>,
}

impl<'a> TimedForest<'a> {
    pub(crate) fn new(forest: &'a Forest<'a>) -> Self {
        let placed = vec![SpanTimes::default(); forest.spans().len()];
        let children = forest.all_children().to_vec();
        let mut timed = Self { forest, placed, children, outliving: HashMap::new() };
        timed.place_all();
        timed.sort_children();
        timed
    }

    /// Gives every span its times, parents before their children.
    fn place_all(&mut self) {
        let roots = (0..self.len()).filter(|at| self.parent(*at).is_none());
        let mut queue: Vec<(usize, u32)> = roots.map(|at| (at, 0)).collect();
        for (root, _) in &queue {
            self.placed[*root] = placed_root(self.span(*root));
        }
        while let Some((parent, depth)) = queue.pop() {
            for at in self.forest.range(parent) {
                let child = self.children[at];
                let mut placed = placed_below(self.span(parent), self.placed[parent], self.span(child as usize));
                if depth >= Forest::DEPTH_MAX {
                    placed.role = Role::Detached;
                }
                self.placed[child as usize] = placed;
                if placed.role == Role::Outlives {
                    self.note_outliving(parent as u32, child);
                }
                queue.push((child as usize, depth + 1));
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
        for parent in 0..placed.len() {
            let range = self.forest.range(parent);
            if range.len() > 1 {
                self.children[range].sort_unstable_by_key(key);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.placed.len()
    }

    pub(crate) fn span(&self, at: usize) -> &'a Span {
        self.forest.span(at)
    }

    pub(crate) fn placed(&self, at: usize) -> SpanTimes {
        self.placed[at]
    }

    pub(crate) fn parent(&self, at: usize) -> Option<usize> {
        self.forest.parent(at)
    }

    /// The position of the first span with this id.
    pub(crate) fn find(&self, id: SpanId) -> Option<usize> {
        self.forest.find(id)
    }

    /// The children of a span, by end.
    pub(crate) fn children(&self, parent: usize) -> &[u32] {
        &self.children[self.forest.range(parent)]
    }

    pub(super) fn outliving(&self, parent: usize) -> Option<usize> {
        self.outliving.get(&(parent as u32)).map(|at| *at as usize)
    }

    /// The span above this one that has no parent in the trace.
    pub(super) fn top(&self, at: usize) -> usize {
        self.forest.upwards(at).last().unwrap_or(at)
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{internal, server};

    use super::*;

    #[test]
    fn children_stand_by_their_ends() {
        let child = |name: &str, start_ms, length_ms| internal(name).at(start_ms, length_ms);
        let trace = server("shop", "GET /")
            .at(0.0, 10.0)
            .children([child("late", 8.0, 2.0), child("long", 1.0, 9.0), child("early", 2.0, 1.0)])
            .trace(1);
        let forest = Forest::new(&trace);
        let tree = TimedForest::new(&forest);
        let names: Vec<&str> = tree.children(0).iter().map(|at| tree.span(*at as usize).name.as_str()).collect();
        assert_eq!(names, ["early", "late", "long"]);
    }
}
