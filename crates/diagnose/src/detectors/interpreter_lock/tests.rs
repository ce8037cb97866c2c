//! Tests of `interpreter-lock`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_model::series::ThreadState;
use narrows_model::trace::Trace;
use narrows_testkit::spans::{client, server};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::detectors::serialised_section::SerialisedSection;
use crate::thresholds::Thresholds;
use crate::words::InWords;

const PYTHON: &str = "python3 serve.py";
const JAVA: &str = "java -jar shop.jar";

fn load(vus: u32, rate: f64, latency_ms: f64) -> Load {
    Load { vus, rate, latency_ms }
}

/// Three steps of ten seconds; the last two have the same throughput.
fn steps(cap: Option<f64>) -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", cap);
    trial.steady(10, load(1, 50.0, 20.0)).steady(10, load(8, 99.0, 80.0)).steady(10, load(32, 100.0, 320.0))
}

/// The steps with many threads that together use `cores` in each step.
fn threads(cap: Option<f64>, cores: [f64; 3]) -> TrialBuilder {
    let trial = steps(cap).cpu("shop", 0, move |second| cores[second as usize / 10]);
    trial.busiest_thread("shop", 0, |_| 0.15).host_cpu(|_| 0.4).traces([request(100.0)])
}

/// A request of 320 ms under the heaviest load, with a call of `call_ms`.
fn request(call_ms: f64) -> Trace {
    let call = client("GET").url("http://partner.example/stock").at(25_010.0, call_ms);
    server("shop", "GET /items").at(25_000.0, 320.0).child(call).trace(1)
}

fn detect(trial: TrialBuilder, command: &str) -> Vec<Finding> {
    let mut trial = trial.build();
    for service in &mut trial.services {
        service.command = command.split(' ').map(str::to_owned).collect();
    }
    let interpreters = crate::detect(&InterpreterLock, &trial, &Thresholds::default());
    let others = crate::detect(&SerialisedSection, &trial, &Thresholds::default());
    interpreters.into_iter().chain(others).collect()
}

fn read(finding: &Finding) -> &OneCore {
    match &finding.evidence {
        Evidence::InterpreterLock(evidence) => &evidence.one_core,
        Evidence::SerialisedSection(evidence) => evidence.computing.as_ref().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn threads_of_an_interpreter_that_share_a_core_are_named() {
    let trial = threads(None, [0.5, 1.0, 1.02]).series(names::THREADS, "shop", 0, |_| 18.0);
    let findings = detect(trial.series(names::CONTEXT_SWITCHES, "shop", 0, |_| 900.0), PYTHON);
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(
        finding.title(),
        "shop is limited by the lock of the Python interpreter (GIL): its 18 threads use 1.02 cores together"
    );
    assert_eq!((finding.confidence, finding.cost_share), (Confidence::High, 1.0));
    let evidence = read(finding);
    assert_eq!(finding.kind(), FindingKind::InterpreterLock);
    assert_eq!((evidence.lighter_cores, evidence.switches_each), (Some(1.0), Some(9.0)));
    assert_eq!(evidence.proof.lighter.level.users, 8);
    assert!((evidence.idle_cores - 2.4).abs() < 1e-9);
}

#[test]
fn another_program_needs_the_same_use_under_two_loads() {
    let findings = detect(threads(Some(2.0), [0.5, 1.0, 1.0]), JAVA);
    assert_eq!(findings[0].title(), "shop: requests take turns to compute: its threads use 1 core together");
    assert_eq!(findings[0].confidence, Confidence::Medium);
    assert_eq!(findings[0].kind(), FindingKind::SerialisedSection, "no interpreter is to blame");
    assert_eq!(detect(threads(None, [0.5, 0.8, 1.0]), JAVA), []);
    let time = |mode: &'static str| [(names::CPU_MODE, mode)];
    let kernel = threads(Some(2.0), [0.5, 1.0, 1.0])
        .labelled_series(names::CPU_TIME, ("shop", 0), &time("system"), |_| 0.7)
        .labelled_series(names::CPU_TIME, ("shop", 0), &time("user"), |_| 0.3);
    assert_eq!(detect(kernel, JAVA), [], "the kernel works, as for a file that is synced");
    let once = detect(threads(None, [0.5, 0.8, 1.0]), PYTHON);
    assert_eq!((once[0].confidence, read(&once[0]).lighter_cores), (Confidence::Medium, None));
    assert_eq!(detect(threads(None, [0.5, 0.7, 0.9]), PYTHON), [], "not near enough");
}

#[test]
fn requests_must_wait_in_the_service_itself() {
    let with = |call_ms: f64| {
        let trial = steps(None).cpu("shop", 0, |_| 1.0).busiest_thread("shop", 0, |_| 0.15).host_cpu(|_| 0.4);
        trial.traces([request(call_ms)])
    };
    let own = detect(with(200.0), PYTHON);
    assert_eq!(read(&own[0]).own_share, Some(0.375));
    assert_eq!(detect(with(200.0), JAVA), [], "of another program, most of their time");
    assert_eq!(detect(with(280.0), PYTHON), []);
    let unseen = steps(None).cpu("shop", 0, |_| 1.0).busiest_thread("shop", 0, |_| 0.15).host_cpu(|_| 0.4);
    assert_eq!(detect(unseen, JAVA), [], "without spans");
    assert_eq!(detect(with(100.0), "gunicorn -w 4 shop:app"), [], "several processes");
}

#[test]
fn a_use_that_is_not_one_core_is_silent() {
    for cores in [[0.4, 0.6, 0.6], [0.7, 1.6, 1.6]] {
        assert_eq!(detect(threads(None, cores), PYTHON), [], "{cores:?}");
    }
}

#[test]
fn throughput_that_grows_is_silent() {
    let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 1.0).busiest_thread("shop", 0, |_| 0.2);
    let trial = trial.host_cpu(|_| 0.4).steady(10, load(4, 50.0, 80.0));
    assert_eq!(detect(trial.steady(10, load(8, 100.0, 80.0)), PYTHON), []);
    let open = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 1.0).host_cpu(|_| 0.4);
    let open = open.busiest_thread("shop", 0, |_| 0.2).arrivals(10, 50.0, load(0, 50.0, 20.0));
    assert_eq!(detect(open.arrivals(10, 100.0, load(0, 100.0, 40.0)), PYTHON), [], "all arrivals are completed");
}

