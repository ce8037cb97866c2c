//! Which findings come first, which become effects of others, and which is the narrow place.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::slow_dependency::SlowDependency;
use narrows_model::finding::evidence::time_outside_spans::{GapPattern, TimeOutsideSpans};
use narrows_model::finding::{Exemplar, FindingKind, Period, narrow_place};
use narrows_model::run::Verdict;
use narrows_model::trace::hex;
use narrows_testkit::spans::{Beat, client, query, run_of, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::diagnose;
use crate::thresholds::Thresholds;
use crate::words::InWords;
use crate::words::relation::{mechanism, precedence};

const LOAD: Load = Load { vus: 8, rate: 100.0, latency_ms: 20.0 };

/// A shop with an N+1 against a database, both with a cap, and a mail service that nobody calls.
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

/// Findings, each with the detectors of its effects.
fn found(trial: TrialBuilder) -> Vec<(String, String, Vec<String>)> {
    of(&diagnose(&trial.build(), &Thresholds::default()))
}

fn of(findings: &[Finding]) -> Vec<(String, String, Vec<String>)> {
    let effects = |finding: &Finding| finding.effects.iter().map(|effect| effect.kind().id().to_owned()).collect();
    findings
        .iter()
        .map(|finding| (finding.kind().id().to_owned(), finding.resource.clone(), effects(finding)))
        .collect()
}

fn row(detector: &str, resource: &str, effects: &[&str]) -> (String, String, Vec<String>) {
    (detector.to_owned(), resource.to_owned(), effects.iter().map(|effect| (*effect).to_owned()).collect())
}

#[test]
fn a_full_processor_beside_an_n_plus_one_is_one_finding() {
    let both = ["cpu-saturation", "database-saturation"];
    for (service, effects) in [("shop", &both[..1]), ("database", &both)] {
        let findings = diagnose(&trial().cpu(service, 0, |_| 0.49).build(), &Thresholds::default());
        assert_eq!(of(&findings), [row("n-plus-one", "shop", effects)]);
        let reasons = findings[0].effects[0].wording(&findings).reasons;
        let why = reasons.last().unwrap();
        assert!(why.starts_with("It is a likely effect of repeated queries: GET /orders fetches rows"), "{why}");
        assert!(why.ends_with("Every call costs CPU time on both sides."), "{why}");
        let relation = Relation::EffectOf { number: findings[0].number, why: Mechanism::CpuOfCalls };
        assert_eq!(findings[0].effects[0].relations, [relation]);
    }
}

#[test]
fn what_is_unrelated_stays_and_goes_by_cost() {
    let unrelated = found(trial().cpu("mail", 0, |_| 0.49));
    assert_eq!(unrelated, [row("cpu-saturation", "mail", &[]), row("n-plus-one", "shop", &[])]);
}

/// Input of a finding: detector, resource, cost.
type Given = (&'static str, &'static str, f64);

fn finding((detector, resource, cost_share): Given) -> Finding {
    Finding {
        resource: resource.into(),
        operation: (!["cpu-saturation", "retrograde-throughput"].contains(&detector)).then(|| "GET /".into()),
        cost_share,
        confidence: Confidence::Medium,
        ..Finding::new(detector.parse::<FindingKind>().unwrap(), 1)
    }
}

/// A gateway that calls drones and parts; drones call a store, parts call nobody. Mail has requests of its own.
fn system() -> TrialBuilder {
    let drones = server("drones", "GET /").child(query("SELECT a FROM t").to_port(FIRST_PORT + 2));
    let call = |port: u16| client("GET").to_port(port);
    let root = server("gateway", "GET /")
        .at(0.0, 50.0)
        .child(call(FIRST_PORT + 1).at(1.0, 48.0).child(drones))
        .child(call(FIRST_PORT + 3).at(1.0, 8.0).child(server("parts", "GET /")));
    let services = ["gateway", "drones", "store", "parts", "mail"];
    let trial = services.into_iter().fold(TrialBuilder::new("a"), |trial, service| trial.service(service, None));
    trial.steady(20, LOAD).traces([root.trace(1), server("mail", "GET /mail").trace(2)])
}

fn rank(given: Vec<Finding>, trial: &TrialEvidence) -> Vec<Finding> {
    Reading::with(trial, &Thresholds::default(), |reading| ranked(given, reading))
}

fn rank_of(given: &[Given]) -> Vec<Finding> {
    rank(given.iter().copied().map(finding).collect(), &system().build())
}

/// Time outside the spans of the gateway.
fn outside(pattern: GapPattern) -> Finding {
    let evidence = TimeOutsideSpans { pattern, ..TimeOutsideSpans::default() };
    Finding { evidence: evidence.into(), ..finding(("time-outside-spans", "gateway", 0.95)) }
}

#[test]
fn a_queue_before_a_service_is_an_effect_of_what_its_workers_wait_for() {
    let among = |pattern, other: Given| of(&rank(vec![outside(pattern), finding(other)], &system().build()));
    let (slow, apart) = (("slow-query", "store", 0.3), ("slow-query", "mail", 0.3));
    assert_eq!(among(GapPattern::Grows, slow), [row("slow-query", "store", &["time-outside-spans"])]);
    let two = |resource| [row("time-outside-spans", "gateway", &[]), row("slow-query", resource, &[])];
    assert_eq!(among(GapPattern::Constant, slow), two("store"), "no queue");
    assert_eq!(among(GapPattern::Grows, apart), two("mail"), "nothing that the gateway waits for");
}

/// A store that is slow and that drones call.
fn slow_store() -> Finding {
    let evidence = SlowDependency { callers: vec!["drones".into()], ..SlowDependency::default() };
    Finding { evidence: evidence.into(), ..finding(("slow-dependency", "store", 0.8)) }
}

#[test]
fn a_slow_dependency_gives_way_to_what_says_why_it_is_slow() {
    let among = |other: Given| of(&rank(vec![slow_store(), finding(other)], &system().build()));
    for other in [STORE, ("slow-query", "store", 0.3), ("event-loop-lag", "drones", 0.3)] {
        assert_eq!(among(other), [row(other.0, other.1, &[])], "it says more than that calls take long");
    }
    for other in
        [("event-loop-lag", "mail", 0.3), ("cpu-saturation", "mail", 0.3), ("retrograde-throughput", "store", 0.3)]
    {
        let found = among(other);
        assert!(found.iter().any(|(kind, ..)| kind == "slow-dependency"), "{other:?} says nothing of it: {found:?}");
    }
    let alone = rank(vec![slow_store()], &system().build());
    assert_eq!((of(&alone), alone[0].role), (vec![row("slow-dependency", "store", &[])], Role::NarrowPlace));
}

const THROTTLING: Given = ("throttling", "store", 0.2);
const FAN_OUT: Given = ("serial-fan-out", "drones", 0.6);
const CROSS: Given = ("cross-partition-query", "drones", 0.9);
const CPU: Given = ("cpu-saturation", "drones", 0.95);
const OTHER_CPU: Given = ("cpu-saturation", "mail", 0.97);
const STORE: Given = ("database-saturation", "store", 0.9);
const POOL: Given = ("pool-wait", "drones", 0.7);
const FALL: Given = ("retrograde-throughput", "gateway", 0.3);
const RATE: Given = ("provisioned-rate", "store", 0.99);
const STORM: Given = ("retry-storm", "drones", 0.6);

#[test]
fn what_is_to_be_dealt_with_first_comes_first() {
    let cases: &[(&[Given], &[&str])] = &[
        (&[CROSS, FAN_OUT, THROTTLING], &["throttling", "serial-fan-out", "cross-partition-query"]),
        (&[CROSS, FAN_OUT], &["serial-fan-out", "cross-partition-query"]),
        (&[CPU, CROSS], &["cross-partition-query < cpu-saturation"]),
        (&[CPU, FAN_OUT], &["cpu-saturation", "serial-fan-out"]),
        (&[OTHER_CPU, CROSS], &["cpu-saturation", "cross-partition-query"]),
        (
            &[FAN_OUT, CPU, CROSS, THROTTLING],
            &["throttling", "cross-partition-query < cpu-saturation", "serial-fan-out"],
        ),
        (&[OTHER_CPU, FAN_OUT, THROTTLING], &["cpu-saturation", "throttling", "serial-fan-out"]),
    ];
    check(cases);
}

#[test]
fn causes_absorb_what_is_tied_to_them() {
    let cases: &[(&[Given], &[&str])] = &[
        (&[THROTTLING, RATE, FALL], &["throttling < retrograde-throughput provisioned-rate"]),
        (&[("hot-partition", "store", 0.4), THROTTLING, RATE], &["hot-partition < throttling provisioned-rate"]),
        (&[CPU, FALL, POOL], &["cpu-saturation < pool-wait retrograde-throughput"]),
        (&[OTHER_CPU, FALL, POOL], &["cpu-saturation", "pool-wait < retrograde-throughput"]),
        (&[STORE, ("cpu-saturation", "store", 0.95), POOL], &["database-saturation < cpu-saturation pool-wait"]),
        (&[STORE, ("pool-wait", "parts", 0.7)], &["database-saturation", "pool-wait"]),
        (&[OTHER_CPU, FALL], &["cpu-saturation", "retrograde-throughput"]),
    ];
    check(cases);
}

#[track_caller]
fn check(cases: &[(&[Given], &[&str])]) {
    for (given, expected) in cases {
        let told = rank_of(given).into_iter().map(|finding| {
            let effects: Vec<&str> = finding.effects.iter().map(|effect| effect.kind().id()).collect();
            if effects.is_empty() {
                finding.kind().id().to_owned()
            } else {
                format!("{} < {}", finding.kind(), effects.join(" "))
            }
        });
        assert_eq!(told.collect::<Vec<_>>(), *expected, "{given:?}");
    }
}

#[test]
fn a_chain_of_effects_hangs_from_its_first_cause() {
    let asking = |given: Given, name: &str| {
        let trial = system().build();
        let spans = trial.traces[0].spans.iter().filter(|span| span.name == name);
        let span_ids = spans.map(|span| hex(&span.span_id)).collect();
        let exemplars = vec![Exemplar { trace_id: hex(&trial.traces[0].id), span_ids }];
        Finding { exemplars, ..finding(given) }
    };
    let n_plus_one = asking(("n-plus-one", "drones", 0.5), "SELECT");
    let given = vec![n_plus_one, finding(STORE), finding(POOL), finding(FALL)];
    let ranked = rank(given, &system().build());
    assert_eq!(
        of(&ranked),
        [row("n-plus-one", "drones", &["database-saturation", "pool-wait", "retrograde-throughput"])]
    );
    assert!(ranked[0].effects.iter().all(|effect| effect.effects.is_empty()));
    let reasons = ranked[0].effects[2].wording(&ranked).reasons;
    let last = reasons.last().unwrap();
    assert!(last.starts_with("It is a likely effect of a full database: store "), "{last}");

    let branch = asking(("straggler-branch", "gateway", 0.8), "GET");
    let ranked = rank(vec![branch, finding(THROTTLING)], &system().build());
    assert_eq!(of(&ranked), [row("throttling", "store", &["straggler-branch"])]);
}

#[test]
fn figures_say_whether_repetitions_fill_a_service_or_come_from_a_full_one() {
    let storm = |repeated: f64| ("retry-storm", "drones", repeated);
    let filled = rank_of(&[storm(0.6), CPU]);
    assert_eq!(of(&filled), [row("retry-storm", "drones", &["cpu-saturation"])]);
    let full_anyway = rank_of(&[storm(0.05), CPU]);
    assert_eq!(of(&full_anyway), [row("cpu-saturation", "drones", &["retry-storm"])]);
    assert_eq!(rank_of(&[STORM, OTHER_CPU]).len(), 2);
}

#[test]
fn a_hot_partition_is_the_cause_only_while_the_others_have_room() {
    let given = || [("hot-partition", "store", 0.9), THROTTLING].map(finding).to_vec();
    let spent = |others: f64| {
        let trial = system().throughput("store", "0", 100.0, |_| 99.0);
        (1..4).fold(trial, |trial, n| trial.throughput("store", &n.to_string(), 100.0, move |_| others)).build()
    };
    assert_eq!(of(&rank(given(), &spent(20.0))), [row("hot-partition", "store", &["throttling"])]);
    let full = rank(given(), &spent(90.0));
    assert_eq!(of(&full), [row("throttling", "store", &[]), row("hot-partition", "store", &[])]);
    assert!(matches!(full[1].relations[..], [Relation::After { why: Precedence::NoCapacityElsewhere, .. }]));
}

#[test]
fn what_was_seen_at_another_time_is_no_cause() {
    let at = |given: Given, start_ns: i64| {
        let period = Some(Period { label: "“8 users”".into(), start_ns, end_ns: start_ns + 10 });
        Finding { period, ..finding(given) }
    };
    let together = |start_ns| rank(vec![at(CPU, 0), at(FALL, start_ns)], &system().build()).len();
    assert_eq!((together(5), together(10)), (1, 2));
}

#[test]
fn an_unsure_cause_absorbs_nothing_that_is_surer() {
    let cross = |confidence| Finding { confidence, ..finding(CROSS) };
    let with = |confidence| rank(vec![cross(confidence), finding(CPU)], &system().build()).len();
    assert_eq!((with(Confidence::Medium), with(Confidence::Low)), (1, 2));
}

#[test]
fn a_full_machine_is_explained_by_the_service_that_fills_it() {
    let order = |most: &'static str| {
        let trial = system().cpu("mail", 0, |_| 0.2).cpu(most, 0, |_| 0.4).build();
        of(&rank([("cpu-saturation", "host", 0.95), CROSS].map(finding).to_vec(), &trial))
    };
    assert_eq!(order("drones"), [row("cross-partition-query", "drones", &["cpu-saturation"])]);
    assert_eq!(order("parts"), [row("cpu-saturation", "host", &[]), row("cross-partition-query", "drones", &[])]);
}

