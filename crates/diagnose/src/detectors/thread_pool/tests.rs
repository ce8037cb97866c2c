//! Tests of `thread-pool`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::{Confidence, Evidence, Finding};
use narrows_model::series::ThreadState;
use narrows_testkit::spans::server;
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// Ten users, then forty; throughput is at most 160 requests per second.
fn trial() -> TrialBuilder {
    TrialBuilder::new("a")
        .service("shop", None)
        .steady(20, Load { vus: 10, rate: 100.0, latency_ms: 100.0 })
        .steady(20, Load { vus: 40, rate: 160.0, latency_ms: 250.0 })
}

/// Adds a series with these values under the first and the second load.
fn with(trial: TrialBuilder, name: &str, values: (f64, f64)) -> TrialBuilder {
    trial.series(name, "shop", 0, move |s| if s < 20 { values.0 } else { values.1 })
}

fn jetty(busy: f64, jobs: f64) -> TrialBuilder {
    let trial = with(trial(), "jetty.threads.config.max", (16.0, 16.0));
    with(with(trial, "jetty.threads.busy", (10.0, busy)), "jetty.threads.jobs", (0.0, jobs))
}

fn executor(queued: (f64, f64)) -> TrialBuilder {
    let trial = with(with(trial(), "executor.active", (4.0, 4.0)), "executor.pool.size", (4.0, 4.0));
    with(trial, "executor.queued", queued)
}

fn tomcat(trial: TrialBuilder) -> TrialBuilder {
    with(with(trial, "tomcat.threads.busy", (10.0, 16.0)), "tomcat.threads.config.max", (16.0, 16.0))
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&ThreadPool, &trial.build(), &Thresholds::default())
}

fn evidence_of(finding: &Finding) -> &evidence::ThreadPool {
    let Evidence::ThreadPool(evidence) = &finding.evidence else { panic!("{finding:?}") };
    evidence
}

#[test]
fn requests_that_wait_for_a_thread_are_a_share_of_those_under_way() {
    let findings = detect(jetty(16.0, 24.0));
    let evidence = evidence_of(&findings[0]);
    assert_eq!((evidence.runtime, evidence.busy, evidence.size), (PoolRuntime::Jetty, Some(16.0), Some(16.0)));
    assert!((findings[0].cost_share - 0.6).abs() < 0.01, "{findings:?}");
    assert!(evidence.proof.is_some() && findings[0].confidence == Confidence::High);
    assert_eq!(findings[0].title(), "shop: 24 requests wait for a thread of Jetty's thread pool");
}

#[test]
fn where_no_queue_is_reported_requests_beyond_the_threads_wait() {
    let findings = detect(tomcat(trial()));
    let evidence = evidence_of(&findings[0]);
    assert!((evidence.waiting - 24.0).abs() < 0.5 && !evidence.is_reported, "{evidence:?}");
    assert_eq!(findings[0].confidence, Confidence::Medium);
    assert_eq!(detect(tomcat(trial().service("shop", None))), [], "it has two replicas");
    let behind = |n: u32| server("gate", "GET /").at(0.0, 80.0).child(server("shop", "GET /").at(1.0, 70.0)).trace(n);
    assert_eq!(detect(tomcat(trial().traces((0..20).map(behind)))), [], "others stand before it");
}

#[test]
fn dotnet_is_full_while_items_wait() {
    let findings = detect(with(trial(), "dotnet.thread_pool.queue.length", (0.0, 20.0)));
    assert_eq!(evidence_of(&findings[0]).runtime, PoolRuntime::DotNet);
    assert!(findings[0].advice().contains(".Result"), "{}", findings[0].advice());
}

#[test]
fn an_executor_counts_where_requests_wait_for_it() {
    assert_eq!(detect(executor((0.0, 20.0))).len(), 1);
    assert_eq!(detect(executor((20.0, 20.0))), [], "it does not follow the load");
    assert_eq!(detect(executor((100.0, 300.0))), [], "more wait than requests are under way");
    let carried = TrialBuilder::new("a")
        .service("shop", None)
        .steady(20, Load { vus: 10, rate: 100.0, latency_ms: 100.0 })
        .steady(20, Load { vus: 40, rate: 400.0, latency_ms: 100.0 });
    let carried = with(with(carried, "executor.active", (4.0, 4.0)), "executor.pool.size", (4.0, 4.0));
    assert_eq!(detect(with(carried, "executor.queued", (0.0, 20.0))), [], "the load is carried");
}

#[test]
fn pools_with_free_threads_or_short_queues_are_left_alone() {
    assert_eq!(detect(jetty(12.0, 24.0)), [], "threads are free");
    assert_eq!(detect(jetty(16.0, 0.0)), [], "nothing waits");
    assert_eq!(detect(jetty(16.0, 3.0)), [], "three of forty");
    let burst = trial().series("dotnet.thread_pool.queue.length", "shop", 0, |s| if s == 25 { 90.0 } else { 0.0 });
    assert_eq!(detect(burst), [], "a burst");
    let crowded = jetty(16.0, 24.0).cpu("shop", 0, |_| 0.8).host_cpu(|_| 0.97);
    assert_eq!(detect(crowded), [], "other programs fill the machine");
    assert_eq!(detect(trial()), [], "nothing is reported");
}

/// A service with two threads that sleep for each request, and this many in a lock under 16 users.
fn sampled(in_lock: f64) -> Vec<Finding> {
    let load = |vus: u32, rate: f64| Load { vus, rate, latency_ms: 1e3 * f64::from(vus) / rate };
    let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.05).host_cpu(|_| 0.1);
    let states = [(ThreadState::Sleep, "", 1.95), (ThreadState::Lock, "", in_lock)];
    let trial = trial.steady(20, load(2, 48.0)).steady(20, load(16, 49.0)).threads("shop", 0, &states);
    detect(trial)
}

#[test]
fn sampled_threads_show_a_pool_that_reports_nothing() {
    let findings = sampled(0.0);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.title(), "shop: 14 requests wait for one of 2 threads");
    assert_eq!(
        finding.reasons()[0],
        "At 16 users, 2 of its threads work, as many as under a lighter load, and 16 requests are under way."
    );
    assert_eq!(sampled(14.5), [], "each request that waits has a thread, in a semaphore");
}
