//! Tests of `cpu-saturation`: evidence that must make it fire, and evidence that must not.

use narrows_model::call_graph::CallFigures;
use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::Evidence;
use narrows_model::finding::evidence::cpu::ProofSign;
use narrows_model::run::{Machine, WindowKind};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words;
use crate::words::InWords;

fn load(vus: u32, rate: f64, latency_ms: f64) -> Load {
    Load { vus, rate, latency_ms }
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&CpuSaturation, &trial.build(), &Thresholds::default())
}

fn read(finding: &Finding) -> &evidence::CpuSaturation {
    let Evidence::CpuSaturation(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

/// Three steps of ten seconds; throughput stops growing.
fn steps(cap: Option<f64>) -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", cap).warmup(10, load(1, 50.0, 20.0));
    trial.steady(10, load(1, 50.0, 20.0)).steady(10, load(4, 100.0, 40.0)).steady(10, load(8, 101.0, 79.0))
}

#[test]
fn a_cap_that_is_used_up_is_named() {
    let findings = detect(steps(Some(0.5)).cpu("shop", 0, |second| if second < 20 { 0.25 } else { 0.49 }));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "shop uses up its CPU limit: 98 % of 0.50 cores");
    assert_eq!(finding.confidence, Confidence::High);
    assert!(finding.reasons()[1].contains("from 4 to 8 users it went from 100/s to 101/s"), "{:?}", finding.reasons());
    assert_eq!(finding.cost_share, 0.98);
}

#[test]
fn no_share_of_a_limit_is_above_all_of_it() {
    let findings = detect(steps(Some(0.5)).cpu("shop", 0, |second| if second < 20 { 0.25 } else { 0.63 }));
    assert_eq!(findings[0].title(), "shop uses up its CPU limit: 100 % of 0.50 cores");
    assert_eq!((read(&findings[0]).level, findings[0].cost_share), (1.0, 1.0));
}

#[test]
fn one_busy_thread_is_named_with_and_without_a_cap() {
    for cap in [None, Some(1.0)] {
        let trial = steps(cap).cpu("shop", 0, |_| 1.0).busiest_thread("shop", 0, |_| 0.97);
        let findings = detect(trial);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].title(), "shop is limited by one thread, which uses 97 % of a core");
    }
}

#[test]
fn many_busy_threads_under_a_cap_are_the_cap() {
    let findings = detect(steps(Some(2.0)).cpu("shop", 0, |_| 1.95).busiest_thread("shop", 0, |_| 0.95));
    assert_eq!(findings[0].title(), "shop uses up its CPU limit: 98 % of 2 cores");
}

#[test]
fn a_service_without_a_cap_can_fill_the_machine() {
    let findings = detect(steps(None).cpu("shop", 0, |_| 3.6).host_cpu(|_| 0.95));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].title(), "shop fills the machine: 90 % of 4 cores");
    let [Caveat::MachineBusy { share, consumers }] = &findings[0].caveats[..] else { panic!("{findings:?}") };
    assert_eq!((*share, words::consumers(consumers).as_str()), (0.95, "shop (3.60 cores)"));
}

#[test]
fn several_busy_threads_that_fill_the_machine_are_the_machine() {
    let title = |cores: f64| {
        let trial = steps(None).cores(2).cpu("shop", 0, move |_| cores).busiest_thread("shop", 0, |_| 0.97);
        detect(trial)[0].title().clone()
    };
    assert_eq!(title(1.94), "shop fills the machine: 97 % of 2 cores");
    assert_eq!(title(1.6), "shop is limited by one thread, which uses 97 % of a core");
    let alone = steps(None).cores(1).cpu("shop", 0, |_| 0.99).busiest_thread("shop", 0, |_| 0.97);
    assert_eq!(detect(alone)[0].title(), "shop is limited by one thread, which uses 97 % of a core");
}

/// A service on a machine of four cores elsewhere, at which an agent looked.
fn elsewhere(used: f64, share: f64) -> TrialEvidence {
    let trial = steps(None).cores(2).cpu("shop", 0, move |_| used).host_cpu(|_| 0.1);
    let trial = trial.series(names::HOST_CPU_COUNT, "shop", 0, |_| 4.0);
    let mut trial = trial.series(names::HOST_CPU_UTILIZATION, "shop", 0, move |_| share).build();
    trial.services.iter_mut().for_each(|instance| instance.machine = Machine::Unknown);
    trial
}

#[test]
fn a_service_elsewhere_is_compared_with_its_own_machine() {
    let found = |used, share| crate::detect(&CpuSaturation, &elsewhere(used, share), &Thresholds::default());
    let alone = found(3.6, 0.95);
    assert_eq!(alone[0].title(), "the machine of shop is full: 95 % of 4 cores, 3.6 of them by shop");
    assert!(alone[0].advice().starts_with("Take work out"), "{}", alone[0].advice());
    let beside = found(1.0, 0.95);
    let advice = "Look at what else runs on the machine of shop: it uses 2.80 cores of CPU.";
    assert!(beside[0].advice().starts_with(advice), "{}", beside[0].advice());
    assert_eq!(found(1.9, 0.5), [], "two cores would be full, four are not");
}

