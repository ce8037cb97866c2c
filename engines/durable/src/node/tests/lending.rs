//! Activities that other nodes run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{block, hub_options, named, until};
use crate::node::{Node, NodeOptions};
use crate::store::MemoryStore;
use crate::{Activity, ActivityContext, Ctx, Failure, InstanceId, Orchestration, Registry, Status};

const WORK: Activity<u64, u64> = Activity::new("work");
const ALL: Orchestration<u64, u64> = Orchestration::new("all");
const ACTIVITIES: u64 = 200;
const LEASE: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(60);

/// How many activities each node has begun.
type BeginCounts = Arc<Mutex<BTreeMap<&'static str, u64>>>;

#[derive(Clone, Copy, PartialEq)]
enum Pace {
    Slow,
    /// Activities that this node begins and never ends.
    Never,
}

fn code(node: &'static str, pace: Pace, begun: &BeginCounts) -> Registry {
    let begun = Arc::clone(begun);
    let mut code = Registry::new();
    code.activity(WORK, move |_: ActivityContext, number: u64| {
        *begun.lock().expect("counts").entry(node).or_default() += 1;
        async move {
            if pace == Pace::Never {
                std::future::pending::<()>().await;
            }
            // As work that keeps its thread.
            std::thread::sleep(Duration::from_millis(10));
            Ok::<_, Failure>(2 * number)
        }
    });
    code.orchestration(ALL, |ctx: Ctx, count: u64| async move {
        let calls = (0..count).map(|number| ctx.call(WORK, &number)).collect();
        let mut sum = 0;
        for doubled in ctx.join_all(calls).await {
            sum += doubled?;
        }
        Ok::<_, Failure>(sum)
    });
    code
}

fn open(store: &Arc<MemoryStore>, name: &'static str, beyond: Option<usize>, pace: Pace, begun: &BeginCounts) -> Node {
    let options = NodeOptions { lend_beyond: beyond, ..named(name, LEASE) };
    Node::open(Arc::clone(store) as _, code(name, pace, begun), hub_options(1), options).expect("a node")
}

fn start(node: &Node) -> InstanceId {
    let start = ALL.start(&ACTIVITIES).expect("an input").id("all").expect("an identifier");
    block(node.client().start(start)).expect("started")
}

fn completes(node: &Node, id: &InstanceId) {
    let view = block(node.client().wait(id, TIMEOUT)).expect("ended");
    assert_eq!(view.status, Status::Completed, "{view:?}");
    let sum: u64 = view.output.expect("an output").expect("a sum").decode().expect("a number");
    assert_eq!(sum, ACTIVITIES * (ACTIVITIES - 1));
}

#[test]
fn what_waits_on_one_node_runs_on_another_if_both_are_to_share() {
    for (beyond, of_other, is_shared) in [(Some(2), Some(2), true), (None, Some(2), false), (Some(2), None, false)] {
        let (store, begun) = (Arc::<MemoryStore>::default(), BeginCounts::default());
        let owner = open(&store, "owner", beyond, Pace::Slow, &begun);
        until("it has the partition", || owner.partitions().len() == 1);
        let other = open(&store, "other", of_other, Pace::Slow, &begun);
        completes(&owner, &start(&owner));
        assert!(other.partitions().is_empty());
        let begun = begun.lock().expect("counts");
        assert_eq!(begun.contains_key("other"), is_shared, "{beyond:?} {of_other:?}: {begun:?}");
        assert_eq!(begun.values().sum::<u64>(), ACTIVITIES, "each ran once: {begun:?}");
    }
}

#[test]
fn what_a_lost_node_had_runs_again() {
    let (store, begun) = (Arc::<MemoryStore>::default(), BeginCounts::default());
    let owner = open(&store, "owner", Some(2), Pace::Slow, &begun);
    until("it has the partition", || owner.partitions().len() == 1);
    let other = open(&store, "other", Some(2), Pace::Never, &begun);
    let id = start(&owner);
    until("the other node has begun some", || begun.lock().expect("counts").contains_key("other"));
    other.halt();
    completes(&owner, &id);
    let begun = begun.lock().expect("counts");
    assert!(begun.values().sum::<u64>() > ACTIVITIES, "{begun:?}");
}
