//! Several nodes in one process: who has what, and that clients and messages find it.

mod chaos;
mod lending;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::unreliable::{Trouble, Unreliable};
use super::{Node, NodeOptions};
use crate::client::{Client, Filter, InstanceView, Start, Status};
use crate::error::Error;
use crate::ids::{EntityId, InstanceId, Name, PartitionId};
use crate::options::HubOptions;
use crate::partition::testing::{Scripts, id, number};
use crate::payload::Payload;
use crate::store::{MemoryStore, SharedStore};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Long enough for a busy machine to beat in time.
const LEASE: Duration = Duration::from_secs(3);

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

pub(super) fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "after {TIMEOUT:?} it is still not so that {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(super) fn hub_options(partitions: u16) -> HubOptions {
    HubOptions { partitions, activity_threads: 1, ..HubOptions::default() }
}

pub(super) fn named(name: &str, lease: Duration) -> NodeOptions {
    NodeOptions { name: name.to_owned(), lease, ..NodeOptions::default() }
}

/// Nodes of one hub with troubles.
struct Scene {
    store: Arc<MemoryStore>,
    trouble: Arc<Trouble>,
    partitions: u16,
    lease: Duration,
}

impl Scene {
    fn new(partitions: u16) -> Self {
        Self { store: Arc::default(), trouble: Arc::default(), partitions, lease: LEASE }
    }

    fn open(&self, name: &str) -> Node {
        self.open_as(name, name)
    }

    /// Opens a node whose process has another name than the node itself.
    fn open_as(&self, process: &str, name: &str) -> Node {
        let store = Unreliable::new(process, &self.store, &self.trouble);
        Node::open(store, Scripts, hub_options(self.partitions), named(name, self.lease)).expect("a node")
    }
}

fn counts(nodes: &[&Node]) -> Vec<usize> {
    nodes.iter().map(|node| node.partitions().len()).collect()
}

fn have(nodes: &[&Node], wanted: &[usize]) {
    let sorted = |mut counts: Vec<usize>| {
        counts.sort_unstable();
        counts
    };
    until(&format!("nodes have {wanted:?}"), || sorted(counts(nodes)) == wanted);
}

async fn start(client: &Client, name: &'static str, instance: &str, input: u64) -> Result<InstanceId, Error> {
    client.start(Start::new(Name::Static(name)).input(number(input)).id(instance)?).await
}

/// The lease is so long that a partition which nobody hands over would not move in time.
#[test]
fn partitions_spread_over_nodes_that_come_and_go() {
    let scene = Scene { lease: Duration::from_secs(600), ..Scene::new(8) };
    let a = scene.open("a");
    have(&[&a], &[8]);
    let b = scene.open("b");
    have(&[&a, &b], &[4, 4]);
    let c = scene.open("c");
    have(&[&a, &b, &c], &[2, 3, 3]);
    b.close().expect("closed");
    have(&[&a, &c], &[4, 4]);
    until("the nodes see who has what", || {
        let seen = a.nodes();
        let has = |name: &str| seen.iter().find(|node| node.name == name).map(|node| node.partitions.len());
        (has("a"), has("b"), has("c")) == (Some(4), None, Some(4))
    });
}

#[test]
fn the_partitions_of_a_node_that_crashed_go_to_the_others() {
    let scene = Scene::new(6);
    let (a, b) = (scene.open("a"), scene.open("b"));
    have(&[&a, &b], &[3, 3]);
    b.halt();
    have(&[&a], &[6]);
    assert!(a.lease_left().is_some());
}

