//! Faults of NATS servers.

use std::sync::Arc;
use std::time::Duration;

use narrows_durable::store::{FaultyStore, SharedStore as _, Store as _, StoreError};
use narrows_durable::{Ctx, Epoch, Error, Failure, Hub, HubOptions, Orchestration, Position, Registry, Status};
use narrows_durable_servers::{NatsStore, NatsStoreOptions};

use super::{P, SHAPE, batch, read};
use crate::servers::{Nats, WAIT, free_port};

fn connect(url: &str) -> NatsStore {
    NatsStore::open(url, NatsStoreOptions::default()).unwrap()
}

fn open(url: &str) -> NatsStore {
    let store = connect(url);
    store.open_or_create(SHAPE).unwrap();
    store
}

fn open_error(url: &str) -> String {
    let error = NatsStore::open(url, NatsStoreOptions::default()).unwrap_err();
    assert!(error.hint().is_some());
    error.to_string()
}

#[test]
fn a_server_that_cannot_be_reached_or_refuses_is_named_without_the_password() {
    let port = free_port();
    let error = open_error(&format!("nats://me:secret@127.0.0.1:{port}/orders"));
    assert!(error.contains(&format!("a connection of NATS 127.0.0.1:{port}, hub orders")), "{error}");
    assert!(error.contains("refused") && !error.contains("secret"), "{error}");

    let Some(server) = Nats::start() else { return };
    let error = open_error(&server.url_with_password("orders", "wrong-one"));
    assert!(error.to_lowercase().contains("authorization") && !error.contains("wrong-one"), "{error}");
    let store = open(&server.url("orders"));
    assert!(!format!("{store:?} {}", store.describe()).contains("pass-w0rd"));
}

/// Server 2.9 crashes when a client asks for messages of a stream that it is still creating for another client.
#[test]
fn hubs_that_two_make_at_once_while_a_third_reads_are_made() {
    const HUBS: usize = 20;
    let Some(server) = Nats::start() else { return };
    let connect = |hub: &str| NatsStore::open(&server.url(hub), NatsStoreOptions::default()).unwrap();
    for hub in (0..HUBS).map(|hub| format!("hub-{hub}")) {
        let reader = connect(&hub);
        std::thread::scope(|scope| {
            let makers = [(); 2].map(|()| scope.spawn(|| connect(&hub).open_or_create(SHAPE)));
            while !makers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                // There may be no hub yet.
                let _ = reader.owners();
            }
            for maker in makers {
                assert_eq!(maker.join().unwrap().unwrap(), SHAPE);
            }
        });
        assert_eq!(reader.owners().unwrap().len(), usize::from(SHAPE.partitions));
    }
}

#[test]
fn a_restart_of_the_server_is_waited_for_and_loses_nothing() {
    let Some(mut server) = Nats::start() else { return };
    let store = open(&server.url("orders"));
    let epoch = store.take(P, Epoch(0), "one").unwrap();
    store.put_blob("p0/x", &vec![7; 3 << 20]).unwrap();
    for at in 0..20 {
        store.append(P, epoch, Position(at), &batch(at..at + 1, 100)).unwrap();
    }
    std::thread::scope(|scope| {
        server.kill();
        let appends =
            scope.spawn(|| (20..40).try_for_each(|at| store.append(P, epoch, Position(at), &batch(at..at + 1, 100))));
        std::thread::sleep(Duration::from_millis(100));
        server.run();
        appends.join().unwrap().unwrap();
    });
    assert_eq!(read(&store, 0).unwrap().len(), 40);
    assert_eq!(store.get_blob("p0/x").unwrap().unwrap(), vec![7; 3 << 20]);
    assert_eq!(store.owners().unwrap()[0].epoch, epoch);
}

#[test]
fn a_server_that_stays_away_is_an_error_after_the_time_for_it() {
    let Some(mut server) = Nats::start() else { return };
    let times = Duration::from_millis(300);
    let options = NatsStoreOptions { call_timeout: times, retry_timeout: times, ..NatsStoreOptions::default() };
    let store = NatsStore::open(&server.url("orders"), options).unwrap();
    store.open_or_create(SHAPE).unwrap();
    let epoch = store.take(P, Epoch(0), "one").unwrap();
    server.kill();
    for _ in 0..2 {
        let error = store.append(P, epoch, Position(0), &batch(0..1, 1)).unwrap_err();
        assert!(matches!(error, StoreError::Io { is_full: false, .. }), "{error}");
        assert!(error.to_string().contains("the log of partition 0 at 0 of NATS 127.0.0.1:"), "{error}");
    }
    assert!(store.say("one", b"still here").is_err());
}