#[test]
fn what_waits_says_why() {
    let ranked = rank_of(&[FAN_OUT, THROTTLING]);
    let why = "While the store rejects calls, parallel calls would only be rejected sooner";
    let said = format!("{why}: {}.", ranked[0].title());
    assert_eq!(ranked[1].wording(&ranked).reasons.last(), Some(&said));
    let relation = Relation::After { number: ranked[0].number, why: Precedence::RejectedSooner };
    assert_eq!(ranked[1].relations, [relation]);
    assert!(ranked[0].relations.is_empty());
}

#[test]
fn an_invalid_trial_says_so_first_and_a_busy_generator_last() {
    let detectors = |trial: TrialBuilder| found(trial).into_iter().map(|row| row.0).collect::<Vec<_>>();
    let cpu = || trial().cpu("mail", 0, |_| 0.49);
    assert_eq!(detectors(cpu().verdict(Verdict::Invalid, "Late."))[0], "generator-limited");
    assert_eq!(detectors(cpu().lateness_ms(4.0))[2], "generator-limited");
}

/// The detector of the narrow place.
fn narrow(given: Vec<Finding>) -> Option<String> {
    narrow_place(&rank(given, &system().build())).map(|finding| finding.kind().id().to_owned())
}

#[test]
fn the_narrow_place_is_in_the_way_and_about_the_system() {
    let sure = |detector| Finding { confidence: Confidence::High, ..finding((detector, "narrows", 1.0)) };
    let low = |given| Finding { confidence: Confidence::Low, ..finding(given) };
    let some = |detector: &str| Some(detector.to_owned());
    assert_eq!(narrow(vec![sure("generator-limited"), finding(CPU)]), some("cpu-saturation"));
    assert_eq!(narrow(vec![finding(CROSS), low(FAN_OUT)]), some("serial-fan-out"));
    assert_eq!(narrow(vec![low(OTHER_CPU), finding(FAN_OUT)]), some("serial-fan-out"));
    assert_eq!(narrow(vec![finding(CROSS)]), some("cross-partition-query"));
    assert_eq!(narrow(vec![low(CROSS)]), None);
    for detector in ["generator-limited", "offered-load-limited", "not-steady", "instrumentation-gap"] {
        assert_eq!(narrow(vec![sure(detector)]), None, "{detector}");
    }
    assert_eq!(narrow(Vec::new()), None);
}

