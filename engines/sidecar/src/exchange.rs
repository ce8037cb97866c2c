//! The record of one request at a hop, from its head to the end of its response's body.
//!
//! It is written when it is dropped, and so exactly once, whichever way the request ends: counts, latency, the access
//! log's line and the span. A request that nobody said the end of was left by its caller.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use http::uri::PathAndQuery;
use http::{Method, Request};
use narrows_listener::InProgress;

use crate::access_log::Entry;
use crate::fault::Fault;
use crate::hop::Hop;
use crate::trace::{HopSpan, sampled_parent};

/// A request under way.
pub(crate) struct Exchange {
    hop: Arc<Hop>,
    began: Instant,
    method: Method,
    /// Only where the log wants it.
    target: Option<PathAndQuery>,
    span: Option<HopSpan>,
    status: u16,
    sent_bytes: u64,
    outcome: Outcome,
    /// The caller's connection is busy until the end of the response's body.
    _in_progress: InProgress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    UnderWay,
    Whole,
    Failed(Fault),
}

impl Exchange {
    /// A request has come. If it is sampled, it goes on with the hop's own span as its parent.
    pub(crate) fn begin<B>(hop: &Arc<Hop>, in_progress: InProgress, request: &mut Request<B>) -> Self {
        hop.counts.active.fetch_add(1, Ordering::Relaxed);
        let method = request.method().clone();
        let target = hop.log.as_ref().and_then(|_| request.uri().path_and_query().cloned());
        let traced = hop.telemetry.as_ref().and_then(|to| Some((to, sampled_parent(request.headers())?)));
        let span = traced.map(|(telemetry, parent)| {
            let path = request.uri().path().to_owned();
            HopSpan::begin(&telemetry.tracer, hop, method.as_str(), &path, parent, request.headers_mut())
        });
        let began = Instant::now();
        let (hop, outcome) = (Arc::clone(hop), Outcome::UnderWay);
        Self { hop, began, method, target, span, status: 0, sent_bytes: 0, outcome, _in_progress: in_progress }
    }

    pub(crate) fn hop(&self) -> &Arc<Hop> {
        &self.hop
    }

    /// The status that the caller gets.
    pub(crate) fn responded(&mut self, status: u16) {
        self.status = status;
    }

    /// Bytes of the response's body have gone to the caller.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
    }

    /// The response was passed on to its end.
    pub(crate) fn end(&mut self) {
        self.outcome = Outcome::Whole;
    }

    /// It went wrong.
    pub(crate) fn fail(&mut self, fault: Fault) {
        self.outcome = Outcome::Failed(fault);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let fault = match self.outcome {
            Outcome::UnderWay => Some(Fault::CallerLeft),
            Outcome::Whole => None,
            Outcome::Failed(fault) => Some(fault),
        };
        let took = self.began.elapsed();
        let hop = &self.hop;
        hop.counts.active.fetch_sub(1, Ordering::Relaxed);
        hop.counts.ended(fault);
        hop.counts.sent_bytes.fetch_add(self.sent_bytes, Ordering::Relaxed);
        if let Some(telemetry) = &hop.telemetry {
            telemetry.latency(took, fault, self.status);
        }
        if let Some(log) = &hop.log {
            log.append(&Entry {
                hop: &hop.name,
                method: Some(self.method.as_str()),
                path: self.target.as_ref().map(PathAndQuery::as_str),
                status: self.status,
                received_bytes: None,
                sent_bytes: self.sent_bytes,
                duration_us: took.as_micros() as u64,
                error: fault.map(Fault::word),
            });
        }
        if let Some(span) = self.span.take() {
            span.end(self.status, fault.map(Fault::word));
        }
    }
}