#[test]
fn arrivals_that_are_not_completed_count() {
    let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 1.0).host_cpu(|_| 0.4);
    let trial = trial.busiest_thread("shop", 0, |_| 0.2).arrivals(10, 100.0, load(0, 98.0, 50.0));
    let findings = detect(trial.arrivals(10, 200.0, load(0, 99.0, 900.0)), PYTHON);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].reasons()[3].contains("rate offered"), "{:?}", findings[0].reasons());
}

#[test]
fn other_limits_of_the_cpu_are_not_a_lock() {
    let full = [1.0; 3];
    assert_eq!(detect(threads(Some(1.0), full), PYTHON), [], "a cap");
    assert_eq!(detect(threads(Some(1.3), full), PYTHON), [], "nearly a cap");
    assert_eq!(detect(steps(None).cpu("shop", 0, |_| 1.0).host_cpu(|_| 0.4), PYTHON), [], "threads not sampled");
    let one = steps(None).cpu("shop", 0, |_| 1.0).busiest_thread("shop", 0, |_| 0.97);
    assert_eq!(detect(one.host_cpu(|_| 0.4), PYTHON), [], "one thread");
    let host =
        |share: f64| steps(None).cpu("shop", 0, |_| 1.0).busiest_thread("shop", 0, |_| 0.2).host_cpu(move |_| share);
    assert_eq!(detect(host(0.95), PYTHON), [], "neighbours");
    assert_eq!(detect(host(0.6).cores(1), PYTHON), [], "half a core is not free");
    let bound = threads(None, full).busiest_thread_wait("shop", 0, |_| 0.7);
    assert_eq!(detect(bound, PYTHON), [], "bound to one processor");
    assert_eq!(detect(threads(None, full).series(names::THREADS, "shop", 0, |_| 1.0), PYTHON), []);
    assert_eq!(detect(threads(None, full), "/usr/sbin/mysqld"), [], "a database has findings of its own");
}

/// The steps on a machine filled by other programs, with threads waiting for a lock and threads waiting for a
/// processor.
fn crowded(waiting_for_lock: f64, waiting_for_cpu: f64) -> TrialBuilder {
    let trial = steps(None).cpu("shop", 0, |second| if second < 10 { 0.5 } else { 0.97 }).host_cpu(|_| 1.0);
    let trial = trial.busiest_thread("shop", 0, |_| 0.15).traces([request(100.0)]);
    let trial = trial.threads("shop", 0, &[(ThreadState::Lock, "", waiting_for_lock)]);
    trial.series(names::CPU_WAIT, "shop", 0, move |_| waiting_for_cpu)
}

