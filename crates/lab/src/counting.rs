//! Requests counted from spans as they pass: what a span counts as, and that it counts once.
//!
//! For a trial whose load another program sends (`trial/root_spans.rs`) and for a system that others started
//! (`attach/requests.rs`), which decide what spans are requests. A sampled span stands for as many as its weight says;
//! fractions are carried from one to the next. A span that comes twice, from a sender that tried again or in two files, is
//! one request, as it is one span in the run file.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use narrows_model::histogram::Histogram;
use narrows_model::load::{ErrorCounts, LoadSecond};
use narrows_model::trace::Span;
use narrows_telemetry::{Receipt, Store};

/// The most requests that one span stands for; the sum of more than any file holds of them is still a number.
const WEIGHT_MAX: f64 = (1_u64 << 32) as f64;
/// Number of requests that are recognised when their span arrives twice: at least this many, at most twice as many.
/// Files may hold the same spans far apart; senders retry within minutes.
const KNOWN_OF_FILES: usize = 1_000_000;
const KNOWN_OF_SENDERS: usize = 100_000;

/// Number of seconds whose distributions are folded into one.
const MINUTE: i64 = 60;
/// Number of newest seconds that are not folded: about this many over all lanes, and per lane within these bounds.
const RECENT_ROWS: usize = 1_200;
const RECENT_SECONDS: (i64, i64) = (60, 600);

/// The requests of one kind of span.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub(crate) seconds: BTreeMap<i64, Second>,
    carried: f64,
    newest: Option<i64>,
    /// Start of the first second that is not folded.
    folded_to: Option<i64>,
}

/// The requests of a lane that began in one second. There are many of these, so each holds only what spans report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Second {
    failed: u64,
    /// Latency of the successful requests.
    latency: Histogram,
}

impl From<Second> for LoadSecond {
    fn from(second: Second) -> Self {
        let succeeded = second.latency.count();
        let errors = ErrorCounts { status: second.failed, ..ErrorCounts::default() };
        let (latency, service) = (second.latency.clone(), second.latency);
        Self { sent: succeeded + second.failed, succeeded, errors, latency, service, ..Self::default() }
    }
}

/// A span that may be a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) start_ns: i64,
    duration_ns: u64,
    is_failed: bool,
    pub(crate) has_parent: bool,
    weight: f64,
    /// Tells spans apart as the run file does.
    hash: u64,
}

/// The most recently counted requests.
#[derive(Debug)]
pub(crate) struct RecentRequests {
    recent: HashSet<u64>,
    older: HashSet<u64>,
    generation_max: usize,
    hashing: RandomState,
}

impl Lane {
    pub(crate) fn add(&mut self, second: i64, candidate: Candidate) {
        self.carried += candidate.weight.min(WEIGHT_MAX);
        let requests = self.carried.floor();
        self.carried -= requests;
        let requests = requests as u64;
        let row = self.seconds.entry(second).or_default();
        if candidate.is_failed {
            row.failed += requests;
        } else {
            row.latency.record_n(candidate.duration_ns, requests);
        }
    }

    /// Folds old seconds, once a minute: the distributions of a minute's seconds are moved to the second in the middle.
    /// Memory for `lanes` lanes then stays constant, however long they are.
    pub(crate) fn fold(&mut self, lanes: usize) {
        let Some(newest) = self.seconds.keys().next_back().copied().filter(|last| self.newest < Some(*last)) else {
            return;
        };
        self.newest = Some(newest);
        let recent = i64::try_from(RECENT_ROWS / lanes.max(1)).unwrap_or(i64::MAX);
        let recent = recent.clamp(RECENT_SECONDS.0, RECENT_SECONDS.1);
        let to = newest.saturating_sub(recent).div_euclid(MINUTE).saturating_mul(MINUTE);
        if self.folded_to.is_some_and(|folded_to| folded_to >= to) {
            return;
        }
        let old = self.seconds.range_mut(self.folded_to.unwrap_or(i64::MIN)..to);
        let mut minutes: BTreeMap<i64, Vec<&mut Second>> = BTreeMap::new();
        for (second, row) in old {
            minutes.entry(second.div_euclid(MINUTE)).or_default().push(row);
        }
        minutes.into_values().for_each(fold_minute);
        self.folded_to = Some(to);
    }

    /// Merges the seconds before `to` into the rows that `row_of` names.
    pub(crate) fn merge_seconds(&mut self, to: i64, row_of: impl Fn(i64) -> i64) {
        let recent = self.seconds.split_off(&to);
        for (second, old) in std::mem::replace(&mut self.seconds, recent) {
            let row = self.seconds.entry(row_of(second)).or_default();
            row.failed += old.failed;
            row.latency.merge(&old.latency);
        }
    }
}

fn fold_minute(mut rows: Vec<&mut Second>) {
    let holder = rows.swap_remove(rows.len() / 2);
    rows.into_iter().for_each(|row| row.latency.give_buckets_to(&mut holder.latency));
}

impl Default for RecentRequests {
    fn default() -> Self {
        Self::with_generation(KNOWN_OF_FILES)
    }
}

impl RecentRequests {
    /// Known requests among spans that senders deliver as they happen.
    pub(crate) fn of_senders() -> Self {
        Self::with_generation(KNOWN_OF_SENDERS)
    }

