//! Contract of stores, checked against each of them.

mod nats;
mod nodes;
mod postgres;
mod repair;
mod shared;
mod stage;

use std::path::Path;
use std::sync::Arc;

use narrows_durable::codec::{FORMAT, FrameWriter};
use narrows_durable::store::{ClassicStore, Fault, FaultyStore, FileStore, FrameBatch, HubShape, Store, StoreError};
use narrows_durable::{Epoch, PartitionId, Position, Time};

use self::stage::{Kind, Stage, Subject, small_segments};

const P: PartitionId = PartitionId(0);
const SHAPE: HubShape = HubShape { partitions: 2, format: FORMAT };

/// A frame that is really one, which `classic` takes apart; `bytes` says how long it is, about.
fn frame(number: u64, bytes: usize) -> Vec<u8> {
    let mut writer = FrameWriter::new();
    writer.begin(Time(number));
    writer.created(number, Time(number), "instance");
    while writer.len() < bytes {
        writer.consumed(PartitionId(1), number);
    }
    writer.as_bytes().to_vec()
}

fn batch(numbers: std::ops::Range<u64>, bytes: usize) -> FrameBatch {
    let mut batch = FrameBatch::default();
    numbers.for_each(|number| batch.push(&frame(number, bytes)));
    batch
}

fn read(store: &dyn Store, from: u64) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
    let mut frames = Vec::new();
    let end = store.read(P, Position(from), &mut |position, bytes| {
        frames.push((position.0, bytes.to_vec()));
        Ok(())
    })?;
    assert_eq!(end.0, frames.last().map_or(from.max(end.0), |(last, _)| last + 1), "the end it told");
    Ok(frames)
}

fn assert_frames(store: &dyn Store, from: u64, to: u64, bytes: usize, of: Kind) {
    let expected: Vec<_> = (from..to).map(|number| (number, frame(number, bytes))).collect();
    assert!(read(store, from).unwrap() == expected, "{of:?} from {from} to {to}");
}

#[test]
fn frames_come_back_in_order_and_unchanged_also_in_another_process() {
    let stage = Stage::start();
    for subject in stage.all() {
        let store = subject.open();
        assert_eq!(store.open_or_create(SHAPE).unwrap(), SHAPE);
        assert_eq!(read(&*store, 0).unwrap(), []);
        let epoch = store.acquire(P, "test").unwrap();
        for at in (0..60).step_by(3) {
            store.append(P, epoch, Position(at), &batch(at..at + 3, 5000)).unwrap();
        }
        assert_frames(&*store, 0, 60, 5000, subject.kind);
        drop(store);
        let store = subject.open();
        assert_frames(&*store, 0, 60, 5000, subject.kind);
        assert_frames(&*store, 17, 60, 5000, subject.kind);
        let epoch = store.acquire(P, "test").unwrap();
        store.append(P, epoch, Position(60), &batch(60..61, 1)).unwrap();
        assert_eq!(read(&*store, 60).unwrap().len(), 1);
    }
}

#[test]
fn a_former_owner_is_fenced_off_and_changes_nothing() {
    let stage = Stage::start();
    for subject in stage.all() {
        let store = subject.open();
        let first = store.acquire(P, "first").unwrap();
        store.append(P, first, Position(0), &batch(0..2, 1)).unwrap();
        let second = store.acquire(P, "second").unwrap();
        assert!(second > first);
        for refused in [
            store.append(P, first, Position(2), &batch(2..3, 1)),
            store.truncate(P, first, Position(1)),
            store.release(P, first),
        ] {
            assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{:?}: {refused:?}", subject.kind);
        }
        assert_frames(&*store, 0, 2, 1, subject.kind);
        store.append(P, second, Position(2), &batch(2..3, 1)).unwrap();
        store.release(P, second).unwrap();
        assert!(matches!(store.append(P, second, Position(3), &batch(3..4, 1)), Err(StoreError::Fenced { .. })));
        assert!(store.acquire(P, "third").unwrap() > second);
    }
}