#[test]
fn what_neighbours_took_is_no_reason_for_more_cores() {
    let full = |stolen: f64| {
        let trial = steps(None).cores(4).cpu("shop", 0, |_| 2.6).cpu(names::GENERATOR, 0, |_| 0.3);
        let trial = trial.host_cpu(move |_| 0.75 + stolen).series(names::HOST_CPU_STEAL, "", 0, move |_| stolen);
        detect(trial).into_iter().find(|finding| read(finding).limit == CpuLimit::Host).map(|finding| finding.advice())
    };
    let advice = full(0.2).expect("the machine is full");
    assert!(advice.starts_with("Measure again on a machine that does nothing else"), "{advice}");
    assert_eq!(full(0.25), None, "the run fills three quarters of it");
}

#[test]
fn a_full_host_names_its_consumers() {
    let trial = steps(None).service("stock", None).host_cpu(|_| 0.97);
    let findings = detect(trial.cpu("shop", 0, |_| 1.5).cpu("stock", 0, |_| 1.2).cpu(names::GENERATOR, 0, |_| 0.9));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].resource, "host");
    assert!(findings[0].advice().contains("shop (1.50 cores), stock (1.20 cores), the load generator (0.90 cores)"));
}

#[test]
fn one_hot_replica_of_two_is_said() {
    let trial = steps(Some(0.5)).service("shop", Some(0.5));
    let findings = detect(trial.cpu("shop", 0, |_| 0.49).cpu("shop", 1, |_| 0.1));
    let evidence = read(&findings[0]);
    assert_eq!((evidence.hot_replicas, evidence.replicas), (1, 2));
    assert!(findings[0].reasons()[0].ends_with("(1 of 2 replicas)."), "{:?}", findings[0].reasons());
}

#[test]
fn the_end_of_a_ramp_is_seen() {
    let ramp = (0..40).map(|s| (50.0 + f64::from(s), 20.0));
    let trial = TrialBuilder::new("a").service("shop", Some(0.5)).window(WindowKind::Ramp, 40, ramp);
    let findings = detect(trial.cpu("shop", 0, |second| 0.5 * f64::from(second + 1) / 40.0));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].confidence, Confidence::Medium);
    assert!(read(&findings[0]).interval.starts_with("part 4 of 4"), "{:?}", findings[0].reasons());
}

#[test]
fn queueing_is_proof_where_throughput_still_grows_a_little() {
    let trial = TrialBuilder::new("a").service("shop", Some(0.5)).steady(10, load(1, 20.0, 50.0));
    let findings = detect(trial.steady(10, load(4, 46.0, 87.0)).cpu("shop", 0, |s| if s < 10 { 0.2 } else { 0.48 }));
    assert_eq!(findings[0].confidence, Confidence::High);
    assert_eq!(read(&findings[0]).proof.map(|proof| proof.sign), Some(ProofSign::Queueing));
    assert!(findings[0].reasons()[1].starts_with("Requests queue"), "{:?}", findings[0].reasons());
}

/// Eleven steps of two seconds, with the busiest thread's cores per step, as in the samples of a short run.
fn short_steps(thread: [f64; 11]) -> TrialBuilder {
    let rates = (0..11).map(|step| load(1 + 4 * step, 20.0 + 3.0 * f64::from(step), 100.0));
    let trial = rates.fold(TrialBuilder::new("a").service("shop", None), |trial, load| trial.steady(2, load));
    trial.busiest_thread("shop", 0, move |second| thread[second as usize / 2])
}

#[test]
fn the_last_of_short_steps_are_enough() {
    let rising = |last: [f64; 4]| {
        let mut thread = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.0, 0.0, 0.0, 0.0];
        thread[7..].copy_from_slice(&last);
        detect(short_steps(thread))
    };
    for last in [[0.80, 0.95, 0.97, 0.99], [0.80, 0.86, 0.96, 0.98]] {
        let findings = rising(last);
        assert_eq!(findings.len(), 1, "{last:?}");
        assert_eq!(read(&findings[0]).interval, "“33 to 41 users”");
        assert_eq!(findings[0].confidence, Confidence::Medium);
    }
    for last in [[0.75, 0.78, 0.81, 0.84], [0.70, 0.75, 0.80, 0.98]] {
        assert_eq!(rising(last), [], "{last:?}");
    }
}

