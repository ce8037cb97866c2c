//! Nodes that are opened, closed, killed and paused all the time, over a bus that loses and delays: everything that was
//! acknowledged happens, and happens once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_testing::Chance;

use super::{block, hub_options, named, until};
use crate::client::{Client, Filter, Status};
use crate::error::Error;
use crate::ids::{EntityId, InstanceId};
use crate::node::unreliable::{Trouble, Unreliable};
use crate::node::{Node, NodeOptions};
use crate::options::HubOptions;
use crate::partition::Values;
use crate::store::MemoryStore;
use crate::{Activity, ActivityContext, Ctx, EntityOp, EntityType, Failure, Orchestration, Registry};

const LEASE: Duration = Duration::from_millis(500);
const PARTITIONS: u16 = 6;
const TALLIES: u64 = 7;
const ORDERS: u64 = 1_200;
/// Orders that are started between two events.
const ORDERS_PER_EVENT: usize = 50;
const TIMEOUT: Duration = Duration::from_secs(120);

type Counts = BTreeMap<String, u32>;
const TALLY: EntityType<Counts> = EntityType::new("tally");
const COUNT: EntityOp<Counts, String, u32> = EntityOp::new("count");
const WORK: Activity<u64, u64> = Activity::new("work");
const ORDER: Orchestration<u64, u32> = Orchestration::new("order");
const PART: Orchestration<String, u32> = Orchestration::new("part");

fn tally(number: u64) -> EntityId {
    TALLY.id((number % TALLIES).to_string()).expect("an entity")
}

/// Each order is counted by an entity it calls, by one it signals, and by a sub-orchestration.
fn code() -> Registry {
    let mut code = Registry::new();
    code.activity(WORK, |_: ActivityContext, number: u64| async move { Ok::<_, Failure>(number + 1) });
    code.entity(TALLY).operation(COUNT, |counts, token: String, _| {
        let count = counts.entry(token).or_default();
        *count += 1;
        Ok(*count)
    });
    code.orchestration(PART, |ctx: Ctx, order: String| async move {
        let number = ctx.call(WORK, &order.len().try_into().unwrap_or(0)).await?;
        ctx.entity_call(&tally(number), COUNT, &format!("{order}/part")).await
    });
    code.orchestration(ORDER, |ctx: Ctx, number: u64| async move {
        let me = ctx.instance().to_string();
        let next = ctx.call(WORK, &number).await?;
        ctx.entity_signal(&tally(next), COUNT, &format!("{me}/signal"))?;
        let (part, call) =
            ctx.join2(ctx.sub(PART, &me), ctx.entity_call(&tally(next + 1), COUNT, &format!("{me}/call"))).await;
        Ok(part? + call?)
    });
    code
}

/// The nodes there are, by name; closed ones are gone.
struct Stage {
    store: Arc<MemoryStore>,
    trouble: Arc<Trouble>,
    nodes: Vec<Node>,
    opened: usize,
    paused: Option<String>,
}

impl Stage {
    fn open(&mut self) {
        self.opened += 1;
        let name = format!("n{}", self.opened);
        let store = Unreliable::new(&name, &self.store, &self.trouble);
        let hub = HubOptions { snapshot_after_bytes: 64 << 10, spill_above_bytes: 1024, ..hub_options(PARTITIONS) };
        let options = NodeOptions { request_timeout: TIMEOUT, ..named(&name, LEASE) };
        self.nodes.push(Node::open(store, code(), hub, options).expect("a node"));
    }

    fn client(&self, chance: &mut Chance) -> Client {
        let awake = || self.nodes.iter().filter(|node| Some(node.name()) != self.paused.as_deref());
        let at = chance.below(awake().count());
        awake().nth(at).expect("a node that is awake").client()
    }

