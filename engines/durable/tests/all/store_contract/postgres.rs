//! Faults of a PostgreSQL server.

use std::time::Duration;

use narrows_durable::store::{SharedStore as _, Store as _, StoreError};
use narrows_durable::{Epoch, Position};
use narrows_durable_servers::{PostgresStore, PostgresStoreOptions};

use super::{P, SHAPE, batch, read};
use crate::servers::{Postgres, free_port};

fn open(url: &str) -> PostgresStore {
    let store = PostgresStore::open(url, PostgresStoreOptions::default()).unwrap();
    store.open_or_create(SHAPE).unwrap();
    store
}

fn open_error(url: &str) -> String {
    let error = PostgresStore::open(url, PostgresStoreOptions::default()).unwrap_err();
    assert!(error.hint().is_some());
    error.to_string()
}

#[test]
fn a_server_that_cannot_be_reached_or_refuses_is_named_without_the_password() {
    let port = free_port();
    let error = open_error(&format!("postgres://me:secret@127.0.0.1:{port}/app?hub=orders"));
    assert!(error.contains(&format!("a connection of PostgreSQL 127.0.0.1:{port}/app, hub orders")), "{error}");
    assert!(error.contains("refused") && !error.contains("secret"), "{error}");

    let Some(server) = Postgres::start() else { return };
    let error = open_error(&server.url_with_password("orders", "wrong-one"));
    assert!(error.contains("password authentication failed") && !error.contains("wrong-one"), "{error}");
    let store = open(&server.url("orders"));
    assert!(!format!("{store:?} {}", store.describe()).contains("pass-w0rd"));
}

#[test]
fn connections_that_are_cut_are_made_again_also_in_the_middle_of_a_restart() {
    let Some(mut server) = Postgres::start() else { return };
    let store = open(&server.url("orders"));
    let epoch = store.take(P, Epoch(0), "one").unwrap();
    for at in 0..20 {
        if at % 5 == 2 {
            server.sql("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()").unwrap();
        }
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
    assert_eq!(store.owners().unwrap()[0].epoch, epoch);
}

#[test]
fn a_server_that_stays_away_is_an_error_after_the_time_for_it() {
    let Some(mut server) = Postgres::start() else { return };
    let options = PostgresStoreOptions { retry_timeout: Duration::from_millis(300), ..PostgresStoreOptions::default() };
    let store = PostgresStore::open(&server.url("orders"), options).unwrap();
    store.open_or_create(SHAPE).unwrap();
    let epoch = store.take(P, Epoch(0), "one").unwrap();
    server.kill();
    // The process of a connection may serve a request or two more before it sees that the server has ended.
    let append = |at| store.append(P, epoch, Position(at), &batch(at..at + 1, 1));
    let error = (0..).find_map(|at| append(at).err()).unwrap();
    assert!(matches!(error, StoreError::Io { is_full: false, .. }), "{error}");
    assert!(error.to_string().contains("of PostgreSQL 127.0.0.1:"), "{error}");
    assert!(store.say("one", b"still here").is_err());
}

#[test]
fn rows_that_were_changed_are_damage_with_their_place() {
    let Some(server) = Postgres::start() else { return };
    let damages = [
        (
            "update {}.batches set bytes = set_byte(bytes, 20, 1 - get_byte(bytes, 20) % 2) where position = 4",
            "frame 4 ",
        ),
        ("update {}.batches set epoch = epoch + 1 where position = 6", "frame 6 "),
        ("delete from {}.batches where position = 2", "frame 2 "),
        ("delete from {}.batches where position = 8", "frame 8 "),
        ("update {}.batches set position = 3 where position = 4", "frame 3 "),
        ("update {}.blobs set bytes = 'else'", "blob p0/x "),
        ("update {}.blobs set name = 'p0/x', crc = 1 + crc", "blob p0/x "),
        ("update {}.nodes set said = 'else'", "what node one says "),
    ];
    for (number, (damage, place)) in damages.iter().enumerate() {
        let hub = format!("d{number}");
        let store = open(&server.url(&hub));
        let epoch = store.take(P, Epoch(0), "one").unwrap();
        for at in (0..10).step_by(2) {
            store.append(P, epoch, Position(at), &batch(at..at + 2, 100)).unwrap();
        }
        store.put_blob("p0/x", b"blob").unwrap();
        store.say("one", b"said").unwrap();
        server.sql(&damage.replace("{}", &format!("narrows_{hub}"))).unwrap();
        let results = [read(&store, 0).err(), store.get_blob("p0/x").err(), store.say("two", b"").err()];
        let [error] = results.into_iter().flatten().collect::<Vec<_>>().try_into().unwrap();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(error.to_string().starts_with(place), "{damage}: {error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn schemas_of_something_else_and_hubs_of_another_layout_are_refused() {
    let Some(server) = Postgres::start() else { return };
    server.sql("create schema narrows_else; create table narrows_else.t (x int)").unwrap();
    let other = PostgresStore::open(&server.url("else"), PostgresStoreOptions::default()).unwrap();
    let error = other.open_or_create(SHAPE).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("it has 1 tables, expected none or those of a hub"), "{error}");

    let store = open(&server.url("orders"));
    server.sql("update narrows_orders.hub set layout = 99").unwrap();
    let error = store.open_or_create(SHAPE).unwrap_err();
    assert!(error.to_string().contains("layout 99, expected 1"), "{error}");

    let absent = PostgresStore::open(&server.url("absent"), PostgresStoreOptions::default()).unwrap();
    let error = absent.owners().unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}
