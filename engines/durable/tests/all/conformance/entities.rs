//! Entities: signals, calls, locks.

use narrows_durable::{Ctx, EntityId, EntityOp, EntityType, Failure, Orchestration, Registry};

use super::stage::{Stage, id};

const COUNTER: EntityType<i64> = EntityType::new("Counter");
const ADD: EntityOp<i64, i64, i64> = EntityOp::new("Add");
const GET: EntityOp<i64, (), i64> = EntityOp::new("Get");
const SET: EntityOp<i64, i64, ()> = EntityOp::new("Set");
const DELETE: EntityOp<i64, (), ()> = EntityOp::new("Delete");
const CRASH: EntityOp<i64, (), ()> = EntityOp::new("Crash");
const START: EntityOp<i64, String, ()> = EntityOp::new("Start");

const USE_COUNTER: Orchestration<String, (i64, i64)> = Orchestration::new("UseCounter");
const TRY_CRASH: Orchestration<String, (bool, i64)> = Orchestration::new("TryCrash");
const TRANSFER: Orchestration<(String, String, i64), bool> = Orchestration::new("BankTransfer");
const NOTHING: Orchestration<(), u64> = Orchestration::new("Nothing");

fn code() -> Registry {
    let mut code = Registry::new();
    code.entity(COUNTER)
        .operation(ADD, |value, amount: i64, _| {
            *value += amount;
            Ok(*value)
        })
        .operation(GET, |value, (): (), _| Ok(*value))
        .operation(SET, |value, to: i64, _| {
            *value = to;
            Ok(())
        })
        .operation(DELETE, |_, (): (), ctx| {
            ctx.delete();
            Ok(())
        })
        .operation(CRASH, |value, (): (), _| {
            *value = -1;
            Err(Failure::application("crashed"))
        })
        .operation(START, |_, instance: String, ctx| ctx.start_as(NOTHING, &id(&instance), &()));
    code.orchestration(USE_COUNTER, |ctx: Ctx, key: String| async move {
        let counter = counter(&key);
        ctx.entity_signal(&counter, ADD, &1)?;
        let after_call = ctx.entity_call(&counter, ADD, &10).await?;
        ctx.entity_signal(&counter, ADD, &100)?;
        Ok::<_, Failure>((after_call, ctx.entity_call(&counter, GET, &()).await?))
    });
    code.orchestration(TRY_CRASH, |ctx: Ctx, key: String| async move {
        let counter = counter(&key);
        ctx.entity_signal(&counter, SET, &5)?;
        let failed = ctx.entity_call(&counter, CRASH, &()).await.is_err();
        Ok::<_, Failure>((failed, ctx.entity_call(&counter, GET, &()).await?))
    });
    code.orchestration(TRANSFER, |ctx: Ctx, (from, to, amount): (String, String, i64)| async move {
        let (from, to) = (counter(&from), counter(&to));
        let _locked = ctx.lock(&[from.clone(), to.clone()]).await?;
        let has = ctx.entity_call(&from, GET, &()).await?;
        if has < amount {
            return Ok(false);
        }
        let had = ctx.entity_call(&to, GET, &()).await?;
        ctx.entity_call(&from, SET, &(has - amount)).await?;
        ctx.entity_call(&to, SET, &(had + amount)).await?;
        Ok::<_, Failure>(true)
    });
    code.orchestration(NOTHING, |_: Ctx, (): ()| async move { Ok::<_, Failure>(1) });
    code
}

fn counter(key: &str) -> EntityId {
    COUNTER.id(key).unwrap()
}

async fn value(stage: &Stage, key: &str) -> Option<i64> {
    stage.client.state_of(COUNTER, &counter(key)).await.unwrap()
}

/// `CanClientInteractWithEntities`
async fn can_client_interact_with_entities(mut stage: Stage) {
    assert_eq!(value(&stage, "x").await, None);
    stage.client.signal_entity(&counter("x"), ADD, &3).await.unwrap();
    stage.client.signal_entity(&counter("x"), ADD, &4).await.unwrap();
    assert_eq!(value(&stage, "x").await, Some(7));
    stage.crash();
    assert_eq!(value(&stage, "x").await, Some(7));
    stage.client.signal_entity(&counter("x"), DELETE, &()).await.unwrap();
    assert_eq!(value(&stage, "x").await, None);
    stage.client.signal_entity(&counter("x"), ADD, &1).await.unwrap();
    assert_eq!(value(&stage, "x").await, Some(1));
}

/// `CanOrchestrationInteractWithEntities`
async fn can_orchestration_interact_with_entities(stage: Stage) {
    assert_eq!(stage.run(USE_COUNTER, &"x".to_owned()).await, (11, 111), "what one sends arrives in order");
}

/// `CounterSignals`
async fn counter_signals(mut stage: Stage) {
    const SIGNALS: i64 = 100;
    for _ in 0..SIGNALS {
        stage.client.signal_entity(&counter("x"), ADD, &1).await.unwrap();
    }
    stage.crash();
    for _ in 0..SIGNALS {
        stage.client.signal_entity(&counter("x"), ADD, &1).await.unwrap();
    }
    assert_eq!(value(&stage, "x").await, Some(2 * SIGNALS));
}

/// `CounterCrash`: an operation that fails leaves no trace.
async fn counter_crash(stage: Stage) {
    assert_eq!(stage.run(TRY_CRASH, &"x".to_owned()).await, (true, 5));
}

/// `LauncherEntity`
async fn launcher_entity(stage: Stage) {
    const COUNT: usize = 20;
    for number in 0..COUNT {
        stage.client.signal_entity(&counter("launcher"), START, &format!("n-{number}")).await.unwrap();
    }
    for number in 0..COUNT {
        let id = id(&format!("n-{number}"));
        while stage.client.get(&id).await.unwrap().is_none() {}
        assert_eq!(stage.ended(&id).await.output_as::<u64>(), Some(Ok(1)));
    }
}

/// `CanOrchestrateEntities`, and the benchmark `Bank`: a critical section over two accounts.
async fn can_orchestrate_entities(mut stage: Stage) {
    const ACCOUNTS: [&str; 3] = ["a", "b", "c"];
    const TRANSFERS: usize = 30;
    for account in ACCOUNTS {
        stage.client.signal_entity(&counter(account), SET, &1_000).await.unwrap();
    }
    let mut expected = [1_000; 3];
    let mut starts = Vec::new();
    for number in 0..TRANSFERS {
        let (from, to, amount) = (number % 3, (number + 1 + number / 3 % 2) % 3, 1 + number as i64);
        expected[from] -= amount;
        expected[to] += amount;
        let input = (ACCOUNTS[from].to_owned(), ACCOUNTS[to].to_owned(), amount);
        starts.push(TRANSFER.start(&input).unwrap().id(format!("transfer-{number}")).unwrap());
    }
    let started = stage.client.start_many(starts).await.unwrap();
    stage.crash();
    for id in started {
        assert_eq!(stage.ended(&id.unwrap()).await.output_as::<bool>(), Some(Ok(true)));
    }
    let mut values = [0; 3];
    for (value_of, account) in values.iter_mut().zip(ACCOUNTS) {
        *value_of = value(&stage, account).await.unwrap();
    }
    assert_eq!(values, expected);
}

scenarios!(
    code: can_client_interact_with_entities,
    can_orchestration_interact_with_entities,
    counter_signals,
    counter_crash,
    launcher_entity,
    can_orchestrate_entities,
);