    fn with_generation(generation_max: usize) -> Self {
        Self { recent: HashSet::new(), older: HashSet::new(), generation_max, hashing: RandomState::new() }
    }

    /// Part of a span that counting needs.
    pub(crate) fn candidate(&self, span: &Span) -> Candidate {
        Candidate {
            start_ns: span.start_ns,
            duration_ns: span.duration_ns(),
            is_failed: span.has_failed(),
            has_parent: span.parent_id.is_some(),
            weight: span.weight,
            hash: self.hashing.hash_one((span.trace_id, span.span_id, span.kind.as_str(), span.start_ns)),
        }
    }

    /// Whether it was not here before; from then on it was.
    pub(crate) fn is_new(&mut self, candidate: Candidate) -> bool {
        if self.older.contains(&candidate.hash) || self.recent.contains(&candidate.hash) {
            return false;
        }
        if self.recent.len() >= self.generation_max {
            std::mem::swap(&mut self.recent, &mut self.older);
            self.recent.clear();
        }
        self.recent.insert(candidate.hash)
    }
}

/// Hands spans on, and says whether they count: what is refused at once is sent again and counts then.
pub(crate) fn hand_on(inner: &dyn Store, spans: Vec<Span>) -> (Receipt, bool) {
    let mut receipt = inner.spans(spans);
    let response = receipt.try_recv().ok();
    let counts = !matches!(response, Some(Err(_)));
    (response.map_or(receipt, resolved), counts)
}

/// A receipt that is there already.
pub(crate) fn resolved(result: Result<narrows_telemetry::KeptCounts, narrows_telemetry::StoreError>) -> Receipt {
    let (tell, receipt) = tokio::sync::oneshot::channel();
    // The receipt is right here to be told.
    let _ = tell.send(result);
    receipt
}

/// Spans and a store for tests of what counts them.
#[cfg(test)]
pub(crate) mod testing {
    use std::sync::atomic::{AtomicU64, Ordering};

    use narrows_model::series::{LogLine, Point, SeriesKey};
    use narrows_model::trace::{SpanFacts, SpanKind, SpanStatus};
    use narrows_telemetry::{KeptCounts, StoreError};

    use super::*;

    /// A store that accepts all spans, or none.
    pub(crate) struct Door(pub(crate) bool);

    impl Store for Door {
        fn spans(&self, _: Vec<Span>) -> Receipt {
            resolved(if self.0 { Ok(KeptCounts::default()) } else { Err(StoreError::Busy) })
        }
        fn points(&self, _: Vec<(SeriesKey, Point)>) -> Receipt {
            resolved(Ok(KeptCounts::default()))
        }
        fn logs(&self, _: Vec<LogLine>) -> Receipt {
            resolved(Ok(KeptCounts::default()))
        }
    }

    /// Server span of 5 ms. The parent's id consists of this byte.
    pub(crate) fn server_span(service: &str, parent: Option<u8>, start_ns: i64) -> Span {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Span {
            trace_id: [1; 16],
            span_id: NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes(),
            parent_id: parent.map(|byte| [byte; 8]),
            service: service.to_owned(),
            scope: String::new(),
            name: format!("GET /{service}"),
            kind: SpanKind::Server,
            start_ns,
            end_ns: start_ns + 5_000_000,
            status: SpanStatus::Unset,
            status_message: String::new(),
            facts: SpanFacts::default(),
            attributes: Default::default(),
            weight: 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::evidence::LoadTotals;

    use super::*;
    use narrows_model::counting::Phase;

    fn candidate(hash: u64) -> Candidate {
        Candidate {
            start_ns: 0,
            duration_ns: 1_000_000 + hash % 7_000_000,
            is_failed: false,
            has_parent: false,
            weight: 1.0,
            hash,
        }
    }

    #[test]
    fn a_long_lane_keeps_the_distributions_of_few_seconds_and_the_same_sum() {
        let (mut lane, mut sum) = (Lane::default(), LoadTotals::default());
        for second in 0..7_200 {
            for request in 0..10 {
                lane.add(second, candidate((second * 10 + request) as u64 * 7_919));
            }
            lane.fold(2);
            let whole = lane.seconds.values().filter(|row| row.latency.bytes() > 0).count();
            assert!(whole <= 660 + second as usize / 60, "{whole} at {second}");
        }
        let rows: Vec<LoadSecond> = lane.seconds.into_values().map(LoadSecond::from).collect();
        assert!(rows.iter().all(|row| (row.sent, row.succeeded) == (10, 10)));
        rows.iter().for_each(|row| sum.add(row, Phase::Sending));
        let mut exact = Histogram::new();
        (0..72_000_u64).for_each(|n| exact.record(candidate(n * 7_919).duration_ns));
        assert_eq!((&sum.latency, &sum.service), (&exact, &exact));
    }

    #[test]
    fn requests_are_known_again_for_a_while_and_memory_has_a_bound() {
        let mut known = RecentRequests::with_generation(100);
        for hash in 0..1_000 {
            assert!(known.is_new(candidate(hash)));
            assert!(!known.is_new(candidate(hash.saturating_sub(99))), "{hash}");
        }
        assert!(known.is_new(candidate(1)), "it came long ago");
        assert!(known.recent.len() + known.older.len() <= 200);
    }
}
