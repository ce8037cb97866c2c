//! Tests of the journal alone.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::throughput::Throughput;

fn database(number: u32) -> DatabaseRecord {
    DatabaseRecord { number, name: format!("d{number}"), created_unix_s: 0, throughput: Some(Throughput::Manual(400)) }
}

fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_ticket_is_durable_once_it_is_written_and_all_before_it_too() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new();
    let tickets = [0, 1].map(|number| journal.write(Change::CreateDatabase(database(number))));
    assert!(tickets.iter().all(|ticket| poll(journal.durable(*ticket)).is_pending()));
    assert_eq!(poll(journal.durable(Ticket::default())), Poll::Ready(Ok(())));

    let opened = OpenFolder::open(dir.path(), Flush::Always, |_| ()).unwrap();
    opened.serve(&journal).unwrap();
    journal.close().unwrap();
    assert!(tickets.iter().all(|ticket| poll(journal.durable(*ticket)) == Poll::Ready(Ok(()))));
    let late = journal.write(Change::CreateDatabase(database(2)));
    assert_eq!(poll(journal.durable(late)), Poll::Ready(Err(Unavailable("the store is closed".into()))));

    let opened = OpenFolder::open(dir.path(), Flush::Never, |_| ()).unwrap();
    assert_eq!(opened.content().databases, [database(0), database(1)]);
    assert_eq!(opened.content().next_number, 2);
}

#[test]
fn a_request_waits_while_too_much_is_under_way() {
    let journal = Journal::new();
    let text = "x".repeat(40 << 20).into_boxed_str();
    let entry = crate::stored_document::Entry {
        number: 1,
        key: [0_u8; 4].into(),
        effective: crate::effective_key::EffectiveKey::from_bytes(&[0; 16]).unwrap(),
        lsn: 1,
        unix_s: 0,
        ttl: None,
    };
    let put = || {
        let writes = vec![Write::Put(StoredDocument { entry: entry.clone(), text: text.clone().into() })];
        Change::Documents { container: 1, range: 0, writes, mark: Mark::default() }
    };
    journal.write(put());
    assert!(poll(journal.room()).is_ready());
    journal.write(put());
    assert!(poll(journal.room()).is_pending());
    let dir = tempfile::tempdir().unwrap();
    OpenFolder::open(dir.path(), Flush::Always, |_| ()).unwrap().serve(&journal).unwrap();
    journal.wait_for_room();
    assert!(poll(journal.room()).is_ready());
    journal.close().unwrap();
}

#[test]
fn a_store_in_memory_waits_for_nothing() {
    let journal = Journal::none();
    let ticket = journal.write(Change::CreateDatabase(database(0)));
    assert_eq!(poll(journal.durable(ticket)), Poll::Ready(Ok(())));
    assert_eq!((journal.check(), journal.close()), (Ok(()), Ok(())));
}
