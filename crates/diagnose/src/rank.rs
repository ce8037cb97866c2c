//! The order of a trial's findings, and what they have to do with each other.
//!
//! Three classes follow one another: what makes the trial's figures invalid; what is in the way now, a limit that is
//! hit or a structure that makes requests wait; what only spends more than needed. Within a class cost decides. Then
//! the pairs of [`RULES`] apply: the finding to deal with first takes the place before the other, and the other says why.

use std::cmp::Ordering;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Confidence, Finding};
use narrows_model::series::names;
use narrows_model::trace::hex;

use crate::Detector;
use crate::detectors::cpu_saturation::{CpuSaturation, HOST};
use crate::detectors::cross_partition_query::CrossPartitionQuery;
use crate::detectors::generator_limited::GeneratorLimited;
use crate::detectors::n_plus_one::NPlusOne;
use crate::detectors::serial_fan_out::SerialFanOut;
use crate::detectors::throttling::Throttling;

/// What two findings must share for a rule to apply.
#[derive(Debug, Clone, Copy)]
enum Tie {
    /// The first's service, or the one that it asks, is the second's resource; of a full machine the service that uses
    /// most of it.
    Serves,
    /// Both are about the store that is the first's resource, or about one operation.
    Store,
}

/// One detector's findings come before another's.
struct Rule {
    first: &'static dyn Detector,
    then: &'static dyn Detector,
    tie: Tie,
    /// What the second says of the first, before its title.
    why: &'static str,
}

/// In this order, so that what comes first of all is moved last.
const RULES: [Rule; 4] = [
    Rule { first: &NPlusOne, then: &CpuSaturation, tie: Tie::Serves, why: "It is a likely effect of n-plus-one: " },
    Rule {
        first: &CrossPartitionQuery,
        then: &CpuSaturation,
        tie: Tie::Serves,
        why: "It is a likely effect of cross-partition-query: ",
    },
    Rule {
        first: &Throttling,
        then: &CrossPartitionQuery,
        tie: Tie::Store,
        why: "It is one way to ask less of a store that refuses calls now: ",
    },
    Rule {
        first: &Throttling,
        then: &SerialFanOut,
        tie: Tie::Store,
        why: "While the store refuses calls, making them at once would only have them refused sooner: ",
    },
];

/// Whether a finding says that the trial's figures are not the system's.
pub(crate) fn is_invalidating(finding: &Finding) -> bool {
    finding.detector == GeneratorLimited.id() && finding.confidence == Confidence::High
}

/// Whether a finding is about the experiment rather than the system.
pub(crate) fn is_about_experiment(finding: &Finding) -> bool {
    finding.detector == GeneratorLimited.id()
}

/// 0 to 2, see the module.
fn class(finding: &Finding) -> u8 {
    match finding {
        finding if is_invalidating(finding) => 0,
        finding if finding.detector == CrossPartitionQuery.id() => 2,
        _ => 1,
    }
}

/// Puts findings in order and notes what one has to do with another.
pub(crate) fn ranked(mut findings: Vec<Finding>, trial: &TrialEvidence) -> Vec<Finding> {
    findings.sort_by(by_class_and_cost);
    for rule in &RULES {
        apply(rule, &mut findings, trial);
    }
    findings
}

fn by_class_and_cost(a: &Finding, b: &Finding) -> Ordering {
    class(a).cmp(&class(b)).then(b.cost_share.total_cmp(&a.cost_share))
}

/// Each finding that must wait, in order, gets the dearest of those it waits for before it.
fn apply(rule: &Rule, findings: &mut Vec<Finding>, trial: &TrialEvidence) {
    let mut at = 0;
    while at < findings.len() {
        let waiting = &findings[at];
        let is_first = |other: &Finding| other.detector == rule.first.id() && is_tied(rule.tie, other, waiting, trial);
        let before = findings.iter().position(is_first).filter(|_| waiting.detector == rule.then.id());
        if let Some(before) = before {
            let reason = format!("{}{}.", rule.why, findings[before].title);
            findings[at].reasons.push(reason);
            if before > at {
                let first = findings.remove(before);
                findings.insert(at, first);
                at += 1;
            }
        }
        at += 1;
    }
}