/// Two levels of an open load: (offered rate, completed rate, latency in milliseconds).
fn open(levels: [(f64, f64, f64); 2]) -> TrialBuilder {
    let step = |trial: TrialBuilder, (offered, rate, latency_ms): (f64, f64, f64)| {
        trial.arrivals(10, offered, load((rate * latency_ms / 1e3) as u32, rate, latency_ms))
    };
    let trial = levels.into_iter().fold(TrialBuilder::new("a").service("shop", Some(0.5)), step);
    trial.cpu("shop", 0, |second| if second < 10 { 0.2 } else { 0.49 })
}

#[test]
fn an_open_load_proves_saturation_by_what_it_offered() {
    let flat = "Throughput no longer follows the rate offered: from 100/s to 200/s it went from 100/s to 110/s.";
    let queues = "Requests queue: at 200/s 11 of them are under way at any time (110/s × 100 ms), each 10 times as \
                  long as at 100/s.";
    let cases = [
        (open([(100.0, 100.0, 10.0), (200.0, 110.0, 400.0)]), Some(flat)),
        (open([(100.0, 100.0, 10.0), (200.0, 110.0, 100.0)]).held_back(100, 90), Some(queues)),
        (open([(100.0, 100.0, 10.0), (200.0, 199.0, 11.0)]), None),
        (open([(100.0, 100.0, 10.0), (110.0, 101.0, 40.0)]), None),
    ];
    for (trial, proof) in cases {
        let findings = detect(trial);
        let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
        let expected = if proof.is_some() { Confidence::High } else { Confidence::Medium };
        assert_eq!(finding.confidence, expected, "{:?}", finding.reasons());
        assert!(proof.is_none_or(|proof| finding.reasons()[1] == proof), "{:?}", finding.reasons());
        assert!(read(finding).load.arrivals.is_some());
    }
}

#[test]
fn one_load_level_is_no_proof() {
    let trial = TrialBuilder::new("a").service("shop", Some(0.5)).steady(30, load(4, 50.0, 80.0));
    assert_eq!(detect(trial.cpu("shop", 0, |_| 0.49))[0].confidence, Confidence::Medium);
}

/// Throughput follows the users.
fn follows() -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", Some(0.5)).steady(10, load(2, 40.0, 50.0));
    trial.steady(10, load(4, 80.0, 50.0)).steady(10, load(8, 158.0, 51.0))
}

#[test]
fn healthy_and_unknown_are_silent() {
    let few = TrialBuilder::new("a").service("shop", Some(0.5)).steady(4, load(4, 50.0, 80.0));
    let cases = [
        ("room to spare", steps(Some(0.5)).cpu("shop", 0, |_| 0.4).busiest_thread("shop", 0, |_| 0.3)),
        ("peaks", steps(Some(0.5)).cpu("shop", 0, |second| if second % 3 == 0 { 0.5 } else { 0.2 })),
        ("warm-up", steps(Some(0.5)).cpu("shop", 0, |second| if second < 10 { 0.5 } else { 0.2 })),
        ("a start that later load refutes", steps(Some(0.5)).cpu("shop", 0, |s| if s < 20 { 0.5 } else { 0.3 })),
        ("work in the background", follows().cpu("shop", 0, |_| 0.5)),
        ("no series", steps(Some(0.5))),
        ("too few points", few.cpu("shop", 0, |_| 0.5)),
        ("several threads on a large machine", steps(None).cpu("shop", 0, |_| 2.0).busiest_thread("shop", 0, |_| 0.6)),
        ("a host full of others", steps(None).cpu("shop", 0, |_| 1.0).host_cpu(|_| 1.0)),
        ("a busy host with room", steps(None).cpu("shop", 0, |_| 2.0).host_cpu(|_| 0.7)),
        ("the generator's own thread", steps(None).busiest_thread(names::GENERATOR, 0, |_| 0.99)),
        ("no windows", TrialBuilder::new("a").service("shop", Some(0.5))),
    ];
    for (name, trial) in cases {
        assert_eq!(detect(trial), [], "with {name}");
    }
}

#[test]
fn a_thread_without_a_cap_that_waits_for_a_processor_is_busy_all_the_same() {
    let with = |cap, ran: f64, waited: f64| {
        let trial = steps(cap)
            .cpu("shop", 0, move |_| ran)
            .busiest_thread("shop", 0, move |second| if second < 20 { 0.3 } else { ran });
        detect(trial.busiest_thread_wait("shop", 0, move |_| waited))
    };
    let found = with(None, 0.84, 0.1);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].title(),
        "shop is limited by one thread, which uses 84 % of a core and waits for a core the rest of the time"
    );
    assert_eq!(with(None, 0.84, 0.01), []);
    assert_eq!(with(None, 0.6, 0.4), [], "the machine holds it, not the thread");
    assert_eq!(with(Some(2.0), 0.84, 0.1), [], "it waits for its cap");
}

