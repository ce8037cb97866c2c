//! The order of a trial's findings, and what they have to do with each other.
//!
//! First what makes the trial's figures invalid, then by cost, but a cause before its effect: where a service runs out
//! of CPU and an `n-plus-one` in it, or against it as a database, explains why, the CPU finding says so and comes after.

use std::cmp::Ordering;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Confidence, Finding};
use narrows_model::trace::hex;

use crate::Detector;
use crate::detectors::cpu_saturation::CpuSaturation;
use crate::detectors::generator_limited::GeneratorLimited;
use crate::detectors::n_plus_one::NPlusOne;

/// Whether a finding says that the trial's figures are not the system's.
pub(crate) fn is_invalidating(finding: &Finding) -> bool {
    finding.detector == GeneratorLimited.id() && finding.confidence == Confidence::High
}

/// Whether a finding is about the experiment rather than the system.
pub(crate) fn is_about_experiment(finding: &Finding) -> bool {
    finding.detector == GeneratorLimited.id()
}

/// Puts findings in order and notes effects of others as such.
pub(crate) fn ranked(findings: Vec<Finding>, trial: &TrialEvidence) -> Vec<Finding> {
    let (symptoms, mut ranked): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.detector == CpuSaturation.id());
    ranked.sort_by(by_cost);
    for mut symptom in symptoms {
        let mut place = ranked.iter().position(|other| by_cost(&symptom, other).is_lt()).unwrap_or(ranked.len());
        if let Some(at) = ranked.iter().position(|other| explains(other, &symptom, trial)) {
            symptom.reasons.push(format!("It is a likely effect of {}: {}.", ranked[at].detector, ranked[at].title));
            place = place.max(at + 1);
        }
        ranked.insert(place, symptom);
    }
    ranked
}

fn by_cost(a: &Finding, b: &Finding) -> Ordering {
    is_invalidating(b).cmp(&is_invalidating(a)).then(b.cost_share.total_cmp(&a.cost_share))
}

/// Whether a finding is why its service, or the database it asks, runs out of CPU.
fn explains(cause: &Finding, symptom: &Finding, trial: &TrialEvidence) -> bool {
    cause.detector == NPlusOne.id() && (cause.resource == symptom.resource || asks(cause, &symptom.resource, trial))
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
    use narrows_model::run::Verdict;
    use narrows_testkit::spans::{Beat, query, run_of, server};
    use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

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

    #[test]
    fn an_invalid_trial_says_so_first_and_a_busy_generator_by_cost() {
        let cpu = || trial().cpu("mail", 0, |_| 0.49);
        assert_eq!(ranking(cpu().verdict(Verdict::Invalid, "Late."))[0], pair("generator-limited", "narrows"));
        assert_eq!(ranking(cpu().lateness_ms(4.0))[2], pair("generator-limited", "narrows"));
    }
}
