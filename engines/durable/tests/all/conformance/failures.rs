//! Errors and panics of user code, and attempts after them.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use narrows_durable::{
    Activity, ActivityContext, Ctx, Failure, FailureKind, Orchestration, Registry, RetryPolicy, Status,
};

use super::stage::{Setting, Stage};

const THROW: Activity<String, String> = Activity::new("Throw");
const FLAKY: Activity<(String, u32), u32> = Activity::new("Flaky");
const NOTHING: Activity<(), ()> = Activity::new("Nothing");

const HANDLED: Orchestration<String, String> = Orchestration::new("TryThrow");
const UNHANDLED: Orchestration<String, String> = Orchestration::new("CallThrow");
const FAIL: Orchestration<String, ()> = Orchestration::new("Fail");
const PANIC: Orchestration<String, ()> = Orchestration::new("Panic");
const SUB_FAILS: Orchestration<String, ()> = Orchestration::new("ParentOfFail");
const RETRY: Orchestration<(u32, u32), u32> = Orchestration::new("RetryActivity");
const FLAKY_CHILD: Orchestration<(String, u32), u32> = Orchestration::new("FlakyChild");
const RETRY_SUB: Orchestration<(u32, u32), u32> = Orchestration::new("RetrySubOrchestration");
const REPLAYING: Orchestration<(), Vec<bool>> = Orchestration::new("IsReplaying");

/// How often the flaky activity ran for a caller. Identifiers of callers are random, so no two tests share one.
static RUNS: LazyLock<Mutex<HashMap<String, u32>>> = LazyLock::new(Mutex::default);

fn code() -> Registry {
    let mut code = Registry::new();
    code.activity(
        THROW,
        |_: ActivityContext, text: String| async move { Err::<String, _>(Failure::application(text)) },
    );
    code.activity(FLAKY, |_: ActivityContext, (caller, failures): (String, u32)| async move {
        let mut runs = RUNS.lock().unwrap();
        let run = runs.entry(caller).or_default();
        *run += 1;
        if *run <= failures { Err(Failure::application(format!("run {run}"))) } else { Ok(*run) }
    });
    code.activity(NOTHING, |_: ActivityContext, (): ()| async move { Ok::<_, Failure>(()) });
    code.orchestration(HANDLED, |ctx: Ctx, text: String| async move {
        Ok::<_, Failure>(match ctx.call(THROW, &text).await {
            Ok(_) => "no failure".to_owned(),
            Err(failure) => format!("caught {failure}"),
        })
    });
    code.orchestration(UNHANDLED, |ctx: Ctx, text: String| async move { ctx.call(THROW, &text).await });
    code.orchestration(FAIL, |_: Ctx, text: String| async move { Err::<(), _>(Failure::application(text)) });
    code.orchestration(PANIC, |_: Ctx, text: String| async move {
        assert!(text.is_empty(), "{text}");
        Ok::<_, Failure>(())
    });
    code.orchestration(SUB_FAILS, |ctx: Ctx, text: String| async move { ctx.sub(FAIL, &text).await });
    retries(&mut code);
    code.orchestration(REPLAYING, |ctx: Ctx, (): ()| async move {
        let mut seen = vec![ctx.is_replaying()];
        for _ in 0..2 {
            ctx.call(NOTHING, &()).await?;
            seen.push(ctx.is_replaying());
        }
        Ok::<_, Failure>(seen)
    });
    code
}

fn retries(code: &mut Registry) {
    let policy = |attempts| RetryPolicy::new(attempts, Duration::from_millis(1)).backoff(2.0, Duration::from_millis(5));
    code.orchestration(RETRY, move |ctx: Ctx, (failures, attempts): (u32, u32)| async move {
        ctx.call(FLAKY, &(ctx.instance().to_string(), failures)).retry(policy(attempts)).await
    });
    code.orchestration(FLAKY_CHILD, |ctx: Ctx, input: (String, u32)| async move { ctx.call(FLAKY, &input).await });
    code.orchestration(RETRY_SUB, move |ctx: Ctx, (failures, attempts): (u32, u32)| async move {
        ctx.sub(FLAKY_CHILD, &(ctx.instance().to_string(), failures)).retry(policy(attempts)).await
    });
}

async fn failed<O>(stage: &Stage, code: Orchestration<String, O>) -> Failure {
    let id = stage.start(code, "fails", &"Kah-BOOOOM!".to_owned()).await;
    let view = stage.ended(&id).await;
    assert_eq!(view.status, Status::Failed);
    view.output.unwrap().unwrap_err()
}

/// `HandledActivityException`
async fn handled_activity_exception(stage: Stage) {
    assert_eq!(stage.run(HANDLED, &"Kah-BOOOOM!".to_owned()).await, "caught Kah-BOOOOM!");
}

/// `UnhandledActivityException`
async fn unhandled_activity_exception(stage: Stage) {
    assert_eq!(failed(&stage, UNHANDLED).await, Failure::application("Kah-BOOOOM!"));
}

/// `UnhandledOrchestrationException`: an error returned.
async fn unhandled_orchestration_exception(stage: Stage) {
    assert_eq!(failed(&stage, FAIL).await, Failure::application("Kah-BOOOOM!"));
}

/// `UnhandledOrchestrationException`: a panic.
async fn unhandled_orchestration_exception_panic(stage: Stage) {
    let failure = failed(&stage, PANIC).await;
    assert_eq!(failure.kind, FailureKind::Panic);
    assert!(failure.message.contains("Kah-BOOOOM!"), "{failure}");
}

/// `SubOrchestrationFailed`: the parent gets the failure.
async fn sub_orchestration_failed(stage: Stage) {
    let failure = failed(&stage, SUB_FAILS).await;
    assert!(failure.message.contains("Kah-BOOOOM!"), "{failure}");
}

async fn retried(stage: &Stage, code: Orchestration<(u32, u32), u32>) {
    assert_eq!(stage.run(code, &(2, 3)).await, 3, "the third attempt is the first that does not fail");
    let id = stage.client.start(code.start(&(9, 3)).unwrap()).await.unwrap();
    let view = stage.ended(&id).await;
    assert_eq!(view.output_as::<u32>(), Some(Err(Failure::application("run 3"))));
    assert_eq!(RUNS.lock().unwrap().get(id.as_str()), Some(&3), "no attempt after the last");
}

/// `ActivityRetries` (go)
async fn activity_retries(stage: Stage) {
    retried(&stage, RETRY).await;
}

/// `SingleSubOrchestrator_Failed_Retries` (go)
async fn single_sub_orchestrator_failed_retries(stage: Stage) {
    retried(&stage, RETRY_SUB).await;
}

/// `IsReplaying` (go): what is kept in memory never replays; else all but the last interval does.
async fn is_replaying(mut stage: Stage) {
    // Its result says whether it is replayed, so it does not decide the same again.
    stage.mismatches = 1;
    let seen = stage.run(REPLAYING, &()).await;
    if stage.setting == Setting::Nodes {
        // The partition may have moved to another node meanwhile, where the code is replayed.
        return assert!(matches!(seen[..], [_, _, false]), "{seen:?}");
    }
    let expected = stage.setting == Setting::Replayed;
    assert_eq!(seen, [expected, expected, false]);
}

scenarios!(
    code: handled_activity_exception,
    unhandled_activity_exception,
    unhandled_orchestration_exception,
    unhandled_orchestration_exception_panic,
    sub_orchestration_failed,
    activity_retries,
    single_sub_orchestrator_failed_retries,
    is_replaying,
);
