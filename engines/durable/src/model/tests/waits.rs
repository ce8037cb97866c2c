//! Timers and events from outside.

use std::time::Duration;

use super::*;
use crate::failure::FailureKind;
use crate::model::{Ctx, Either, ExternalEvent, Orchestration};

const APPROVED: ExternalEvent<u32> = ExternalEvent::new("Approved");
const ORDER: Orchestration<(), u32> = Orchestration::new("Order");

fn order<R>(code: impl Fn(Ctx, ()) -> R + Send + Sync + 'static) -> Registry
where
    R: Future<Output = Result<u32, Failure>> + 'static,
{
    let mut registry = Registry::new();
    registry.orchestration(ORDER, code);
    registry
}

#[test]
fn a_timer_runs_from_the_time_of_the_last_event() {
    let registry = order(|ctx, ()| async move {
        ctx.timer(Duration::from_secs(10)).await;
        ctx.timer_at(Time(100 * SECOND)).await;
        Ok(u32::try_from(ctx.now().0 / SECOND).unwrap_or(0))
    });
    let (mut run, first) = Run::start(&registry, "Order", ());
    assert_eq!(first, [timer(0, Time(12 * SECOND))]);
    assert_eq!(run.fire(0), [timer(1, Time(100 * SECOND))]);
    assert_eq!(run.fire(1), [completed(4)]);
    run.check_replays();
}

#[test]
fn a_timer_that_loses_is_cancelled_and_a_winner_is_not() {
    let registry = order(|ctx, ()| async move {
        for _ in 0..2 {
            match ctx.select2(ctx.event(APPROVED), ctx.timer(Duration::from_secs(60))).await {
                Either::Left(value) => assert_eq!(value?, 5),
                Either::Right(()) => return Ok(1),
            }
        }
        Ok(0)
    });
    let (mut run, _) = Run::start(&registry, "Order", ());
    let second = run.raise("Approved", 5);
    assert_eq!(second, [EventKind::TimerCancelled { id: 0 }, timer(1, Time(63 * SECOND))]);
    assert_eq!(run.fire(1), [completed(1)]);
    run.check_replays();
}

#[test]
fn events_wait_until_they_are_asked_for_in_their_order() {
    let registry = order(|ctx, ()| async move {
        ctx.timer(Duration::from_secs(9)).await;
        let (one, two) = (ctx.event(APPROVED).await?, ctx.event(APPROVED).await?);
        Ok(one * 10 + two)
    });
    let (mut run, _) = Run::start(&registry, "Order", ());
    assert!(run.raise("Approved", 1).is_empty());
    assert!(run.raise("Other", 9).is_empty());
    assert!(run.raise("Approved", 2).is_empty());
    assert_eq!(run.progress, Progress::Waiting);
    assert_eq!(run.fire(0), [completed(12)]);
    run.check_replays();
}

#[test]
fn each_of_two_that_wait_for_one_name_gets_one() {
    let registry = order(|ctx, ()| async move {
        let (one, two) = ctx.join2(ctx.event(APPROVED), ctx.event(APPROVED)).await;
        Ok(one? * 10 + two?)
    });
    let (mut run, _) = Run::start(&registry, "Order", ());
    assert!(run.raise("Approved", 1).is_empty());
    run.recover();
    assert_eq!(run.raise("Approved", 2), [completed(12)]);
    run.check_replays();
}

#[test]
fn a_waiter_that_gives_up_takes_no_event_with_it() {
    let registry = order(|ctx, ()| async move {
        let late = ctx.event(APPROVED).timeout(Duration::from_secs(5)).await;
        assert_eq!(late.map_err(|failure| failure.kind), Err(FailureKind::Timeout));
        ctx.event(APPROVED).timeout(Duration::from_secs(5)).await
    });
    let (mut run, first) = Run::start(&registry, "Order", ());
    assert_eq!(first, [timer(0, Time(7 * SECOND))]);
    assert_eq!(run.fire(0), [timer(1, Time(8 * SECOND))]);
    assert_eq!(run.raise("Approved", 3), [EventKind::TimerCancelled { id: 1 }, completed(3)]);
    run.check_replays();
}

#[test]
fn an_event_that_is_there_already_needs_no_timer() {
    let registry = order(|ctx, ()| async move {
        ctx.timer(Duration::ZERO).await;
        ctx.event(APPROVED).timeout(Duration::from_secs(5)).await
    });
    let (mut run, _) = Run::start(&registry, "Order", ());
    run.raise("Approved", 3);
    assert_eq!(run.fire(0), [completed(3)]);
    run.check_replays();
}

#[test]
fn events_are_raised_to_others() {
    let registry = order(|ctx, ()| async move {
        ctx.raise(&ctx.instance().clone(), APPROVED, &4)?;
        ctx.event(APPROVED).await
    });
    let (mut run, first) = Run::start(&registry, "Order", ());
    let name = Name::Static("Approved");
    assert_eq!(first, [EventKind::EventSent { id: 0, instance: instance(), name, data: json(4) }]);
    assert_eq!(run.raise("Approved", 4), [completed(4)]);
    run.check_replays();
}
