//! Counts what arrived at a receiver.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a receiver since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverStats {
    /// Export requests that were understood, whether or not all of them was kept.
    pub batches: u64,
    /// Spans in them that made sense.
    pub spans: u64,
    /// Metric points made of them; a histogram's data point makes several.
    pub points: u64,
    /// Log records in them that made sense.
    pub logs: u64,
    /// Of all those, how many were not kept because a ceiling was reached.
    pub refused: u64,
    /// Records that made no sense, such as spans without a valid id, in requests that were understood.
    pub malformed_records: u64,
    /// Requests refused for what they are: not OTLP, too large, too slow, of an unknown encoding.
    pub malformed_requests: u64,
    /// Requests that could not be served: too many in flight, or the store was busy or broken.
    pub unserved_requests: u64,
    /// Requests refused because they did not show the token.
    pub unauthenticated_requests: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) batches: Counter,
    pub(super) spans: Counter,
    pub(super) points: Counter,
    pub(super) logs: Counter,
    pub(super) refused: Counter,
    pub(super) malformed_records: Counter,
    pub(super) malformed_requests: Counter,
    pub(super) unserved_requests: Counter,
    pub(super) unauthenticated_requests: Counter,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn read(&self) -> ReceiverStats {
        ReceiverStats {
            batches: self.batches.get(),
            spans: self.spans.get(),
            points: self.points.get(),
            logs: self.logs.get(),
            refused: self.refused.get(),
            malformed_records: self.malformed_records.get(),
            malformed_requests: self.malformed_requests.get(),
            unserved_requests: self.unserved_requests.get(),
            unauthenticated_requests: self.unauthenticated_requests.get(),
        }
    }
}