#[test]
fn an_append_that_is_not_for_the_end_is_refused() {
    let stage = Stage::start();
    for subject in stage.all() {
        let store = subject.open();
        let epoch = store.acquire(P, "test").unwrap();
        store.append(P, epoch, Position(0), &batch(0..2, 1)).unwrap();
        for at in [0, 1, 3] {
            let refused = store.append(P, epoch, Position(at), &batch(at..at + 1, 1));
            assert!(matches!(refused, Err(StoreError::Conflict { ends: 2, .. })), "{:?}: {refused:?}", subject.kind);
        }
        assert_frames(&*store, 0, 2, 1, subject.kind);
    }
}

#[test]
fn truncated_frames_are_missing_and_the_rest_stays() {
    let stage = Stage::start();
    for subject in stage.all() {
        let store = subject.open();
        let epoch = store.acquire(P, "test").unwrap();
        for at in 0..60 {
            store.append(P, epoch, Position(at), &batch(at..at + 1, 5000)).unwrap();
        }
        store.truncate(P, epoch, Position(40)).unwrap();
        assert_frames(&*store, 40, 60, 5000, subject.kind);
        // "As far as that is cheap": at least something of forty frames.
        assert!(matches!(read(&*store, 0), Err(StoreError::Missing { .. })), "{:?}", subject.kind);
        store.append(P, epoch, Position(60), &batch(60..61, 5000)).unwrap();
        drop(store);
        let store = subject.open();
        assert_frames(&*store, 40, 61, 5000, subject.kind);
        let epoch = store.acquire(P, "heir").unwrap();
        store.append(P, epoch, Position(61), &batch(61..62, 5000)).unwrap();
        assert_frames(&*store, 40, 62, 5000, subject.kind);
    }
}

#[test]
fn segments_that_are_used_again_do_not_show_what_they_held() {
    let stage = Stage::start();
    for subject in stage.all() {
        let store = subject.open();
        let epoch = store.acquire(P, "test").unwrap();
        for at in 0..400 {
            store.append(P, epoch, Position(at), &batch(at..at + 1, 3000)).unwrap();
            store.truncate(P, epoch, Position(at.saturating_sub(10))).unwrap();
        }
        assert_frames(&*store, 390, 400, 3000, subject.kind);
        drop(store);
        assert_frames(&*subject.open(), 390, 400, 3000, subject.kind);
    }
}

#[test]
fn an_append_larger_than_a_segment_has_room() {
    let stage = Stage::start();
    for subject in stage.all() {
        let store = subject.open();
        let epoch = store.acquire(P, "test").unwrap();
        store.append(P, epoch, Position(0), &batch(0..1, 10)).unwrap();
        store.append(P, epoch, Position(1), &batch(1..3, 300_000)).unwrap();
        store.append(P, epoch, Position(3), &batch(3..4, 10)).unwrap();
        drop(store);
        let frames = read(&*subject.open(), 0).unwrap();
        assert_eq!(frames.len(), 4, "{:?}", subject.kind);
        assert!(frames[1].1 == frame(1, 300_000) && frames[3].1 == frame(3, 10));
    }
}