#[test]
fn clients_reach_every_partition_through_any_node() {
    let scene = Scene::new(6);
    let (a, b, c) = (scene.open("a"), scene.open("b"), scene.open("c"));
    have(&[&a, &b, &c], &[2, 2, 2]);
    let clients = [a.client(), b.client(), c.client()];
    block(async {
        for n in 0..60 {
            start(&clients[n % 3], "Nest", &format!("n{n}"), 3).await.expect("started");
        }
        let taken = start(&clients[1], "Nest", "n0", 3).await;
        assert!(matches!(taken, Err(Error::Exists { .. })) || taken.is_ok(), "{taken:?}");
        for n in 0..60 {
            let view = clients[(n + 1) % 3].wait(&id(&format!("n{n}")), TIMEOUT).await.expect("ended");
            assert_eq!((view.status, view.output), (Status::Completed, Some(Ok(number(3)))));
        }
        let nests = Filter { prefix: "n".to_owned(), ..Filter::default() };
        assert_eq!(clients[2].count(nests).await.expect("counted"), 60 * 4, "with their sub-orchestrations");
        assert!(matches!(clients[0].raise(&id("nobody"), "go", Payload::EMPTY).await, Err(Error::NotFound(_))));
        let many = (0..50).map(|_| Start::new(Name::Static("Cities")).input(number(1))).collect();
        for started in clients[0].start_many(many).await.expect("taken") {
            clients[1].wait(&started.expect("started"), TIMEOUT).await.expect("ended");
        }
    });
}

#[test]
fn a_signal_takes_effect_once_though_the_bus_loses_half_of_what_is_sent() {
    let scene = Scene::new(4);
    let (a, b) = (scene.open("a"), scene.open("b"));
    have(&[&a, &b], &[2, 2]);
    scene.trouble.loses_one_in.store(2, Ordering::Relaxed);
    scene.trouble.delay_ms_max.store(3, Ordering::Relaxed);
    let entities: Vec<EntityId> = (0..8).map(|n| EntityId::new("Sum", &n.to_string()).expect("an entity")).collect();
    block(async {
        let client = a.client();
        for _ in 0..5 {
            for entity in &entities {
                client.signal(entity, "add", number(1)).await.expect("signalled");
            }
        }
        start(&client, "Nest", "nest", 4).await.expect("started");
        assert_eq!(b.client().wait(&id("nest"), TIMEOUT).await.expect("ended").status, Status::Completed);
        for entity in &entities {
            assert_eq!(client.entity_state(entity).await.expect("a state"), Some(number(5)), "{entity}");
        }
    });
}

/// Tasks that each wait for one of these instances.
async fn waits(client: &Client, names: &[String]) -> Vec<tokio::task::JoinHandle<Result<InstanceView, Error>>> {
    let wait = |name: &String| {
        let (client, id) = (client.clone(), id(name));
        tokio::spawn(async move { client.wait(&id, TIMEOUT).await })
    };
    let waits = names.iter().map(wait).collect();
    tokio::task::yield_now().await;
    waits
}

#[test]
fn a_wait_goes_on_when_its_partition_moves() {
    let scene = Scene::new(4);
    let (a, b) = (scene.open("a"), scene.open("b"));
    have(&[&a, &b], &[2, 2]);
    let names: Vec<String> = (0..12).map(|n| format!("w{n}")).collect();
    block(async {
        let client = b.client();
        for name in &names {
            start(&client, "Wait", name, 1).await.expect("started");
        }
        let waits = waits(&client, &names).await;
        a.close().expect("closed");
        have(&[&b], &[4]);
        for name in &names {
            client.raise(&id(name), "go", Payload::EMPTY).await.expect("raised");
        }
        for wait in waits {
            assert_eq!(wait.await.expect("a task").expect("ended").status, Status::Completed);
        }
        assert!(matches!(a.client().get(&id("w0")).await, Err(Error::Closed)));
    });
}

/// Of each partition, one that is here for the client and one that is there.
#[test]
fn a_wait_that_timed_out_is_dropped_by_the_partition() {
    let scene = Scene::new(4);
    let (a, b) = (scene.open("a"), scene.open("b"));
    have(&[&a, &b], &[2, 2]);
    let awaited = || {
        let of = |node: &Node| node.stats().partitions.iter().map(|partition| partition.counts.awaited).sum::<u64>();
        of(&a) + of(&b)
    };
    let names: Vec<String> = (0..12).map(|n| format!("w{n}")).collect();
    block(async {
        let client = a.client();
        for name in &names {
            start(&client, "Wait", name, 1).await.expect("started");
            let ended = client.wait(&id(name), Duration::from_millis(20)).await;
            assert!(matches!(ended, Err(Error::TimedOut { .. })), "{ended:?}");
        }
    });
    until("no wait is left", || awaited() == 0);
    block(async {
        let client = a.client();
        let waits = waits(&client, &names).await;
        until("all are waited for", || awaited() == names.len() as u64);
        waits.iter().for_each(tokio::task::JoinHandle::abort);
    });
    until("no wait is left after the tasks were aborted", || awaited() == 0);
}

