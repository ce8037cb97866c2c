//! Requests counted from spans, for trials whose load another program sends.
//!
//! Stands between the receiver and the run file. While it counts, every server span of the target that no other span
//! caused is one request: sent in the second that it began, as long as it took, failed when its status says so. A
//! sampled span stands for as many requests as its weight says; fractions are carried from one to the next. When the
//! load's own program sends trace context, the target's spans all have a parent that nobody here sees: then, and only
//! then, those with a parent are the requests. The time is that inside the target; the way to it is not in it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use narrows_model::load::LoadSecond;
use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::{Span, SpanKind, SpanStatus};
use narrows_telemetry::{Receipt, Store};

const SECOND_NS: i64 = 1_000_000_000;
/// A day of seconds; spans that begin later are not counted.
const SECONDS_MAX: i64 = 86_400;
/// What the statuses of failed answers begin with.
const FAILED_FROM: u16 = 400;

/// The most requests that one span stands for; the sum of more than any file holds of them is still a number.
const WEIGHT_MAX: f64 = (1_u64 << 32) as f64;

/// See the module.
pub(crate) struct Roots {
    inner: Arc<dyn Store>,
    tally: Mutex<Option<Tally>>,
}

/// Whose spans are requests, from when on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counting {
    /// The target's service; any when it is none of the experiment's.
    pub(super) service: Option<String>,
    /// The load's scenario that they count for.
    pub(super) scenario: String,
    /// The load's first instant.
    pub(super) start_ns: i64,
}

/// What was counted.
#[derive(Debug, PartialEq)]
pub(super) struct Counted {
    /// Second by second, those without requests too.
    pub(super) seconds: Vec<LoadSecond>,
    /// Whether the requests had parents, which the load's program must have sent.
    pub(super) is_continued: bool,
    pub(super) service: Option<String>,
}

#[derive(Debug)]
struct Tally {
    counting: Counting,
    roots: Lane,
    continued: Lane,
}

/// The requests of one kind of span.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub(crate) seconds: BTreeMap<i64, LoadSecond>,
    carried: f64,
}

/// A span that may be a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    start_ns: i64,
    duration_ns: u64,
    is_failed: bool,
    has_parent: bool,
    weight: f64,
}

impl Roots {
    /// Passes everything on to `inner`.
    pub(crate) fn before(inner: Arc<dyn Store>) -> Self {
        Self { inner, tally: Mutex::new(None) }
    }

    /// Counts from now on.
    pub(super) fn start(&self, counting: Counting) {
        *self.lock() = Some(Tally { counting, roots: Lane::default(), continued: Lane::default() });
    }

    /// Ends counting; none when it was never begun.
    pub(super) fn finish(&self) -> Option<Counted> {
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
        spans.iter().filter(is_target).map(Candidate::of).collect()
    }

    fn add(&mut self, candidate: Candidate) {
        let second = (candidate.start_ns - self.counting.start_ns).div_euclid(SECOND_NS);
        if (0..SECONDS_MAX).contains(&second) {
            let lane = if candidate.has_parent { &mut self.continued } else { &mut self.roots };
            lane.add(second, candidate);
        }
    }

    fn counted(self) -> Counted {
        let is_continued = self.roots.seconds.is_empty() && !self.continued.seconds.is_empty();
        let lane = if is_continued { self.continued } else { self.roots };
        let Counting { service, scenario, start_ns } = self.counting;
        let mut counted = lane.seconds;
        let end = counted.keys().next_back().map_or(0, |last| last + 1);
        let seconds = (0..end)
            .map(|second| LoadSecond {
                scenario: scenario.clone(),
                start_ns: start_ns + second * SECOND_NS,
                ..counted.remove(&second).unwrap_or_default()
            })
            .collect();
        Counted { seconds, is_continued, service }
    }
}

impl Lane {
    pub(crate) fn add(&mut self, second: i64, candidate: Candidate) {
        self.carried += candidate.weight.min(WEIGHT_MAX);
        let requests = self.carried.floor();
        self.carried -= requests;
        let requests = requests as u64;
        let row = self.seconds.entry(second).or_default();
        row.sent += requests;
        if candidate.is_failed {
            row.errors.status += requests;
        } else {
            row.succeeded += requests;
            row.latency.record_n(candidate.duration_ns, requests);
            row.service.record_n(candidate.duration_ns, requests);
        }
    }
}

