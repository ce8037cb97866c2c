//! Operations counted from traces, by the rules of a run file's reader.
//!
//! A few traces can stand for the load of many seconds: each is counted as often in each second as its caller sets, so
//! that what a test says of structure and what it says of counts cannot contradict each other.

use std::collections::BTreeMap;

use narrows_model::histogram::Histogram;
use narrows_model::operation::{CallEvidence, CallSecond, OperationEvidence, OperationSecond};
use narrows_model::trace::{Span, SpanId, SpanKind, Trace};

const THROTTLED: u16 = 429;

/// The counts so far.
#[derive(Debug, Default)]
pub struct Tally {
    operations: BTreeMap<OperationName, Operation>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OperationName {
    service: String,
    name: String,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CallName {
    target: String,
    name: String,
}

#[derive(Debug, Default)]
struct Operation {
    completed: f64,
    failed: f64,
    duration: Histogram,
    seconds: BTreeMap<i64, OperationSecond>,
    calls: BTreeMap<CallName, Call>,
}

#[derive(Debug, Default)]
struct Call {
    is_database: bool,
    has_charge: bool,
    seconds: BTreeMap<i64, CallSecond>,
}

#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Succeeded,
    Throttled,
    Failed,
}

impl Tally {
    /// Counts a trace: so often (not necessarily a whole number) in each second that begins at an instant.
    pub fn add(&mut self, trace: &Trace, times: &[(i64, f64)]) {
        let by_id: BTreeMap<SpanId, &Span> = trace.spans.iter().map(|span| (span.span_id, span)).collect();
        for span in &trace.spans {
            match span.kind {
                SpanKind::Server => self.operation(span).count(span, times),
                SpanKind::Client => {
                    if let Some(server) = server_above(span, &by_id) {
                        self.operation(server).count_call(span, times);
                    }
                }
                SpanKind::Internal | SpanKind::Producer | SpanKind::Consumer => {}
            }
        }
    }

    /// The operations by service and name.
    pub fn into_operations(self) -> Vec<OperationEvidence> {
        self.operations.into_iter().map(|(names, operation)| operation.into_evidence(names)).collect()
    }

    fn operation(&mut self, server: &Span) -> &mut Operation {
        self.operations.entry(OperationName { service: server.service.clone(), name: server.name.clone() }).or_default()
    }
}

impl Operation {
    fn count(&mut self, span: &Span, times: &[(i64, f64)]) {
        let all: f64 = times.iter().map(|(_, weight)| weight).sum();
        if outcome_of(span) != Outcome::Succeeded {
            self.failed += all;
            return;
        }
        self.completed += all;
        self.duration.record_n(span.duration_ns(), (all.round() as u64).max(1));
        for (start_ns, weight) in times {
            let second = self.seconds.entry(*start_ns).or_default();
            second.start_ns = *start_ns;
            second.completed += weight;
            second.duration_sum_ns += weight * span.duration_ns() as f64;
        }
    }

    fn count_call(&mut self, span: &Span, times: &[(i64, f64)]) {
        let call = self.calls.entry(CallName { target: target_of(span), name: span.name.clone() }).or_default();
        call.is_database = span.facts.db_system.is_some();
        call.has_charge |= span.facts.db_charge.is_some();
        for (start_ns, weight) in times {
            let second = call.seconds.entry(*start_ns).or_default();
            second.start_ns = *start_ns;
            match outcome_of(span) {
                Outcome::Succeeded => second.succeeded += weight,
                Outcome::Throttled => second.throttled += weight,
                Outcome::Failed => second.failed += weight,
            }
            second.charge += weight * span.facts.db_charge.unwrap_or(0.0);
        }
    }

    fn into_evidence(self, OperationName { service, name }: OperationName) -> OperationEvidence {
        let mut calls: Vec<CallEvidence> =
            self.calls.into_iter().map(|(names, call)| call.into_evidence(names)).collect();
        calls.sort_by(|one, other| other.attempts().total_cmp(&one.attempts()));
        OperationEvidence {
            service,
            name,
            completed: self.completed,
            failed: self.failed,
            duration: self.duration,
            seconds: self.seconds.into_values().collect(),
            calls,
            spans_left_out: 0,
        }
    }
}

impl Call {
    fn into_evidence(self, CallName { target, name }: CallName) -> CallEvidence {
        let seconds: Vec<CallSecond> = self.seconds.into_values().collect();
        let sum = |value: fn(&CallSecond) -> f64| seconds.iter().map(value).sum::<f64>();
        CallEvidence {
            target,
            name,
            is_database: self.is_database,
            succeeded: sum(|second| second.succeeded),
            throttled: sum(|second| second.throttled),
            failed: sum(|second| second.failed),
            charge: self.has_charge.then(|| sum(|second| second.charge)),
            seconds,
        }
    }
}

/// The nearest server span above, of a trace without loops.
fn server_above<'a>(span: &Span, by_id: &BTreeMap<SpanId, &'a Span>) -> Option<&'a Span> {
    let mut above = by_id.get(&span.parent_id?)?;
    for _ in 0..by_id.len() {
        if above.kind == SpanKind::Server {
            return Some(above);
        }
        above = by_id.get(&above.parent_id?)?;
    }
    None
}

fn is_refusal(text: &str) -> bool {
    let is_named_so = ["Throttl", "ProvisionedThroughputExceeded"].iter().any(|word| text.starts_with(word));
    is_named_so || text == "429" || text == "RESOURCE_EXHAUSTED"
}

fn outcome_of(span: &Span) -> Outcome {
    let facts = &span.facts;
    let is_throttled = facts.http_status == Some(THROTTLED)
        || [&facts.db_status, &facts.error_type].into_iter().flatten().any(|text| is_refusal(text));
    match (is_throttled, span.has_failed()) {
        (true, _) => Outcome::Throttled,
        (false, true) => Outcome::Failed,
        (false, false) => Outcome::Succeeded,
    }
}

fn target_of(span: &Span) -> String {
    let facts = &span.facts;
    match (&facts.db_system, &facts.server_address, facts.server_port) {
        (Some(system), _, _) => system.clone(),
        (None, Some(address), Some(port)) => format!("{address}:{port}"),
        (None, Some(address), None) => address.clone(),
        (None, None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::{document_query, internal, query, server};

    #[test]
    fn calls_belong_to_the_server_span_above_them() {
        let trace = server("shop", "GET /")
            .at(0.0, 20.0)
            .child(internal("repository").at(1.0, 5.0).child(query("SELECT 1").at(2.0, 1.0)))
            .child(document_query("SELECT 2", "p1").at(7.0, 1.0).throttled(None))
            .child(document_query("SELECT 2", "p1").at(9.0, 1.0).charge(3.0))
            .trace(1);
        let mut tally = Tally::default();
        tally.add(&trace, &[(0, 2.0), (1_000_000_000, 4.0)]);
        let operations = tally.into_operations();
        assert_eq!(operations.len(), 1);
        assert_eq!((operations[0].completed, operations[0].duration.count()), (6.0, 6));
        let told: Vec<_> =
            operations[0].calls.iter().map(|c| (c.target.as_str(), c.succeeded, c.throttled, c.charge)).collect();
        assert_eq!(told, [("azure.cosmosdb", 6.0, 6.0, Some(18.0)), ("postgresql", 6.0, 0.0, None)]);
        assert_eq!(operations[0].seconds[1].duration_sum_ns, 80e6);
    }
}
