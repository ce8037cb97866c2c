//! How many calls of one request run at a time.
//!
//! A client with a limited pool of connections lets few of many calls run at once. Libraries record that in two ways: the
//! span of a call begins when the call is sent, or when the program asks for it, and then all begin together and each
//! includes its wait. In the second case the spans of the service called show how many ran at once; without them, the
//! lengths do: calls that wait in a queue take the longer the later they began, up to many times as long as the first. Calls that begin together and do neither are a prefetch, which waits for the slowest only.

use std::collections::HashMap;

use narrows_model::trace::{Span, SpanId, SpanKind, Trace};

use crate::read::calls::Call;

/// Calls whose order says something; fewer are in order by chance.
const ORDERED_CALLS_MIN: usize = 10;
/// Share of them that must be in order.
const ORDERED_SHARE: f64 = 0.9;
/// From a call to one of the other half, where the later one waits longer.
const WAITING_FACTOR: f64 = 1.2;
/// From the shortest to the longest, where calls wait for one another.
const QUEUED_FACTOR: f64 = 2.0;

/// How calls follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// The most that run at once, from 1.
    pub(super) at_once: usize,
    /// Whether all of their spans begin before the first ends, so that the waits are within them.
    pub(super) begin_together: bool,
}

/// The pace of these calls, in order of start; none when all run at once.
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

/// Whether one begins after the first has ended.
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

/// When the services called were at work on these, as far as they say so.
fn served(trace: &Trace, calls: &[&Call<'_>]) -> Vec<(i64, i64)> {
    let servers = trace.spans.iter().filter(|span| span.kind == SpanKind::Server);
    let by_call: HashMap<SpanId, &Span> = servers.filter_map(|span| Some((span.parent_id?, span))).collect();
    let found = calls.iter().filter_map(|call| by_call.get(&call.last().span_id));
    found.map(|span| (span.start_ns, span.end_ns)).collect()
}

/// How many run at once where calls take the longer the later they begin; none when they do not.
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
    // In the time of the longest, each of those at once has done as many as the shortest fits into it.
    is_queue.then(|| (times.len() as f64 * shortest / longest).round().max(1.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` calls that begin 0.1 ms apart, each with the length that its position gives, in milliseconds.
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
