//! Calls of activities and of other orchestrations.

use std::time::Duration;

use super::*;
use crate::failure::FailureKind;
use crate::model::{Activity, Ctx, Orchestration, RetryPolicy};

const HELLO: Activity<String, String> = Activity::new("Hello");
const CITIES: Orchestration<(), Vec<String>> = Orchestration::new("HelloCities5");

async fn hello_cities(ctx: Ctx, (): ()) -> Result<Vec<String>, Failure> {
    let mut greetings = Vec::new();
    for city in ["Tokyo", "Seattle", "London", "Amsterdam", "Mumbai"] {
        greetings.push(ctx.call(HELLO, &city.to_owned()).await?);
    }
    Ok(greetings)
}

#[test]
fn activities_run_one_after_another() {
    let mut registry = Registry::new();
    registry.orchestration(CITIES, hello_cities);
    let (mut run, first) = Run::start(&registry, "HelloCities5", ());
    assert_eq!(first, [scheduled(0, "Hello", "Tokyo")]);
    assert_eq!(run.complete(0, "Hello Tokyo!"), [scheduled(1, "Hello", "Seattle")]);
    assert_eq!(run.complete(1, "Hello Seattle!"), [scheduled(2, "Hello", "London")]);
    assert_eq!(run.complete(2, "Hello London!"), [scheduled(3, "Hello", "Amsterdam")]);
    assert_eq!(run.complete(3, "Hello Amsterdam!"), [scheduled(4, "Hello", "Mumbai")]);
    let all = ["Hello Tokyo!", "Hello Seattle!", "Hello London!", "Hello Amsterdam!", "Hello Mumbai!"];
    assert_eq!(run.complete(4, "Hello Mumbai!"), [completed(all)]);
    assert_eq!(run.progress, Progress::Ended);
    run.check_replays();
}

const CHARGE: Activity<u32, u32> = Activity::new("Charge");
const ORDER: Orchestration<u32, u32> = Orchestration::new("Order");
const SHIP: Orchestration<u32, u32> = Orchestration::new("Ship");