impl Candidate {
    pub(crate) fn of(span: &Span) -> Self {
        Self {
            start_ns: span.start_ns,
            duration_ns: span.duration_ns(),
            is_failed: span.status == SpanStatus::Error
                || span.facts.http_status.is_some_and(|status| status >= FAILED_FROM),
            has_parent: span.parent_id.is_some(),
            weight: span.weight,
        }
    }
}

impl Store for Roots {
    fn spans(&self, spans: Vec<Span>) -> Receipt {
        let candidates = self.lock().as_ref().map(|tally| tally.candidates(&spans)).unwrap_or_default();
        let mut receipt = self.inner.spans(spans);
        // What is turned away at once comes again, and counts then.
        match receipt.try_recv() {
            Ok(Err(refused)) => return resolved(Err(refused)),
            Ok(Ok(kept)) => receipt = resolved(Ok(kept)),
            Err(_) => {}
        }
        if let Some(tally) = self.lock().as_mut() {
            candidates.into_iter().for_each(|candidate| tally.add(candidate));
        }
        receipt
    }

    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        self.inner.points(points)
    }

    fn logs(&self, lines: Vec<LogLine>) -> Receipt {
        self.inner.logs(lines)
    }
}

fn resolved(result: Result<narrows_telemetry::Kept, narrows_telemetry::Refused>) -> Receipt {
    let (tell, receipt) = tokio::sync::oneshot::channel();
    // The receipt is right here to be told.
    let _ = tell.send(result);
    receipt
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::SpanFacts;
    use narrows_telemetry::{Kept, Refused};

    use super::*;

    /// Takes everything, or turns everything away.
    struct Door(bool);

    impl Store for Door {
        fn spans(&self, _: Vec<Span>) -> Receipt {
            resolved(if self.0 { Ok(Kept::default()) } else { Err(Refused::Busy) })
        }
        fn points(&self, _: Vec<(SeriesKey, Point)>) -> Receipt {
            resolved(Ok(Kept::default()))
        }
        fn logs(&self, _: Vec<LogLine>) -> Receipt {
            resolved(Ok(Kept::default()))
        }
    }

    const START_NS: i64 = 500;

    fn span(service: &str, parent: Option<u8>, at_s: f64, status: u16) -> Span {
        let start_ns = START_NS + (at_s * 1e9) as i64;
        Span {
            trace_id: [1; 16],
            span_id: [2; 8],
            parent_id: parent.map(|byte| [byte; 8]),
            service: service.into(),
            scope: String::new(),
            name: "GET /".into(),
            kind: SpanKind::Server,
            start_ns,
            end_ns: start_ns + 5_000_000,
            status: SpanStatus::Unset,
            status_message: String::new(),
            facts: SpanFacts { http_status: Some(status), ..SpanFacts::default() },
            attributes: Default::default(),
            weight: 1.0,
        }
    }

    fn roots(takes: bool) -> Roots {
        let roots = Roots::before(Arc::new(Door(takes)));
        roots.start(Counting { service: Some("web".into()), scenario: "k6".into(), start_ns: START_NS });
        roots
    }

    fn sums(counted: &Counted) -> Vec<(u64, u64, u64)> {
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
        assert_eq!(sums(&counted), [(1, 1, 0), (0, 0, 0), (3, 0, 3)]);
        assert!(!counted.is_continued);
        assert_eq!(counted.seconds[2].start_ns, START_NS + 2_000_000_000);
        assert_eq!(counted.seconds[0].latency.max_ns(), 5_000_000);
        assert_eq!(roots.finish(), None);
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
        drop(roots.spans(vec![Span { weight: 1e300, ..span("web", None, 0.5, 200) }; 3]));
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
    fn what_is_turned_away_does_not_count_for_it_comes_again() {
        let roots = roots(false);
        let mut receipt = roots.spans(vec![span("web", None, 0.5, 200)]);
        assert!(matches!(receipt.try_recv(), Ok(Err(Refused::Busy))));
        assert_eq!(sums(&roots.finish().unwrap()), []);
    }
}
