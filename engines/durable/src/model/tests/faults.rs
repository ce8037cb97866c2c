//! Code that breaks the rules: it fails by name, and nothing hangs.

use std::time::Duration;

use super::*;
use crate::failure::FailureKind;
use crate::model::{Activity, Ctx, Orchestration};

const WORK: Activity<u32, u32> = Activity::new("Work");
const FLOW: Orchestration<(), u32> = Orchestration::new("Flow");

fn flow<R>(code: impl Fn(Ctx, ()) -> R + Send + Sync + 'static) -> Registry
where
    R: Future<Output = Result<u32, Failure>> + 'static,
{
    let mut registry = Registry::new();
    registry.orchestration(FLOW, code);
    registry
}

fn first_failure(registry: &Registry) -> Failure {
    let (run, decisions) = Run::start(registry, "Flow", ());
    run.check_replays();
    failure_of(&decisions).clone()
}

#[test]
fn a_foreign_await_is_named() {
    let waits_for_ever = flow(|_, ()| std::future::pending());
    let yields = flow(|_, ()| async {
        let mut is_first = true;
        std::future::poll_fn(move |context| {
            context.waker().wake_by_ref();
            if std::mem::take(&mut is_first) { std::task::Poll::Pending } else { std::task::Poll::Ready(Ok(1)) }
        })
        .await
    });
    let channel = flow(|_, ()| async {
        let (_sender, receiver) = tokio::sync::oneshot::channel();
        receiver.await.map_err(|_| Failure::application("gone"))
    });
    let beside_a_call = flow(|ctx, ()| async move {
        let (value, ()) = ctx.join2(ctx.call(WORK, &1), std::future::pending()).await;
        value
    });
    let in_a_crowd = flow(|ctx, ()| async move {
        let branches = (0..3).map(|number| {
            let ctx = ctx.clone();
            async move { if number == 1 { std::future::pending().await } else { ctx.call(WORK, &number).await } }
        });
        ctx.join_all(branches.collect()).await.remove(0)
    });
    for registry in [waits_for_ever, yields, channel, beside_a_call, in_a_crowd] {
        let failure = first_failure(&registry);
        assert_eq!(failure.kind, FailureKind::ForeignAwait);
        assert!(failure.message.starts_with("orchestration Flow awaits something"), "{failure}");
    }
}

#[test]
fn a_foreign_await_after_a_step_is_named_too_and_the_next_execution_is_well() {
    let registry = flow(|ctx, ()| async move {
        ctx.call(WORK, &1).await?;
        let (_sender, receiver) = tokio::sync::oneshot::channel::<u32>();
        let timer = ctx.timer(Duration::from_secs(1));
        match ctx.select2(receiver, timer).await {
            crate::model::Either::Left(_) => Ok(1),
            crate::model::Either::Right(()) => Ok(2),
        }
    });
    for _ in 0..2 {
        let (mut run, first) = Run::start(&registry, "Flow", ());
        assert_eq!(first, [scheduled(0, "Work", 1)]);
        assert_eq!(failure_of(&run.complete(0, 1)).kind, FailureKind::ForeignAwait);
        run.check_replays();
    }
}

#[test]
fn a_panic_is_a_failure_with_its_words() {
    fn before(_: Ctx, (): ()) -> std::future::Ready<Result<u32, Failure>> {
        panic!("before the first await")
    }
    let later = flow(|ctx, ()| async move {
        let timer = ctx.timer(Duration::from_secs(1));
        timer.await;
        panic!("after {} awaits", 1)
    });
    let failure = first_failure(&flow(before));
    assert_eq!(failure.kind, FailureKind::Panic);
    assert_eq!(failure.message, "orchestration Flow panicked: before the first await");
    let (mut run, _) = Run::start(&later, "Flow", ());
    let decisions = run.fire(0);
    assert_eq!(failure_of(&decisions).message, "orchestration Flow panicked: after 1 awaits");
    run.check_replays();
}

#[test]
fn a_panic_while_code_is_dropped_stays_inside() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let registry = flow(|ctx, ()| async move {
        let _bomb = Bomb;
        ctx.call(WORK, &1).await
    });
    let (run, first) = Run::start(&registry, "Flow", ());
    assert_eq!(first, [scheduled(0, "Work", 1)]);
    drop(run);
}

#[test]
fn a_context_that_is_used_by_another_execution_decides_nothing_there() {
    thread_local! {
        static STOLEN: std::cell::RefCell<Option<Ctx>> = const { std::cell::RefCell::new(None) };
    }
    let registry = flow(|ctx, ()| async move {
        let stolen = STOLEN.with(|stolen| stolen.borrow_mut().replace(ctx.clone()));
        stolen.unwrap_or(ctx).call(WORK, &1).await
    });
    let (mut first, _) = Run::start(&registry, "Flow", ());
    let (_, second) = Run::start(&registry, "Flow", ());
    assert_eq!(failure_of(&second).kind, FailureKind::ForeignAwait);
    assert_eq!(first.complete(0, 5), [completed(5)]);
    STOLEN.with(|stolen| stolen.borrow_mut().take());
}

#[test]
fn too_many_decisions_are_a_failure() {
    let registry = flow(|ctx, ()| async move {
        for _ in 0..=crate::model::DECISIONS_MAX {
            ctx.raise(&ctx.instance().clone(), crate::model::ExternalEvent::new("Tick"), &())?;
        }
        Ok(1)
    });
    let (_, decisions) = Run::start(&registry, "Flow", ());
    assert_eq!(failure_of(&decisions).kind, FailureKind::Limit);
    assert_eq!(decisions.len(), crate::model::DECISIONS_MAX as usize + 1);
}

#[test]
fn missing_code_is_named_with_what_there_is() {
    let mut registry = flow(|_, ()| async { Ok(1) });
    registry.orchestration_version(FLOW, 3, |_, ()| async { Ok(3) });
    let failure = |name, version| registry.cursor(&instance(), name, version).err().expect("missing");
    assert_eq!(failure("Flwo", 0).to_string(), "unregistered: there is no orchestration \"Flwo\", there are [Flow]");
    let text = failure("Flow", 2).to_string();
    assert_eq!(text, "unregistered: orchestration Flow has no version 2, there are [0, 3]");
    assert_eq!(registry.newest("Flow"), Some(3));
    assert_eq!(registry.newest("Flwo"), None);
}

#[test]
#[should_panic(expected = "orchestration Flow version 0 is registered twice")]
fn registering_twice_panics() {
    flow(|_, ()| async { Ok(1) }).orchestration(FLOW, |_, ()| async { Ok(2) });
}
