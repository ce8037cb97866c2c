//! A bad deployment and its rollback: orchestrations under way go on as if nothing had happened.

use std::sync::Arc;

use super::{TIMEOUT, block, options};
use crate::client::{Client, Status};
use crate::error::Error;
use crate::failure::FailureKind;
use crate::hub::Hub;
use crate::ids::InstanceId;
use crate::model::{Ctx, ExternalEvent, Orchestration, Registry};
use crate::options::{HubOptions, Mismatch};
use crate::partition::testing::id;
use crate::store::{MemoryStore, Store};
use crate::{Activity, ActivityContext, Failure};

const ECHO: Activity<u32, u32> = Activity::new("echo");
const GATE: Orchestration<u32, u32> = Orchestration::new("gate");
const PARENT: Orchestration<u32, u32> = Orchestration::new("parent");
const GO: ExternalEvent<u32> = ExternalEvent::new("go");

/// Waits for two events, then adds them up by an activity.
fn right() -> Registry {
    let mut code = Registry::new();
    code.activity(ECHO, |_: ActivityContext, number: u32| async move { Ok::<_, Failure>(number) });
    code.orchestration(GATE, |ctx: Ctx, number: u32| async move {
        let first = ctx.call(ECHO, &number).await?;
        let sum = first + ctx.event(GO).await? + 10 * ctx.event(GO).await?;
        ctx.call(ECHO, &sum).await
    });
    code.orchestration(PARENT, |ctx: Ctx, number: u32| async move { ctx.sub(GATE, &number).await });
    code
}

/// Decides something else.
fn wrong() -> Registry {
    let mut code = Registry::new();
    code.orchestration(GATE, |ctx: Ctx, _: u32| async move { ctx.event(GO).await });
    code.orchestration(PARENT, |ctx: Ctx, _: u32| async move { ctx.event(GO).await });
    code
}

fn open(store: &Arc<MemoryStore>, code: Registry, on_mismatch: Mismatch) -> Hub {
    let options = HubOptions { on_mismatch, ..options() };
    Hub::open(Arc::clone(store) as Arc<dyn Store>, code, options).expect("a hub")
}

async fn status(client: &Client, id: &InstanceId) -> Status {
    client.get(id).await.expect("asked").expect("an instance").status
}

/// Starts one, and waits until its first activity is done.
async fn begin(client: &Client) -> InstanceId {
    let gate = client.start(GATE.start(&1).expect("JSON").id("gate").expect("an id")).await.expect("started");
    while client.history(&gate).await.expect("asked").map_or(0, |events| events.len()) < 3 {
        tokio::task::yield_now().await;
    }
    gate
}

#[test]
fn orchestrations_park_when_code_does_not_fit_and_continue_after_a_rollback() {
    for bad in [wrong, Registry::new] {
        let store = Arc::new(MemoryStore::new());
        let hub = open(&store, right(), Mismatch::Park);
        let gate = block(begin(&hub.client()));
        hub.halt();
        for event in [3, 4] {
            // Deployed twice over: what was kept is kept again.
            let hub = open(&store, bad(), Mismatch::Park);
            let client = hub.client();
            block(async {
                client.raise_event(&gate, GO, &event).await.expect("raised");
                assert_eq!(status(&client, &gate).await, Status::Parked);
                let view = client.get(&gate).await.expect("asked").expect("an instance");
                assert!(view.parked.is_some_and(|why| why.contains("history") || why.contains("gate")));
            });
            hub.halt();
        }
        let hub = open(&store, right(), Mismatch::Park);
        let ended = block(hub.client().wait(&gate, TIMEOUT)).expect("ended");
        assert_eq!(ended.output_as::<u32>(), Some(Ok(1 + 3 + 40)));
        hub.close().expect("closed");
    }
}

#[test]
fn a_sub_orchestration_whose_code_is_missing_begins_when_it_is_there() {
    let store = Arc::new(MemoryStore::new());
    let without_gate = || {
        let mut code = Registry::new();
        code.orchestration(PARENT, |ctx: Ctx, number: u32| async move { ctx.sub(GATE, &number).await });
        code
    };
    let hub = open(&store, without_gate(), Mismatch::Park);
    let client = hub.client();
    let refused = block(client.start(GATE.start(&1).expect("JSON"))).expect_err("it cannot begin");
    assert!(matches!(&refused, Error::Failed(failure) if failure.kind == FailureKind::Unregistered), "{refused}");
    let parent = block(client.start(PARENT.start(&1).expect("JSON").id("parent").expect("an id"))).expect("started");
    let sub = id("parent:0:0");
    block(async {
        while client.get(&sub).await.expect("asked").is_none_or(|view| view.status != Status::Parked) {
            tokio::task::yield_now().await;
        }
        client.raise_event(&sub, GO, &3).await.expect("kept");
    });
    hub.halt();
    let hub = open(&store, right(), Mismatch::Park);
    block(async {
        hub.client().raise_event(&sub, GO, &4).await.expect("raised");
        let ended = hub.client().wait(&parent, TIMEOUT).await.expect("ended");
        assert_eq!(ended.output_as::<u32>(), Some(Ok(44)));
    });
}

#[test]
fn parked_orchestrations_can_be_terminated_and_leave_nothing() {
    let store = Arc::new(MemoryStore::new());
    let hub = open(&store, right(), Mismatch::Park);
    let gate = block(begin(&hub.client()));
    hub.halt();
    let hub = open(&store, wrong(), Mismatch::Park);
    block(async {
        hub.client().raise_event(&gate, GO, &3).await.expect("kept");
        hub.client().terminate(&gate, "enough").await.expect("terminated");
        assert_eq!(status(&hub.client(), &gate).await, Status::Terminated);
    });
    hub.close().expect("closed");
    assert_eq!(hub.stats().partitions.iter().map(|partition| partition.counts.timers).sum::<u64>(), 0);
}

#[test]
fn failing_is_an_option() {
    let store = Arc::new(MemoryStore::new());
    let hub = open(&store, right(), Mismatch::Park);
    let gate = block(begin(&hub.client()));
    hub.halt();
    let hub = open(&store, wrong(), Mismatch::Fail);
    let ended = block(async {
        hub.client().raise_event(&gate, GO, &3).await.expect("raised");
        hub.client().wait(&gate, TIMEOUT).await.expect("ended")
    });
    let failure = ended.output.expect("it ended").expect_err("it failed");
    assert_eq!(failure.kind, FailureKind::Nondeterminism);
}
