//! Requests counted from spans, for trials whose load another program sends.
//!
//! Stands between the receiver and the run file. While it counts, every server span of the target that no other span
//! caused is one request: sent in the second that it began, as long as it took, failed when its status says so. A
//! sampled span stands for as many requests as its weight says; fractions are carried from one to the next. A span that
//! comes twice, from a sender that tried again, is one request. When the
//! load's own program sends trace context, the target's spans all have a parent that nobody here sees: then, and only
//! then, those with a parent are the requests. The time is that inside the target; the way to it is not in it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narrows_model::load::LoadSecond;
use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::{Span, SpanKind};
use narrows_telemetry::otlp::convert::PackedSpans;
use narrows_telemetry::{Receipt, Store};

use crate::counting::{Candidate, Lane, RecentRequests, hand_on};

const SECOND_NS: i64 = 1_000_000_000;
/// A day of seconds; spans that begin later are not counted.
const SECONDS_MAX: i64 = 86_400;
/// See the module.
pub(crate) struct Roots {
    inner: Arc<dyn Store>,
    tally: Mutex<Option<Tally>>,
}

/// Whose spans are requests, from when on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RootFilter {
    /// The target's service; any when it is none of the experiment's.
    pub(super) service: Option<String>,
    /// The load's scenario that they count for.
    pub(super) scenario: String,
    /// The load's first instant.
    pub(super) start_ns: i64,
}

/// Counts.
#[derive(Debug, PartialEq)]
pub(super) struct RootCounts {
    /// Second by second, those without requests too.
    pub(super) seconds: Vec<LoadSecond>,
    /// Whether the requests had parents, which the load's program must have sent.
    pub(super) is_continued: bool,
    pub(super) service: Option<String>,
}

#[derive(Debug)]
struct Tally {
    counting: RootFilter,
    /// End of the load, exclusive.
    end_ns: i64,
    roots: Lane,
    continued: Lane,
    known: RecentRequests,
}

impl Roots {
    /// Passes everything on to `inner`.
    pub(crate) fn before(inner: Arc<dyn Store>) -> Self {
        Self { inner, tally: Mutex::new(None) }
    }

    /// Counts from now on.
    pub(super) fn start(&self, counting: RootFilter) {
        let (roots, continued, known) = (Lane::default(), Lane::default(), RecentRequests::of_senders());
        *self.lock() = Some(Tally { counting, end_ns: i64::MAX, roots, continued, known });
    }

    /// Sets the end of the load: later spans are not its requests.
    pub(super) fn end(&self, end_ns: i64) {
        if let Some(tally) = self.lock().as_mut() {
            tally.end_ns = end_ns;
        }
    }

    /// Ends counting; `None` if it was never begun.
    pub(super) fn finish(&self) -> Option<RootCounts> {
        self.lock().take().map(Tally::counted)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Tally>> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    fn candidates(&self, spans: &[Span]) -> Vec<Candidate> {
        let is_target = |span: &&Span| {
            span.kind == SpanKind::Server && self.counting.service.as_ref().is_none_or(|name| *name == span.service)
        };
        spans.iter().filter(is_target).map(|span| self.known.candidate(span)).collect()
    }

    fn add(&mut self, candidate: Candidate) {
        let second = (candidate.start_ns - self.counting.start_ns).div_euclid(SECOND_NS);
        if (0..SECONDS_MAX).contains(&second) && self.known.is_new(candidate) {
            let lane = if candidate.has_parent { &mut self.continued } else { &mut self.roots };
            lane.add(second, candidate);
            lane.fold(1);
        }
    }

    fn counted(self) -> RootCounts {
        let is_continued = self.roots.seconds.is_empty() && !self.continued.seconds.is_empty();
        let lane = if is_continued { self.continued } else { self.roots };
        let RootFilter { service, scenario, start_ns } = self.counting;
        let mut counted = lane.seconds;
        let begins_ns = |second: i64| start_ns + second * SECOND_NS;
        let last = counted.keys().next_back().map_or(0, |last| last + 1);
        // Without requests there are no seconds to fill; otherwise the seconds after the last request are silent.
        let silent = |second: &i64| *second < last || (last > 0 && self.end_ns < i64::MAX);
        let seconds = (0..SECONDS_MAX)
            .take_while(|second| begins_ns(*second) < self.end_ns && silent(second))
            .map(|second| LoadSecond {
                scenario: scenario.clone(),
                start_ns: begins_ns(second),
                length_ns: SECOND_NS.min(self.end_ns - begins_ns(second)),
                ..counted.remove(&second).unwrap_or_default().into()
            })
            .collect();
        RootCounts { seconds, is_continued, service }
    }
}

impl Store for Roots {
    fn spans(&self, spans: Vec<Span>) -> Receipt {
        let candidates = self.lock().as_ref().map(|tally| tally.candidates(&spans)).unwrap_or_default();
        let (receipt, counts) = hand_on(&*self.inner, spans);
        if let Some(tally) = self.lock().as_mut().filter(|_| counts) {
            candidates.into_iter().for_each(|candidate| tally.add(candidate));
        }
        receipt
    }

