//! Random programs on random events: replay repeats the live decisions, from every place on.

use std::pin::Pin;
use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::ids::EntityId;
use crate::model::{Activity, Ctx, Either, EntityOp, ExternalEvent, Orchestration, RetryPolicy};

/// A program as data; the orchestration interprets its input.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Step {
    Call { retries: u32, pause_s: u64, timeout_s: Option<u64> },
    Sub { is_detached: bool },
    Timer { after_s: u64 },
    Event { timeout_s: Option<u64> },
    Operate { is_signal: bool },
    Status,
    Draw,
    Panic,
    Again,
    Sequence(Vec<Step>),
    Join(Vec<Step>),
    Race(Vec<Step>),
    Either(Box<Step>, Box<Step>),
    Locked(Box<Step>),
    Try(Box<Step>),
}

const WORK: Activity<u64, u64> = Activity::new("Work");
const TICK: ExternalEvent<u64> = ExternalEvent::new("Tick");
const ADD: EntityOp<u64, u64, u64> = EntityOp::new("Add");
const FLOW: Orchestration<Step, u64> = Orchestration::new("Flow");

type RunningCode = Pin<Box<dyn Future<Output = Result<u64, Failure>>>>;

fn run(ctx: Ctx, step: Step) -> RunningCode {
    Box::pin(async move {
        match step {
            Step::Call { retries, pause_s, timeout_s } => {
                let policy = RetryPolicy::new(retries + 1, Duration::from_secs(pause_s));
                let call = ctx.call(WORK, &ctx.now().0).retry(policy);
                match timeout_s {
                    Some(after) => call.timeout(Duration::from_secs(after)).await,
                    None => call.await,
                }
            }
            Step::Sub { is_detached: true } => Ok(ctx.start_detached(FLOW, &Step::Status)?.as_str().len() as u64),
            Step::Sub { is_detached: false } => ctx.sub(FLOW, &Step::Status).await,
            Step::Timer { after_s } => {
                ctx.timer(Duration::from_secs(after_s)).await;
                Ok(ctx.now().0)
            }
            Step::Event { timeout_s: None } => ctx.event(TICK).await,
            Step::Event { timeout_s: Some(after) } => ctx.event(TICK).timeout(Duration::from_secs(after)).await,
            Step::Operate { is_signal: true } => ctx.entity_signal(&entity(), ADD, &1).map(|()| 1),
            Step::Operate { is_signal: false } => ctx.entity_call(&entity(), ADD, &1).await,
            Step::Status => ctx.set_status(&ctx.now().0).map(|()| 0),
            Step::Draw => ctx.call(WORK, &(ctx.random() ^ ctx.uuid().len() as u64)).await,
            Step::Panic => panic!("as told"),
            Step::Again => ctx.continue_as_new(&Step::Status),
            composed => compose(ctx, composed).await,
        }
    })
}

async fn compose(ctx: Ctx, step: Step) -> Result<u64, Failure> {
    let each = |steps: Vec<Step>| steps.into_iter().map(|step| run(ctx.clone(), step)).collect::<Vec<_>>();
    match step {
        Step::Sequence(steps) => {
            let mut sum = 0;
            for step in each(steps) {
                sum = step.await?.wrapping_add(sum);
            }
            Ok(sum)
        }
        Step::Join(steps) => ctx.join_all(each(steps)).await.into_iter().next().unwrap_or(Ok(0)),
        Step::Race(steps) if steps.is_empty() => Ok(0),
        Step::Race(steps) => {
            let (place, first, rest) = ctx.select_all(each(steps)).await;
            if place > 0 && !rest.is_empty() { ctx.select_all(rest).await.1 } else { first }
        }
        Step::Either(one, other) => {
            let (one, other) = (run(ctx.clone(), *one), run(ctx.clone(), *other));
            match ctx.select2(one, other).await {
                Either::Left(value) => value,
                Either::Right(value) => value.map(|value| value.wrapping_mul(3)),
            }
        }
        Step::Locked(step) => {
            let _guard = ctx.lock(&[entity()]).await?;
            run(ctx.clone(), *step).await
        }
        Step::Try(step) => Ok(run(ctx.clone(), *step).await.unwrap_or(7)),
        _ => Ok(0),
    }
}

