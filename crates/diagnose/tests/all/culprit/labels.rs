//! Labels of spans that differ from tracer to tracer: the services and the findings come out the same.

use narrows_diagnose::diagnose;
use narrows_diagnose::thresholds::Thresholds;
use narrows_model::evidence::RunEvidence;
use narrows_model::trace::{Span, SpanKind, Trace};

use super::compared;
use super::systems::{SHOP, TRAVEL};
use super::window::{Fault, side};

/// A client span gets another label; with it comes the service that handles the call.
type Label = fn(&mut Span, &str);

const LABELS: [(&str, Label); 6] = [
    ("a service of its own", |call, _| call.service += "-client"),
    ("the service that is called", |call, callee| call.service = callee.to_owned()),
    ("a peer", |call, callee| call.facts.peer_service = Some(callee.to_owned())),
    ("an address that no service has", |call, _| call.facts.server_address = Some("10.0.0.7".to_owned())),
    ("no name", |call, _| call.name.clear()),
    ("another scope", |call, _| call.scope = "urllib3".to_owned()),
];

fn labelled(run: &RunEvidence, label: Label) -> RunEvidence {
    let mut run = run.clone();
    run.trials.iter_mut().flat_map(|trial| &mut trial.traces).for_each(|trace| relabel(trace, label));
    run
}

fn relabel(trace: &mut Trace, label: Label) {
    let callee = |call: &Span| trace.children(call.span_id).next().map(|handled| handled.service.clone());
    let callees: Vec<Option<String>> = trace.spans.iter().map(callee).collect();
    let calls = trace.spans.iter_mut().zip(callees).filter(|(span, _)| span.kind == SpanKind::Client);
    calls.for_each(|(call, callee)| label(call, callee.as_deref().unwrap_or_default()));
}

/// Kind, place and operation of each finding.
fn causes(run: &RunEvidence) -> Vec<(String, String, Option<String>)> {
    let found = diagnose(&run.trials[0], &Thresholds::default());
    found.into_iter().map(|one| (one.kind().to_string(), one.resource.clone(), one.operation.clone())).collect()
}

#[test]
fn labels_of_calls_make_no_difference() {
    let faults = [Fault::Delay(40.0), Fault::Exceptions(0.2), Fault::EarlyReturn(0), Fault::RepeatedCalls];
    let pairs = [&SHOP, &TRAVEL].into_iter().flat_map(|system| faults.map(|fault| (system, fault)));
    for (at, (system, fault)) in pairs.enumerate() {
        let (before, after) = (side(system, 0, Fault::None, 3), side(system, 4, fault, 4));
        let (expected, found) = (compared(&before, &after).services, causes(&after));
        // Each label meets both systems and several faults.
        for (what, label) in LABELS.into_iter().skip(at % 3).step_by(3) {
            let (before, after) = (labelled(&before, label), labelled(&after, label));
            assert_eq!(compared(&before, &after).services, expected, "{fault:?}: {what}");
            assert_eq!(causes(&after), found, "{fault:?}: {what}");
        }
    }
}
