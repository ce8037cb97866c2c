//! Tests of `blocking-command`: evidence that must make it fire, and evidence that must not.

use narrows_model::series::servers::{REDIS_CALLS, REDIS_COMMAND, REDIS_SLOWEST, REDIS_TIME};
use narrows_testkit::trial::{Load as Step, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// Ten seconds in which the command is called so often per second, each for so many milliseconds, beside `GET`.
fn trial(command: &'static str, calls: f64, call_ms: f64) -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("sessions", None).service("cache", None);
    let trial = trial.steady(10, Step { vus: 16, rate: 800.0, latency_ms: 20.0 });
    let counted = |trial: TrialBuilder, command: &'static str, calls: f64, call_ms: f64| {
        let label = [(REDIS_COMMAND, command)];
        let trial =
            trial.labelled_series(REDIS_CALLS, ("cache", 0), &label, move |second| 7.0 + calls * f64::from(second));
        trial.labelled_series(REDIS_TIME, ("cache", 0), &label, move |second| calls * call_ms * 1e3 * f64::from(second))
    };
    let trial = counted(trial, command, calls, call_ms);
    counted(trial, "GET", 800.0, 0.002)
}

fn detect(trial: TrialBuilder) -> Vec<Finding> {
    crate::detect(&BlockingCommand, &trial.build(), &Thresholds::default())
}

#[test]
fn a_command_that_holds_the_thread_is_named_with_its_time() {
    let slowest = [(REDIS_COMMAND, "KEYS")];
    let findings = detect(trial("KEYS", 2.0, 40.0).labelled_series(REDIS_SLOWEST, ("cache", 0), &slowest, |_| 0.044));
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "cache: KEYS holds the one thread for 40.0 ms, twice a second");
    assert_eq!((finding.resource.as_str(), finding.confidence), ("cache", Confidence::High));
    assert!((finding.cost_share - 0.08).abs() < 1e-9, "{}", finding.cost_share);
    assert_eq!(
        finding.reasons(),
        [
            "At 16 users, KEYS is called twice a second and takes 40.0 ms each time (mean, 44.0 ms at most): its calls hold \
             the thread of cache for 8.0 % of the time.",
            "The other commands, 800/s, take 2.00 µs each (mean) and wait meanwhile.",
        ]
    );
}

#[test]
fn many_quick_commands_are_another_finding() {
    assert_eq!(detect(trial("HGETALL", 900.0, 1.0)), [], "the thread is full of short calls");
}

#[test]
fn a_slow_command_that_is_rare_is_no_finding() {
    assert_eq!(detect(trial("KEYS", 0.1, 40.0)), [], "once in ten seconds");
    assert_eq!(detect(trial("SCAN", 5.0, 3.0)), [], "short steps");
}
