//! The evidence of a file that holds one trace: its spans, and the request that they show in place of a load.

use narrows_model::evidence::TrialEvidence;
use narrows_model::histogram::Histogram;
use narrows_model::load::LoadSecond;
use narrows_model::run::{Window, WindowKind};
use narrows_model::trace::Trace;
use narrows_testkit::tally::Tally;

/// Evidence of a case of which only the first trace was kept.
pub(crate) fn first_trace_of(evidence: TrialEvidence) -> TrialEvidence {
    let traces: Vec<Trace> = evidence.traces.into_iter().take(1).map(|trace| Trace { weight: 1.0, ..trace }).collect();
    let root = traces[0].root().expect("a trace has a root");
    let start_ns = root.start_ns;
    let window = Window {
        index: 0,
        kind: WindowKind::Steady,
        label: "imported".into(),
        start_ns,
        end_ns: root.end_ns.max(start_ns + 1),
        drained_ns: None,
        vus: 0,
        rate: None,
    };
    let mut latency = Histogram::new();
    latency.record(root.duration_ns());
    let second = LoadSecond {
        start_ns,
        length_ns: 0,
        scenario: root.service.clone(),
        request: root.name.clone(),
        sent: 1,
        succeeded: 1,
        service: latency.clone(),
        latency,
        ..LoadSecond::default()
    };
    let mut tally = Tally::default();
    tally.add(&traces[0], &[(start_ns, 1.0)]);
    TrialEvidence {
        windows: vec![window],
        series: Vec::new(),
        services: Vec::new(),
        seconds: vec![second],
        operations: tally.into_operations(),
        spans_total: traces[0].spans.len() as u64,
        traces,
        ..evidence
    }
}
