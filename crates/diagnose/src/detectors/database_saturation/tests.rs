//! Tests of `database-saturation`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::series::names;
use narrows_model::trace::Trace;
use narrows_testkit::spans::{SpanBuilder, query, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const READ: &str = "SELECT name FROM item WHERE id = ?";
const WRITE: &str = "UPDATE item SET stock = ? WHERE id = ?";

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&DatabaseSaturation, &trial.build(), &Thresholds::default())
}

/// Ten seconds each of 2, 8 and 32 users of a shop (port 9000) and its database (9001).
fn steps() -> TrialBuilder {
    let load = |vus, rate, latency_ms| Load { vus, rate, latency_ms };
    let trial = TrialBuilder::new("a").service("shop", Some(1.0)).service("store", Some(0.5));
    let trial = trial.steady(10, load(2, 100.0, 20.0)).steady(10, load(8, 240.0, 33.0));
    trial.steady(10, load(32, 250.0, 128.0)).cpu("shop", 0, |second| 0.1 + 0.01 * f64::from(second))
}

/// A request with this call every half second, in the first and the last ten seconds.
fn traces(call: impl Fn(f64) -> SpanBuilder, light_ms: f64, heavy_ms: f64) -> Vec<Trace> {
    let request = |ms: f64| server("shop", "GET /item").at(0.0, ms + 4.0).child(call(ms).at(2.0, ms));
    let light = (0..20).map(|n| request(light_ms).trace(50 * n));
    light.chain((0..20).map(|n| request(heavy_ms).trace(2000 + 50 * n))).collect()
}

fn reading(rows: Option<u64>) -> impl Fn(f64) -> SpanBuilder {
    move |_| {
        let call = query(READ).to_port(FIRST_PORT + 1);
        rows.map_or_else(|| call.clone(), |rows| call.clone().rows(rows))
    }
}

fn full() -> TrialBuilder {
    steps().cpu("store", 0, |second| [0.2, 0.47, 0.49][second as usize / 10])
}

#[test]
fn a_full_database_says_what_a_request_costs_it() {
    let findings = detect(full().traces(traces(reading(Some(1)), 2.0, 8.0)));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "store is saturated: 98 % of its 0.50 cores");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("store", Confidence::High));
    assert_eq!(
        finding.reasons()[1],
        "By the utilisation law each request costs it 1.96 ms of CPU (0.49 cores ÷ 250/s), so 0.50 cores can carry 255/s \
         at most."
    );
    assert!(finding.reasons()[3].contains("4 times as long at 32 users as at 2 users"), "{:?}", finding.reasons());
    let Evidence::DatabaseSaturation(evidence) = &finding.evidence else { panic!() };
    let evidence::SaturationSign::Cpu { cpu, slowed: Some(slowed) } = &evidence.sign else { panic!("{evidence:?}") };
    assert!(cpu.demand.is_some_and(|demand| (demand.rate_max() - 255.1).abs() < 0.1), "{cpu:?}");
    assert_eq!((slowed.factor, slowed.light.users, slowed.heavy.users), (4.0, 2, 32));
    assert!(finding.ruled_out()[3].starts_with("The CPU of those who ask: shop uses"), "{:?}", finding.ruled_out());
    assert_eq!((finding.evidence_text().as_deref(), finding.exemplars.len()), (Some(READ), 3));
    assert_eq!(finding.period.as_ref().unwrap().label, "“32 users”");
}

#[test]
fn a_database_outside_the_trial_is_known_by_its_queries() {
    let outside = |rows: Option<u64>| {
        let call = move |_| rows.map_or_else(|| query(READ), |rows| query(READ).rows(rows));
        detect(steps().traces(traces(call, 2.0, 12.0)))
    };
    let findings = outside(Some(3));
    assert_eq!(
        findings[0].title(),
        "postgresql is saturated: the same queries take 6 times as long at 32 users as at 2 users"
    );
    assert!((findings[0].cost_share - 5.0 / 6.0).abs() < 1e-9);
    let not_sampled = Caveat::DatabaseNotSampled { database: "postgresql".into() };
    assert_eq!((findings[0].confidence, &findings[0].caveats[..]), (Confidence::Medium, &[not_sampled.clone()][..]));
    let unsure = outside(None);
    assert_eq!(unsure[0].confidence, Confidence::Low);
    assert_eq!(unsure[0].caveats, [Caveat::RowsNotShown, not_sampled]);
}

#[test]
fn a_database_is_known_by_its_program_where_spans_name_no_port() {
    let mut trial = full().traces(traces(|_| query(READ).rows(1), 2.0, 3.0)).build();
    trial.services[1].command = vec!["/usr/lib/postgresql/15/bin/postgres".into()];
    let findings = crate::detect(&DatabaseSaturation, &trial, &Thresholds::default());
    assert_eq!(findings[0].resource, "store");
}

#[test]
fn other_causes_of_long_queries_are_silent() {
    let slow = || traces(reading(Some(1)), 2.0, 12.0);
    let busy = || steps().cpu("store", 0, |_| 0.35);
    assert_eq!(detect(busy().traces(slow())).len(), 1);
    let write = |_| query(WRITE).to_port(FIRST_PORT + 1).rows(1);
    let rows = |ms: f64| query(READ).to_port(FIRST_PORT + 1).rows(if ms > 5.0 { 60 } else { 10 });
    let refused = (0..5).map(|n| {
        let call = query(READ).to_port(FIRST_PORT + 1).throttled(None).at(2.0, 1.0);
        server("shop", "GET /item").at(0.0, 9.0).child(call).trace(2500 + n)
    });
    let hot_shop = TrialBuilder::new("a").service("shop", Some(1.0)).service("store", Some(0.5));
    let hot_shop = hot_shop.steady(10, Load { vus: 2, rate: 100.0, latency_ms: 20.0 });
    let hot_shop = hot_shop.steady(20, Load { vus: 32, rate: 250.0, latency_ms: 128.0 });
    for (name, trial) in [
        ("twice as long only", busy().traces(traces(reading(Some(1)), 2.0, 4.0))),
        ("locks: only writes grow", busy().traces(traces(write, 2.0, 12.0))),
        ("more rows", busy().traces(traces(rows, 2.0, 12.0))),
        ("an idle database", steps().cpu("store", 0, |_| 0.1).traces(slow())),
        ("refusals", busy().traces(slow()).traces(refused)),
        ("a full client", hot_shop.cpu("shop", 0, |_| 0.97).cpu("store", 0, |_| 0.35).traces(slow())),
        ("a client that waits for processors", busy().series(names::CPU_WAIT, "shop", 0, |_| 0.5).traces(slow())),
        ("a full machine", busy().host_cpu(|_| 0.99).traces(slow())),
        ("few queries", busy().traces(slow().into_iter().step_by(4))),
        ("a full service that gets no database calls", full()),
        ("room to spare", busy().traces(traces(reading(Some(1)), 2.0, 2.1))),
    ] {
        assert_eq!(detect(trial), [], "with {name}");
    }
}
