//! Requests counted from spans as they pass: what a span counts as, and that it counts once.
//!
//! For a trial whose load another program sends (`trial/roots.rs`) and for a system that others started
//! (`attach/requests.rs`), which decide what spans are requests. A sampled span stands for as many as its weight says;
//! fractions are carried from one to the next. A span that comes twice, from a sender that tried again or in two files, is
//! one request, as it is one span in the run file.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use narrows_model::load::LoadSecond;
use narrows_model::trace::{Span, SpanStatus};
use narrows_model::units;
use narrows_telemetry::{Receipt, Store};

/// What the statuses of failed responses begin with.
const FAILED_FROM: u16 = 400;

/// The most requests that one span stands for; the sum of more than any file holds of them is still a number.
const WEIGHT_MAX: f64 = (1_u64 << 32) as f64;
/// Requests that are known again when their span comes twice; of further ones that is not noticed.
const KNOWN_MAX: usize = 2_000_000;

/// So many requests as the subject of a sentence: `1 request is`, `1,200 requests are`.
pub(crate) fn requests_are(requests: u64) -> String {
    if requests == 1 { "1 request is".to_owned() } else { format!("{} requests are", units::count(requests)) }
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
    pub(crate) start_ns: i64,
    duration_ns: u64,
    is_failed: bool,
    pub(crate) has_parent: bool,
    weight: f64,
    /// Tells spans apart as the run file does.
    hash: u64,
}

/// The requests that were counted.
#[derive(Debug, Default)]
pub(crate) struct Known {
    hashes: HashSet<u64>,
    hashing: RandomState,
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

impl Known {
    /// What counting needs of a span.
    pub(crate) fn candidate(&self, span: &Span) -> Candidate {
        Candidate {
            start_ns: span.start_ns,
            duration_ns: span.duration_ns(),
            is_failed: span.status == SpanStatus::Error
                || span.facts.http_status.is_some_and(|status| status >= FAILED_FROM),
            has_parent: span.parent_id.is_some(),
            weight: span.weight,
            hash: self.hashing.hash_one((span.trace_id, span.span_id, span.kind.as_str(), span.start_ns)),
        }
    }

    /// Whether it was not here before; from then on it was.
    pub(crate) fn is_new(&mut self, candidate: Candidate) -> bool {
        match self.hashes.len() < KNOWN_MAX {
            true => self.hashes.insert(candidate.hash),
            false => !self.hashes.contains(&candidate.hash),
        }
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
pub(crate) fn resolved(result: Result<narrows_telemetry::Kept, narrows_telemetry::Refused>) -> Receipt {
    let (tell, receipt) = tokio::sync::oneshot::channel();
    // The receipt is right here to be told.
    let _ = tell.send(result);
    receipt
}