#[test]
fn messages_that_were_added_or_removed_are_damage_with_their_place() {
    let Some(server) = Nats::start() else { return };
    let delete = "$JS.API.STREAM.MSG.DELETE.NRW_HUB_p0";
    // Three messages say that nobody had the partition, and who has it; the batches follow.
    let damages = [
        ("nrw.HUB.p0.log", "garbage, but long enough for a head of a message", "message 9 of partition 0 of NATS"),
        ("nrw.HUB.p0.own", "garbage", "partition 0 at message 9 of NATS"),
        (delete, "{\"seq\":6}", "message 7 of partition 0 of NATS"),
        ("nrw.HUB.name.blob.p0.x", "garbage", "blob p0/x of NATS"),
        ("nrw.HUB.name.node.one", "garbage", "what node one says of NATS"),
    ];
    for (number, (subject, payload, place)) in damages.iter().enumerate() {
        let hub = format!("d{number}");
        let store = open(&server.url(&hub));
        let epoch = store.take(P, Epoch(0), "one").unwrap();
        for at in (0..10).step_by(2) {
            store.append(P, epoch, Position(at), &batch(at..at + 2, 100)).unwrap();
        }
        store.put_blob("p0/x", b"blob").unwrap();
        store.say("one", b"said").unwrap();
        server.publish(&subject.replace("HUB", &hub), payload);
        let results =
            [read(&store, 0).err(), store.get_blob("p0/x").err(), store.say("two", b"").err(), store.owners().err()];
        let errors: Vec<StoreError> = results.into_iter().flatten().collect();
        assert!(errors.iter().all(|error| matches!(error, StoreError::Damaged { .. })), "{errors:?}");
        assert!(errors.iter().any(|error| error.to_string().starts_with(place)), "{subject}: {errors:?}");
    }
}

/// The state that a server leaves behind if it is killed while it deletes messages one by one.
#[test]
fn gaps_below_the_wanted_frames_are_passed_over_and_others_are_damage() {
    let Some(server) = Nats::start() else { return };
    let store = open(&server.url("orders"));
    let epoch = store.take(P, Epoch(0), "one").unwrap();
    // Messages 4 to 6 hold two frames each, 7 to 11 the parts of the next two, and 12 to 15 two frames each.
    for at in (0..6).step_by(2) {
        store.append(P, epoch, Position(at), &batch(at..at + 2, 100)).unwrap();
    }
    store.append(P, epoch, Position(6), &batch(6..8, 2 << 20)).unwrap();
    for at in (8..16).step_by(2) {
        store.append(P, epoch, Position(at), &batch(at..at + 2, 100)).unwrap();
    }
    for gone in [5, 8, 9] {
        server.publish("$JS.API.STREAM.MSG.DELETE.NRW_orders_p0", &format!("{{\"seq\":{gone}}}"));
    }
    let heir = open(&server.url("orders"));
    let epoch = heir.take(P, epoch, "two").unwrap();
    for wanted in 8..16 {
        let expected: Vec<u64> = (wanted..16).collect();
        let found: Vec<u64> = read(&heir, wanted).unwrap().into_iter().map(|(position, _)| position).collect();
        assert_eq!(found, expected, "from {wanted} on");
    }
    for (wanted, place) in [(0, "message 6"), (2, "message 6"), (4, "message 10"), (7, "message 10")] {
        let error = read(&heir, wanted).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "from {wanted} on: {error}");
        assert!(error.to_string().starts_with(place), "from {wanted} on: {error}");
    }
    heir.append(P, epoch, Position(16), &batch(16..17, 100)).unwrap();
    assert_eq!(read(&heir, 15).unwrap().len(), 2);
}

/// The log is so long that reading it does not begin with its first message.
#[test]
fn a_long_log_is_read_from_every_frame_on_with_or_without_a_gap() {
    const BATCHES: u64 = 150;
    let Some(server) = Nats::start() else { return };
    let store = open(&server.url("orders"));
    let epoch = store.take(P, Epoch(0), "one").unwrap();
    for at in (0..BATCHES * 2).step_by(2) {
        store.append(P, epoch, Position(at), &batch(at..at + 2, 1)).unwrap();
    }
    let reads = |wanted: u64| {
        let found: Vec<u64> = read(&store, wanted).unwrap().into_iter().map(|(position, _)| position).collect();
        assert_eq!(found, (wanted..BATCHES * 2).collect::<Vec<_>>(), "from {wanted} on");
    };
    (0..BATCHES * 2).step_by(7).for_each(reads);
    // Messages 4 to 153 hold the batches.
    for gone in 20..100 {
        server.publish("$JS.API.STREAM.MSG.DELETE.NRW_orders_p0", &format!("{{\"seq\":{gone}}}"));
    }
    (192..BATCHES * 2).step_by(7).for_each(reads);
    for wanted in [0, 31, 33, 100, 191] {
        let error = read(&store, wanted).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. } | StoreError::Missing { .. }), "from {wanted} on: {error}");
    }
}