#[test]
fn what_costs_next_to_nothing_is_in_nobodys_way() {
    let cheap = || finding(("n-plus-one", "shop", 0.004));
    assert_eq!(narrow(vec![cheap()]), None);
    assert_eq!(narrow(vec![cheap(), finding(("pool-wait", "mail", 0.3))]).as_deref(), Some("pool-wait"));
}

#[test]
fn each_finding_has_its_role() {
    let given = [CROSS, CPU, OTHER_CPU, ("offered-load-limited", "narrows", 1.0)].map(finding).to_vec();
    let roles: Vec<Role> = rank(given, &system().build()).into_iter().map(|finding| finding.role).collect();
    assert_eq!(roles, [Role::NarrowPlace, Role::InTheWay, Role::LimitsReading]);
}

#[test]
fn a_gap_that_another_finding_explains_is_no_finding() {
    let gap = ("instrumentation-gap", "drones", 0.8);
    assert_eq!(rank_of(&[gap, OTHER_CPU]).len(), 2);
    for explains in [CPU, ("cpu-saturation", "host", 0.9), POOL] {
        assert_eq!(rank_of(&[gap, explains]).len(), 1, "{explains:?}");
    }
    let fall = ("retrograde-throughput", "drones", 0.3);
    let grown =
        Finding { period: Some(Period { label: "“8 users”".into(), start_ns: 0, end_ns: 9 }), ..finding(gap) };
    assert_eq!(rank(vec![grown, finding(fall)], &system().build()).len(), 1);
    assert_eq!(rank_of(&[gap, fall]).len(), 2, "a database that is not to be seen stays hidden");
    for leaves_open in [("straggler-branch", "gateway", 0.5), ("offered-load-limited", "narrows", 1.0)] {
        assert_eq!(rank_of(&[gap, leaves_open]).len(), 2, "{leaves_open:?}");
    }
}

