//! The code that these tests run.

use narrows_durable::{Activity, ActivityContext, Ctx, ExternalEvent, Failure, Orchestration, Registry};

pub(crate) const ECHO: Orchestration<String, String> = Orchestration::new("Echo");
pub(crate) const WAIT: Orchestration<String, usize> = Orchestration::new("Wait");
pub(crate) const PANIC: Orchestration<(), ()> = Orchestration::new("Panic");
pub(crate) const ENDLESS: Orchestration<(), ()> = Orchestration::new("Endless");
pub(crate) const GO: ExternalEvent<()> = ExternalEvent::new("Go");
const SAY: Activity<String, String> = Activity::new("Say");
const NEVER: Activity<(), ()> = Activity::new("Never");

pub(crate) fn code() -> Registry {
    let mut code = Registry::new();
    code.activity(SAY, |_: ActivityContext, text: String| async move { Ok::<_, Failure>(text) });
    code.activity(NEVER, |_: ActivityContext, ()| std::future::pending::<Result<(), Failure>>());
    code.orchestration(ECHO, |ctx: Ctx, text: String| async move { ctx.call(SAY, &text).await });
    code.orchestration(WAIT, |ctx: Ctx, text: String| async move {
        ctx.event(GO).await?;
        Ok(text.len())
    });
    code.orchestration(PANIC, |_: Ctx, ()| async move {
        if true {
            panic!("on purpose");
        }
        Ok(())
    });
    code.orchestration(ENDLESS, |ctx: Ctx, ()| async move { ctx.call(NEVER, &()).await });
    code
}
