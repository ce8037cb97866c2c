//! Changes that are read from findings, beside simulations of the changed system. The pool of the simulation stands for whatever
//! requests take turns at or wait for.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::connection_churn::{ConnectionChurn, ConnectionEnd};
use narrows_model::finding::evidence::dns::Dns;
use narrows_model::finding::evidence::garbage_collection::GarbageCollection;
use narrows_model::finding::evidence::hot_partition::{HotPartition, PlaceKind};
use narrows_model::finding::evidence::pool_wait::{PoolMetrics, PoolWait};
use narrows_model::finding::evidence::serialised_section::SerialisedSection;
use narrows_model::finding::evidence::time_outside_spans::{EndToEnd, GapPattern, TimeOutsideSpans};
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::Prediction;
use narrows_predict::{Cannot, DiagnosedTrial, predict, read_change};
use narrows_testkit::simulator::{System, WEB};

/// Milliseconds for which the pool's connection is held beside queries.
const HELD_MS: f64 = 20.0;

/// Users that rise from hardly any load to one that no single connection serves.
fn system() -> System {
    System { steps: vec![(1, 20), (4, 15), (8, 15), (12, 15)], think_ms: 50.0, ..System::default() }
}

/// Requests take turns: one connection.
fn turns() -> System {
    System { pool: 1, pool_held_ms: HELD_MS, peer_calls: 0, web_ms: 1.0, ..system() }
}

fn finding(evidence: impl Into<Evidence>) -> Finding {
    Finding { resource: WEB.into(), ..Finding::new(evidence, 1) }
}

/// One request at work at a time, for as long as a connection is held.
fn section(before: &TrialEvidence) -> Finding {
    let held_s = (HELD_MS + 2.0 * 1.7) / 1e3;
    let rate = before.counted_load().rate();
    finding(SerialisedSection { at_work: held_s * rate, rate, ..SerialisedSection::default() })
}

fn predicted(before: &TrialEvidence, findings: &[Finding], change: &str) -> Prediction {
    let asked = [read_change(change).expect("a change")];
    predict(&DiagnosedTrial::new(before, findings), &asked).expect("a prediction").predictions.swap_remove(0)
}

/// Holds a prediction against the simulation of the change, by the shares of throughput and mean latency it may be off.
fn check(change: &str, before: &TrialEvidence, findings: &[Finding], after: &System, allowed: (f64, f64)) {
    let prediction = predicted(before, findings, change);
    let measured = after.run("after").counted_load();
    let rate = prediction.after.rate.error(measured.rate());
    let mean = prediction.after.mean_ns.error(measured.latency.mean_ns());
    assert!(rate.abs() <= allowed.0 && mean.abs() <= allowed.1, "{change}: {rate:+.3} {mean:+.3} {prediction:#?}");
}

#[test]
fn turns_are_no_longer_taken_or_are_shorter() {
    let before = turns().run("before");
    let taken = [section(&before)];
    let many = System { pool: 40, ..turns() };
    check("split-lock=web", &before, &taken, &many, (0.05, 0.10));
    check("raise-limit=web", &before, &taken, &many, (0.05, 0.10));
    check("raise-limit=web,2", &before, &taken, &System { pool: 2, ..turns() }, (0.08, 0.15));
    let short = System { pool_held_ms: HELD_MS / 2.0, query_ms: 0.75, ..turns() };
    check("shorten-section=web,2", &before, &taken, &short, (0.10, 0.15));
    // One queue for three places is shorter than three queues, the less so the calmer they are.
    let calm = System { think_ms: 200.0, ..turns() };
    let before = calm.run("before");
    let hot = HotPartition { kind: PlaceKind::Replica, share: 1.0, ratio: 3.0, ..HotPartition::default() };
    let found = [section(&before), finding(hot)];
    check("balance-replicas=web", &before, &found, &System { pool: 3, ..calm }, (0.05, 0.25));
}

#[test]
fn what_is_done_while_a_connection_is_held_is_done_without_it() {
    let before = turns().run("before");
    let wait = PoolWait {
        query_ns: 2.0 * 1.7e6,
        other_calls_ns: HELD_MS * 1e6,
        pool: PoolMetrics { size: Some(1.0), ..PoolMetrics::default() },
        ..PoolWait::default()
    };
    let many = System { pool: 40, ..turns() };
    check("release-before=web", &before, &[finding(wait)], &many, (0.05, 0.12));
    let asked = [read_change("release-before=web").expect("a change")];
    let refused = predict(&DiagnosedTrial::new(&before, &[section(&before)]), &asked).expect_err("nothing is held");
    assert_eq!(refused, Cannot::NothingHeld { place: WEB.into() });
    let asked = [read_change("release-before=shop").expect("a change")];
    let refused = predict(&DiagnosedTrial::new(&before, &[]), &asked).expect_err("no section");
    assert_eq!(refused, Cannot::NoSection { place: "shop".into(), known: Vec::new() });
}

#[test]
fn known_waits_are_gone() {
    // A connection is held for this long, and there are enough of them: a wait without CPU.
    let before = System { pool_held_ms: 30.0, ..system() };
    let trial = before.run("before");
    let after = System { pool_held_ms: 0.0, ..before };
    let names = finding(Dns { request_ns: 30e6, ..Dns::default() });
    check("cache-names=web", &trial, &[names], &after, (0.05, 0.15));
    let of = |client_ns| EndToEnd { client_ns, span_ns: 10e6, ..EndToEnd::default() };
    let pattern = GapPattern::DelayedAcknowledgement;
    let delayed = finding(TimeOutsideSpans { heaviest: of(40e6), pattern, ..TimeOutsideSpans::default() });
    check("remove-stall=web", &trial, &[delayed], &after, (0.05, 0.15));
}

#[test]
fn cpu_that_is_saved_is_what_a_later_trial_shows() {
    let before = System { web_ms: 12.0, ..system() };
    let trial = before.run("before");
    let after = System { web_ms: 6.0, ..before };
    let collections = finding(GarbageCollection { cores: Some(1.0), ..GarbageCollection::default() });
    check("raise-memory=web,2", &trial, &[collections], &after, (0.05, 0.10));
    let end = |connection_cores| ConnectionEnd { service: WEB.into(), cores: 1.0, connection_cores };
    let churn = |cores| finding(ConnectionChurn { ends: vec![end(cores)], ..ConnectionChurn::default() });
    check("reuse-connections=web,2", &trial, &[churn(0.1)], &after, (0.05, 0.10));
    check("reuse-connections=web", &trial, &[churn(0.5)], &after, (0.05, 0.10));
}
