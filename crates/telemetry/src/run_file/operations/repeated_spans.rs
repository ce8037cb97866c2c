//! Which spans of calls are calls of the code, where instrumentation libraries report one call more than once.
//!
//! The rules, span by span: a step of a call (`http.getconn`, `pg-pool.connect`) is no call. A call inside another of the
//! same service is part of it. Of two or more calls inside another, each is a call, and the one around them is not: it is
//! a library that tries again. So it is also with a single one when the outer one does not say what it calls. Of two
//! siblings by different libraries that start together and overlap, the first counts.

use narrows_model::trace::SpanKind;

use super::ancestry::Ancestry;
use super::spans::{SpanRow, Target};

/// How many siblings that begin before a call are compared with it.
const LOOK_BACK: usize = 16;
/// Between the starts of siblings that report one call, nanoseconds.
const GAP_NS_MAX: u64 = 1_000_000;
/// Of the shorter one's time that they have in common.
const OVERLAP_MIN: f64 = 0.9;

/// The calls of one trace: which of its spans count. Its buffers are used again from trace to trace.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// By position: the call that a call is inside of.
    outer: Vec<Option<usize>>,
    /// By position: how many calls are directly inside of a call.
    inner: Vec<usize>,
}

impl Calls {
    /// Takes up the next trace, whose spans are in order of start.
    pub(super) fn enter(&mut self, trace: &[SpanRow], ancestry: &Ancestry) {
        self.outer.clear();
        self.outer.resize(trace.len(), None);
        self.inner.clear();
        self.inner.resize(trace.len(), 0);
        for (at, span) in trace.iter().enumerate().filter(|(_, span)| is_call(span)) {
            let outer = ancestry.call_above(trace, span).filter(|outer| *outer != at);
            self.outer[at] = outer;
            if let Some(outer) = outer {
                self.inner[outer] += 1;
            }
        }
    }

    /// Whether a client span is a call of the code.
    pub(super) fn counts(&self, trace: &[SpanRow], at: usize) -> bool {
        is_call(&trace[at]) && self.is_whole(trace, at) && !self.is_inside_a_whole(trace, at) && !is_second(trace, at)
    }

    fn is_whole(&self, trace: &[SpanRow], at: usize) -> bool {
        match self.inner[at] {
            0 => true,
            1 => trace[at].target != Target::Unknown,
            _ => false,
        }
    }

    fn is_inside_a_whole(&self, trace: &[SpanRow], at: usize) -> bool {
        let above = std::iter::successors(self.outer[at], |outer| self.outer[*outer]);
        above.take(DEPTH_MAX).any(|outer| self.is_whole(trace, outer))
    }
}

/// Calls inside calls that are followed; also what ends a circle.
const DEPTH_MAX: usize = 16;

pub(super) fn is_call(span: &SpanRow) -> bool {
    span.kind == SpanKind::Client && !span.is_step
}

/// Whether another library reports the same call beside this one, and earlier.
fn is_second(trace: &[SpanRow], at: usize) -> bool {
    let span = &trace[at];
    let before = trace[..at].iter().rev().take(LOOK_BACK);
    let mut near = before.take_while(|other| span.start_ns.abs_diff(other.start_ns) <= GAP_NS_MAX);
    near.any(|other| {
        is_call(other)
            && (other.parent, other.service) == (span.parent, span.service)
            && other.scope != span.scope
            && other.target == span.target
            && overlap(other, span) >= OVERLAP_MIN
    })
}

fn overlap(one: &SpanRow, other: &SpanRow) -> f64 {
    let length = |span: &SpanRow| span.end_ns.saturating_sub(span.start_ns);
    let together = one.end_ns.min(other.end_ns).saturating_sub(one.start_ns.max(other.start_ns));
    let shorter = length(one).min(length(other));
    if shorter > 0 { together as f64 / shorter as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A call by library 1 to a database, 10 ms from `start_ms`.
    fn call(span: u64, parent: u64, start_ms: i64) -> SpanRow {
        let (start_ns, end_ns) = (start_ms * MS, (start_ms + 10) * MS);
        let target = Target::System(5);
        SpanRow { start_ns, end_ns, target, scope: 1, ..SpanRow::bare(span, parent, 7, SpanKind::Client) }
    }

    fn server() -> SpanRow {
        SpanRow::bare(1, 0, 7, SpanKind::Server)
    }

    fn by(scope: u32, span: SpanRow) -> SpanRow {
        SpanRow { scope, ..span }
    }

    fn counted(trace: &[SpanRow]) -> Vec<u64> {
        let (mut ancestry, mut calls) = (Ancestry::default(), Calls::default());
        ancestry.enter(trace);
        calls.enter(trace, &ancestry);
        (0..trace.len()).filter(|at| calls.counts(trace, *at)).map(|at| trace[at].span).collect()
    }

    #[test]
    fn a_call_inside_another_is_part_of_it() {
        let internal = SpanRow::bare(3, 2, 7, SpanKind::Internal);
        assert_eq!(counted(&[server(), call(2, 1, 0), by(2, call(3, 2, 1)), call(4, 1, 20)]), [2, 4]);
        assert_eq!(counted(&[server(), call(2, 1, 0), internal, by(2, call(4, 3, 1))]), [2]);
        assert_eq!(counted(&[server(), call(2, 1, 0), by(2, call(3, 2, 1)), by(3, call(4, 3, 2))]), [2]);
    }

    #[test]
    fn a_call_without_a_target_is_what_the_library_below_it_says() {
        let unknown = SpanRow { target: Target::Unknown, ..call(2, 1, 0) };
        assert_eq!(counted(&[server(), unknown, by(2, call(3, 2, 1))]), [3]);
    }

    #[test]
    fn each_attempt_inside_a_call_counts() {
        assert_eq!(counted(&[server(), call(2, 1, 0), call(3, 2, 1), call(4, 2, 12)]), [3, 4]);
    }

    #[test]
    fn steps_of_calls_are_no_calls() {
        let step = |span, parent, start_ms| SpanRow { is_step: true, ..call(span, parent, start_ms) };
        assert_eq!(counted(&[server(), step(2, 1, 0), call(3, 1, 10), step(4, 3, 11), step(5, 3, 12)]), [3]);
    }

    #[test]
    fn two_libraries_beside_each_other_report_one_call() {
        assert_eq!(counted(&[server(), call(2, 1, 0), by(2, call(3, 1, 0))]), [2]);
        assert_eq!(counted(&[server(), call(2, 1, 0), call(3, 1, 0)]), [2, 3], "one library, two calls at once");
        assert_eq!(counted(&[server(), call(2, 1, 0), by(2, call(3, 1, 5))]), [2, 3], "one begins later");
        let other = SpanRow { target: Target::System(6), ..call(3, 1, 0) };
        assert_eq!(counted(&[server(), call(2, 1, 0), by(2, other)]), [2, 3], "two databases");
    }

    #[test]
    fn circles_of_parents_end() {
        assert_eq!(counted(&[call(2, 3, 0), call(3, 2, 1), call(4, 4, 2)]), [4]);
    }
}
