//! Chains of sub-orchestrations that are longer than any stack.

use std::sync::Arc;
use std::time::Duration;

use narrows_durable::store::MemoryStore;
use narrows_durable::{
    Client, Ctx, ExternalEvent, Failure, Filter, Hub, HubOptions, InstanceId, Orchestration, Registry, Status,
};

const TIMEOUT: Duration = Duration::from_secs(120);
const DEPTH: u64 = 30_000;
const GO: ExternalEvent<u64> = ExternalEvent::new("Go");
/// A chain of this length, whose last link waits.
const CHAIN: Orchestration<u64, u64> = Orchestration::new("Chain");

fn link(depth: u64) -> InstanceId {
    InstanceId::new(format!("link-{depth}")).unwrap()
}

/// All on one partition, so that nothing comes between the links.
fn open() -> Hub {
    let mut code = Registry::new();
    code.orchestration(CHAIN, |ctx: Ctx, depth: u64| async move {
        if depth == 0 {
            return ctx.event(GO).await;
        }
        Ok::<_, Failure>(1 + ctx.sub(CHAIN, &(depth - 1)).id(&link(depth - 1)).await?)
    });
    let mut options = HubOptions::default();
    options.partitions = 1;
    Hub::open(Arc::new(MemoryStore::new()), code, options).unwrap()
}

/// Starts the chain and waits until its last link is there.
async fn start(client: &Client) {
    let start = CHAIN.start(&DEPTH).unwrap().id(link(DEPTH).as_str()).unwrap();
    client.start(start).await.unwrap();
    while client.get(&link(0)).await.unwrap().is_none() {}
}

#[tokio::test]
async fn a_long_chain_completes_and_is_purged() {
    let hub = open();
    let client = hub.client();
    start(&client).await;
    client.raise_event(&link(0), GO, &0).await.unwrap();
    let ended = client.wait(&link(DEPTH), TIMEOUT).await.unwrap();
    assert_eq!(ended.output_as::<u64>(), Some(Ok(DEPTH)));
    assert!(client.purge(&link(DEPTH)).await.unwrap());
    assert_eq!(client.count(Filter::default()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_long_chain_is_terminated() {
    let hub = open();
    let client = hub.client();
    start(&client).await;
    client.terminate(&link(DEPTH), "all of you").await.unwrap();
    assert_eq!(client.wait(&link(0), TIMEOUT).await.unwrap().status, Status::Terminated);
    let terminated = Filter { statuses: vec![Status::Terminated], ..Filter::default() };
    assert_eq!(client.count(terminated).await.unwrap(), DEPTH + 1);
}