#[test]
fn blobs_are_replaced_listed_and_forgotten() {
    let stage = Stage::start();
    for subject in stage.all() {
        let store = subject.open();
        assert_eq!(store.get_blob("p0/payload/1").unwrap(), None);
        for (name, bytes) in [("p0/payload/1", &b"old"[..]), ("p0/payload/2", b""), ("p1/x", b"other")] {
            store.put_blob(name, bytes).unwrap();
        }
        store.put_blob("p0/payload/1", b"new").unwrap();
        drop(store);
        let store = subject.open();
        assert_eq!(store.get_blob("p0/payload/1").unwrap().as_deref(), Some(&b"new"[..]));
        assert_eq!(store.get_blob("p0/payload/2").unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(store.list_blobs("p0/pay").unwrap(), ["p0/payload/1", "p0/payload/2"]);
        assert_eq!(store.list_blobs("").unwrap().len(), 3);
        store.delete_blob("p0/payload/1").unwrap();
        store.delete_blob("p0/payload/1").unwrap();
        assert_eq!(store.list_blobs("p0/").unwrap(), ["p0/payload/2"]);
        for bad in ["", "../x", "A", "a//b"] {
            assert!(matches!(store.put_blob(bad, b""), Err(StoreError::BadName { .. })), "{bad}");
            assert!(matches!(store.get_blob(bad), Err(StoreError::BadName { .. })), "{bad}");
        }
    }
}

#[test]
fn the_shape_of_a_hub_stays() {
    let stage = Stage::start();
    for subject in stage.all() {
        let store = subject.open();
        store.open_or_create(SHAPE).unwrap();
        let other = HubShape { partitions: 7, ..SHAPE };
        assert_eq!(store.open_or_create(other).unwrap(), SHAPE);
        drop(store);
        assert_eq!(subject.open().open_or_create(other).unwrap(), SHAPE);
        let newer = HubShape { format: FORMAT + 1, ..SHAPE };
        if subject.kind != Kind::Memory {
            assert!(matches!(subject.try_open().unwrap().open_or_create(newer), Err(StoreError::Foreign { .. })));
        }
    }
}

/// Whatever write fails and however, a later owner finds all that was acknowledged, perhaps more of the same, and can
/// go on behind it.
#[test]
fn every_write_may_fail() {
    let stage = Stage::start();
    for fault in Fault::ALL {
        for at in 0..14 {
            for subject in stage.all() {
                let acknowledged = match subject.kind {
                    Kind::Memory => write_until_it_fails(Arc::clone(&subject.memory), at, fault),
                    Kind::Files => {
                        let files = FileStore::open(subject.folder.path(), small_segments()).unwrap();
                        write_until_it_fails(Arc::new(files), at, fault)
                    }
                    Kind::Classic => {
                        let classic = ClassicStore::open(subject.database()).unwrap();
                        write_until_it_fails(Arc::new(classic), at, fault)
                    }
                    Kind::Distant => write_until_it_fails(Arc::new(subject.open_distant().unwrap()), at, fault),
                    Kind::Postgres | Kind::PostgresEachStep => {
                        write_until_it_fails(Arc::new(subject.open_postgres().unwrap()), at, fault)
                    }
                    Kind::Nats => write_until_it_fails(Arc::new(subject.open_nats().unwrap()), at, fault),
                };
                let store = subject.open();
                let frames = read(&*store, 0).unwrap();
                let found = frames.len() as u64;
                let what =
                    format!("{:?}, write {at} {fault:?}: {acknowledged} acknowledged, {found} found", subject.kind);
                assert!((acknowledged..=acknowledged + 4).contains(&found), "{what}");
                assert_frames(&*store, 0, found, 900, subject.kind);
                let epoch = store.acquire(P, "heir").unwrap();
                store.append(P, epoch, Position(found), &batch(found..found + 2, 900)).unwrap();
                assert_frames(&*store, 0, found + 2, 900, subject.kind);
            }
        }
    }
}

/// Appends four frames at a time; how many were acknowledged before the first error.
fn write_until_it_fails<S: Store>(inner: Arc<S>, at: u64, fault: Fault) -> u64 {
    inner.open_or_create(SHAPE).unwrap();
    let store = FaultyStore::new(inner, at, fault);
    let Ok(epoch) = store.acquire(P, "victim") else { return 0 };
    for number in (0..40).step_by(4) {
        if store.append(P, epoch, Position(number), &batch(number..number + 4, 900)).is_err() {
            return number;
        }
    }
    let _ = store.release(P, epoch);
    40
}

#[test]
fn a_store_that_is_open_cannot_be_opened_by_another() {
    let stage = Stage::local();
    for subject in stage.all().into_iter().filter(|subject| matches!(subject.kind, Kind::Files | Kind::Classic)) {
        let store = subject.open();
        store.open_or_create(SHAPE).unwrap();
        // SQLite finds out when it first reads.
        let refused = subject.try_open().and_then(|second| second.open_or_create(SHAPE).map(drop));
        assert!(matches!(refused, Err(StoreError::InUse { .. })), "{:?}: {refused:?}", subject.kind);
    }
}

#[test]
fn a_bit_that_flipped_in_what_was_acknowledged_is_an_error_with_its_place() {
    let stage = Stage::local();
    for subject in stage.all().into_iter().filter(|subject| subject.kind == Kind::Files) {
        write_ten(&subject);
        let path = subject.folder.path().join("p0").join(format!("log-{:020}", 0));
        let whole = std::fs::read(&path).unwrap();
        // The last 32 bytes are a mark: it proves what is before it, and nothing is lost with it.
        let written = whole.iter().rposition(|byte| *byte != 0).unwrap() - 32;
        for at in (0..written).step_by(97) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&path, &bytes).unwrap();
            let error = read(&*subject.open(), 0).unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "byte {at}: {error}");
            assert!(error.to_string().contains("log-00000000000000000000 at byte "), "{error}");
        }
        std::fs::write(&path, &whole[..written / 2]).unwrap();
        let error = read(&*subject.open(), 0).unwrap_err().to_string();
        assert!(error.contains("the file ends there, it was made with 65536 bytes"), "{error}");
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(read(&*subject.open(), 0).unwrap().len(), 10);
    }
}