/// The process ends between a snapshot and the truncation; then messages that the snapshot covers are lost.
#[test]
fn a_hub_opens_though_messages_are_missing_before_its_snapshot() {
    const ECHO: Orchestration<String, String> = Orchestration::new("echo");
    let Some(server) = Nats::start() else { return };
    let mut code = Registry::new();
    code.orchestration(ECHO, |_: Ctx, text: String| async move { Ok::<_, Failure>(text) });
    let code = Arc::new(code);
    let mut options = HubOptions::default();
    (options.partitions, options.snapshot_after_bytes) = (1, 64 << 10);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();

    let faulty = FaultyStore::before_truncation(Arc::new(connect(&server.url("orders"))));
    let hub = Hub::open(Arc::new(faulty), Arc::clone(&code), options.clone()).unwrap();
    let mut done = Vec::new();
    loop {
        let text = format!("{:0>1000}", done.len());
        match runtime.block_on(hub.client().run(ECHO, &text, WAIT)) {
            Ok(said) => done.push(said),
            Err(Error::Stopped { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(done.len() > 20, "a snapshot is taken after 64 KiB, and {} were done", done.len());
    hub.close().unwrap_err();
    drop(hub);
    for gone in 10..15 {
        server.publish("$JS.API.STREAM.MSG.DELETE.NRW_orders_p0", &format!("{{\"seq\":{gone}}}"));
    }

    let hub = Hub::open(Arc::new(connect(&server.url("orders"))), code, options).unwrap();
    let all =
        runtime.block_on(hub.client().query(Default::default(), 1000, narrows_durable::Values::With, None)).unwrap();
    let mut found: Vec<String> = all
        .instances
        .iter()
        .filter(|view| view.status == Status::Completed)
        .map(|view| view.output_as::<String>().unwrap().unwrap())
        .collect();
    found.sort();
    assert_eq!(found[..done.len()], done, "what was acknowledged is there");
    hub.close().unwrap();
}

#[test]
fn an_append_that_was_cut_short_is_cut_off_and_its_position_used_again() {
    let Some(server) = Nats::start() else { return };
    let store = open(&server.url("orders"));
    let epoch = store.take(P, Epoch(0), "one").unwrap();
    store.append(P, epoch, Position(0), &batch(0..2, 100)).unwrap();
    store.append(P, epoch, Position(2), &batch(2..4, 2 << 20)).unwrap();
    // Messages 1 to 3 say who has it, 4 is the first batch, the parts of the second follow. The last of them is removed, as
    // if the node had ended before it.
    let parts = (4_u64 << 20).div_ceil(1 << 20) + 1;
    server.publish("$JS.API.STREAM.MSG.DELETE.NRW_orders_p0", &format!("{{\"seq\":{}}}", 4 + parts));
    let heir = open(&server.url("orders"));
    let epoch = heir.take(P, epoch, "two").unwrap();
    assert_eq!(read(&heir, 0).unwrap().len(), 2);
    heir.append(P, epoch, Position(2), &batch(2..3, 100)).unwrap();
    assert_eq!(read(&heir, 0).unwrap().len(), 3);
}

#[test]
fn hubs_of_another_layout_and_hubs_that_are_not_there_are_refused() {
    let Some(server) = Nats::start() else { return };
    let absent = NatsStore::open(&server.url("absent"), NatsStoreOptions::default()).unwrap();
    let error = absent.owners().unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");

    let store = open(&server.url("orders"));
    server.publish("nrw.orders.name.hub", "{\"layout\":99,\"partitions\":2,\"format\":1}");
    let error = store.open_or_create(SHAPE).unwrap_err();
    assert!(error.to_string().contains("layout 99, expected 2"), "{error}");
}

#[test]
fn a_cluster_goes_on_when_one_of_its_servers_ends() {
    let Some(mut servers) = Nats::start_cluster() else { return };
    let url = format!("{}?replicas=3", servers[0].url("orders"));
    let options = || NatsStoreOptions { retry_timeout: Duration::from_secs(60), ..NatsStoreOptions::default() };
    let store = NatsStore::open(&url, options()).unwrap();
    store.open_or_create(SHAPE).unwrap();
    let epoch = store.take(P, Epoch(0), "one").unwrap();
    for at in 0..30 {
        if at == 10 {
            servers[0].kill();
        }
        store.append(P, epoch, Position(at), &batch(at..at + 1, 100)).unwrap();
    }
    let other = NatsStore::open(&format!("{}?replicas=3", servers[1].url("orders")), options()).unwrap();
    let epoch = other.take(P, epoch, "two").unwrap();
    assert!(matches!(store.append(P, Epoch(1), Position(30), &batch(30..31, 1)), Err(StoreError::Fenced { .. })));
    assert_eq!(read(&other, 0).unwrap().len(), 30);
    other.append(P, epoch, Position(30), &batch(30..31, 1)).unwrap();
}
