//! Timers, events from outside, and beginning anew.

use std::time::Duration;

use narrows_durable::{
    Ctx, Either, EventKind, ExternalEvent, Failure, FailureKind, InstanceId, Orchestration, Registry, Time,
};

use super::stage::{Stage, id};

const SOON: Duration = Duration::from_millis(20);
const LATE: Duration = Duration::from_secs(3600);

const APPROVAL: ExternalEvent<bool> = ExternalEvent::new("Approval");
const OPERATION: ExternalEvent<String> = ExternalEvent::new("Operation");
const NUMBER: ExternalEvent<u64> = ExternalEvent::new("Number");
const HELLO: ExternalEvent<String> = ExternalEvent::new("Hello");

const APPROVE: Orchestration<u64, String> = Orchestration::new("Approval");
const ACTOR: Orchestration<i64, i64> = Orchestration::new("Counter");
const ANEW: Orchestration<u64, String> = Orchestration::new("ContinueAsNewThenTimer");
const PARENT: Orchestration<(), String> = Orchestration::new("ConversationParent");
const CHILD: Orchestration<String, String> = Orchestration::new("ConversationChild");
const TIMEOUT: Orchestration<(), String> = Orchestration::new("ExternalEventTimeout");
const CONTENTION: Orchestration<(), Vec<u64>> = Orchestration::new("ExternalEventContention");
const COLLECT: Orchestration<(u64, Vec<u64>), Vec<u64>> = Orchestration::new("ContinueAsNewEvents");
/// Gives microseconds since 1970.
const NOW: Orchestration<(), u64> = Orchestration::new("CurrentTime");

fn code() -> Registry {
    let mut code = Registry::new();
    code.orchestration(APPROVE, |ctx: Ctx, after_ms: u64| async move {
        let expiry = ctx.timer(Duration::from_millis(after_ms));
        Ok::<_, Failure>(match ctx.select2(ctx.event(APPROVAL), expiry).await {
            Either::Left(approved) => (if approved? { "Approved" } else { "Rejected" }).to_owned(),
            Either::Right(()) => "Expired".to_owned(),
        })
    });
    code.orchestration(ACTOR, |ctx: Ctx, value: i64| async move {
        match ctx.event(OPERATION).await?.as_str() {
            "incr" => ctx.continue_as_new(&(value + 1)),
            "decr" => ctx.continue_as_new(&(value - 1)),
            _ => Ok::<_, Failure>(value),
        }
    });
    code.orchestration(ANEW, |ctx: Ctx, round: u64| async move {
        if round < 3 {
            return ctx.continue_as_new(&(round + 1));
        }
        ctx.timer(SOON).await;
        Ok::<_, Failure>("OK".to_owned())
    });
    conversation(&mut code);
    code.orchestration(TIMEOUT, |ctx: Ctx, (): ()| async move {
        match ctx.event(HELLO).timeout(SOON).await {
            Err(failure) if failure.kind == FailureKind::Timeout => Ok("timed out".to_owned()),
            other => other,
        }
    });
    code.orchestration(CONTENTION, |ctx: Ctx, (): ()| async move {
        let waits = (0..3).map(|_| ctx.event(NUMBER)).collect();
        ctx.join_all(waits).await.into_iter().collect::<Result<Vec<_>, _>>()
    });
    code.orchestration(COLLECT, |ctx: Ctx, (wanted, mut had): (u64, Vec<u64>)| async move {
        had.push(ctx.event(NUMBER).await?);
        if had.len() as u64 == wanted { Ok::<_, Failure>(had) } else { ctx.continue_as_new(&(wanted, had)) }
    });
    code.orchestration(NOW, |ctx: Ctx, (): ()| async move { Ok::<_, Failure>(ctx.now().0) });
    code
}

fn conversation(code: &mut Registry) {
    code.orchestration(PARENT, |ctx: Ctx, (): ()| async move {
        let child = ctx.start_detached(CHILD, &ctx.instance().to_string())?;
        let said = ctx.event(HELLO).await?;
        ctx.raise(&child, HELLO, &format!("{said}, child"))?;
        ctx.event(HELLO).await
    });
    code.orchestration(CHILD, |ctx: Ctx, parent: String| async move {
        let parent = InstanceId::new(parent).map_err(|error| Failure::application(error.to_string()))?;
        ctx.raise(&parent, HELLO, &"hello".to_owned())?;
        let said = ctx.event(HELLO).await?;
        ctx.raise(&parent, HELLO, &format!("{said}, bye"))?;
        Ok::<_, Failure>(said)
    });
}