/// The steps, with a control group throttled in `periods` of its 100 periods a second while it uses `cores`.
fn bursts(periods: f64, cores: f64) -> TrialBuilder {
    let heavy = move |second: u32| if second < 20 { 0.3 * cores } else { cores };
    steps(Some(1.0)).cpu("shop", 0, heavy).series(names::CGROUP_PERIODS, "shop", 0, |_| 100.0).series(
        names::CGROUP_THROTTLED_PERIODS,
        "shop",
        0,
        move |second| if second < 20 { 0.0 } else { periods },
    )
}

#[test]
fn a_cap_that_bursts_use_up_is_named_where_the_load_waits() {
    let findings = detect(bursts(40.0, 0.75));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "shop is throttled at its CPU limit of 1 core, in 40 % of the periods");
    assert!(finding.advice().starts_with("Raise the quota of shop (1 core; `cpu.max`"), "{}", finding.advice());
    assert_eq!(finding.reasons()[2], "The kernel held it back: its quota was used up in 40 % of the periods.");
    assert_eq!(finding.confidence, Confidence::High);
    assert_eq!(finding.period.as_ref().map(|period| period.label.as_str()), Some("“8 users”"));
    assert_eq!(detect(bursts(4.0, 0.75)), [], "held too rarely");
    assert_eq!(detect(bursts(40.0, 0.6)), [], "with room in the mean");
    let grows = TrialBuilder::new("a").service("shop", Some(1.0)).steady(10, load(4, 50.0, 80.0));
    let grows = grows.steady(10, load(8, 100.0, 80.0)).cpu("shop", 0, |s| if s < 10 { 0.38 } else { 0.75 });
    let grows = grows.series(names::CGROUP_PERIODS, "shop", 0, |_| 100.0);
    assert_eq!(detect(grows.series(names::CGROUP_THROTTLED_PERIODS, "shop", 0, |_| 40.0)), [], "nothing waits");
}

/// A load of 100 users who think, five of whose requests are under way, and a shop that is throttled while `waiting` of its
/// threads wait for a processor. Sockets show `at_work` requests there.
fn under_one_load(waiting: f64, at_work: f64) -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("gateway", None).service("shop", Some(1.0));
    let figures =
        move |_| CallFigures { connections: 8.0, outstanding: at_work, rate: 100.0, ..CallFigures::default() };
    let trial = trial.steady(20, load(100, 100.0, 50.0)).calls("gateway", 0, "127.0.0.1:9001", figures);
    let trial = trial.cpu("shop", 0, |_| 0.75).series(names::CGROUP_PERIODS, "shop", 0, |_| 100.0);
    let trial = trial.series(names::CGROUP_THROTTLED_PERIODS, "shop", 0, |_| 40.0);
    trial.series(names::CPU_WAIT, "shop", 0, move |_| waiting)
}

#[test]
fn a_cap_that_bursts_use_up_is_named_where_requests_are_held() {
    let findings = detect(under_one_load(1.5, 2.0));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(
        finding.reasons()[2],
        "The kernel held it back: its quota was used up in 40 % of the periods and 30 % of the requests under way waited for \
         CPU in it."
    );
    assert_eq!(finding.confidence, Confidence::Medium);
    assert_eq!(detect(under_one_load(0.5, 2.0)), [], "few threads wait");
    assert_eq!(detect(under_one_load(9.0, 0.5)), [], "threads that serve no request wait");
}

#[test]
fn pressure_is_that_of_the_cpu() {
    let of = |resource: &str| {
        let trial = steps(Some(1.0)).cpu("shop", 0, |second| if second < 20 { 0.2 } else { 0.75 });
        let mut trial = trial.series(names::CGROUP_PRESSURE_AVERAGE, "shop", 0, |_| 0.3).build();
        let label = (names::PRESSURE_RESOURCE.to_owned(), resource.to_owned());
        trial.series.iter_mut().for_each(|series| series.key.labels.extend([label.clone()]));
        crate::detect(&CpuSaturation, &trial, &Thresholds::default())
    };
    let held = of("cpu");
    assert_eq!(read(&held[0]).held.waiting_share, Some(0.3));
    assert!(held[0].reasons()[2].contains("waited for CPU 30 % of the time"));
    assert_eq!(of("io"), []);
}

#[test]
fn a_cap_that_the_sampler_found_counts_and_stolen_time_is_a_caveat() {
    let trial = steps(None).cpu("shop", 0, |second| if second < 20 { 0.2 } else { 0.97 });
    let trial = trial.series(names::CGROUP_CPU_LIMIT, "shop", 0, |_| 1.0);
    let findings = detect(trial.series(names::HOST_CPU_STEAL, "", 0, |_| 0.08));
    assert_eq!(findings[0].title(), "shop uses up its CPU limit: 97 % of 1 core");
    assert_eq!(findings[0].caveats, [Caveat::CpuStolen { share: 0.08 }]);
}