fn entity() -> EntityId {
    EntityId::new("Sum", "1").expect("an identifier")
}

fn steps() -> impl Strategy<Value = Step> {
    let leaf = prop_oneof![
        4 => (0..3_u32, 0..3_u64, proptest::option::of(0..9_u64))
            .prop_map(|(retries, pause_s, timeout_s)| Step::Call { retries, pause_s, timeout_s }),
        1 => any::<bool>().prop_map(|is_detached| Step::Sub { is_detached }),
        2 => (0..9_u64).prop_map(|after_s| Step::Timer { after_s }),
        2 => proptest::option::of(0..9_u64).prop_map(|timeout_s| Step::Event { timeout_s }),
        2 => any::<bool>().prop_map(|is_signal| Step::Operate { is_signal }),
        1 => Just(Step::Status),
        1 => Just(Step::Draw),
        1 => Just(Step::Panic),
        1 => Just(Step::Again),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let several = || proptest::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            4 => several().prop_map(Step::Sequence),
            2 => several().prop_map(Step::Join),
            2 => several().prop_map(Step::Race),
            1 => (inner.clone(), inner.clone()).prop_map(|(one, other)| Step::Either(one.into(), other.into())),
            1 => inner.clone().prop_map(|step| Step::Locked(step.into())),
            2 => inner.clone().prop_map(|step| Step::Try(step.into())),
        ]
    })
}

/// An event that may come next after these decisions. `pick` chooses among all decisions, open or not.
fn outside(history: &[Event], kind: u8, pick: usize) -> EventKind {
    let asked: Vec<&EventKind> = history
        .iter()
        .map(|event| &event.kind)
        .filter(|kind| {
            matches!(
                kind,
                EventKind::TaskScheduled { .. }
                    | EventKind::TimerCreated { .. }
                    | EventKind::SubScheduled { .. }
                    | EventKind::EntityCalled { .. }
                    | EventKind::LockRequested { .. }
            )
        })
        .collect();
    let failure = Failure::application("as it happens");
    let result = json(pick as u64);
    match (kind, asked.len().checked_sub(1).map(|last| asked[last - pick % (last.min(5) + 1)])) {
        (0, _) => EventKind::Suspended { reason: String::new() },
        (1 | 2, _) => EventKind::Resumed { reason: String::new() },
        (3..6, _) | (_, None) => EventKind::EventRaised { name: Name::Static("Tick"), data: result },
        (6..9, Some(EventKind::TaskScheduled { id, .. })) => EventKind::TaskFailed { id: *id, failure },
        (6, Some(EventKind::SubScheduled { id, .. })) => EventKind::SubFailed { id: *id, failure },
        (6, Some(EventKind::EntityCalled { id, .. })) => EventKind::OperationFailed { id: *id, failure },
        (_, Some(EventKind::TaskScheduled { id, .. })) => EventKind::TaskCompleted { id: *id, result },
        (_, Some(EventKind::SubScheduled { id, .. })) => EventKind::SubCompleted { id: *id, result },
        (_, Some(EventKind::EntityCalled { id, .. })) => EventKind::OperationCompleted { id: *id, result },
        (_, Some(EventKind::LockRequested { id, .. })) => EventKind::LockGranted { id: *id },
        (_, Some(EventKind::TimerCreated { id, .. })) => EventKind::TimerFired { id: *id },
        (_, Some(other)) => unreachable!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn replay_repeats_the_decisions_of_the_live_run(
        step in steps(),
        happenings in proptest::collection::vec((0..16_u8, 0..64_usize, any::<bool>()), 0..60),
    ) {
        let mut registry = Registry::new();
        registry.orchestration(FLOW, run);
        let (mut live, _) = Run::start(&registry, "Flow", &step);
        for (kind, pick, is_lost) in happenings {
            if live.progress == Progress::Ended {
                break;
            }
            if is_lost {
                live.recover();
            }
            let event = outside(&live.history, kind, pick);
            live.feed(event);
        }
        live.check_replays();
    }
}
