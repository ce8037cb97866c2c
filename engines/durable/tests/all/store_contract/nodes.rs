//! Nodes that share a hub on real servers, each with connections of its own.

use std::time::{Duration, Instant};

use narrows_durable::{
    Activity, ActivityContext, Client, Ctx, EntityId, EntityOp, EntityType, Failure, Hub, HubOptions, InstanceId, Node,
    NodeOptions, Orchestration, Registry, Reuse, Status,
};

use super::stage::{Stage, Subject};
use crate::servers::WAIT;

const PARTITIONS: u16 = 6;
const LEASE: Duration = Duration::from_secs(2);
const ORDERS: u64 = 120;

const DOUBLE: Activity<u64, u64> = Activity::new("double");
const PART: Orchestration<u64, u64> = Orchestration::new("part");
const ORDER: Orchestration<u64, u64> = Orchestration::new("order");
const TALLY: EntityType<u64> = EntityType::new("tally");
const ADD: EntityOp<u64, u64, ()> = EntityOp::new("add");

/// An order has a part on another partition, mostly, and signals a tally.
fn code() -> Registry {
    let mut code = Registry::new();
    code.activity(DOUBLE, |_: ActivityContext, number: u64| async move { Ok::<_, Failure>(number * 2) });
    code.orchestration(PART, |ctx: Ctx, number: u64| async move { ctx.call(DOUBLE, &number).await });
    code.orchestration(ORDER, |ctx: Ctx, number: u64| async move {
        let doubled = ctx.sub(PART, &number).await?;
        ctx.entity_signal(&tally(number), ADD, &1)?;
        Ok::<_, Failure>(doubled)
    });
    code.entity(TALLY).operation(ADD, |sum, by: u64, _| {
        *sum += by;
        Ok(())
    });
    code
}

fn tally(number: u64) -> EntityId {
    EntityId::new("tally", &(number % 8).to_string()).unwrap()
}

fn hub_options() -> HubOptions {
    let mut hub = HubOptions::default();
    (hub.partitions, hub.activity_threads) = (PARTITIONS, 1);
    hub
}

fn try_open(subject: &Subject<'_>, name: &str) -> Result<Node, String> {
    let mut node = NodeOptions::default();
    (node.name, node.lease) = (name.to_owned(), LEASE);
    Node::open(subject.connect(), code(), hub_options(), node).map_err(|error| error.to_string())
}

fn open(subject: &Subject<'_>, name: &str) -> Node {
    try_open(subject, name).unwrap()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WAIT, "after {WAIT:?} it is still not so that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Safe to do again, because the client may ask the node that was just lost.
async fn start(client: &Client, number: u64) {
    let start = ORDER.start(&number).unwrap().id(format!("order-{number}")).unwrap();
    client.start(start.reuse(Reuse::Ignore)).await.unwrap();
}

/// Half of the orders are started before a node is lost and the others after it, through the nodes that are left.
#[test]
fn a_hub_on_three_nodes_loses_one_and_nothing_else() {
    let stage = Stage::start();
    for subject in stage.shared() {
        let nodes = ["a", "b", "c"].map(|name| open(&subject, name));
        until("each node has two partitions", || nodes.iter().all(|node| node.partitions().len() == 2));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let clients: Vec<Client> = nodes.iter().map(Node::client).collect();
        runtime.block_on(async {
            for number in 0..ORDERS / 2 {
                start(&clients[number as usize % 3], number).await;
            }
        });
        let [a, b, c] = nodes;
        c.halt();
        until("two nodes have all partitions", || {
            a.partitions().len() + b.partitions().len() == usize::from(PARTITIONS)
        });
        runtime.block_on(async {
            for number in ORDERS / 2..ORDERS {
                start(&clients[number as usize % 2], number).await;
            }
            for number in 0..ORDERS {
                let order = InstanceId::new(format!("order-{number}")).unwrap();
                let view = clients[(number as usize + 1) % 2].wait(&order, WAIT).await.unwrap();
                assert_eq!(view.status, Status::Completed, "{:?}: {view:?}", subject.kind);
                assert_eq!(view.output.unwrap().unwrap().decode::<u64>().unwrap(), number * 2);
            }
        });
        until("every order was counted once", || {
            let sums = (0..8).map(|number| runtime.block_on(clients[0].entity_state(&tally(number))).unwrap());
            sums.flatten().map(|sum| sum.decode::<u64>().unwrap()).sum::<u64>() == ORDERS
        });
        a.close().unwrap();
        b.close().unwrap();
    }
}

#[test]
fn a_hub_is_run_by_nodes_or_by_one_process_and_never_by_both() {
    let stage = Stage::start();
    for subject in stage.shared() {
        let alone = || Hub::open(subject.connect(), code(), hub_options()).map_err(|error| error.to_string());
        let node = open(&subject, "a");
        until("the node has all partitions", || node.partitions().len() == usize::from(PARTITIONS));
        let refused = alone().err().unwrap();
        assert!(refused.starts_with("the hub of ") && refused.ends_with(" is in use by node a"), "{refused}");
        node.close().unwrap();
        let hub = alone().unwrap();
        let (refused, by) = (try_open(&subject, "b").err().unwrap(), format!("process {}", std::process::id()));
        assert!(refused.ends_with(&format!("is in use by {by}")), "{:?}: {refused}", subject.kind);
        hub.close().unwrap();
        let node = open(&subject, "b");
        until("the node has all partitions", || node.partitions().len() == usize::from(PARTITIONS));
        node.close().unwrap();
    }
}
