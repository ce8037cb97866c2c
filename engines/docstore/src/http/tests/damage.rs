//! Unusable folders and failing disks: damage is refused, and everything acknowledged is kept.

use std::path::Path;

use super::containers::{by_owner, delete, post, put};
use super::restart::{again, create, everything, kept, read, with_things};
use super::*;
use crate::Error;
use crate::effective_key::EffectiveKey;
use crate::storage::{Change, Mark, Write};

#[test]
fn a_disk_that_fails_is_not_hidden_and_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (service, _) = with_things(dir.path(), &by_owner("things"), &[]);
    assert_eq!(create(&service, 1, 1, json!({})).status, 201);
    // A table that is there cannot be made: the transaction fails as on a full disk.
    let impossible = service.store.database("db").unwrap().containers()[0].record();
    let ticket = service.store.journal().write(Change::CreateContainer(impossible));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let why = runtime.block_on(service.store.journal().durable(ticket)).unwrap_err();
    assert!(why.0.contains(" cannot be written: table documents_3 already exists"), "{why:?}");

    let refused = create(&service, 2, 1, json!({}));
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("ServiceUnavailable")));
    assert!(refused.message().starts_with("the store takes no more writes until it is started again"));
    assert_eq!(post(&service, "/dbs", &[], &json!({ "id": "other" })).status, 503);
    assert_eq!(post(&service, "/dbs/db/colls", &[], &by_owner("other")).status, 503);
    for path in ["/dbs/db", "/dbs/db/colls/things"] {
        assert_eq!(delete(&service, path, &[]).status, 503);
    }
    assert_eq!(put(&service, "/dbs/db/colls/things", &[], &by_owner("things")).status, 503);
    assert_eq!(read(&service, 1, 1).status, 200);
    assert_eq!(read(&service, 2, 1).status, 404);

    let service = again(service, dir.path(), 0);
    assert_eq!(read(&service, 1, 1).status, 200);
    assert_eq!(create(&service, 2, 1, json!({})).status, 201);
}

fn refused(dir: &Path) -> Error {
    match Store::open(&kept(dir), StoredDocument::default()) {
        Ok(_) => panic!("the store opened"),
        Err(error) => error,
    }
}

/// A folder with 200 documents of an owner, and the file in it.
fn filled(dir: &Path) -> std::path::PathBuf {
    let (service, _) = service(Config { documents_per_container: 200, partitions: 2, ..kept(dir) });
    drop(service);
    dir.join("docstore.sqlite")
}

fn change(file: &Path, sql: &str) {
    rusqlite::Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn a_folder_in_use_is_refused_with_the_process_that_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let (service, _) = service(kept(dir.path()));
    let error = refused(dir.path());
    let expected = format!("the folder {} is in use by process {}", dir.path().display(), std::process::id());
    assert_eq!((error.to_string(), error.hint().is_some()), (expected, true));
    drop(service);
    Store::open(&kept(dir.path()), StoredDocument::default()).unwrap();
}

#[test]
fn a_file_of_something_else_or_of_another_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = filled(dir.path());
    change(&file, "PRAGMA user_version = 7");
    let error = refused(dir.path());
    assert_eq!(error.to_string(), format!("{} has version 7, expected version 1", file.display()));
    change(&file, "PRAGMA user_version = 1; PRAGMA application_id = 1");
    let error = refused(dir.path());
    assert_eq!(error.to_string(), format!("{} is not a file of the document store", file.display()));
    for content in ["", "no database", "SQLite format 3\0 and no more"] {
        std::fs::write(&file, content).unwrap();
        let error = refused(dir.path());
        assert!(matches!(error, Error::Foreign { .. } | Error::Damaged { .. }), "{error}");
        assert!(error.hint().is_some());
    }
    let file_for_a_folder = refused(&file);
    assert!(matches!(file_for_a_folder, Error::Folder { .. }), "{file_for_a_folder}");
}

#[test]
fn a_log_without_its_database_is_not_taken_for_a_new_folder() {
    let dir = tempfile::tempdir().unwrap();
    let file = filled(dir.path());
    std::fs::rename(&file, dir.path().join("docstore.sqlite-wal")).unwrap();
    let error = refused(dir.path());
    let expected = format!("{} is damaged: its log docstore.sqlite-wal is there, but not the file", file.display());
    assert_eq!(error.to_string(), expected);
}

