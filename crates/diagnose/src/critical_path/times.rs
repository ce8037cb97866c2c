//! Where a span lies within its parent, once clocks that disagree are put right.
//!
//! A server span happens within the client span that called it, so one that lies outside was timed by another clock. It
//! is moved to the middle of its call, as Jaeger's adjuster for clock skew does, and what its service recorded below it
//! moves along. A call that failed may have been given up: its server span stays where it is. Where a service records no
//! client spans, a handling that ends before its caller begins was timed by another clock as well; one that begins after
//! its caller ended may as well be work that is not waited for.
//! Then every span is cut to its parent's time. What lies wholly outside is not waited for, nor is the handling of a
//! message; a child that goes on after its parent's end waits for nobody's sake, and yields to those that ended in time.

use narrows_model::trace::{Span, SpanKind, SpanStatus};

/// How long after its parent's end a child may end and still be waited for, nanoseconds: libraries stand in one
/// another's way when they end their spans.
const OVERHANG_NS: i64 = 1_000_000;
/// Largest distance of a time from the epoch, in nanoseconds: 146 years, so that no span's length overflows. Later
/// times are cut off; run files contain none.
const TIME_MAX: i64 = 1 << 62;

/// A span's times within its parent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpanTimes {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// Shift applied to the span's own clock.
    shift_ns: i64,
    pub(crate) role: Role,
}

impl SpanTimes {
    pub(crate) fn length_ns(&self) -> i64 {
        self.end_ns - self.start_ns
    }
}

/// Relation of a span to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    /// It may have been waited for.
    #[default]
    Within,
    /// It goes on after its parent's end.
    Outlives,
    /// Nobody waits for it.
    Detached,
}

pub(super) fn placed_root(span: &Span) -> SpanTimes {
    let (start_ns, end_ns) = recorded(span, 0);
    SpanTimes { start_ns, end_ns, ..SpanTimes::default() }
}

pub(super) fn placed_below(parent: &Span, above: SpanTimes, child: &Span) -> SpanTimes {
    let mut shift_ns = if child.service == parent.service { above.shift_ns } else { 0 };
    let is_call = is_call(parent, child);
    let (mut start_ns, mut end_ns) = recorded(child, shift_ns);
    let is_impossible = child.kind == SpanKind::Server && child.service != parent.service && end_ns < above.start_ns;
    if (is_call || is_impossible) && parent.status != SpanStatus::Error {
        let move_ns = into_call(above, start_ns, end_ns);
        shift_ns = shift_ns.saturating_add(move_ns);
        (start_ns, end_ns) = recorded(child, shift_ns);
    }
    let is_outside = start_ns > above.end_ns
        || end_ns < above.start_ns
        || (start_ns == above.end_ns && end_ns > start_ns)
        || (end_ns == above.start_ns && end_ns > start_ns);
    let role = match () {
        () if is_outside || child.kind == SpanKind::Consumer || above.role == Role::Detached => Role::Detached,
        () if !is_call && end_ns.saturating_sub(above.end_ns) > OVERHANG_NS => Role::Outlives,
        () => Role::Within,
    };
    let cut = |time_ns: i64| time_ns.clamp(above.start_ns, above.end_ns);
    SpanTimes { start_ns: cut(start_ns), end_ns: cut(end_ns), shift_ns, role }
}

/// True if these are the two sides of one call.
pub(crate) fn is_call(parent: &Span, child: &Span) -> bool {
    parent.kind == SpanKind::Client && child.kind == SpanKind::Server
}

/// The shift that moves the time between into that of its call; 0 if it already lies within or does not fit.
fn into_call(call: SpanTimes, start_ns: i64, end_ns: i64) -> i64 {
    let spare_ns = call.length_ns().saturating_sub(end_ns.saturating_sub(start_ns));
    let fits = match spare_ns {
        0.. => start_ns >= call.start_ns && end_ns <= call.end_ns,
        _ => (call.start_ns..call.end_ns).contains(&start_ns),
    };
    if fits { 0 } else { (call.start_ns + spare_ns.max(0) / 2).saturating_sub(start_ns) }
}

