//! Numbers of requests and of requests with queries, by operation: the totals for the shares of repetitions.

use std::collections::BTreeMap;

use crate::read::requests::Request;

/// Totals over the trial's traces, weighted by trace.
pub(super) struct Totals {
    pub(super) queries: f64,
    pub(super) by_operation: BTreeMap<(String, String), Requests>,
}

/// The requests of one operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requests {
    pub(super) weight: f64,
    /// Weight of the requests that query a database.
    pub(super) asking_weight: f64,
    /// Weight of those that began in the later half of the time.
    pub(super) late_weight: f64,
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
}

impl Requests {
    pub(super) fn is_late(&self, start_ns: i64) -> bool {
        start_ns >= self.first_ns + self.last_ns.saturating_sub(self.first_ns) / 2
    }
}

impl Totals {
    pub(super) fn new(requests: &[Request<'_>]) -> Self {
        let mut totals = Totals { queries: 0.0, by_operation: BTreeMap::new() };
        let key = |request: &Request<'_>| (request.entry.service.clone(), request.operation());
        for request in requests {
            let (weight, start_ns) = (request.trace.weight, request.entry.start_ns);
            totals.queries += weight * request.queries.len() as f64;
            let none =
                Requests { weight: 0.0, asking_weight: 0.0, late_weight: 0.0, first_ns: start_ns, last_ns: start_ns };
            let known = totals.by_operation.entry(key(request)).or_insert(none);
            known.weight += weight;
            known.asking_weight += if request.queries.is_empty() { 0.0 } else { weight };
            (known.first_ns, known.last_ns) = (known.first_ns.min(start_ns), known.last_ns.max(start_ns));
        }
        for request in requests.iter().filter(|request| !request.queries.is_empty()) {
            if let Some(known) =
                totals.by_operation.get_mut(&key(request)).filter(|k| k.is_late(request.entry.start_ns))
            {
                known.late_weight += request.trace.weight;
            }
        }
        totals
    }
}
