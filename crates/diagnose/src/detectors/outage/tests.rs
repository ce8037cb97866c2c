//! Tests of `outage`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::run::WindowKind;
use narrows_model::series::{Point, SeriesKey};
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::spans::{client, query, server};
use narrows_testkit::trial::{FIRST_PORT, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// Twenty seconds of a shop (port 9000) and its store (9001). From the tenth second on, `succeeded` of a hundred
/// requests succeed in each second, and the others fail by their status.
fn trial(succeeded: &'static [u32]) -> TrialEvidence {
    let of = move |second: usize| succeeded.get(second.wrapping_sub(10)).copied().unwrap_or(100);
    let trial = TrialBuilder::new("a").service("shop", None).service("store", None);
    let trial = trial.window(WindowKind::Steady, 4, (0..20).map(|second| (f64::from(of(second)), 5.0)));
    let mut trial = trial.build();
    for (row, second) in trial.seconds.iter_mut().zip(0..) {
        row.errors.status = u64::from(100 - of(second));
    }
    trial
}

/// Adds a replica that goes up or down at the given seconds.
fn up(mut trial: TrialEvidence, service: &str, points: &[(f64, f64)]) -> TrialEvidence {
    let key = SeriesKey { name: names::REPLICA_UP.into(), service: service.into(), ..SeriesKey::default() };
    let at = |seconds: f64| TRIAL_START_NS + (seconds * 1e9) as i64;
    let points = points.iter().map(|(seconds, value)| Point { time_ns: at(*seconds), value: *value }).collect();
    trial.series.push(Series { key, points });
    trial
}

fn with_traces(mut trial: TrialEvidence, port: u16) -> TrialEvidence {
    let failed = query("SELECT 1").to_port(port).failed().at(1.0, 1.0);
    let shop = server("shop", "GET /").at(0.0, 4.0).failed().child(failed);
    let edge = client("GET").to_port(FIRST_PORT).failed().at(0.0, 6.0).child(shop);
    let root = server("edge", "GET /").at(0.0, 8.0).failed().child(edge);
    trial.traces = (0..9).map(|n| root.clone().trace(1_050 + n)).collect();
    trial
}

fn detect(trial: &TrialEvidence) -> Vec<Finding> {
    crate::detect(&Outage, trial, &Thresholds::default())
}

#[test]
fn a_store_that_was_down_is_named_with_what_failed_and_how_long_it_took() {
    let trial = up(trial(&[40, 0, 30]), "store", &[(10.2, 0.0), (11.4, 1.0)]);
    let [finding] = &detect(&with_traces(trial, FIRST_PORT + 1))[..] else { panic!("one finding") };
    assert_eq!(finding.title(), "store was down for 1.20 s; 230 requests failed, all was as before after 2.80 s");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("store", Confidence::High));
    assert_eq!(
        finding.reasons()[0],
        "Down 10.2 s into the load: 230 failed (status 230), none succeeded in 1 s, until 100/s succeeded again as \
         before, 2.80 s later; it ran again 1.60 s before that."
    );
    let Evidence::Outage(evidence) = &finding.evidence else { panic!("{finding:?}") };
    assert_eq!((evidence.down_ns(), evidence.felt_ns()), (1_200_000_000, 2_800_000_000));
    assert_eq!((evidence.failed().total(), evidence.failed_call_share), (230, Some(1.0)));
    assert!((0.7..0.8).contains(&finding.cost_share), "{}", finding.cost_share);
    assert_eq!(finding.exemplars.len(), 3);
}

#[test]
fn failures_elsewhere_make_it_less_sure() {
    let trial = up(trial(&[40, 0, 30]), "store", &[(10.2, 0.0), (11.4, 1.0)]);
    let [finding] = &detect(&with_traces(trial, 7))[..] else { panic!("one finding") };
    assert_eq!((finding.confidence, finding.exemplars.len()), (Confidence::Medium, 0));
}

#[test]
fn one_that_stays_down_and_one_that_falls_often_are_reported_as_such() {
    let title = |succeeded, points: &[(f64, f64)]| detect(&up(trial(succeeded), "store", points))[0].title().clone();
    assert_eq!(
        title(&[40, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[(10.5, 0.0)]),
        "store was down to the end of the load, 9.50 s; 960 requests failed, and it was not as before when the load ended"
    );
    let twice = [(10.5, 0.0), (11.0, 1.0), (15.5, 0.0), (16.0, 1.0)];
    assert_eq!(
        title(&[90, 50, 100, 100, 100, 20], &twice),
        "store was down 2 times, 1.00 s in all; 140 requests failed"
    );
}

#[test]
fn what_nobody_felt_is_no_outage() {
    let down = [(10.2, 0.0), (11.4, 1.0)];
    for (name, trial) in [
        ("a replica that others stood in for", up(trial(&[]), "store", &down)),
        ("failures without an outage", trial(&[40, 0, 30])),
        ("one that was up all the time", up(trial(&[40, 0, 30]), "store", &[(10.2, 1.0)])),
        ("one after the failures", up(trial(&[40, 0, 30]), "store", &[(16.0, 0.0), (17.0, 1.0)])),
    ] {
        assert_eq!(detect(&trial), [], "{name}");
    }
}
