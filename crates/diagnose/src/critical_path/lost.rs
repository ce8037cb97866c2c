//! The times for which a trace shows that something of it is missing.
//!
//! A span whose parent never arrived was part of some request, and nothing says where. While it is under way within a
//! request, time that the request seems to spend at work may be a wait for it. Spans that share their missing parent
//! with the request itself are its caller's other calls, and handlers of messages are waited for by nobody.

use super::timed_forest::TimedForest;
use super::walk::TICK_NS;
use crate::read::calls::Times;
use narrows_model::trace::SpanKind;

/// A span whose parent did not arrive.
#[derive(Debug, Clone, Copy)]
struct Torn {
    at: usize,
    start_ns: i64,
    end_ns: i64,
}

/// The spans of a trace whose parents did not arrive.
#[derive(Debug)]
pub(super) struct OrphanSpans(Vec<Torn>);

impl OrphanSpans {
    pub(super) fn new(tree: &TimedForest<'_>) -> Self {
        let is_torn = |at: &usize| {
            let span = tree.span(*at);
            let parent_is_missing = span.parent_id.is_some_and(|parent| tree.find(parent).is_none());
            parent_is_missing && span.kind != SpanKind::Consumer
        };
        let torn = (0..tree.len()).filter(is_torn).map(|at| {
            let placed = tree.placed(at);
            Torn { at, start_ns: placed.start_ns, end_ns: placed.end_ns }
        });
        Self(torn.collect())
    }

    /// When spans that may belong to this request were under way.
    pub(super) fn within(&self, tree: &TimedForest<'_>, entry: usize) -> Times {
        let (placed, top) = (tree.placed(entry), tree.top(entry));
        let above = tree.span(top).parent_id;
        let is_its = |torn: &&Torn| {
            torn.at != top
                && tree.span(torn.at).parent_id != above
                && torn.start_ns >= placed.start_ns - TICK_NS
                && torn.end_ns <= placed.end_ns + TICK_NS
        };
        Times::union_of(self.0.iter().filter(is_its).map(|torn| (torn.start_ns, torn.end_ns)))
    }
}
