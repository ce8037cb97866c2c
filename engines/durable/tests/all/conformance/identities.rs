//! A second start under an identifier that is taken.

use narrows_durable::{Ctx, Error, ExternalEvent, Failure, InstanceId, Orchestration, Registry, Reuse, Status};

use super::stage::{Stage, id};

const GO: ExternalEvent<String> = ExternalEvent::new("Go");
const ECHO: Orchestration<String, String> = Orchestration::new("Echo");
const WAIT: Orchestration<String, String> = Orchestration::new("Wait");
const PARENT: Orchestration<String, String> = Orchestration::new("ParentOfNamed");

fn code() -> Registry {
    let mut code = Registry::new();
    code.orchestration(ECHO, |_: Ctx, text: String| async move {
        if text == "fail" { Err(Failure::application(text)) } else { Ok(text) }
    });
    code.orchestration(WAIT, |ctx: Ctx, text: String| async move {
        Ok::<_, Failure>(format!("{text} {}", ctx.event(GO).await?))
    });
    code.orchestration(PARENT, |ctx: Ctx, text: String| async move { ctx.sub(ECHO, &text).id(&id("named-sub")).await });
    code
}

/// Brings an instance named "x" into a state.
async fn first(stage: &Stage, status: Status) -> InstanceId {
    let (code, input) = match status {
        Status::Completed => (ECHO, "first"),
        Status::Failed => (ECHO, "fail"),
        _ => (WAIT, "first"),
    };
    let id = stage.start(code, "x", &input.to_owned()).await;
    if status == Status::Terminated {
        stage.client.terminate(&id, "enough").await.unwrap();
    }
    if status != Status::Running {
        assert_eq!(stage.ended(&id).await.status, status);
    }
    assert_eq!(stage.status(&id).await, status);
    id
}

async fn again(stage: &Stage, reuse: Reuse) -> Result<InstanceId, Error> {
    let start = ECHO.start(&"second".to_owned()).unwrap().id("x").unwrap();
    stage.client.start(start.reuse(reuse)).await
}

async fn recreated(stage: &Stage, status: Status, reuse: Reuse) {
    let id = first(stage, status).await;
    again(stage, reuse).await.unwrap();
    let view = stage.ended(&id).await;
    assert_eq!((view.status, view.output_as::<String>()), (Status::Completed, Some(Ok("second".to_owned()))));
    let history = stage.client.history(&id).await.unwrap().unwrap();
    assert_eq!(history.len(), 2, "only what is new: {history:?}");
}

async fn deduplicated(stage: &Stage, status: Status, reuse: Reuse) {
    let id = first(stage, status).await;
    let before = stage.client.get(&id).await.unwrap();
    let error = again(stage, reuse).await.unwrap_err();
    assert!(matches!(&error, Error::Exists { instance, .. } if *instance == id), "{error}");
    assert_eq!(stage.client.get(&id).await.unwrap(), before);
}

/// `RecreateCompletedInstance`
async fn recreate_completed_instance(stage: Stage) {
    recreated(&stage, Status::Completed, Reuse::IfEnded).await;
}

/// `RecreateFailedInstance`
async fn recreate_failed_instance(stage: Stage) {
    recreated(&stage, Status::Failed, Reuse::IfEnded).await;
}

/// `RecreateTerminatedInstance`
async fn recreate_terminated_instance(stage: Stage) {
    recreated(&stage, Status::Terminated, Reuse::IfEnded).await;
}

/// `RecreateRunningInstance`; also `ReuseInstanceIDTerminate` (go)
async fn recreate_running_instance(stage: Stage) {
    recreated(&stage, Status::Running, Reuse::Terminate).await;
}

/// `DeduplicateCompletedInstance`
async fn deduplicate_completed_instance(stage: Stage) {
    deduplicated(&stage, Status::Completed, Reuse::Never).await;
}

/// `DeduplicateFailedInstance`
async fn deduplicate_failed_instance(stage: Stage) {
    deduplicated(&stage, Status::Failed, Reuse::Never).await;
}

/// `DeduplicateTerminatedInstance`
async fn deduplicate_terminated_instance(stage: Stage) {
    deduplicated(&stage, Status::Terminated, Reuse::Never).await;
}

/// `DeduplicateRunningInstance`; also `ReuseInstanceIDError` (go)
async fn deduplicate_running_instance(stage: Stage) {
    deduplicated(&stage, Status::Running, Reuse::IfEnded).await;
}

/// `ReuseInstanceIDIgnore` (go)
async fn reuse_instance_id_ignore(stage: Stage) {
    let id = first(&stage, Status::Running).await;
    again(&stage, Reuse::Ignore).await.unwrap();
    stage.client.raise_event(&id, GO, &"goes on".to_owned()).await.unwrap();
    assert_eq!(stage.ended(&id).await.output_as::<String>(), Some(Ok("first goes on".to_owned())));
}

/// `RecreateCompletedInstanceWithSuborchestration`
async fn recreate_completed_instance_with_suborchestration(stage: Stage) {
    for text in ["one", "two", "three"] {
        let id = stage.start(PARENT, "parent", &text.to_owned()).await;
        assert_eq!(stage.ended(&id).await.output_as::<String>(), Some(Ok(text.to_owned())));
    }
}

scenarios!(
    code: recreate_completed_instance,
    recreate_failed_instance,
    recreate_terminated_instance,
    recreate_running_instance,
    deduplicate_completed_instance,
    deduplicate_failed_instance,
    deduplicate_terminated_instance,
    deduplicate_running_instance,
    reuse_instance_id_ignore,
    recreate_completed_instance_with_suborchestration,
);