/// Start and end as recorded; the end not before the start.
fn recorded(span: &Span, shift_ns: i64) -> (i64, i64) {
    let [start_ns, end_ns] =
        [span.start_ns, span.end_ns].map(|ns| ns.clamp(1 - TIME_MAX, TIME_MAX).saturating_add(shift_ns));
    (start_ns, end_ns.max(start_ns))
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{SpanBuilder, client, internal, server};

    use narrows_model::trace::Forest;

    use super::super::timed_forest::TimedForest;
    use super::*;

    /// Start, end and role of the last span, milliseconds from the root's start.
    fn last(root: SpanBuilder) -> (i64, i64, Role) {
        let trace = root.trace(1);
        let forest = Forest::new(&trace);
        let (tree, origin) = (TimedForest::new(&forest), trace.root().unwrap().start_ns);
        let at = trace.spans.iter().position(|span| span.name.ends_with("last")).unwrap();
        let placed = tree.placed(at);
        ((placed.start_ns - origin) / 1_000_000, (placed.end_ns - origin) / 1_000_000, placed.role)
    }

    #[test]
    fn another_clock_is_put_right_with_what_it_timed() {
        let call = |server_at: f64, length_ms: f64| {
            let below = internal("last").at(server_at + 10.0, 10.0);
            let callee = server("store", "GET /store").at(server_at, length_ms).child(below);
            client("GET").service("shop").at(0.0, 100.0).child(callee)
        };
        assert_eq!(last(call(20.0, 60.0)), (30, 40, Role::Within), "it fits");
        assert_eq!(last(call(5_000.0, 60.0)), (30, 40, Role::Within), "it is ahead");
        assert_eq!(last(call(50.0, 80.0)), (20, 30, Role::Within), "it is half outside");
        assert_eq!(last(call(20.0, 120.0)), (30, 40, Role::Within), "it is too long to be moved in");
    }

    #[test]
    fn a_handling_without_a_client_span_cannot_end_before_its_caller_begins() {
        let call = |at_ms: f64| {
            let handling = server("store", "GET last").at(at_ms, 20.0);
            server("shop", "GET /").at(0.0, 100.0).child(handling)
        };
        assert_eq!(last(call(-3_000.0)), (40, 60, Role::Within));
        assert_eq!(last(call(3_000.0)), (100, 100, Role::Detached), "it may be work that goes on");
    }

    #[test]
    fn a_span_of_the_next_century_has_its_length() {
        let mut trace = server("shop", "GET last").at(0.0, 50.0).trace(1);
        let span = &mut trace.spans[0];
        let later_ns = TIME_MAX - 1_900_000_000_000_000_000;
        (span.start_ns, span.end_ns) = (span.start_ns + later_ns, span.end_ns + later_ns);
        assert!(trace.spans[0].end_ns < TIME_MAX, "in the year 2100 or later");
        assert_eq!(TimedForest::new(&Forest::new(&trace)).placed(0).length_ns(), 50_000_000);
    }

    #[test]
    fn a_call_that_was_given_up_does_not_move_its_server_span() {
        let callee = server("store", "GET last").at(70.0, 80.0);
        assert_eq!(last(client("GET").service("shop").at(0.0, 100.0).failed().child(callee)), (70, 100, Role::Within));
    }

    #[test]
    fn children_are_cut_to_their_parents() {
        let parent = || internal("parent").service("shop").at(0.0, 50.0);
        for (start_ms, length_ms, expected) in [
            (10.0, 20.0, (10, 30, Role::Within)),
            (20.0, 30.5, (20, 50, Role::Within)),
            (20.0, 100.0, (20, 50, Role::Outlives)),
            (60.0, 10.0, (50, 50, Role::Detached)),
            (30.0, -20.0, (30, 30, Role::Within)),
        ] {
            assert_eq!(last(parent().child(internal("last").at(start_ms, length_ms))), expected, "{start_ms}");
        }
    }
}