/// Responses take a while, so that some are on their way whenever the guest leaves.
#[test]
fn no_request_is_lost_with_a_node_that_leaves_in_order() {
    let scene = Scene::new(4);
    let a = scene.open("a");
    have(&[&a], &[4]);
    scene.trouble.delay_ms_max.store(5, Ordering::Relaxed);
    let is_over = AtomicBool::new(false);
    let come_and_go = || {
        for _ in 0..8 {
            let guest = scene.open("guest");
            have(&[&a, &guest], &[2, 2]);
            guest.close().expect("closed");
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let client = a.client();
    let signal = async |n: u64| {
        let entity = EntityId::new("Sum", &n.to_string()).expect("an entity");
        let mut sum = 0;
        while !is_over.load(Ordering::Relaxed) {
            client.signal(&entity, "add", number(1)).await.expect("signalled");
            sum += 1;
        }
        assert_eq!(client.entity_state(&entity).await.expect("a state"), Some(number(sum)));
    };
    std::thread::scope(|scope| {
        let guest = scope.spawn(come_and_go);
        block(async { tokio::join!(signal(0), signal(1), signal(2), signal(3), signal(4), signal(5)) });
        guest.join().expect("a guest");
    });
}

#[test]
fn a_node_that_was_paused_past_its_lease_stops_by_itself_and_comes_back() {
    let scene = Scene::new(4);
    let (a, b) = (scene.open("a"), scene.open("b"));
    have(&[&a, &b], &[2, 2]);
    let entity = EntityId::new("Sum", "x").expect("an entity");
    block(async {
        let client = b.client();
        client.signal(&entity, "add", number(1)).await.expect("signalled");
        scene.trouble.pause("a");
        have(&[&b], &[4]);
        assert_eq!(a.lease_left(), None, "its lease ran out before the other one took its partitions");
        client.signal(&entity, "add", number(1)).await.expect("signalled");
        scene.trouble.resume("a");
        have(&[&a, &b], &[2, 2]);
        for client in [a.client(), client] {
            client.signal(&entity, "add", number(1)).await.expect("signalled");
        }
        assert_eq!(a.client().entity_state(&entity).await.expect("a state"), Some(number(4)));
    });
}

#[test]
fn a_node_that_is_opened_under_the_name_of_another_takes_its_place() {
    let scene = Scene::new(2);
    let first = scene.open("a");
    have(&[&first], &[2]);
    let second = scene.open("a");
    until("the first one ends", || first.ended().is_some());
    have(&[&second], &[2]);
    first.close().expect("closed");
    have(&[&second], &[2]);
}

/// The node wakes up within its lease and after it, with and without other nodes.
#[test]
fn a_node_that_wakes_up_after_another_was_opened_under_its_name_ends_and_the_other_stays() {
    for (is_lapsed, has_others) in [(false, false), (true, false), (false, true), (true, true)] {
        let scene = Scene { lease: Duration::from_secs(1), ..Scene::new(4) };
        let other = has_others.then(|| scene.open("b"));
        let old = scene.open_as("old", "a");
        let share = if has_others { 2 } else { 4 };
        until("it has its share", || old.partitions().len() == share);
        scene.trouble.pause("old");
        if is_lapsed {
            until("its lease has run out", || old.lease_left().is_none());
        }
        let new = scene.open_as("new", "a");
        until("the new one has its share", || new.partitions().len() == share);
        scene.trouble.resume("old");
        until("the old one ends", || old.ended().is_some());
        let taken = scene.store.owners().expect("owners");
        old.close().expect("closed");
        until("the old one is forgotten", || new.nodes().iter().filter(|node| node.name == "a").count() == 1);
        assert_eq!((new.ended(), new.partitions().len()), (None, share));
        assert_eq!(scene.store.owners().expect("owners"), taken, "nothing has moved since");
        drop((new, other));
    }
}

#[test]
fn a_node_with_another_lease_does_not_join() {
    let scene = Scene::new(2);
    let first = scene.open("a");
    let store = Unreliable::new("b", &scene.store, &scene.trouble);
    let error = Node::open(store, Scripts, hub_options(2), named("b", LEASE * 2)).err().expect("refused");
    assert_eq!(error.to_string(), "option lease is 6000 ms, expected 3000 ms, the lease of node a");
    until("it is forgotten", || first.nodes().len() == 1);
}

#[test]
fn options_out_of_range_are_refused() {
    let open = |options| {
        let store: Arc<dyn SharedStore> = Arc::new(MemoryStore::new());
        Node::open(store, Scripts, hub_options(2), options).err().map(|error| error.to_string())
    };
    let name = |name: &str| NodeOptions { name: name.to_owned(), ..NodeOptions::default() };
    for bad in [name(""), name("a/b"), name("A"), name(&"a".repeat(101))] {
        let error = open(bad).expect("refused");
        assert!(error.starts_with("option name is "), "{error}");
    }
    let lease = NodeOptions { lease: Duration::from_millis(99), ..NodeOptions::default() };
    assert_eq!(open(lease).expect("refused"), "option lease is 99ms, expected 100ms to 3600s");
}

/// Everything acknowledged before is there again once the store has room.
#[test]
fn requests_say_that_the_store_is_full_and_nothing_is_lost() {
    let scene = Scene { lease: Duration::from_secs(1), ..Scene::new(2) };
    let store = Unreliable::new("a", &scene.store, &scene.trouble);
    let options = NodeOptions { request_timeout: Duration::from_secs(2), ..named("a", scene.lease) };
    let node = Node::open(store, Scripts, hub_options(2), options).expect("a node");
    have(&[&node], &[2]);
    let client = node.client();
    block(start(&client, "Cities", "before", 1)).expect("started");
    scene.trouble.is_full.store(true, Ordering::Relaxed);
    for instance in ["one", "two", "three"] {
        let error = block(start(&client, "Cities", instance, 1)).expect_err("it is full");
        assert!(matches!(error, Error::Unknown { .. } | Error::Unavailable { .. }), "{error}");
        assert!(error.to_string().contains("(cannot write its disk of a server: no room is left)"), "{error}");
    }
    scene.trouble.is_full.store(false, Ordering::Relaxed);
    let view = block(client.wait(&id("before"), TIMEOUT)).expect("ended");
    assert_eq!(view.status, Status::Completed);
}

/// As after a failure: the store noted that a node has taken partitions, but it could neither recover them nor give them
/// back, and by now they are to go to another.
#[test]
fn what_is_a_nodes_by_the_store_alone_goes_to_the_node_that_is_to_have_it() {
    let scene = Scene::new(4);
    let (a, b) = (scene.open("a"), scene.open("b"));
    have(&[&a, &b], &[2, 2]);
    let of_b = b.partitions();
    let owners = scene.store.owners().expect("owners");
    let (theirs, ours): (Vec<_>, Vec<_>) = owners.into_iter().partition(|owner| of_b.contains(&owner.partition));
    let key_of_a = ours[0].node.as_deref().expect("a node");
    for owner in &theirs {
        scene.store.take(owner.partition, owner.epoch, key_of_a).expect("taken");
    }
    // Which two it gets depends on how busy the machine is: a node that misses its beats hands over all it has.
    until("each node runs what the store says it has", || {
        let mut by_node: BTreeMap<Option<String>, Vec<PartitionId>> = BTreeMap::new();
        for owner in scene.store.owners().expect("owners") {
            by_node.entry(owner.node).or_default().push(owner.partition);
        }
        let mut owned: Vec<Vec<PartitionId>> = by_node.into_values().collect();
        let mut run = vec![a.partitions(), b.partitions()];
        owned.sort();
        run.sort();
        owned == run && owned.iter().all(|partitions| partitions.len() == 2)
    });
    let client = a.client();
    for number in 0..20 {
        block(start(&client, "Cities", &format!("c{number}"), 1)).expect("started");
        block(client.wait(&id(&format!("c{number}")), TIMEOUT)).expect("ended");
    }
}