#[test]
fn threads_in_a_lock_show_it_beside_neighbours() {
    let findings = detect(crowded(20.0, 0.8), PYTHON);
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    let room =
        "waited for a lock; 0.8 threads waited for a processor, though other programs filled the machine's 4 cores.";
    assert!(finding.reasons()[2].ends_with(room), "{:?}", finding.reasons());
    assert!(read(finding).crowded.is_some_and(|crowded| crowded.waiting_for_lock > 19.0));
    assert_eq!(detect(crowded(20.0, 1.24), PYTHON).len(), 1);
    assert_eq!(detect(crowded(20.0, 1.26), PYTHON), [], "threads that wait for a processor");
    assert_eq!(detect(crowded(5.0, 0.8), PYTHON), [], "few in a lock");
}

#[test]
fn without_spans_threads_in_a_lock_show_it_of_any_program() {
    let unseen = |waiting_for_lock: f64| {
        let trial = steps(None).cpu("shop", 0, |_| 0.97).busiest_thread("shop", 0, |_| 0.08).host_cpu(|_| 1.0).cores(2);
        trial.threads("shop", 0, &[(ThreadState::Lock, "", waiting_for_lock)])
    };
    assert_eq!(detect(unseen(35.0), JAVA).len(), 1);
    assert_eq!(detect(unseen(5.0), JAVA), []);
}

#[test]
fn samples_of_a_lighter_load_need_not_agree_where_threads_are_in_a_lock() {
    let short = |lighter: [f64; 3], waiting_for_lock: f64| {
        let cores =
            move |second: u32| [[0.3; 3], lighter, [0.2, 0.7, 0.2], [1.0; 3]][second as usize / 3][second as usize % 3];
        let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, cores).host_cpu(|_| 0.4);
        let trial =
            trial.steady(3, load(1, 36.0, 7.0)).steady(3, load(6, 145.0, 21.0)).steady(3, load(11, 135.0, 61.0));
        let trial = trial.steady(3, load(16, 162.0, 78.0)).busiest_thread("shop", 0, |_| 0.08);
        detect(trial.threads("shop", 0, &[(ThreadState::Lock, "", waiting_for_lock)]), JAVA)
    };
    let findings = short([0.4, 1.0, 0.98], 35.0);
    assert_eq!(read(&findings[0]).lighter_cores, Some(0.98));
    assert_eq!(short([0.4, 1.0, 0.98], 5.0), []);
    assert_eq!(short([0.4, 0.7, 0.98], 35.0), [], "not one core under the lighter load");
}

#[test]
fn a_queue_at_the_lock_is_enough_while_throughput_still_grows() {
    let growing = |waiting_for_lock: f64| {
        let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.97).host_cpu(|_| 0.4);
        let trial = trial.busiest_thread("shop", 0, |_| 0.15).steady(10, load(1, 7.0, 41.0));
        let trial = trial.steady(10, load(16, 36.0, 322.0));
        detect(trial.threads("shop", 0, &[(ThreadState::Lock, "", waiting_for_lock)]), PYTHON)
    };
    let findings = growing(9.0);
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!((finding.confidence, read(finding).lighter_cores), (Confidence::Medium, None));
    assert_eq!(growing(1.0), []);
}

#[test]
fn another_service_at_its_limit_explains_the_throughput() {
    let trial = threads(None, [1.0; 3]).service("db", Some(0.5)).cpu("db", 0, |_| 0.49);
    assert_eq!(detect(trial, PYTHON), []);
}

#[test]
fn replicas_are_judged_one_by_one() {
    let two = |first: f64, second: f64| {
        let trial = steps(None).service("shop", None).host_cpu(|_| 0.5);
        let trial = trial.cpu("shop", 0, move |_| first).cpu("shop", 1, move |_| second);
        trial.busiest_thread("shop", 0, |_| 0.1).busiest_thread("shop", 1, |_| 0.1)
    };
    assert_eq!(detect(two(0.5, 0.5), PYTHON), []);
    let evidence = detect(two(1.0, 0.98), PYTHON);
    assert_eq!((read(&evidence[0]).locked_replicas, read(&evidence[0]).replicas), (2, 2));
}

#[test]
fn a_load_that_was_carried_better_before_says_nothing() {
    let after = |rate: f64| {
        let trial = steps(None).cpu("shop", 0, |_| 1.0).busiest_thread("shop", 0, |_| 0.15).host_cpu(|_| 0.4);
        let earlier = trial.steady(10, load(4, rate, 4e3 / rate));
        detect(earlier.steady(10, load(64, 100.0, 640.0)), PYTHON)
    };
    assert_eq!(after(124.0).len(), 1);
    assert_eq!(after(126.0), []);
}