fn order<R>(code: impl Fn(Ctx, u32) -> R + Send + Sync + 'static) -> Registry
where
    R: Future<Output = Result<u32, Failure>> + 'static,
{
    let mut registry = Registry::new();
    registry.orchestration(ORDER, code);
    registry
}

#[test]
fn a_failed_activity_can_be_handled_or_ends_the_execution() {
    let registry = order(|ctx, input| async move {
        let refund = ctx.call(CHARGE, &input).await.is_err();
        if refund { ctx.call(CHARGE, &0).await } else { Ok(input) }
    });
    let (mut run, _) = Run::start(&registry, "Order", 3);
    assert_eq!(run.fail(0, "no money"), [scheduled(1, "Charge", 0)]);
    let decisions = run.fail(1, "still none");
    assert_eq!(failure_of(&decisions), &Failure::application("still none"));
    run.check_replays();
}

#[test]
fn a_retry_pauses_and_schedules_again() {
    let registry = order(|ctx, input| async move {
        let policy = RetryPolicy::new(3, Duration::from_secs(10)).backoff(2.0, Duration::from_secs(60));
        ctx.call(CHARGE, &input).retry(policy).await
    });
    let (mut run, first) = Run::start(&registry, "Order", 3);
    assert_eq!(first, [scheduled(0, "Charge", 3)]);
    assert_eq!(run.fail(0, "one"), [timer(1, Time(13 * SECOND))]);
    assert_eq!(run.fire(1), [scheduled(2, "Charge", 3)]);
    assert_eq!(run.fail(2, "two"), [timer(3, Time(25 * SECOND))]);
    assert_eq!(run.fire(3), [scheduled(4, "Charge", 3)]);
    assert_eq!(failure_of(&run.fail(4, "three")), &Failure::application("three"));
    run.check_replays();
}

#[test]
fn a_retry_without_a_pause_needs_no_timer() {
    let registry =
        order(|ctx, input| async move { ctx.call(CHARGE, &input).retry(RetryPolicy::new(2, Duration::ZERO)).await });
    let (mut run, _) = Run::start(&registry, "Order", 3);
    assert_eq!(run.fail(0, "one"), [scheduled(1, "Charge", 3)]);
    assert_eq!(run.complete(1, 7), [completed(7)]);
    run.check_replays();
}

#[test]
fn a_timeout_ends_a_call_and_its_late_result_is_refused() {
    let registry = order(|ctx, input| async move {
        let late = ctx.call(CHARGE, &input).timeout(Duration::from_secs(5)).await;
        assert_eq!(late.map_err(|failure| failure.kind), Err(FailureKind::Timeout));
        ctx.call(CHARGE, &9).await
    });
    let (mut run, first) = Run::start(&registry, "Order", 3);
    assert_eq!(first, [scheduled(0, "Charge", 3), timer(1, Time(7 * SECOND))]);
    assert_eq!(run.fire(1), [scheduled(2, "Charge", 9)]);
    assert!(run.complete(0, 3).is_empty());
    assert_eq!(run.progress, Progress::Ignored);
    assert_eq!(run.complete(2, 9), [completed(9)]);
    run.check_replays();
}

#[test]
fn a_result_in_time_cancels_the_timeout() {
    let registry = order(|ctx, input| async move { ctx.call(CHARGE, &input).timeout(Duration::from_secs(5)).await });
    let (mut run, _) = Run::start(&registry, "Order", 3);
    assert_eq!(run.complete(0, 3), [EventKind::TimerCancelled { id: 1 }, completed(3)]);
    run.check_replays();
}

#[test]
fn an_attempt_that_takes_too_long_is_made_again_within_the_time_for_all() {
    let registry = order(|ctx, input| async move {
        let policy = RetryPolicy::new(9, Duration::ZERO).attempt_timeout(Duration::from_secs(5));
        ctx.call(CHARGE, &input).retry(policy).timeout(Duration::from_secs(60)).await
    });
    let (mut run, first) = Run::start(&registry, "Order", 3);
    assert_eq!(first, [scheduled(0, "Charge", 3), timer(1, Time(62 * SECOND)), timer(2, Time(7 * SECOND))]);
    assert_eq!(run.fire(2), [scheduled(3, "Charge", 3), timer(4, Time(8 * SECOND))]);
    let decisions = run.fire(1);
    assert_eq!(decisions[0], EventKind::TimerCancelled { id: 4 });
    assert_eq!(failure_of(&decisions).kind, FailureKind::Timeout);
    assert!(failure_of(&decisions).message.contains("activity Charge"), "{decisions:?}");
    run.check_replays();
}

#[test]
fn a_sub_orchestration_gets_an_identifier_of_its_parents_or_the_one_given() {
    let registry = order(|ctx, input| async move {
        let named = InstanceId::new("ship-1").map_err(|error| Failure::application(error.to_string()))?;
        let one = ctx.sub(SHIP, &input).await?;
        let two = ctx.sub(SHIP, &input).id(&named).version(2).await?;
        let left = ctx.start_detached(SHIP, &input)?;
        assert_eq!(left.as_str(), "orders-7:0:2");
        Ok(one + two)
    });
    let sub = |id, instance: &str, version, awaited| EventKind::SubScheduled {
        id,
        name: Name::Static("Ship"),
        version,
        instance: InstanceId::new(instance).expect("an identifier"),
        input: json(3),
        awaited,
    };
    let (mut run, first) = Run::start(&registry, "Order", 3);
    assert_eq!(first, [sub(0, "orders-7:0:0", None, true)]);
    let second = run.feed(EventKind::SubCompleted { id: 0, result: json(10) });
    assert_eq!(second, [sub(1, "ship-1", Some(2), true)]);
    let last = run.feed(EventKind::SubCompleted { id: 1, result: json(20) });
    assert_eq!(last, [sub(2, "orders-7:0:2", None, false), completed(30)]);
    run.check_replays();
}

#[test]
fn a_failed_sub_orchestration_is_started_again_under_a_new_identifier() {
    let registry =
        order(|ctx, input| async move { ctx.sub(SHIP, &input).retry(RetryPolicy::new(2, Duration::ZERO)).await });
    let (mut run, _) = Run::start(&registry, "Order", 3);
    let again = run.feed(EventKind::SubFailed { id: 0, failure: Failure::application("storm") });
    assert!(
        matches!(&again[..], [EventKind::SubScheduled { id: 1, instance, .. }] if instance.as_str() == "orders-7:0:1"),
        "{again:?}"
    );
    run.check_replays();
}

#[test]
fn a_result_of_another_kind_or_number_is_refused() {
    let registry = order(|ctx, input| async move { ctx.call(CHARGE, &input).await });
    let (mut run, _) = Run::start(&registry, "Order", 3);
    for kind in [
        EventKind::TimerFired { id: 0 },
        EventKind::SubCompleted { id: 0, result: json(1) },
        EventKind::OperationCompleted { id: 0, result: json(1) },
        EventKind::LockGranted { id: 0 },
        EventKind::TaskCompleted { id: 1, result: json(1) },
        EventKind::TaskCompleted { id: u32::MAX, result: json(1) },
    ] {
        assert!(run.feed(kind.clone()).is_empty());
        assert_eq!(run.progress, Progress::Ignored, "{kind:?}");
    }
    assert_eq!(run.complete(0, 1), [completed(1)]);
    assert!(run.complete(0, 1).is_empty());
    assert_eq!(run.progress, Progress::Ignored);
}

#[test]
fn values_that_do_not_fit_fail_with_the_type() {
    let registry = order(|ctx, input| async move { ctx.call(CHARGE, &input).await });
    let (_, decisions) = Run::start(&registry, "Order", "three");
    assert_eq!(failure_of(&decisions).kind, FailureKind::Payload);
    assert!(failure_of(&decisions).message.contains("u32"), "{decisions:?}");
    let (mut run, _) = Run::start(&registry, "Order", 3);
    let decisions = run.complete(0, "paid");
    assert_eq!(failure_of(&decisions).kind, FailureKind::Payload);
    run.check_replays();
}
