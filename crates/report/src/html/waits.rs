//! Waiting between attempts: the time from a response that requests a later retry to the next attempt of that call.
//!
//! The next attempt is the next span of the same name, service and partition under the same parent.

use std::collections::HashMap;

use narrows_model::trace::{Span, SpanId, Trace};

/// HTTP status of a call that was refused because the caller sends too much.
const TOO_MANY_REQUESTS: u16 = 429;

/// The waits of one trace.
pub(super) struct Waits {
    after: HashMap<SpanId, u64>,
}

impl Waits {
    pub(super) fn new(trace: &Trace) -> Self {
        let mut attempts: HashMap<_, Vec<&Span>> = HashMap::new();
        for span in trace.spans.iter().filter(|span| span.parent_id.is_some()) {
            let call = (span.parent_id, &span.service, &span.name, span.kind, &span.facts.db_partition);
            attempts.entry(call).or_default().push(span);
        }
        let mut after = HashMap::new();
        for of_call in attempts.values_mut() {
            of_call.sort_by_key(|span| span.start_ns);
            for span in of_call.iter().filter(|span| is_throttled(span) || span.facts.retry_after_ns.is_some()) {
                let next =
                    of_call.partition_point(|other| other.start_ns < span.end_ns.max(span.start_ns.saturating_add(1)));
                if let Some(next) = of_call.get(next) {
                    after.insert(span.span_id, next.start_ns.saturating_sub(span.end_ns).max(0) as u64);
                }
            }
        }
        Self { after }
    }

    /// Nanoseconds until the next attempt; `None` if the response requested no wait or nothing followed.
    pub(super) fn after_ns(&self, span: &Span) -> Option<u64> {
        self.after.get(&span.span_id).copied()
    }
}

/// True if the response was 429.
pub(super) fn is_throttled(span: &Span) -> bool {
    span.facts.http_status == Some(TOO_MANY_REQUESTS)
        || span.facts.db_status.as_deref().and_then(|status| status.parse().ok()) == Some(TOO_MANY_REQUESTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::drones;

    fn waits(trace: &Trace) -> Vec<u64> {
        let waits = Waits::new(trace);
        trace.spans.iter().filter_map(|span| waits.after_ns(span)).collect()
    }

    #[test]
    fn the_wait_ends_with_the_next_attempt_of_the_same_call() {
        let mut trace = drones::outcome().evidence.trials[0].traces[0].clone();
        assert_eq!(waits(&trace), [492_000_000]);
        let next = trace.spans.iter().position(|span| span.facts.http_status == Some(429)).unwrap() + 1;
        trace.spans[next].facts.db_partition = Some("8".to_owned());
        assert_eq!(waits(&trace), [] as [u64; 0]);
    }

    #[test]
    fn responses_without_retry_after_have_none() {
        let outcome = drones::outcome();
        assert_eq!(waits(&outcome.evidence.trials[1].traces[0]), [] as [u64; 0]);
    }
}
