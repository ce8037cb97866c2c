//! Number of one request's calls that run at a time.
//!
//! A client with a limited connection pool runs only a few of many calls at once. Libraries record this in two ways.
//! Either a call's span begins when the call is sent, or it begins when the program makes the call: then all spans
//! begin together and each includes its wait. In the second case the spans of the called service show how many ran at
//! once. Without them, the lengths show it: among queued calls, the later a call begins the longer it takes, up to many
//! times the first. Calls that begin together and show neither are a prefetch, which waits only for the slowest.

use std::collections::HashMap;

use narrows_model::trace::{Span, SpanId, SpanKind, Trace};

use crate::read::calls::Call;

/// Minimum number of calls for their order to be evidence; fewer may be in order by chance.
const ORDERED_CALLS_MIN: usize = 10;
/// Share of the compared pairs that must be in order.
const ORDERED_SHARE: f64 = 0.9;
/// Minimum ratio between the lengths of a call and the call half a list earlier, if calls queue.
const WAITING_FACTOR: f64 = 1.2;
/// Minimum ratio of the longest call to the shortest, if calls queue.
const QUEUED_FACTOR: f64 = 2.0;

/// Concurrency of a group of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// Most calls that run at once, from 1.
    pub(super) at_once: usize,
    /// Whether all spans begin before the first ends; their waits are then inside the spans.
    pub(super) begin_together: bool,
}

/// The pace of these calls, given in order of start; `None` if all run at once.
pub(super) fn pace_of(trace: &Trace, calls: &[&Call<'_>]) -> Option<Pace> {
    let times: Vec<(i64, i64)> = calls.iter().map(|call| (call.start_ns(), call.end_ns())).collect();
    if has_waves(&times) {
        return Some(Pace { at_once: most_at_once(&times), begin_together: false });
    }
    let served = served(trace, calls);
    let at_once = match served.len() == calls.len() {
        true => has_waves(&served).then(|| most_at_once(&served)),
        false => at_once_by_lengths(&times),
    };
    at_once.map(|at_once| Pace { at_once, begin_together: true })
}

/// Whether a call begins after the first has ended.
fn has_waves(times: &[(i64, i64)]) -> bool {
    let first = times.iter().min_by_key(|(start, _)| *start);
    first.is_some_and(|(_, first_end)| times.iter().any(|(start, _)| start >= first_end))
}

fn most_at_once(times: &[(i64, i64)]) -> usize {
    // At one instant, ends come before starts.
    let begins = times.iter().map(|(start, _)| (*start, 1));
    let mut changes: Vec<(i64, i64)> = begins.chain(times.iter().map(|(_, end)| (*end, -1))).collect();
    changes.sort_unstable();
    let running = changes.iter().scan(0_i64, |running, (_, change)| {
        *running += change;
        Some(*running)
    });
    running.max().unwrap_or(0).max(1) as usize
}

/// Time ranges of the called services' server spans, for the calls that have one.
fn served(trace: &Trace, calls: &[&Call<'_>]) -> Vec<(i64, i64)> {
    let servers = trace.spans.iter().filter(|span| span.kind == SpanKind::Server);
    let by_call: HashMap<SpanId, &Span> = servers.filter_map(|span| Some((span.parent_id?, span))).collect();
    let found = calls.iter().filter_map(|call| by_call.get(&call.last().span_id));
    found.map(|span| (span.start_ns, span.end_ns)).collect()
}

/// Number of calls that run at once, derived from their lengths; `None` if later calls do not take longer.
fn at_once_by_lengths(times: &[(i64, i64)]) -> Option<usize> {
    let half = times.len() / 2;
    let lengths: Vec<f64> = times.iter().map(|(start, end)| end.saturating_sub(*start) as f64).collect();
    let is_later = |pair: &(&f64, &f64)| *pair.1 >= WAITING_FACTOR * *pair.0;
    let in_order = lengths.iter().zip(&lengths[half..]).filter(is_later).count();
    let (shortest, longest) =
        (lengths.iter().copied().fold(f64::INFINITY, f64::min), lengths.iter().copied().fold(0.0, f64::max));
    let is_queue = times.len() >= ORDERED_CALLS_MIN
        && in_order as f64 >= ORDERED_SHARE * (times.len() - half) as f64
        && longest >= QUEUED_FACTOR * shortest;
    // While the longest call lasts, each slot completes longest ÷ shortest calls.
    is_queue.then(|| (times.len() as f64 * shortest / longest).round().max(1.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` calls that begin 0.1 ms apart. `length_ms` gives a call's length from its position, in milliseconds.
    fn together(count: i64, length_ms: impl Fn(i64) -> i64) -> Vec<(i64, i64)> {
        (0..count).map(|at| (at * 100_000, at * 100_000 + length_ms(at) * 1_000_000)).collect()
    }

    #[test]
    fn the_order_of_lengths_shows_how_many_run_at_once() {
        assert_eq!(at_once_by_lengths(&together(30, |at| 50 * (at / 6 + 1))), Some(6));
        assert_eq!(at_once_by_lengths(&together(12, |at| 20 * (at + 1))), Some(1));
        assert_eq!(at_once_by_lengths(&together(30, |_| 50)), None, "all at once");
        assert_eq!(at_once_by_lengths(&together(30, |at| 50 + 41 * at % 91)), None, "some are slow");
        assert_eq!(at_once_by_lengths(&together(30, |at| if at == 29 { 250 } else { 50 })), None, "one is slow");
        assert_eq!(at_once_by_lengths(&together(6, |at| 50 * (at / 2 + 1))), None, "too few to tell");
        assert_eq!(at_once_by_lengths(&[]), None);
    }

    #[test]
    fn waves_are_counted() {
        let waves: Vec<(i64, i64)> = (0..12).map(|at| (at / 4 * 10, at / 4 * 10 + 9)).collect();
        assert!(has_waves(&waves));
        assert_eq!(most_at_once(&waves), 4);
        assert!(!has_waves(&together(5, |_| 50)) && !has_waves(&[]));
        assert_eq!(most_at_once(&[(5, 5)]), 1, "a call that takes no time");
    }
}
