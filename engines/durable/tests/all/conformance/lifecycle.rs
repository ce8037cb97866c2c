//! Ending, keeping back and forgetting, with all that hangs on it.

use narrows_durable::{Ctx, Error, ExternalEvent, Failure, FailureKind, InstanceId, Orchestration, Registry, Status};

use super::stage::{Stage, id};

const NUMBER: ExternalEvent<u64> = ExternalEvent::new("Number");
const COLLECT: Orchestration<u64, Vec<u64>> = Orchestration::new("Collect");
/// Starts a chain of sub-orchestrations of this length, of which the last waits for a number.
const CHAIN: Orchestration<u64, u64> = Orchestration::new("Chain");
const DEPTH: u64 = 4;

fn code() -> Registry {
    let mut code = Registry::new();
    code.orchestration(COLLECT, |ctx: Ctx, wanted: u64| async move {
        let mut had = Vec::new();
        while (had.len() as u64) < wanted {
            had.push(ctx.event(NUMBER).await?);
        }
        Ok::<_, Failure>(had)
    });
    code.orchestration(CHAIN, |ctx: Ctx, depth: u64| async move {
        if depth == 0 {
            return ctx.event(NUMBER).await;
        }
        ctx.sub(CHAIN, &(depth - 1)).id(&link(depth - 1)).await
    });
    code
}

fn link(depth: u64) -> InstanceId {
    id(&format!("link-{depth}"))
}

/// Starts a chain and waits until its last link waits.
async fn chain(stage: &Stage) {
    stage.start(CHAIN, link(DEPTH).as_str(), &DEPTH).await;
    while stage.client.get(&link(0)).await.unwrap().is_none() {}
}

/// `TerminateOrchestration`
async fn terminate_orchestration(stage: Stage) {
    let id = stage.start(COLLECT, "x", &1).await;
    stage.client.terminate(&id, "sayonara").await.unwrap();
    let view = stage.ended(&id).await;
    let failure = view.output.unwrap().unwrap_err();
    assert_eq!((view.status, failure.kind), (Status::Terminated, FailureKind::Terminated));
    assert!(failure.message.contains("sayonara"), "{failure}");
    assert!(matches!(stage.client.terminate(&id, "twice").await, Err(Error::Conflict { .. })));
}

/// `TerminateOrchestration_Recursive` (go)
async fn terminate_recursive(stage: Stage) {
    chain(&stage).await;
    stage.client.terminate(&link(DEPTH), "all of you").await.unwrap();
    for depth in 0..=DEPTH {
        assert_eq!(stage.ended(&link(depth)).await.status, Status::Terminated, "link {depth}");
    }
}

/// `PurgeOrchestration_Recursive` (go)
async fn purge_recursive(mut stage: Stage) {
    chain(&stage).await;
    let refused = stage.client.purge(&link(DEPTH)).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })), "it still runs: {refused:?}");
    stage.client.raise_event(&link(0), NUMBER, &7).await.unwrap();
    assert_eq!(stage.ended(&link(DEPTH)).await.output_as::<u64>(), Some(Ok(7)));
    assert!(stage.client.purge(&link(DEPTH)).await.unwrap());
    for depth in 0..=DEPTH {
        stage.gone(&link(depth)).await;
    }
    stage.crash();
    for depth in 0..=DEPTH {
        assert!(!stage.client.purge(&link(depth)).await.unwrap(), "link {depth}");
    }
}

/// `SuspendResumeOrchestration` (go)
async fn suspend_resume_orchestration(mut stage: Stage) {
    const EVENTS: u64 = 10;
    let id = stage.start(COLLECT, "x", &EVENTS).await;
    stage.client.suspend(&id, "rest").await.unwrap();
    for number in 0..EVENTS {
        stage.client.raise_event(&id, NUMBER, &number).await.unwrap();
    }
    assert_eq!(stage.status(&id).await, Status::Suspended);
    stage.crash();
    assert_eq!(stage.status(&id).await, Status::Suspended);
    stage.client.resume(&id, "on").await.unwrap();
    let view = stage.ended(&id).await;
    assert_eq!(view.output_as::<Vec<u64>>(), Some(Ok((0..EVENTS).collect())));
}

/// `StopAsync_IsIdempotent`
async fn stop_is_idempotent(mut stage: Stage) {
    let id = stage.start(COLLECT, "x", &1).await;
    let old = stage.client.clone();
    stage.close();
    assert!(matches!(old.get(&id).await, Err(Error::Closed)));
    stage.client.raise_event(&id, NUMBER, &3).await.unwrap();
    assert_eq!(stage.ended(&id).await.output_as::<Vec<u64>>(), Some(Ok(vec![3])));
}

scenarios!(
    code: terminate_orchestration,
    terminate_recursive,
    purge_recursive,
    suspend_resume_orchestration,
    stop_is_idempotent,
);