fn write_ten(subject: &Subject<'_>) {
    let store = subject.open();
    let epoch: Epoch = store.acquire(P, "test").unwrap();
    for at in 0..10 {
        store.append(P, epoch, Position(at), &batch(at..at + 1, 300)).unwrap();
    }
    store.release(P, epoch).unwrap();
}

#[test]
fn foreign_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hub"), b"something else, long enough to be read").unwrap();
    let store = FileStore::open(folder.path(), small_segments()).unwrap();
    let error = store.open_or_create(SHAPE).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("/hub at byte 0 is not a hub"), "{error}");

    let text = folder.path().join("text.db");
    std::fs::write(&text, "no database, but text that is long enough to be taken for one at first sight".repeat(20))
        .unwrap();
    let error = ClassicStore::open(&text).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");

    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("create table t (x); insert into t values (1)").unwrap();
    let error = ClassicStore::open(&other).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

#[test]
fn a_damaged_blob_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path(), small_segments()).unwrap();
    store.put_blob("p0/big", &[7; 1000]).unwrap();
    let path: &Path = &folder.path().join("blobs/p0/big");
    let whole = std::fs::read(path).unwrap();
    for at in [0, 9, 13, 500] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(path, &bytes).unwrap();
        assert!(store.get_blob("p0/big").is_err(), "byte {at}");
    }
    std::fs::write(path, &whole[..10]).unwrap();
    assert!(matches!(store.get_blob("p0/big"), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_segment_that_cannot_be_made_is_reported_and_loses_nothing() {
    // /dev/full cannot be given a length: the log's next segment is to lie there.
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path(), small_segments()).unwrap();
    store.open_or_create(SHAPE).unwrap();
    let epoch = store.acquire(P, "test").unwrap();
    store.append(P, epoch, Position(0), &batch(0..1, 60_000)).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("p0").join(format!("log-{:020}", 1))).unwrap();
    let error = store.append(P, epoch, Position(1), &batch(1..2, 200_000)).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(error.to_string().contains("log-00000000000000000001"), "{error}");
    let again = store.append(P, epoch, Position(1), &batch(1..2, 10)).unwrap_err();
    assert_eq!(again.to_string(), error.to_string(), "an owner that does not know what is durable stops");
    drop(store);
    std::fs::remove_file(folder.path().join("p0").join(format!("log-{:020}", 1))).unwrap();
    let store = FileStore::open(folder.path(), small_segments()).unwrap();
    assert_eq!(read(&store, 0).unwrap().len(), 1);
}