#[test]
fn damage_is_refused_with_what_it_is() {
    let cases = [
        ("UPDATE documents_1 SET text = replace(text, 'drone', 'dront') WHERE number = 7", "document number 7"),
        ("DELETE FROM documents_1 WHERE number = 7", "documents, expected"),
        ("UPDATE documents_1 SET key = key || 'x' WHERE number = 8", "document number 8"),
        ("UPDATE documents_1 SET effective = x'00' WHERE number = 8", "document number 8 has no place"),
        ("UPDATE documents_1 SET text = 'null' WHERE number = 8", "document number 8 is no JSON object"),
        ("UPDATE documents_1 SET lsn = -1 WHERE number = 8", "-1 stands where numbers begin at 0"),
        ("UPDATE documents_1 SET unix_s = 'x' WHERE number = 8", "unix_s"),
        ("UPDATE marks SET lsn = 1", "the mark of range 0 of container number 1 does not match its checksum"),
        ("DELETE FROM marks WHERE container = 1", "range 0 has no mark"),
        ("DELETE FROM marks", "commits that were acknowledged the last"),
        ("UPDATE containers SET body = replace(body, '900', '901')", "container number 1 does not match"),
        ("DELETE FROM databases", "container number 1: it is in no database"),
        ("UPDATE databases SET body = 'x'", "database number 0 does not match"),
        ("DELETE FROM containers", "something that does not belong there: \"CREATE TABLE documents_1"),
        ("DROP TABLE documents_1", "it has no table by \"CREATE TABLE documents_1"),
        ("DROP TABLE marks", "it has no table by \"CREATE TABLE marks"),
        ("CREATE INDEX other ON marks (lsn)", "something that does not belong there: \"CREATE INDEX other"),
        ("DELETE FROM store", "no rows"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let file = filled(dir.path());
    let good = std::fs::read(&file).unwrap();
    for (sql, expected) in cases {
        std::fs::write(&file, &good).unwrap();
        change(&file, sql);
        let error = refused(dir.path());
        assert!(matches!(error, Error::Damaged { .. }), "{sql}: {error:?}");
        assert!(error.to_string().contains(expected), "{sql}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_damage_is_refused_or_harmless(
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        log in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let file = filled(dir.path());
        let mut bytes = std::fs::read(&file).unwrap();
        let length = bytes.len();
        places.iter().for_each(|(place, byte)| bytes[place.index(length)] = *byte);
        bytes.truncate(cut.map_or(length, |cut| cut.index(length)));
        std::fs::write(&file, bytes).unwrap();
        std::fs::write(dir.path().join("docstore.sqlite-wal"), log).unwrap();
        if let Ok(store) = Store::open(&kept(dir.path()), StoredDocument::default()) {
            let held = store.containers()[0].ranges().iter().map(|range| range.partition.mark().documents).sum::<u64>();
            prop_assert_eq!(held, 200);
        }
    }
}

fn nonsense() -> impl Strategy<Value = (crate::stored_document::StoredDocument, Mark)> {
    let numbers = || prop_oneof![0_u64..4, any::<u64>()];
    let places = proptest::collection::vec(0..1_u128 << 126, 1..3);
    let entry = (numbers(), proptest::collection::vec(any::<u8>(), 0..8), places, numbers(), numbers());
    let text = "[{]([a-z\":,0-9 é]{0,20}|\"id\":\"1\",\"a\":1)[}]";
    let mark = (numbers(), numbers(), 0_u64..3);
    (entry, proptest::option::of(any::<i64>()), text, mark).prop_map(|(entry, ttl, text, mark)| {
        let (number, key, places, lsn, unix_s) = entry;
        let places: Vec<u8> = places.into_iter().flat_map(u128::to_be_bytes).collect();
        let effective = EffectiveKey::from_bytes(&places).unwrap();
        let entry = crate::stored_document::Entry { number, key: key.into(), effective, lsn, unix_s, ttl };
        let (lsn, number, documents) = mark;
        (crate::stored_document::StoredDocument { entry, text: text.into() }, Mark { lsn, number, documents })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn rows_that_say_what_cannot_be_are_refused_or_harmless(rows in proptest::collection::vec(nonsense(), 1..4)) {
        let dir = tempfile::tempdir().unwrap();
        let (service, _) = service(Config { partitions: 1, ..kept(dir.path()) });
        let number = service.store.containers()[0].id.container;
        for (held, mark) in rows {
            let writes = vec![Write::Put(held)];
            service.store.journal().write(Change::Documents { container: number, range: 0, writes, mark });
        }
        drop(service);
        if let Ok(store) = Store::open(&kept(dir.path()), StoredDocument::default()) {
            let service = served(Arc::new(store), &Config::default());
            prop_assert!(everything(&service).len() > 3);
            let range = [("x-ms-documentdb-partitionkeyrangeid", "0")];
            let reply = query(&service, "SELECT * FROM c WHERE c.a = 1", &json!([]), &range);
            prop_assert_eq!(reply.status, 200);
        }
    }
}

/// The files of a folder after its process was killed, with 100 documents in 100 commits.
fn killed() -> Vec<(&'static str, Vec<u8>)> {
    let dir = tempfile::tempdir().unwrap();
    let (service, clock) = with_things(dir.path(), &by_owner("things"), &[]);
    for number in 0..100 {
        clock.set_ms(u64::from(number) * 1_000);
        assert_eq!(create(&service, number, number % 7, json!({})).status, 201);
    }
    // The disk has every acknowledged document, most of them only in the log.
    let read = |name: &'static str| (name, std::fs::read(dir.path().join(name)).unwrap());
    ["docstore.sqlite", "docstore.sqlite-wal", "acknowledged"].map(read).to_vec()
}

fn written(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| std::fs::write(dir.path().join(name), bytes).unwrap());
    dir
}

/// Number of readable documents in a store.
fn readable(store: &Store) -> u64 {
    let ranges =
        store.containers().into_iter().flat_map(|container| container.ranges().iter().cloned().collect::<Vec<_>>());
    ranges.map(|range| range.partition.mark().documents).sum()
}

#[test]
fn no_damaged_copy_of_a_folder_opens_with_less_than_was_acknowledged() {
    let files = killed();
    assert_eq!(readable(&Store::open(&kept(written(&files).path()), StoredDocument::default()).unwrap()), 100);
    let mut random = crate::random::Random::new(7);
    let mut below = |end: usize| random.below(end as u64) as usize;
    let mut refused = [0; 3];
    for copy in 0..120 {
        let mut damaged = files.clone();
        let which = copy % 3;
        let bytes = &mut damaged[which].1;
        let place = below(bytes.len());
        match copy / 3 % 10 {
            0 => bytes.truncate(place),
            1 => bytes[place..].iter_mut().take(4_096).for_each(|byte| *byte = 0),
            _ => bytes[place] ^= 1 << below(8),
        }
        match Store::open(&kept(written(&damaged).path()), StoredDocument::default()) {
            Ok(store) => assert_eq!(readable(&store), 100, "copy {copy}: {} at {place}", damaged[which].0),
            Err(error) => {
                refused[which] += 1;
                assert!(error.hint().is_some(), "copy {copy}: {error}");
            }
        }
    }
    assert!(refused[1] > 30 && refused[2] == 40, "most damage of the log and all of the note is seen: {refused:?}");
}

#[test]
fn a_folder_that_lost_its_end_is_refused_until_it_is_repaired() {
    let mut files = killed();
    let middle = files[1].1.len() / 2;
    files[1].1[middle] ^= 1;
    let dir = written(&files);
    let error = refused(dir.path()).to_string();
    assert!(error.contains(" commits that were acknowledged the last "), "{error}");
    assert!(error.contains(" are missing: it had 100 documents and has "), "{error}");
    assert_eq!(refused(dir.path()).to_string(), error, "being refused changes nothing");

    let repair = crate::Repair::open(dir.path()).unwrap();
    assert_eq!(repair.findings().len(), 1);
    assert!(error.ends_with(&repair.findings()[0]), "{:?}", repair.findings());
    let left = repair.documents();
    assert!((1..100).contains(&left), "{left}");
    drop(repair);
    assert_eq!(refused(dir.path()).to_string(), error, "looking changes nothing");

    let copies = crate::Repair::open(dir.path()).unwrap().accept().unwrap();
    assert_eq!(copies, dir.path().join("damaged-1"));
    for (name, bytes) in &files {
        assert_eq!(std::fs::read(copies.join(name)).unwrap(), *bytes, "{name}");
    }
    assert!(crate::Repair::open(dir.path()).unwrap().findings().is_empty());
    let store = Store::open(&kept(dir.path()), StoredDocument::default()).unwrap();
    assert_eq!(readable(&store), left as u64);
    let service = served(Arc::new(store), &Config::default());
    assert_eq!(create(&service, 100, 1, json!({})).status, 201);
    let service = again(service, dir.path(), 0);
    assert_eq!(readable(&service.store), left as u64 + 1);
}

#[test]
fn a_repair_keeps_every_row_that_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = filled(dir.path());
    change(&file, "UPDATE documents_1 SET text = replace(text, 'drone', 'dront') WHERE number IN (7, 9)");
    change(&file, "UPDATE marks SET documents = 1 WHERE container = 1 AND range = 1");
    let repair = crate::Repair::open(dir.path()).unwrap();
    let findings = repair.findings().join("\n");
    for expected in [
        "in table marks: the mark of range 1 of container number 1 does not match its checksum",
        "in table documents_1: document number 7 does not match its checksum",
        "in table documents_1: document number 9 does not match its checksum",
        "container \"utilization\" has 198 documents, expected ",
    ] {
        assert!(findings.contains(expected), "{findings}");
    }
    repair.accept().unwrap();
    assert_eq!(readable(&Store::open(&kept(dir.path()), StoredDocument::default()).unwrap()), 198);
}

#[test]
fn a_folder_of_a_version_without_the_note_is_opened_and_keeps_one_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = filled(dir.path());
    change(&file, "DELETE FROM marks WHERE container > 1000");
    std::fs::remove_file(dir.path().join("acknowledged")).unwrap();
    drop(Store::open(&kept(dir.path()), StoredDocument::default()).unwrap());
    assert!(dir.path().join("acknowledged").exists());
    drop(Store::open(&kept(dir.path()), StoredDocument::default()).unwrap());
}
