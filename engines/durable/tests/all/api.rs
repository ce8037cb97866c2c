//! The public interface, imported whole.

use std::sync::Arc;
use std::time::Duration;

use narrows_durable::*;

const HELLO: Activity<String, String> = Activity::new("hello");
const GREET: Orchestration<String, String> = Orchestration::new("greet");
const SLEEP: Orchestration<(), ()> = Orchestration::new("sleep");

fn code() -> Registry {
    let mut code = Registry::new();
    code.activity(HELLO, |_: ActivityContext, name: String| async move { Ok::<_, Failure>(format!("Hello {name}!")) });
    code.orchestration(GREET, |ctx: Ctx, name: String| async move {
        // An error of the hub becomes a failure of the orchestration.
        let id = InstanceId::new(&name)?;
        ctx.call(HELLO, &id.to_string()).await
    });
    code.orchestration(SLEEP, |_: Ctx, (): ()| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok::<_, Failure>(())
    });
    code
}

fn run<I: serde::Serialize>(orchestration: Orchestration<I, String>, input: &I) -> Result<String, Error> {
    let hub = Hub::open(Arc::new(store::MemoryStore::new()), code(), HubOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(hub.client().run(orchestration, input, Duration::from_secs(60)))
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Failed(failure) => failure,
        other => panic!("{other}"),
    }
}

#[test]
fn everything_can_be_imported_and_errors_become_failures() {
    assert_eq!(run(GREET, &"Ada".to_owned()).unwrap(), "Hello Ada!");
    let failure = failure(run(GREET, &String::new()).unwrap_err());
    assert_eq!(failure.kind, FailureKind::Application);
    assert!(failure.message.contains("cannot be an identifier"), "{failure}");
}

#[test]
fn a_sleep_of_tokio_is_a_foreign_await() {
    let sleep: Orchestration<(), String> = Orchestration::new(SLEEP.name());
    assert_eq!(failure(run(sleep, &()).unwrap_err()).kind, FailureKind::ForeignAwait);
}
