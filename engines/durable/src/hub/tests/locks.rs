//! Transfers between accounts under locks, over several lives of a hub: money neither comes nor goes, and no lock stays.

use std::sync::Arc;

use super::{TIMEOUT, block, options};
use crate::client::{Client, Status};
use crate::event::Event;
use crate::hub::Hub;
use crate::ids::{EntityId, InstanceId};
use crate::model::{Ctx, EntityContext, EntityOp, EntityType, ExternalEvent, Orchestration, Registry};
use crate::options::{HubOptions, Mode};
use crate::store::{MemoryStore, Store};
use crate::{Activity, ActivityContext, Failure};

const ACCOUNT: EntityType<i64> = EntityType::new("account");
const ADD: EntityOp<i64, i64, i64> = EntityOp::new("add");
const CHECK: Activity<(), ()> = Activity::new("check");
const TRANSFER: Orchestration<(String, String), ()> = Orchestration::new("transfer");
const PAY: Orchestration<i64, i64> = Orchestration::new("pay");
const HOLD: Orchestration<(), ()> = Orchestration::new("hold");
const GO: ExternalEvent<()> = ExternalEvent::new("go");
const ACCOUNTS: usize = 5;

fn bank() -> Registry {
    let mut code = Registry::new();
    code.entity(ACCOUNT).operation(ADD, |balance: &mut i64, amount: i64, _: &mut EntityContext| {
        *balance += amount;
        Ok::<_, Failure>(*balance)
    });
    code.activity(CHECK, |_: ActivityContext, (): ()| async { Ok::<_, Failure>(()) });
    code.orchestration(
        PAY,
        |ctx: Ctx, amount: i64| async move { ctx.entity_call(&first_account(), ADD, &amount).await },
    );
    code.orchestration(HOLD, |ctx: Ctx, (): ()| async move {
        let _guard = ctx.lock(&[first_account()]).await?;
        ctx.event(GO).await
    });
    code.orchestration(TRANSFER, |ctx: Ctx, (from, to): (String, String)| async move {
        let failed = |error: crate::Error| Failure::application(error.to_string());
        let from = EntityId::new("account", &from).map_err(failed)?;
        let to = EntityId::new("account", &to).map_err(failed)?;
        let _guard = ctx.lock(&[from.clone(), to.clone()]).await?;
        let before = ctx.entity_call(&from, ADD, &0).await?;
        ctx.call(CHECK, &()).await?;
        let after = ctx.entity_call(&from, ADD, &-1).await?;
        ctx.entity_call(&to, ADD, &1).await?;
        if after + 1 == before { Ok(()) } else { Err(Failure::application("somebody came between")) }
    });
    code
}

fn first_account() -> EntityId {
    EntityId::new("account", "a0").expect("an entity")
}

fn account(n: usize) -> String {
    format!("a{}", n % ACCOUNTS)
}

async fn transfer(client: &Client, name: &str, from: usize, to: usize) -> InstanceId {
    let start = TRANSFER.start(&(account(from), account(to))).expect("an input");
    client.start(start.id(name).expect("an identifier")).await.expect("started")
}

async fn completed(client: &Client, instance: &InstanceId) {
    let view = client.wait(instance, TIMEOUT).await;
    let view = match view {
        Ok(view) => view,
        Err(error) => panic!("{error}: {:?}", client.history(instance).await.map(|events| events.map(kinds))),
    };
    assert_eq!(view.status, Status::Completed, "{instance}: {:?}", view.output);
}

fn kinds(events: Vec<Event>) -> Vec<crate::EventKind> {
    events.into_iter().map(|event| event.kind).collect()
}

async fn sum(client: &Client) -> i64 {
    let mut sum = 0;
    for n in 0..ACCOUNTS {
        let entity = EntityId::new("account", &account(n)).expect("an entity");
        let state = client.entity_state(&entity).await.expect("asked");
        sum += state.map_or(0, |state| state.decode::<i64>().expect("a balance"));
    }
    sum
}

fn open(store: &Arc<MemoryStore>, mode: Mode, cursor_cache_bytes: usize) -> Hub {
    let options = HubOptions { mode, cursor_cache_bytes, ..options() };
    Hub::open(Arc::clone(store) as Arc<dyn Store>, bank(), options).expect("a hub")
}

#[test]
fn transfers_under_locks_survive_halts_and_evictions() {
    for mode in [Mode::Speculative, Mode::PersistFirst] {
        let store = Arc::new(MemoryStore::new());
        let mut open_transfers = Vec::new();
        for life in 0..4 {
            let hub = open(&store, mode, if life % 2 == 0 { 0 } else { 1 << 20 });
            let client = hub.client();
            block(async {
                for n in 0..15 {
                    open_transfers.push(transfer(&client, &format!("t{life}-{n}"), n, n + 1 + life % 3).await);
                }
                completed(&client, &open_transfers[life * 15]).await;
            });
            hub.halt();
        }
        let hub = open(&store, mode, 0);
        let client = hub.client();
        block(async {
            for instance in &open_transfers {
                completed(&client, instance).await;
            }
            assert_eq!(sum(&client).await, 0);
        });
    }
}

#[test]
fn a_terminated_orchestration_leaves_no_lock_behind() {
    let store = Arc::new(MemoryStore::new());
    let hub = open(&store, Mode::Speculative, 1 << 20);
    let client = hub.client();
    block(async {
        let mut transfers = Vec::new();
        for n in 0..20 {
            transfers.push(transfer(&client, &format!("t{n}"), n, n + 1).await);
        }
        for instance in transfers.iter().step_by(2) {
            // One that has ended already is one that cannot be terminated.
            let _ = client.terminate(instance, "enough").await;
        }
        for instance in &transfers {
            client.wait(instance, TIMEOUT).await.expect("ended");
        }
        for n in 0..ACCOUNTS {
            let last = transfer(&client, &format!("last{n}"), n, n + 2).await;
            completed(&client, &last).await;
        }
    });
}

#[test]
fn a_response_to_an_instance_that_was_purged_is_not_for_the_next_of_its_name() {
    for cursor_cache_bytes in [0, 1 << 20] {
        let store = Arc::new(MemoryStore::new());
        let hub = open(&store, Mode::Speculative, cursor_cache_bytes);
        let client = hub.client();
        block(async {
            let start = |amount: i64| PAY.start(&amount).expect("an input").id("pay").expect("an identifier");
            let hold = client.start(HOLD.start(&()).expect("an input")).await.expect("started");
            let locked = || async { client.history(&hold).await.expect("asked").map_or(0, |events| events.len()) >= 3 };
            while !locked().await {
                tokio::task::yield_now().await;
            }
            // Its call waits for the lock, and is still there when it is gone itself.
            let pay = client.start(start(100)).await.expect("started");
            client.terminate(&pay, "no").await.expect("terminated");
            assert!(client.purge(&pay).await.expect("purged"));
            client.start(start(1)).await.expect("started");
            client.raise_event(&hold, GO, &()).await.expect("raised");
            let paid = client.wait(&pay, TIMEOUT).await.expect("ended");
            assert_eq!(paid.output_as::<i64>(), Some(Ok(101)), "it got the response to another call");
        });
    }
}