/// `EventConversation`
async fn event_conversation(stage: Stage) {
    assert_eq!(stage.run(PARENT, &()).await, "hello, child, bye");
}

/// `ContinueAsNewThenTimer`
async fn continue_as_new_then_timer(stage: Stage) {
    let id = stage.start(ANEW, "anew", &0).await;
    let view = stage.ended(&id).await;
    assert_eq!((view.output_as::<String>(), view.generation), (Some(Ok("OK".to_owned())), 3));
}

/// `ActorOrchestration`
async fn actor_orchestration(mut stage: Stage) {
    let id = stage.start(ACTOR, "actor", &0).await;
    for operation in ["incr", "incr", "incr", "decr", "incr"] {
        stage.client.raise_event(&id, OPERATION, &operation.to_owned()).await.unwrap();
    }
    stage.crash();
    for operation in ["incr", "end"] {
        stage.client.raise_event(&id, OPERATION, &operation.to_owned()).await.unwrap();
    }
    let view = stage.ended(&id).await;
    assert_eq!((view.output_as::<i64>(), view.generation), (Some(Ok(4)), 6));
}

/// `TimerCancellation`
async fn timer_cancellation(stage: Stage) {
    let id = stage.start(APPROVE, "approval", &(LATE.as_millis() as u64)).await;
    stage.client.raise_event(&id, APPROVAL, &true).await.unwrap();
    assert_eq!(stage.ended(&id).await.output_as::<String>(), Some(Ok("Approved".to_owned())));
    let history = stage.client.history(&id).await.unwrap().unwrap();
    assert!(history.iter().any(|event| matches!(event.kind, EventKind::TimerCancelled { .. })), "{history:?}");
}

/// `TimerExpiration`
async fn timer_expiration(stage: Stage) {
    let id = stage.start(APPROVE, "approval", &(SOON.as_millis() as u64)).await;
    let view = stage.ended(&id).await;
    assert_eq!(view.output_as::<String>(), Some(Ok("Expired".to_owned())));
    assert!(view.updated >= view.created.plus(SOON));
}

/// `ExternalEventTimeout` (go)
async fn external_event_timeout(stage: Stage) {
    assert_eq!(stage.run(TIMEOUT, &()).await, "timed out");
}

/// `ExternalEventContention` (go)
async fn external_event_contention(stage: Stage) {
    let id = stage.start(CONTENTION, "contention", &()).await;
    for number in 0..3 {
        stage.client.raise_event(&id, NUMBER, &number).await.unwrap();
    }
    assert_eq!(stage.ended(&id).await.output_as::<Vec<u64>>(), Some(Ok(vec![0, 1, 2])));
}

/// `ContinueAsNew_Events` (go)
async fn continue_as_new_events(stage: Stage) {
    const EVENTS: u64 = 20;
    let id = stage.start(COLLECT, "collect", &(EVENTS, Vec::new())).await;
    for number in 0..EVENTS {
        stage.client.raise_event(&id, NUMBER, &number).await.unwrap();
    }
    let view = stage.ended(&id).await;
    assert_eq!(view.output_as::<Vec<u64>>(), Some(Ok((0..EVENTS).collect())));
}

/// `ScheduledStart_All`
async fn scheduled_start_all(mut stage: Stage) {
    let before = stage.run(NOW, &()).await;
    let at = Time(before).plus(Duration::from_millis(300));
    for name in ["one", "two"] {
        stage.client.start(NOW.start(&()).unwrap().id(name).unwrap().at(at)).await.unwrap();
    }
    stage.crash();
    for name in ["one", "two"] {
        let view = stage.ended(&id(name)).await;
        let started = view.output_as::<u64>().unwrap().unwrap();
        assert!(started >= at.0, "{name} ran {} us early", at.0 - started);
    }
}

scenarios!(
    code: event_conversation,
    continue_as_new_then_timer,
    actor_orchestration,
    timer_cancellation,
    timer_expiration,
    external_event_timeout,
    external_event_contention,
    continue_as_new_events,
    scheduled_start_all,
);