#[test]
fn a_full_disk_stops_its_server_and_is_retried() {
    let disk = ("disk-full", "store", 0.3);
    let ranked = rank_of(&[("outage", "store", 0.8), disk, ("retry-storm", "drones", 0.6)]);
    assert_eq!(of(&ranked), [row("disk-full", "store", &["outage", "retry-storm"])]);
    let unrelated = rank_of(&[("outage", "mail", 0.8), disk]);
    assert_eq!(of(&unrelated), [row("outage", "mail", &[]), row("disk-full", "store", &[])]);
}

#[test]
fn a_kill_for_lack_of_memory_is_why_a_replica_was_down_and_growth_alone_is_not() {
    let with = |kills| {
        let memory = finding(("memory-growth", "store", 0.9));
        let evidence = narrows_model::finding::evidence::memory_growth::MemoryGrowth { kills, ..Default::default() };
        let memory = Finding { evidence: evidence.into(), ..memory };
        rank(vec![finding(("outage", "store", 0.3)), memory], &system().build())
    };
    assert_eq!(of(&with(1)), [row("memory-growth", "store", &["outage"])]);
    assert_eq!(of(&with(0)), [row("outage", "store", &[]), row("memory-growth", "store", &[])]);
    assert_eq!((with(1)[0].role, with(0)[1].role), (Role::NarrowPlace, Role::CostsMore));
}

#[test]
fn a_repetition_of_a_few_hundredths_of_a_millisecond_is_not_narrow() {
    let repeated = |cost_ns| {
        let evidence = narrows_model::finding::evidence::n_plus_one::NPlusOne { cost_ns, ..Default::default() };
        Finding { evidence: evidence.into(), ..finding(("n-plus-one", "shop", 0.5)) }
    };
    assert_eq!(narrow(vec![repeated(4e4)]), None);
    assert_eq!(narrow(vec![repeated(4e6)]).as_deref(), Some("n-plus-one"));
}

#[test]
fn causes_are_sentences_and_orders_lead_to_a_title() {
    assert!(CAUSES.iter().all(|rule| mechanism(rule.why).ends_with('.')));
    assert!(ORDER.iter().all(|rule| !precedence(rule.why).ends_with(['.', ':', ' '])));
}