fn is_tied(tie: Tie, first: &Finding, then: &Finding, trial: &TrialEvidence) -> bool {
    match tie {
        Tie::Serves => {
            let resource = if then.resource == HOST { largest_consumer(trial) } else { Some(then.resource.as_str()) };
            resource.is_some_and(|service| first.resource == service || asks(first, service, trial))
        }
        Tie::Store => asks(then, &first.resource, trial) || first.operation == then.operation,
    }
}

/// The service that used most CPU.
fn largest_consumer(trial: &TrialEvidence) -> Option<&str> {
    let used = |service: &str| trial.counted_usage(names::CPU_CORES, service).mean;
    trial.service_names().into_iter().max_by(|a, b| used(a).total_cmp(&used(b)))
}

/// Whether the exemplar spans of a finding call the port of a service of this trial.
fn asks(cause: &Finding, service: &str, trial: &TrialEvidence) -> bool {
    let Some(exemplar) = cause.exemplars.first() else { return false };
    let trace = trial.traces.iter().find(|trace| hex(&trace.id) == exemplar.trace_id);
    let spans = trace.into_iter().flat_map(|trace| &trace.spans);
    let ports: Vec<u16> = spans
        .filter(|span| exemplar.span_ids.contains(&hex(&span.span_id)))
        .filter_map(|span| span.facts.server_port)
        .collect();
    trial.services.iter().any(|instance| instance.service == service && ports.contains(&instance.port))
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::{Confidence, Finding};
    use narrows_model::run::Verdict;
    use narrows_testkit::spans::{Beat, query, run_of, server};
    use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

    use super::ranked;
    use crate::diagnose;

    const LOAD: Load = Load { vus: 8, rate: 100.0, latency_ms: 20.0 };

    /// A shop with an N+1 against a database, both with a cap.
    fn trial() -> TrialBuilder {
        let row = query("SELECT name FROM customer WHERE id = ?").to_port(FIRST_PORT + 1);
        let beat = Beat { first_ms: 5.0, step_ms: 5.0, length_ms: 3.0 };
        let orders = server("shop", "GET /orders")
            .at(0.0, 100.0)
            .child(query("SELECT * FROM orders").at(1.0, 2.0))
            .children(run_of(10, beat, |_| row.clone()));
        TrialBuilder::new("a")
            .service("shop", Some(0.5))
            .service("database", Some(0.5))
            .service("mail", Some(0.5))
            .steady(20, LOAD)
            .traces((0..10).map(|number| orders.clone().trace(number)))
    }

    fn ranking(trial: TrialBuilder) -> Vec<(String, String)> {
        diagnose(&trial.build()).into_iter().map(|finding| (finding.detector, finding.resource)).collect()
    }

    fn pair(detector: &str, resource: &str) -> (String, String) {
        (detector.to_owned(), resource.to_owned())
    }

    #[test]
    fn a_cause_comes_before_its_effect() {
        for service in ["shop", "database"] {
            let trial = trial().cpu(service, 0, |_| 0.49);
            assert_eq!(ranking(trial), [pair("n-plus-one", "shop"), pair("cpu-saturation", service)]);
        }
    }

    #[test]
    fn the_effect_says_so() {
        let findings = diagnose(&trial().cpu("shop", 0, |_| 0.49).build());
        let last = findings[1].reasons.last().unwrap();
        assert!(last.starts_with("It is a likely effect of n-plus-one: GET /orders fetches rows"), "{last}");
    }

    #[test]
    fn what_is_unrelated_goes_by_cost() {
        let trial = trial().cpu("mail", 0, |_| 0.49);
        assert_eq!(ranking(trial), [pair("cpu-saturation", "mail"), pair("n-plus-one", "shop")]);
    }

    /// A finding of a detector about a resource, all of one operation.
    fn finding(detector: &str, resource: &str, cost_share: f64) -> Finding {
        Finding {
            detector: detector.into(),
            version: 1,
            title: format!("{resource} is narrow"),
            resource: resource.into(),
            operation: (detector != "cpu-saturation").then(|| "GET /".into()),
            cost_share,
            cost_of: "of it".into(),
            confidence: Confidence::Medium,
            reasons: Vec::new(),
            numbers: Vec::new(),
            evidence_text: None,
            exemplars: Vec::new(),
            ruled_out: Vec::new(),
            falsified_by: String::new(),
            advice: String::new(),
            caveats: Vec::new(),
            ..Finding::default()
        }
    }

    const THROTTLING: (&str, &str, f64) = ("throttling", "store", 0.2);
    const FAN_OUT: (&str, &str, f64) = ("serial-fan-out", "drones", 0.6);
    const CROSS: (&str, &str, f64) = ("cross-partition-query", "drones", 0.9);
    const CPU: (&str, &str, f64) = ("cpu-saturation", "drones", 0.95);
    const OTHER_CPU: (&str, &str, f64) = ("cpu-saturation", "mail", 0.97);

    #[test]
    fn what_is_to_be_dealt_with_first_comes_first() {
        for (given, expected) in [
            (vec![CROSS, FAN_OUT, THROTTLING], vec![THROTTLING, FAN_OUT, CROSS]),
            (vec![CROSS, FAN_OUT], vec![FAN_OUT, CROSS]),
            (vec![CPU, CROSS], vec![CROSS, CPU]),
            (vec![CPU, FAN_OUT], vec![CPU, FAN_OUT]),
            (vec![OTHER_CPU, CROSS], vec![OTHER_CPU, CROSS]),
            (vec![FAN_OUT, CPU, CROSS, THROTTLING], vec![THROTTLING, CROSS, CPU, FAN_OUT]),
            (vec![OTHER_CPU, FAN_OUT, THROTTLING], vec![OTHER_CPU, THROTTLING, FAN_OUT]),
        ] {
            let given = given.into_iter().map(|(detector, resource, cost)| finding(detector, resource, cost)).collect();
            let names: Vec<_> = ranked(given, &trial().build()).into_iter().map(|f| (f.detector, f.resource)).collect();
            assert_eq!(names, expected.iter().map(|(d, r, _)| pair(d, r)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_full_machine_is_explained_by_the_service_that_fills_it() {
        let order = |most: &'static str| {
            let trial = trial().service("drones", None).cpu("mail", 0, |_| 0.2).cpu(most, 0, |_| 0.4).build();
            let given = [("cpu-saturation", "host", 0.95), CROSS];
            let given = given.map(|(detector, resource, cost)| finding(detector, resource, cost)).into();
            ranked(given, &trial).into_iter().map(|finding| finding.resource).collect::<Vec<_>>()
        };
        assert_eq!(order("drones"), ["drones", "host"]);
        assert_eq!(order("shop"), ["host", "drones"]);
    }

    #[test]
    fn what_waits_says_why() {
        let given = [FAN_OUT, THROTTLING].map(|(detector, resource, cost)| finding(detector, resource, cost));
        let ranked = ranked(given.into(), &trial().build());
        assert_eq!(
            ranked[1].reasons,
            [
                "While the store refuses calls, making them at once would only have them refused sooner: store is narrow."
            ]
        );
        assert!(ranked[0].reasons.is_empty());
    }

    #[test]
    fn an_invalid_trial_says_so_first_and_a_busy_generator_by_cost() {
        let cpu = || trial().cpu("mail", 0, |_| 0.49);
        assert_eq!(ranking(cpu().verdict(Verdict::Invalid, "Late."))[0], pair("generator-limited", "narrows"));
        assert_eq!(ranking(cpu().lateness_ms(4.0))[2], pair("generator-limited", "narrows"));
    }
}
