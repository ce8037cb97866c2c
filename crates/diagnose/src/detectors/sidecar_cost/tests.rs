//! Tests of `sidecar-cost`: evidence that must make it fire, and evidence that must not.

use narrows_model::comparison::{SidecarSummary, TraversalCount};
use narrows_model::finding::Evidence;
use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

use super::*;
use crate::compare;
use crate::words::InWords;

/// Two services that together use a core and respond at this rate.
fn plain(rate: f64, latency_ms: f64) -> TrialBuilder {
    let trial = TrialBuilder::new("plain").service("shop", None).service("stock", None);
    let trial = trial.steady(20, Load { vus: 8, rate, latency_ms });
    trial.cpu("shop", 0, |_| 0.5).cpu("stock", 0, |_| 0.5)
}

/// The same services, each with a sidecar; the sidecars together use a core.
fn meshed(rate: f64, latency_ms: f64) -> TrialBuilder {
    let trial = TrialBuilder::new("meshed").service("shop", None).service("stock", None);
    let trial = trial.service("shop.sidecar", None).service("stock.sidecar", None);
    let trial = trial.steady(20, Load { vus: 8, rate, latency_ms });
    let trial = trial.cpu("shop", 0, |_| 0.5).cpu("stock", 0, |_| 0.5);
    trial.cpu("shop.sidecar", 0, |_| 0.5).cpu("stock.sidecar", 0, |_| 0.5)
}

fn detect_run(trials: [TrialBuilder; 2]) -> Vec<(usize, Finding)> {
    let run = run_of_trials(trials.map(TrialBuilder::build));
    let thresholds = Thresholds::default();
    SidecarCost.detect_run(&run, &compare(&run, &thresholds), &thresholds)
}

fn evidence(finding: &Finding) -> &evidence::SidecarCost {
    let Evidence::SidecarCost(evidence) = &finding.evidence else { panic!("{:?}", finding.evidence) };
    evidence
}

#[test]
fn one_trial_tells_their_share_of_the_cpu() {
    let findings = crate::detect(&SidecarCost, &meshed(100.0, 20.0).build(), &Thresholds::default());
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "the sidecars use 50 % of all CPU, 3.33 ms each time that a request passes one");
    assert_eq!(
        finding.reasons(),
        [
            "They use 1 core on average.",
            "A request is assumed to pass 3 sidecars, as in a chain of services: no span shows more."
        ]
    );
    assert_eq!((evidence(finding).hop_ns, &evidence(finding).compared), (None, &None));
    assert_eq!(finding.caveats, [Caveat::SidecarLatencyNotCompared]);
}

#[test]
fn beside_the_same_without_them_their_latency_shows() {
    let found = detect_run([plain(100.0, 20.0), meshed(100.0, 30.0)]);
    let [(1, finding)] = &found[..] else { panic!("one finding in the second trial, not {found:?}") };
    assert!(
        finding
            .title()
            .starts_with("the sidecars multiply the CPU of a request by 2.00, from 10.0 ms to 20.0 ms, and cost +"),
        "{}",
        finding.title()
    );
    assert_eq!(
        finding.reasons()[1],
        "CPU for each request is 10.0 ms in plain and 20.0 ms in meshed, of which the sidecars themselves use 10.0 ms \
         (50 %) and the services 10.0 ms."
    );
    let compared = evidence(finding).compared.as_ref().unwrap();
    assert!((compared.added_p50_ns() - 10e6).abs() < 0.5e6, "{compared:?}");
    assert_eq!((finding.cost_share, finding.confidence), (0.5, Confidence::Medium));
    assert_eq!(finding.caveats, [Caveat::SidecarsShareMachine]);
}

#[test]
fn other_rates_and_no_sidecars_are_silent() {
    assert_eq!(detect_run([plain(100.0, 20.0), meshed(60.0, 30.0)]), [], "at another rate");
    assert_eq!(detect_run([plain(100.0, 20.0), plain(100.0, 30.0)]), [], "without any");
}

#[test]
fn one_sidecar_is_not_several() {
    let words = |traversals_per_request: f64| {
        let sidecars =
            SidecarSummary { traversals_per_request, counted_from: TraversalCount::Hops, ..SidecarSummary::default() };
        let evidence = evidence::SidecarCost { sidecars, ..evidence::SidecarCost::default() };
        Finding::new(evidence, 1).reasons()[1].clone()
    };
    assert_eq!(words(1.0), "A request passes 1 sidecar on average, by their own spans.");
    assert_eq!(words(3.0), "A request passes 3 sidecars on average, by their own spans.");
}
