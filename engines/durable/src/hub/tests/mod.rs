//! A hub from outside: everything acknowledged stays, whatever happens in between.

mod faults;
mod health;
mod locks;
mod metrics;
mod mismatch;

use std::sync::Arc;
use std::time::Duration;

use crate::client::{Client, Filter, Start, Status};
use crate::error::Error;
use crate::hub::Hub;
use crate::ids::{EntityId, InstanceId, Name, PartitionId, Position, Time};
use crate::options::{HubOptions, Mode};
use crate::partition::Values;
use crate::partition::testing::{Scripts, id, number};
use crate::payload::Payload;
use crate::store::{MemoryStore, Store};

const TIMEOUT: Duration = Duration::from_secs(60);

fn options() -> HubOptions {
    HubOptions { partitions: 3, activity_threads: 2, ..HubOptions::default() }
}

fn open(store: &Arc<MemoryStore>, options: HubOptions) -> Hub {
    let store: Arc<dyn Store> = Arc::clone(store) as _;
    Hub::open(store, Scripts, options).expect("a hub")
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

async fn start(client: &Client, name: &'static str, instance: &str, input: u64) -> Result<InstanceId, Error> {
    client.start(Start::new(Name::Static(name)).input(number(input)).id(instance)?).await
}

#[test]
fn orchestrations_run_their_activities_and_tell_those_who_wait() {
    for mode in [Mode::Speculative, Mode::PersistFirst] {
        let store = Arc::new(MemoryStore::new());
        let hub = open(&store, HubOptions { mode, ..options() });
        let client = hub.client();
        block(async {
            for n in 0..50 {
                start(&client, "Cities", &format!("c{n}"), 5).await.expect("started");
            }
            for n in 0..50 {
                let view = client.wait(&id(&format!("c{n}")), TIMEOUT).await.expect("ended");
                assert_eq!((view.status, view.output), (Status::Completed, Some(Ok(number(5)))));
            }
        });
        let counts: u64 = hub.stats().partitions.iter().map(|partition| partition.counts.events).sum();
        hub.close().expect("closed");
        assert_eq!(counts.max(500), 500);
        assert_eq!(hub.stats().partitions.iter().map(|partition| partition.counts.events).sum::<u64>(), 500);
    }
}

#[test]
fn waiting_orchestrations_continue_after_reopening() {
    let store = Arc::new(MemoryStore::new());
    let hub = open(&store, options());
    let client = hub.client();
    block(async {
        start(&client, "Wait", "w", 2).await.expect("started");
        client.raise(&id("w"), "go", Payload::EMPTY).await.expect("raised");
        start(&client, "Sleep", "s", 1).await.expect("started");
        start(&client, "Nest", "n", 3).await.expect("started");
    });
    hub.halt();
    let hub = open(&store, HubOptions { cursor_cache_bytes: 0, ..options() });
    let client = hub.client();
    block(async {
        client.raise(&id("w"), "go", Payload::EMPTY).await.expect("raised");
        for instance in ["w", "s", "n"] {
            let view = client.wait(&id(instance), TIMEOUT).await.expect("ended");
            assert_eq!(view.status, Status::Completed, "{instance}");
        }
        let history = client.history(&id("w")).await.expect("asked").expect("a history");
        assert_eq!(history.len(), 4, "{history:?}");
    });
}

#[test]
fn entities_add_up_every_signal_once_through_crashes() {
    let store = Arc::new(MemoryStore::new());
    let entity = EntityId::new("Sum", "x").expect("an entity");
    for round in 1..=3 {
        let hub = open(&store, options());
        let client = hub.client();
        block(async {
            for _ in 0..20 {
                client.signal(&entity, "add", number(1)).await.expect("signalled");
            }
            let state = client.entity_state(&entity).await.expect("asked");
            assert_eq!(state, Some(number(20 * round)));
        });
        hub.halt();
    }
}

#[test]
fn a_signal_for_later_waits_for_its_moment() {
    let tomorrow = crate::hub::now().plus(Duration::from_secs(86_400));
    let store = Arc::new(MemoryStore::new());
    let entity = EntityId::new("Sum", "x").expect("an entity");
    let hub = open(&store, options());
    block(async {
        hub.client().signal_at(&entity, "add", number(5), tomorrow).await.expect("signalled");
        hub.client().signal_at(&entity, "add", number(1), Time(0)).await.expect("signalled");
        assert_eq!(hub.client().entity_state(&entity).await.expect("asked"), Some(number(1)));
    });
    let timers = |hub: &Hub| hub.stats().partitions.iter().map(|partition| partition.counts.timers).sum::<u64>();
    hub.halt();
    let hub = open(&store, options());
    assert_eq!(timers(&hub), 1, "it was acknowledged");
    hub.close().expect("closed");
}

#[test]
fn snapshots_cut_the_log_and_recovery_finds_everything_in_them() {
    let store = Arc::new(MemoryStore::new());
    let small = HubOptions { partitions: 1, snapshot_after_bytes: 64 << 10, ..options() };
    let hub = open(&store, small.clone());
    let client = hub.client();
    block(async {
        for n in 0..400 {
            start(&client, "Cities", &format!("c{n}"), 5).await.expect("started");
            start(&client, "Wait", &format!("w{n}"), 1).await.expect("started");
        }
        for n in 0..400 {
            client.wait(&id(&format!("c{n}")), TIMEOUT).await.expect("ended");
        }
    });
    hub.close().expect("closed");
    assert!(hub.stats().partitions[0].snapshots > 0);
    let mut begins = None;
    let from_zero = store.read(PartitionId(0), Position(0), &mut |position, _| {
        begins.get_or_insert(position);
        Ok(())
    });
    assert!(from_zero.is_err() || begins > Some(Position(0)), "the log was not cut: {begins:?}");
    let hub = open(&store, small);
    let client = hub.client();
    block(async {
        let filter = Filter { statuses: vec![Status::Completed], ..Filter::default() };
        assert_eq!(client.count(filter).await.expect("counted"), 400);
        for n in 0..400 {
            client.raise(&id(&format!("w{n}")), "go", Payload::EMPTY).await.expect("raised");
            client.wait(&id(&format!("w{n}")), TIMEOUT).await.expect("ended");
        }
    });
}

#[test]
fn large_payloads_lie_beside_the_log_and_come_back() {
    let store = Arc::new(MemoryStore::new());
    let text = "x".repeat(200 << 10);
    let hub = open(&store, options());
    block(async {
        let start = Start::new(Name::Static("Wait")).input(Payload::encode(&text).expect("a text"));
        hub.client().start(start.id("big").expect("an identifier")).await.expect("started");
    });
    hub.halt();
    assert_eq!(store.list_blobs("").expect("names").len(), 1);
    let hub = open(&store, options());
    let view = block(hub.client().get(&id("big"))).expect("asked").expect("an instance");
    assert_eq!(view.input.decode::<String>(), Ok(text));
}

/// More than a frame holds comes at once, as one request or because it is due.
#[test]
fn a_turn_takes_up_no_more_than_a_frame_holds() {
    const COUNT: usize = 10;
    let store = Arc::new(MemoryStore::new());
    let input = Payload::encode(&"x".repeat(4 << 20)).expect("a text");
    for at in [None, Some(Time(u64::MAX)), Some(crate::hub::now().plus(Duration::from_millis(300)))] {
        let hub = open(&store, HubOptions { partitions: 1, spill_above_bytes: 8 << 20, ..options() });
        let client = hub.client();
        let name = |n: usize| format!("large-{}-{n}", at.map_or(0, |at| at.0));
        let start = |n: usize| {
            let start = Start::new(Name::Static("Cities")).input(input.clone()).id(name(n)).expect("an identifier");
            at.map_or(start.clone(), |at| start.at(at))
        };
        block(async {
            let started = client.start_many((0..COUNT).map(start).collect()).await.expect("taken");
            assert!(started.iter().all(Result::is_ok), "{started:?}");
            for n in (0..COUNT).filter(|_| at != Some(Time(u64::MAX))) {
                let view = client.wait(&id(&name(n)), TIMEOUT).await.expect("ended");
                assert_eq!(view.status, Status::Completed);
            }
        });
        hub.close().expect("closed");
    }
}

#[test]
fn a_large_state_that_changes_a_little_is_written_as_the_change() {
    use crate::{EntityContext, EntityOp, EntityType, Failure, Registry};
    const SIGNALS: u64 = 500;
    const LIST: EntityType<Vec<u64>> = EntityType::new("list");
    const ADD: EntityOp<Vec<u64>, u64, ()> = EntityOp::new("add");
    let code = || {
        let mut code = Registry::new();
        code.entity(LIST).operation(ADD, |list: &mut Vec<u64>, number: u64, _: &mut EntityContext| {
            list.push(number + 1_000_000);
            Ok::<_, Failure>(())
        });
        code
    };
    let (store, entity) = (Arc::new(MemoryStore::new()), LIST.id("x").expect("an entity"));
    let hub = Hub::open(Arc::clone(&store) as _, code(), options()).expect("a hub");
    block(async {
        for number in 0..SIGNALS {
            hub.client().signal_entity(&entity, ADD, &number).await.expect("signalled");
        }
    });
    let bytes: u64 = hub.stats().partitions.iter().map(|partition| partition.commit_bytes).sum();
    assert!(bytes < SIGNALS * 100, "{bytes} bytes were written");
    hub.halt();
    let hub = Hub::open(store, code(), options()).expect("a hub");
    let state = block(hub.client().state_of(LIST, &entity)).expect("asked").expect("a state");
    assert_eq!(state, (0..SIGNALS).map(|number| number + 1_000_000).collect::<Vec<u64>>());
}

#[test]
fn activities_that_wait_take_no_more_than_their_numbers() {
    use crate::{Activity, ActivityContext, Ctx, Failure, Orchestration, Registry};
    const COUNT: u32 = 300;
    const SAY: Activity<String, usize> = Activity::new("say");
    const FAN: Orchestration<(), usize> = Orchestration::new("fan");
    let mut code = Registry::new();
    code.activity(SAY, |_: ActivityContext, text: String| async move { Ok::<_, Failure>(text.len()) });
    code.orchestration(FAN, |ctx: Ctx, (): ()| async move {
        let calls = (0..COUNT).map(|n| ctx.call(SAY, &"x".repeat(n as usize))).collect();
        ctx.join_all(calls).await.into_iter().sum::<Result<usize, Failure>>()
    });
    let limits = HubOptions { partitions: 1, activities_running_max: 2, ..options() };
    let hub = Hub::open(Arc::new(MemoryStore::new()), code, limits).expect("a hub");
    let sum = block(hub.client().run(FAN, &(), TIMEOUT)).expect("ended");
    assert_eq!(sum, (0..COUNT as usize).sum::<usize>());
}

#[test]
fn a_query_goes_through_all_partitions_page_by_page() {
    let store = Arc::new(MemoryStore::new());
    let hub = open(&store, options());
    let client = hub.client();
    let found = block(async {
        for n in 0..25 {
            start(&client, "Wait", &format!("w{n}"), 1).await.expect("started");
            start(&client, "Wait", &format!("other{n}"), 1).await.expect("started");
        }
        let (mut found, mut next) = (Vec::new(), None);
        loop {
            let filter = Filter { prefix: "w".to_owned(), ..Filter::default() };
            let page = client.query(filter, 4, Values::Without, next).await.expect("a page");
            assert!(page.instances.len() <= 4);
            found.extend(page.instances.into_iter().map(|view| view.id.to_string()));
            next = page.next;
            if next.is_none() {
                break found;
            }
        }
    });
    let mut found = found;
    found.sort();
    let mut wanted: Vec<String> = (0..25).map(|n| format!("w{n}")).collect();
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn a_scheduled_start_waits_and_can_be_terminated() {
    let store = Arc::new(MemoryStore::new());
    let hub = open(&store, options());
    let client = hub.client();
    block(async {
        let later = Start::new(Name::Static("Wait")).input(number(1)).at(Time(u64::MAX - 1));
        client.start(later.id("later").expect("an identifier")).await.expect("accepted");
        let status = |view: Option<crate::client::InstanceView>| view.expect("an instance").status;
        assert_eq!(status(client.get(&id("later")).await.expect("asked")), Status::Pending);
        client.terminate(&id("later"), "no more").await.expect("terminated");
        assert_eq!(status(client.get(&id("later")).await.expect("asked")), Status::Terminated);
        assert!(client.purge(&id("later")).await.expect("purged"));
        assert!(client.get(&id("later")).await.expect("asked").is_none());
    });
}

#[test]
fn continuing_as_new_replaces_the_history() {
    let store = Arc::new(MemoryStore::new());
    let hub = open(&store, options());
    let client = hub.client();
    block(async {
        start(&client, "Again", "a", 3).await.expect("started");
        let view = client.wait(&id("a"), TIMEOUT).await.expect("ended");
        assert_eq!((view.generation, view.input), (3, number(0)));
        assert_eq!(client.history(&id("a")).await.expect("asked").expect("a history").len(), 2);
    });
}

#[test]
fn a_closed_hub_responds_that_it_is_closed() {
    let store = Arc::new(MemoryStore::new());
    let hub = open(&store, options());
    let client = hub.client();
    let waiting = client.clone();
    block(async {
        start(&client, "Wait", "w", 1).await.expect("started");
        let instance = id("w");
        let wait = waiting.wait(&instance, TIMEOUT);
        let close = async {
            hub.close().expect("closed");
            hub.close().expect("closed twice");
        };
        let (waited, ()) = tokio::join!(wait, close);
        assert!(matches!(waited, Err(Error::Closed)), "{waited:?}");
        assert!(matches!(client.get(&instance).await, Err(Error::Closed)));
    });
}

#[test]
fn large_payloads_go_with_the_next_snapshot_after_nothing_refers_to_them() {
    let store = Arc::new(MemoryStore::new());
    let hub = open(&store, HubOptions { partitions: 1, snapshot_after_bytes: 64 << 10, ..options() });
    let client = hub.client();
    let payloads = || store.list_blobs("p0/payload/").expect("names").len();
    block(async {
        for name in ["kept", "purged"] {
            let input = Payload::encode(&"x".repeat(100 << 10)).expect("a text");
            let start = Start::new(Name::Static("Wait")).input(input).id(name).expect("an identifier");
            client.start(start).await.expect("started");
        }
        assert_eq!(payloads(), 2);
        assert!(client.purge(&id("purged")).await.expect("purged"));
        let mut rounds = 0;
        while hub.stats().partitions[0].snapshots < 2 {
            rounds += 1;
            assert!(rounds < 10_000, "no snapshot was taken");
            start(&client, "Cities", &format!("c{rounds}"), 5).await.expect("started");
            client.wait(&id(&format!("c{rounds}")), TIMEOUT).await.expect("ended");
        }
    });
    hub.close().expect("closed");
    assert_eq!(payloads(), 1);
    let hub = open(&store, options());
    let view = block(hub.client().get(&id("kept"))).expect("asked").expect("an instance");
    assert_eq!(view.input.decode::<String>().expect("a text").len(), 100 << 10);
}

#[test]
fn activities_that_block_for_ever_do_not_hold_up_the_others() {
    use crate::{Activity, ActivityContext, Ctx, Failure, Orchestration, Registry};
    const BLOCK: Activity<bool, ()> = Activity::new("block");
    const RUN: Orchestration<bool, ()> = Orchestration::new("run");
    let (release, blocked) = std::sync::mpsc::sync_channel::<()>(0);
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let mut code = Registry::new();
    code.activity(BLOCK, move |_: ActivityContext, blocks: bool| {
        let blocked = Arc::clone(&blocked);
        async move {
            if blocks {
                // The owner of the lock waits for the channel, the others for the lock; closing the channel frees all.
                let _ = blocked.lock().expect("a lock").recv();
            }
            Ok::<_, Failure>(())
        }
    });
    code.orchestration(RUN, |ctx: Ctx, blocks: bool| async move { ctx.call(BLOCK, &blocks).await });
    let store = Arc::new(MemoryStore::new());
    let hub = Hub::open(store, code, HubOptions { activity_threads: 1, ..options() }).expect("a hub");
    let client = hub.client();
    block(async {
        let mut stuck = Vec::new();
        for _ in 0..3 {
            stuck.push(client.start(RUN.start(&true).expect("an input")).await.expect("started"));
        }
        let free = client.start(RUN.start(&false).expect("an input")).await.expect("started");
        assert_eq!(client.wait(&free, TIMEOUT).await.expect("ended").status, Status::Completed);
        drop(release);
        for instance in &stuck {
            assert_eq!(client.wait(instance, TIMEOUT).await.expect("ended").status, Status::Completed);
        }
    });
}

/// Each owner writes less than the amount that triggers a snapshot, as with a partition that moves often. An owner that
/// closes before its snapshot is complete leaves it to the next one.
#[test]
fn a_log_that_several_owners_have_written_is_cut_behind_a_snapshot() {
    const OWNERS_MAX: usize = 100;
    let store = Arc::new(MemoryStore::new());
    let options = HubOptions { partitions: 1, snapshot_after_bytes: 64 << 10, ..options() };
    for owner in 0..OWNERS_MAX {
        let hub = open(&store, options.clone());
        let client = hub.client();
        block(async {
            if owner == 0 {
                start(&client, "Wait", "w", 1_000).await.expect("started");
            }
            for _ in 0..5 {
                client.raise(&id("w"), "go", Payload::from_bytes(vec![b'x'; 2_000])).await.expect("raised");
            }
        });
        hub.close().expect("closed");
        let read = store.read(PartitionId(0), Position(0), &mut |_, _| Ok(()));
        if matches!(read, Err(crate::store::StoreError::Missing { .. })) {
            return;
        }
    }
    panic!("the log of {OWNERS_MAX} owners was not cut");
}