    fn packed(&self, packed: PackedSpans, mut others: Vec<Span>) -> Receipt {
        if self.lock().is_none() {
            return self.inner.packed(packed, others);
        }
        match packed.unpack() {
            Ok(mut spans) => {
                spans.append(&mut others);
                self.spans(spans)
            }
            // Spans that cannot be counted are kept all the same.
            Err(_) => self.inner.packed(packed, others),
        }
    }

    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        self.inner.points(points)
    }

    fn logs(&self, lines: Vec<LogLine>) -> Receipt {
        self.inner.logs(lines)
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::{SpanFacts, SpanStatus};
    use narrows_telemetry::StoreError;

    use super::*;
    use crate::counting::testing::{Door, server_span};

    const START_NS: i64 = 500;

    fn span(service: &str, parent: Option<u8>, at_s: f64, status: u16) -> Span {
        let facts = SpanFacts { http_status: Some(status), ..SpanFacts::default() };
        Span { facts, ..server_span(service, parent, START_NS + (at_s * 1e9) as i64) }
    }

    fn roots(takes: bool) -> Roots {
        let roots = Roots::before(Arc::new(Door(takes)));
        roots.start(RootFilter { service: Some("web".into()), scenario: "k6".into(), start_ns: START_NS });
        roots
    }

    fn sums(counted: &RootCounts) -> Vec<(u64, u64, u64)> {
        counted.seconds.iter().map(|row| (row.sent, row.succeeded, row.errors.status)).collect()
    }

    #[test]
    fn root_spans_of_the_target_are_requests_in_the_second_they_began() {
        let roots = roots(true);
        let child = span("web", Some(9), 0.2, 200);
        let client = Span { kind: SpanKind::Client, ..span("web", None, 0.2, 200) };
        let broken = Span { status: SpanStatus::Error, ..span("web", None, 2.1, 200) };
        let others = [child, client, span("store", None, 0.3, 200), span("web", None, -0.1, 200), broken];
        drop(roots.spans(others.into()));
        drop(roots.spans(vec![span("web", None, 0.9, 200), span("web", None, 2.0, 503), span("web", None, 2.5, 404)]));
        let counted = roots.finish().unwrap();
        assert_eq!(sums(&counted), [(1, 1, 0), (0, 0, 0), (3, 1, 2)], "a 404 is no failure of the server");
        assert!(!counted.is_continued);
        assert_eq!(counted.seconds[2].start_ns, START_NS + 2_000_000_000);
        assert_eq!(counted.seconds[0].latency.max_ns(), 5_000_000);
        assert_eq!(roots.finish(), None);
    }

    #[test]
    fn the_last_second_ends_with_the_load_and_silence_before_it_is_time() {
        let roots = roots(true);
        drop(roots.spans(vec![span("web", None, 0.5, 200), span("web", None, 4.2, 200)]));
        roots.end(START_NS + 2_300_000_000);
        let counted = roots.finish().unwrap();
        assert_eq!(sums(&counted), [(1, 1, 0), (0, 0, 0), (0, 0, 0)], "what began later is none of the load's");
        let lengths_ms: Vec<i64> = counted.seconds.iter().map(|row| row.length_ns / 1_000_000).collect();
        assert_eq!(lengths_ms, [1_000, 1_000, 300]);
    }

    #[test]
    fn a_sampled_span_stands_for_as_many_as_it_weighs() {
        let roots = roots(true);
        let weigh = |weight| Span { weight, ..span("web", None, 0.5, 200) };
        drop(roots.spans(vec![weigh(20.0), weigh(2.5), weigh(2.5)]));
        assert_eq!(sums(&roots.finish().unwrap()), [(25, 25, 0)]);
    }

    #[test]
    fn weights_without_measure_have_one() {
        let roots = roots(true);
        drop(roots.spans((0..3).map(|_| Span { weight: 1e300, ..span("web", None, 0.5, 200) }).collect()));
        let requests = 3 * (1 << 32);
        assert_eq!(sums(&roots.finish().unwrap()), [(requests, requests, 0)]);
    }

    #[test]
    fn where_the_program_sends_trace_context_spans_with_parents_are_the_requests() {
        let roots = roots(true);
        drop(roots.spans(vec![span("web", Some(7), 0.5, 200), span("web", Some(8), 0.6, 200)]));
        let counted = roots.finish().unwrap();
        assert!(counted.is_continued);
        assert_eq!(sums(&counted), [(2, 2, 0)]);
    }

    #[test]
    fn a_span_that_comes_twice_is_one_request() {
        let roots = roots(true);
        let one = span("web", None, 0.5, 200);
        let other = Span { start_ns: one.start_ns + 1, ..one.clone() };
        drop(roots.spans(vec![one.clone(), other]));
        drop(roots.spans(vec![one]));
        assert_eq!(sums(&roots.finish().unwrap()), [(2, 2, 0)]);
    }

    #[test]
    fn what_is_turned_away_does_not_count_for_it_comes_again() {
        let roots = roots(false);
        let mut receipt = roots.spans(vec![span("web", None, 0.5, 200)]);
        assert!(matches!(receipt.try_recv(), Ok(Err(StoreError::Busy))));
        assert_eq!(sums(&roots.finish().unwrap()), []);
    }
}
