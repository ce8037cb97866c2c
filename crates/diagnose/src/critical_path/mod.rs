//! The critical path of a request: the chain of work and waits that its latency is made of, across services.
//!
//! `tree.rs` makes a tree of whatever spans there are, `times.rs` puts clocks right, `walk.rs` finds the path with slack
//! and drag. `category.rs`, `waits.rs` and `lost.rs` say what each interval was spent on, `breakdown.rs` adds that up by
//! operation. The page is `docs/reference/critical-path.md`.
//!
//! Not here: what a change would gain (a path says what was waited for at the load that was measured), and paths over
//! links between traces.

mod breakdown;
pub(crate) mod category;
mod lost;
mod own;
mod timed_forest;
mod times;
mod waits;
mod walk;

use std::collections::HashMap;
use std::ptr;

use narrows_model::trace::{Forest, SpanId, Trace};

pub(crate) use breakdown::{TimeUse, spent};
pub(crate) use timed_forest::TimedForest;
pub(crate) use times::{Role, is_call};
pub use walk::{CriticalPath, PathPosition, PathSpan, Section, TICK_NS};

use crate::read::Reading;
use crate::read::calls::Handled;

/// Requests of one trace whose paths are walked; of a trace with more, the first.
const REQUESTS_PER_TRACE_MAX: usize = 256;

/// The critical path of the request that this span stands for, or of the trace's root; none without such a span.
pub fn critical_path(trace: &Trace, entry: Option<SpanId>) -> Option<CriticalPath> {
    let forest = Forest::new(trace);
    let tree = TimedForest::new(&forest);
    let root = || (0..tree.len()).find(|at| tree.parent(*at).is_none());
    let entry = entry.map_or_else(root, |id| tree.find(id))?;
    Some(walk::walk(&tree, entry))
}

impl TimedForest<'_> {
    /// The critical path from this span down.
    pub(crate) fn path(&self, entry: usize) -> CriticalPath {
        walk::walk(self, entry)
    }
}

/// The requests of one trace: service and operation of each, and the request.
pub(crate) type InTrace<'r> = Vec<(&'r str, &'r str, &'r Handled<'r>)>;

/// The requests of a reading, trace by trace in the order of the traces, with the trace's spans as trees.
pub(crate) fn by_trace<'r>(reading: &Reading<'r>) -> Vec<(&'r Forest<'r>, InTrace<'r>)> {
    let mut found: HashMap<*const Trace, InTrace<'r>> = HashMap::new();
    for ((service, operation), all) in reading.operations {
        for handled in all {
            let of_trace = found.entry(ptr::from_ref(handled.request.trace)).or_default();
            if of_trace.len() < REQUESTS_PER_TRACE_MAX {
                of_trace.push((service, operation, handled));
            }
        }
    }
    let forests = reading.forests.iter();
    forests.filter_map(|forest| Some((forest, found.remove(&ptr::from_ref(forest.trace()))?))).collect()
}
