//! Joins and selects.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::model::{Activity, Ctx, Either, Orchestration};

const WORK: Activity<u32, u32> = Activity::new("Work");
const FLOW: Orchestration<u32, u32> = Orchestration::new("Flow");

fn flow<R>(code: impl Fn(Ctx, u32) -> R + Send + Sync + 'static) -> Registry
where
    R: Future<Output = Result<u32, Failure>> + 'static,
{
    let mut registry = Registry::new();
    registry.orchestration(FLOW, code);
    registry
}

#[test]
fn join_all_gives_results_in_the_order_given() {
    let registry = flow(|ctx, count| async move {
        let calls = (0..count).map(|number| ctx.call(WORK, &number)).collect();
        let results: Result<Vec<u32>, Failure> = ctx.join_all(calls).await.into_iter().collect();
        Ok(results?.into_iter().fold(0, |sum, digit| sum * 10 + digit))
    });
    let (mut run, first) = Run::start(&registry, "Flow", 4);
    assert_eq!(first.len(), 4);
    assert!(run.complete(2, 3).is_empty());
    assert!(run.complete(0, 1).is_empty());
    run.recover();
    assert!(run.complete(3, 4).is_empty());
    assert_eq!(run.complete(1, 2), [completed(1234)]);
    run.check_replays();
}

#[test]
fn nothing_to_join_is_joined_at_once() {
    let registry = flow(|ctx, _| async move {
        let calls: Vec<crate::model::Call<u32>> = Vec::new();
        Ok(u32::try_from(ctx.join_all(calls).await.len()).unwrap_or(9))
    });
    let (_, decisions) = Run::start(&registry, "Flow", 0);
    assert_eq!(decisions, [completed(0)]);
}

#[test]
fn a_result_polls_its_own_branch_alone() {
    const BRANCHES: u32 = 100;
    let registry = flow(|ctx, count| async move {
        let polls = Rc::new(Cell::new(0));
        let branch = |number: u32| {
            let (ctx, polls) = (ctx.clone(), Rc::clone(&polls));
            let mut call = Box::pin(async move { ctx.call(WORK, &number).await });
            std::future::poll_fn(move |context| {
                polls.set(polls.get() + 1);
                call.as_mut().poll(context)
            })
        };
        // Within a branch of another join, to see that a wake finds its way up.
        let inner = ctx.join_all((0..count).map(branch).collect());
        ctx.join_all(vec![inner]).await;
        Ok(polls.get())
    });
    let (mut run, _) = Run::start(&registry, "Flow", BRANCHES);
    for id in 0..BRANCHES - 1 {
        assert!(run.complete(id, id).is_empty());
    }
    assert_eq!(run.complete(BRANCHES - 1, 0), [completed(2 * BRANCHES)]);
}

#[test]
fn joins_of_two_and_three_wait_for_all() {
    let registry = flow(|ctx, _| async move {
        let three = async {
            let (a, b, c) = ctx.join3(ctx.call(WORK, &1), ctx.call(WORK, &2), ctx.call(WORK, &3)).await;
            Ok::<_, Failure>(a? * 100 + b? * 10 + c?)
        };
        let (one, three) = ctx.join2(ctx.call(WORK, &0), three).await;
        Ok(one? * 1000 + three?)
    });
    let (mut run, first) = Run::start(&registry, "Flow", 0);
    assert_eq!(first.len(), 4);
    for id in [3, 0, 1] {
        assert!(run.complete(id, id + 1).is_empty());
    }
    assert_eq!(run.complete(2, 3), [completed(1234)]);
    run.check_replays();
}

#[test]
fn select2_drops_the_loser_or_leaves_it_to_its_owner() {
    let registry = flow(|ctx, _| async move {
        let mut kept = ctx.call(WORK, &1);
        match ctx.select2(&mut kept, ctx.timer(Duration::from_secs(5))).await {
            Either::Left(value) => value,
            Either::Right(()) => Ok(kept.await? + 100),
        }
    });
    let (mut run, _) = Run::start(&registry, "Flow", 0);
    assert!(run.fire(1).is_empty());
    assert_eq!(run.complete(0, 7), [completed(107)]);
    run.check_replays();
    let (mut run, _) = Run::start(&registry, "Flow", 0);
    assert_eq!(run.complete(0, 7), [EventKind::TimerCancelled { id: 1 }, completed(7)]);
    run.check_replays();
}

#[test]
fn select_all_gives_place_value_and_rest() {
    let registry = flow(|ctx, count| async move {
        let mut calls: Vec<_> = (0..count).map(|number| ctx.call(WORK, &number)).collect();
        let mut places = 0;
        while !calls.is_empty() {
            let (place, value, rest) = ctx.select_all(calls).await;
            places = places * 100 + u32::try_from(place).unwrap_or(0) * 10 + value?;
            calls = rest;
        }
        Ok(places)
    });
    let (mut run, _) = Run::start(&registry, "Flow", 3);
    assert!(run.complete(1, 1).is_empty());
    run.recover();
    assert!(run.complete(2, 2).is_empty());
    assert_eq!(run.complete(0, 0), [completed(11_12_00)]);
    run.check_replays();
}

#[test]
fn a_join_that_has_moved_into_another_branch_is_still_woken() {
    let registry = flow(|ctx, _| async move {
        let mut calls = ctx.join_all(vec![ctx.call(WORK, &0), ctx.call(WORK, &1)]);
        ctx.select2(&mut calls, ctx.timer(Duration::from_secs(1))).await;
        let results = ctx.join_all(vec![calls]).await;
        Ok(u32::try_from(results[0].len()).unwrap_or(0))
    });
    let (mut run, _) = Run::start(&registry, "Flow", 0);
    assert!(run.fire(2).is_empty());
    assert!(run.complete(1, 0).is_empty());
    assert_eq!(run.complete(0, 0), [completed(2)]);
    run.check_replays();
}

#[test]
fn nothing_to_select_from_fails() {
    let registry = flow(|ctx, _| async move {
        let calls: Vec<crate::model::Call<u32>> = Vec::new();
        ctx.select_all(calls).await.1
    });
    let (_, decisions) = Run::start(&registry, "Flow", 0);
    assert!(failure_of(&decisions).message.contains("select_all"), "{decisions:?}");
}
