//! The model on a hub: the typed client, and transfers between accounts under a lock.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::error::Error;
use crate::failure::FailureKind;
use crate::hub::Hub;
use crate::ids::EntityId;
use crate::model::{EntityOp, EntityType, ExternalEvent, Orchestration};
use crate::options::HubOptions;
use crate::store::MemoryStore;

const ACCOUNT: EntityType<i64> = EntityType::new("Account");
const ADD: EntityOp<i64, i64, i64> = EntityOp::new("Add");
const TRANSFER: Orchestration<(String, String, i64), bool> = Orchestration::new("Transfer");
const GREET: Orchestration<(), String> = Orchestration::new("Greet");
const NAME: ExternalEvent<String> = ExternalEvent::new("Name");
const TIMEOUT: Duration = Duration::from_secs(60);

fn code() -> Registry {
    let mut registry = Registry::new();
    registry.entity(ACCOUNT).operation(ADD, |balance, amount, _| {
        *balance += amount;
        Ok(*balance)
    });
    registry.orchestration(TRANSFER, |ctx, (from, to, amount)| async move {
        let (from, to) = (account(&from), account(&to));
        let _guard = ctx.lock(&[from.clone(), to.clone()]).await?;
        if ctx.entity_call(&from, ADD, &0).await? < amount {
            return Ok(false);
        }
        let both = ctx.join2(ctx.entity_call(&from, ADD, &-amount), ctx.entity_call(&to, ADD, &amount)).await;
        both.0.and(both.1).map(|_| true)
    });
    registry.orchestration(GREET, |ctx, ()| async move {
        ctx.set_status(&"asking")?;
        let name = ctx.event(NAME).await?;
        if name.is_empty() { Err(Failure::application("nobody")) } else { Ok(format!("Hello {name}!")) }
    });
    registry
}

fn account(key: &str) -> EntityId {
    ACCOUNT.id(key).expect("an identifier")
}

fn hub() -> Hub {
    let options = HubOptions { partitions: 3, ..HubOptions::default() };
    Hub::open(Arc::new(MemoryStore::new()), code(), options).expect("a hub")
}

#[tokio::test]
async fn transfers_under_locks_lose_and_make_no_money() {
    let hub = hub();
    let client = hub.client();
    let keys = ["ann", "ben", "cem"];
    for key in keys {
        client.signal_entity(&account(key), ADD, &100).await.expect("signalled");
    }
    let starts = (0..60_usize).map(|number| {
        let (from, to) = (keys[number % 3].to_owned(), keys[(number + 1 + number % 2) % 3].to_owned());
        TRANSFER.start(&(from, to, 1 + (number % 40) as i64)).expect("JSON")
    });
    let started = client.start_many(starts.collect()).await.expect("started");
    for id in started {
        let view = client.wait(&id.expect("started"), TIMEOUT).await.expect("ended");
        view.output_as::<bool>().expect("an output").expect("no failure");
    }
    let mut sum = 0;
    for key in keys {
        let balance = client.state_of(ACCOUNT, &account(key)).await.expect("asked").expect("a state");
        assert!(balance >= 0, "{key} has {balance}");
        sum += balance;
    }
    assert_eq!(sum, 300);
    hub.close().expect("closed");
}

#[tokio::test]
async fn the_typed_client_says_what_it_means() {
    let hub = hub();
    let client = hub.client();
    let id = client.start(GREET.start(&()).expect("JSON")).await.expect("started");
    let view = client.get(&id).await.expect("asked").expect("an instance");
    assert_eq!(view.input_as(), Ok(()));
    assert_eq!(view.custom_status_as::<String>(), Some(Ok("asking".to_owned())));
    assert_eq!(view.output_as::<String>(), None);
    client.raise_event(&id, NAME, &"Ada".to_owned()).await.expect("raised");
    let view = client.wait(&id, TIMEOUT).await.expect("ended");
    assert_eq!(view.output_as::<String>(), Some(Ok("Hello Ada!".to_owned())));
    assert_eq!(view.output_as::<u32>().map(|output| output.is_err()), Some(true));

    for key in ["ann", "ben"] {
        client.signal_entity(&account(key), ADD, &5).await.expect("signalled");
    }
    let moved = client.run(TRANSFER, &("ann".to_owned(), "ben".to_owned(), 5), TIMEOUT).await;
    assert!(moved.expect("no failure"));
    let odd: Orchestration<(), ()> = Orchestration::new("Transfer");
    let failed = client.run(odd, &(), TIMEOUT).await;
    assert!(matches!(&failed, Err(Error::Failed(Failure { kind: FailureKind::Payload, .. }))), "{failed:?}");
    let other = EntityId::new("Shop", "1").expect("an identifier");
    assert!(matches!(client.state_of(ACCOUNT, &other).await, Err(Error::BadId { .. })));
    assert_eq!(client.state_of(ACCOUNT, &account("nobody")).await.expect("asked"), None);
    hub.close().expect("closed");
}
