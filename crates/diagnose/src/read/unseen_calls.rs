//! Calls that the sockets of a service show and its spans do not.
//!
//! Both are compared by the requests that wait, not by their number: a call may be several messages, such as the statements
//! around a transaction, and an HTTP/2 connection carries many calls. Spans that show more than sockets are no sign, since a
//! connection counts as one request. Spans are scaled to the load, so a sampling rate below 1 makes no difference.

use narrows_model::breakdown::OwnTime;

use crate::read::Reading;
use crate::read::intervals::heaviest_steady;

/// Fewer requests than this are within the error of both samples.
const REQUESTS_MIN: f64 = 0.5;

/// Requests of a service that wait for a peer without a span that shows it, under the heaviest steady load.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnseenCalls {
    /// A service of the trial, or an address.
    pub(crate) peer: String,
    /// Requests at any moment, a mean.
    pub(crate) unseen: f64,
    /// All requests that wait for the peer, as the service's sockets show them.
    pub(crate) waiting: f64,
}

/// The peer for which most requests of a service wait unseen; `None` if the service sends no spans, or if they are less than
/// `gap_unseen_share` of those in its own time or of those that wait for the peer.
pub(crate) fn unseen_calls(reading: &Reading<'_>, service: &str) -> Option<UnseenCalls> {
    let share = reading.thresholds.instrumentation_gap.gap_unseen_share;
    let at = heaviest_steady(reading.intervals)?;
    let mut threads = reading.spent().threads.get(at)?.iter();
    let threads = threads.find(|one| one.service == service && reading.has_spans_of(service))?;
    let in_service = threads.requests?;
    let behind = reading.conversations().behind(service, at);
    let unseen = threads.own.iter().filter_map(|part| {
        let OwnTime::Network(peer) = &part.what else { return None };
        let (_, waiting) = behind.iter().find(|(name, _)| name == peer)?;
        Some(UnseenCalls { peer: peer.clone(), unseen: part.requests, waiting: waiting.low })
    });
    let is_much = |one: &UnseenCalls| one.unseen >= (share * in_service.max(one.waiting)).max(REQUESTS_MIN);
    unseen.filter(is_much).max_by(|a, b| a.unseen.total_cmp(&b.unseen))
}
