//! A trial that is one request: a trace that somebody imported because it was slow.
//!
//! Rules want to see a thing in several requests before they take it for the way in which a program works. Where there is
//! one request only, each of the rules about the structure of a request is content with it, and each finding has a
//! caveat. Shares of all queries or calls say nothing then, since one request is all there is: what counts is its time.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Caveat, Confidence, Finding};

use super::Reading;
use crate::thresholds::Thresholds;

/// Larger than any share.
const NO_SHARE: f64 = f64::INFINITY;

/// True if a trial is one request: one trace, and no load beside it.
pub(crate) fn is_one_request(trial: &TrialEvidence) -> bool {
    let load = trial.counted_load();
    trial.traces.len() == 1 && load.succeeded + load.errors.total() <= 1
}

/// The thresholds by which one request is judged.
pub(crate) fn of_one_request(thresholds: &Thresholds) -> Thresholds {
    let mut of_one = thresholds.clone();
    of_one.n_plus_one.n_plus_one_traces = 1;
    of_one.n_plus_one.n_plus_one_query_share = NO_SHARE;
    of_one.duplicate_query.duplicate_query_requests = 1;
    of_one.slow_query.slow_query_traces = 1;
    of_one.chatty_http.chatty_traces = 1;
    of_one.chatty_http.chatty_callee_share = NO_SHARE;
    of_one.regular_traces = 1;
    of_one.slow_dependency.dependency_requests = 1;
    of_one
}

/// A finding with the wording for a trial of only one request.
pub(crate) fn marked(mut finding: Finding, reading: &Reading<'_>) -> Finding {
    if reading.is_one_request {
        finding.caveats.push(Caveat::OneRequest);
        finding.confidence = finding.confidence.min(Confidence::Medium);
    }
    finding
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::FindingKind;
    use narrows_model::trace::Trace;
    use narrows_testkit::spans::{Beat, SpanBuilder, client, query, run_of, server};
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    const BEAT: Beat = Beat { first_ms: 20.0, step_ms: 10.0, length_ms: 8.0 };

    fn request(children: Vec<SpanBuilder>) -> Trace {
        let source = query("SELECT id FROM orders").at(1.0, 5.0);
        server("shop", "GET /orders").at(0.0, 200.0).child(source).children(children).trace(1)
    }

    fn found(trial: TrialBuilder, trace: Trace) -> Vec<Finding> {
        crate::diagnose(&trial.traces([trace]).build(), &Thresholds::default())
    }

    #[test]
    fn one_imported_request_is_judged_with_a_caveat() {
        let row = |i: usize| query(&format!("SELECT a FROM t WHERE id = {i}"));
        let item = |i: usize| client("GET").url(&format!("http://stock/parts/{i}"));
        for (kind, children) in [
            (FindingKind::NPlusOne, run_of(12, BEAT, row)),
            (FindingKind::DuplicateQuery, run_of(12, BEAT, |_| query("SELECT a FROM settings"))),
            (FindingKind::ChattyHttp, run_of(12, BEAT, item)),
            (FindingKind::SlowQuery, vec![query("SELECT sum(a) FROM t").at(20.0, 170.0)]),
        ] {
            let findings = found(TrialBuilder::new("a"), request(children));
            assert_eq!(findings.iter().map(Finding::kind).collect::<Vec<_>>(), [kind]);
            assert!(findings[0].caveats.contains(&Caveat::OneRequest), "{:?}", findings[0].caveats);
            assert_eq!(findings[0].confidence, Confidence::Medium);
        }
    }

    #[test]
    fn one_trace_of_a_load_says_nothing_of_its_other_requests() {
        let loaded = TrialBuilder::new("a").steady(10, Load { vus: 4, rate: 20.0, latency_ms: 200.0 });
        let findings = found(loaded, request(run_of(12, BEAT, |i| query(&format!("SELECT a FROM t WHERE id = {i}")))));
        assert!(!findings.iter().any(|finding| finding.kind() == FindingKind::NPlusOne), "{findings:?}");
    }

    #[test]
    fn a_few_quick_queries_of_one_slow_request_are_left_alone() {
        let quick = Beat { first_ms: 20.0, step_ms: 0.5, length_ms: 0.3 };
        let findings = found(
            TrialBuilder::new("a"),
            request(run_of(12, quick, |i| query(&format!("SELECT a FROM t WHERE id = {i}")))),
        );
        assert_eq!(findings, []);
    }
}