    /// Something happens to one node. The others carry on.
    fn happen(&mut self, chance: &mut Chance) {
        if let Some(paused) = self.paused.take() {
            return self.trouble.resume(&paused);
        }
        let at = chance.below(self.nodes.len());
        match chance.below(3) {
            0 => self.nodes.remove(at).close().expect("closed"),
            1 => self.nodes.remove(at).halt(),
            _ => {
                let name = self.nodes[at].name().to_owned();
                self.trouble.pause(&name);
                self.paused = Some(name);
                return;
            }
        }
        self.open();
    }
}

/// Starts orders at the same time, each through some node.
async fn start_all(stage: &Stage, chance: &mut Chance, numbers: std::ops::Range<u64>) -> Vec<InstanceId> {
    let mut starts = Vec::new();
    for number in numbers {
        starts.push(tokio::spawn(start(stage.client(chance), number)));
    }
    let mut started = Vec::new();
    for start in starts {
        started.push(start.await.expect("a task"));
    }
    started
}

/// Starts an order until it is known to be there: a start whose node was lost may or may not have been done.
async fn start(client: Client, number: u64) -> InstanceId {
    let id = InstanceId::new(format!("order-{number}")).expect("an identifier");
    loop {
        let start = ORDER.start(&number).expect("an input").id(id.as_str()).expect("an identifier");
        match client.start(start.reuse(crate::Reuse::Never)).await {
            Ok(id) => return id,
            Err(Error::Exists { .. }) => return id,
            Err(Error::Unknown { .. } | Error::Unavailable { .. }) => {}
            Err(error) => panic!("order {number} was not started: {error}"),
        }
    }
}

async fn counts(client: &Client) -> Counts {
    let mut all = Counts::new();
    for number in 0..TALLIES {
        for (token, count) in client.state_of(TALLY, &tally(number)).await.expect("a state").unwrap_or_default() {
            *all.entry(token).or_default() += count;
        }
    }
    all
}

#[test]
fn all_orders_are_counted_once_while_nodes_come_and_go() {
    let seed = std::env::var("NARROWS_NODES_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let repeats = format!("NARROWS_NODES_SEED={seed} repeats it");
    let mut chance = Chance::new(seed);
    let mut stage =
        Stage { store: Arc::default(), trouble: Arc::default(), nodes: Vec::new(), opened: 0, paused: None };
    (0..3).for_each(|_| stage.open());
    stage.trouble.loses_one_in.store(30, Ordering::Relaxed);
    stage.trouble.delay_ms_max.store(3, Ordering::Relaxed);
    block(async {
        let mut orders = Vec::new();
        for first in (0..ORDERS).step_by(ORDERS_PER_EVENT) {
            stage.happen(&mut chance);
            let numbers = first..first + ORDERS_PER_EVENT as u64;
            orders.extend(start_all(&stage, &mut chance, numbers).await);
        }
        if let Some(paused) = stage.paused.take() {
            stage.trouble.resume(&paused);
        }
        let client = stage.client(&mut chance);
        for order in &orders {
            let view = client.wait(order, TIMEOUT).await.unwrap_or_else(|error| panic!("{order}: {error}; {repeats}"));
            assert_eq!(view.status, Status::Completed, "{order}: {:?}; {repeats}", view.output);
        }
        let filter = Filter { statuses: vec![Status::Completed], ..Filter::default() };
        assert_eq!(client.count(filter).await.expect("counted"), 2 * ORDERS, "orders and their parts; {repeats}");
        until("no message is under way", || {
            stage.nodes.iter().all(|node| {
                let stats = node.stats().partitions;
                node.partitions().iter().all(|id| stats[usize::from(id.0)].counts.outbox == 0)
            })
        });
        let counts = counts(&client).await;
        let wanted = orders.iter().flat_map(|order| ["part", "call", "signal"].map(|what| format!("{order}/{what}")));
        for token in wanted {
            assert_eq!(counts.get(&token), Some(&1), "{token}; {repeats}");
        }
        assert_eq!(counts.len(), 3 * orders.len());
        let page = client.query(Filter::default(), 10, Values::Without, None).await.expect("a page");
        assert_eq!(page.instances.len(), 10);
    });
    stage.nodes.iter().for_each(|node| node.close().expect("closed"));
}
