//! Time of a request that neither a call nor a span within its service explains.
//!
//! A span within the service explains its time, unless it is nearly as long as the request: then it stands for the
//! whole handler, as frameworks report it, and what lies below it is looked at instead. Waits for pools and sockets have
//! spans of their own and count as explained. What the processor did is known for a service as a whole, so it is
//! compared with the median, not taken away from each request.

use narrows_model::series::names;
use narrows_model::trace::{Span, SpanKind};

use crate::read::Reading;
use crate::read::calls::{Handled, Times};
use crate::read::requests::Request;

/// How deep below a request spans for the whole of it may be nested.
const WHOLE_DEPTH_MAX: usize = 8;
/// Only so many spans below one are looked into: a span for the whole request has no siblings worth speaking of.
const WHOLE_SIBLINGS_MAX: usize = 8;
/// Share of a request from which a span of its own stands for the whole.
const WHOLE_SHARE: f64 = 0.90;

/// Time of a request under no call and no span within its service, nanoseconds.
pub(crate) fn unexplained_ns(request: &Request<'_>) -> f64 {
    let (forest, entry) = (request.forest, request.entry);
    let calls = request.other_calls.iter().copied().chain(request.queries.iter().map(|query| query.span));
    let mut explained: Vec<(i64, i64)> = calls.map(|span| (span.start_ns, span.end_ns)).collect();
    let mut open: Vec<(usize, usize)> = forest.find(entry.span_id).map(|at| (at, 0)).into_iter().collect();
    while let Some((parent, depth)) = open.pop() {
        let within = forest.children(parent).filter(|at| is_within(forest.span(*at)));
        for (nth, at) in within.enumerate() {
            let span = forest.span(at);
            let is_whole = span.duration_ns() as f64 >= WHOLE_SHARE * entry.duration_ns() as f64;
            if is_whole && span.kind == SpanKind::Internal {
                let is_looked_into = depth < WHOLE_DEPTH_MAX && nth < WHOLE_SIBLINGS_MAX;
                open.extend(is_looked_into.then_some((at, depth + 1)));
            } else {
                explained.push((span.start_ns, span.end_ns));
            }
        }
    }
    Times::union_of([(entry.start_ns, entry.end_ns)]).without(&Times::union_of(explained)).length_ns()
}

/// True for a span of the service that reports its parent.
fn is_within(span: &Span) -> bool {
    !matches!(span.kind, SpanKind::Server | SpanKind::Consumer)
}

/// Processor time of a service for each of these requests, nanoseconds; `None` if it was not sampled. `caller` is
/// the service and the operation whose requests are counted, all operations if that is `None`.
pub(crate) fn cpu_ns_per_request(reading: &Reading<'_>, service: &str, caller: (&str, Option<&str>)) -> Option<f64> {
    ns_per_request(reading, names::CPU_CORES, service, caller)
}

/// The same of the time that threads of the service were ready to run and waited for a processor; 0 when it was not
/// sampled.
pub(crate) fn cpu_wait_ns_per_request(reading: &Reading<'_>, service: &str, caller: (&str, Option<&str>)) -> f64 {
    ns_per_request(reading, names::CPU_WAIT, service, caller).unwrap_or(0.0)
}

fn ns_per_request(reading: &Reading<'_>, series: &str, service: &str, caller: (&str, Option<&str>)) -> Option<f64> {
    let (calling, operation) = caller;
    let usage = reading.trial.counted_usage(series, service);
    let seconds = reading.trial.counted_load().seconds;
    let is_counted = |name: &str| operation.is_none_or(|operation| operation == name);
    let known = reading.trial.operations.iter().filter(|known| known.service == calling && is_counted(&known.name));
    let counted: f64 = known.map(|known| known.completed).sum();
    let traced = reading.operations.iter().filter(|((service, name), _)| *service == calling && is_counted(name));
    let traced: f64 = traced.flat_map(|(_, requests)| requests.iter().map(Handled::weight)).sum();
    let requests = counted.max(traced);
    (usage.points > 0 && requests > 0.0).then(|| usage.mean * seconds * 1e9 / requests)
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{SpanBuilder, client, database, internal, query, server};
    use narrows_testkit::trial::TrialBuilder;

    use super::*;
    use crate::thresholds::Thresholds;

    /// Milliseconds of 100 that nothing explains.
    fn unexplained_ms(children: Vec<SpanBuilder>) -> f64 {
        let trial = TrialBuilder::new("a").traces([server("shop", "GET /").at(0.0, 100.0).children(children).trace(1)]);
        Reading::with(&trial.build(), &Thresholds::default(), |reading| unexplained_ns(&reading.requests[0]) / 1e6)
    }

    #[test]
    fn calls_queries_and_parts_explain_their_time() {
        assert_eq!(unexplained_ms(vec![]), 100.0);
        assert_eq!(unexplained_ms(vec![client("GET").at(10.0, 30.0), query("SELECT 1").at(50.0, 20.0)]), 50.0);
        assert_eq!(unexplained_ms(vec![internal("render").at(0.0, 40.0)]), 60.0);
        assert_eq!(unexplained_ms(vec![database("pool.acquire").at(0.0, 70.0)]), 30.0);
    }

    #[test]
    fn a_span_for_the_whole_explains_only_what_lies_below_it() {
        let handler = internal("OrderController.show").at(1.0, 98.0);
        assert_eq!(unexplained_ms(vec![handler.clone()]), 100.0);
        assert_eq!(unexplained_ms(vec![handler.clone().child(query("SELECT 1").at(10.0, 30.0))]), 70.0);
        assert_eq!(unexplained_ms(vec![handler.child(internal("render").at(10.0, 30.0))]), 70.0);
    }
}
