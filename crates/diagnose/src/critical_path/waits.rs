//! The waits of a trace between an attempt that went wrong and its repetition.

use narrows_model::trace::SpanId;

use super::InTrace;
use super::timed_forest::TimedForest;
use crate::read::calls::went_wrong;
use crate::read::refusals::Gap;
use crate::thresholds::Thresholds;

/// A wait before another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    /// The attempt that went wrong and the one after it, as positions in the trace.
    pub(super) failed: usize,
    pub(super) next: usize,
}

/// The waits in all requests of a trace, in order of start.
pub(super) fn waits(tree: &TimedForest<'_>, requests: &InTrace<'_>, thresholds: &Thresholds) -> Vec<Wait> {
    let find = |id: SpanId| tree.find(id);
    let mut waits = Vec::new();
    for (_, _, handled) in requests {
        for pair in handled.calls.iter().flat_map(|call| call.tries().windows(2)) {
            let [failed, next] = pair else { continue };
            let (Some(from), Some(to)) = (find(failed.span_id), find(next.span_id)) else { continue };
            if !went_wrong(failed) {
                continue;
            }
            let Some((start_ns, end_ns)) = Gap::between(failed, next).explained(thresholds) else { continue };
            let start_ns_here = tree.placed(from).end_ns;
            let length_ns = end_ns.saturating_sub(start_ns);
            let end_ns_here = start_ns_here.saturating_add(length_ns).min(tree.placed(to).start_ns);
            if start_ns_here < end_ns_here {
                waits.push(Wait { start_ns: start_ns_here, end_ns: end_ns_here, failed: from, next: to });
            }
        }
    }
    waits.sort_unstable_by_key(|wait| (wait.start_ns, wait.next));
    waits
}
