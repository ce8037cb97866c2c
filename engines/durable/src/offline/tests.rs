//! Reads and changes without the program, and the program's work afterwards.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::client::{Client, Filter, InstanceView, Start, Status};
use crate::error::Error;
use crate::event::EventKind;
use crate::failure::FailureKind;
use crate::hub::Hub;
use crate::ids::{InstanceId, Name, Time};
use crate::model::{Activity, Ctx, EntityOp, EntityType, ExternalEvent, Orchestration, Registry};
use crate::partition::Change;
use crate::payload::Payload;
use crate::store::{FileReader, FileStore, FileStoreOptions, MemoryStore};

const WORK: Activity<u32, u32> = Activity::new("Work");
const SUM: EntityType<u32> = EntityType::new("Sum");
const ADD: EntityOp<u32, u32, ()> = EntityOp::new("Add");
const ASK: Orchestration<(), String> = Orchestration::new("Ask");
const SLEEP: Orchestration<(), ()> = Orchestration::new("Sleep");
const PARENT: Orchestration<String, u32> = Orchestration::new("Parent");
const CHILD: Orchestration<(), u32> = Orchestration::new("Child");
const ECHO: Orchestration<String, String> = Orchestration::new("Echo");
const REPLY: ExternalEvent<String> = ExternalEvent::new("Reply");
const TIMEOUT: Duration = Duration::from_secs(60);

fn code() -> Registry {
    let mut code = Registry::new();
    code.activity(WORK, |_, _| std::future::pending());
    code.orchestration(ASK, |ctx: Ctx, ()| async move { ctx.event(REPLY).await });
    code.orchestration(ECHO, |_, text: String| async move { Ok(text) });
    code.orchestration(SLEEP, |ctx: Ctx, ()| async move {
        ctx.timer(Duration::from_millis(50)).await;
        Ok(())
    });
    code.orchestration(PARENT, |ctx: Ctx, child: String| async move {
        let child = InstanceId::new(child).expect("an identifier");
        ctx.sub(CHILD, &()).id(&child).await
    });
    code.orchestration(CHILD, |ctx: Ctx, ()| async move { ctx.call(WORK, &1).await });
    code.entity(SUM).operation(ADD, |sum, by, _| {
        *sum += by;
        Ok(())
    });
    code
}

fn hub(store: Arc<dyn Store>) -> Hub {
    let options = HubOptions { partitions: 3, activity_threads: 2, ..HubOptions::default() };
    Hub::open(store, code(), options).expect("a hub")
}

fn id(text: &str) -> InstanceId {
    InstanceId::parse(text).expect("an identifier")
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn views(reader: &HubReader) -> Vec<InstanceView> {
    let all = Filter { statuses: Status::ALL.to_vec(), ..Filter::default() };
    let mut views = Vec::new();
    reader.each(&all, |view| views.push(reader.get(&view.id).expect("read").expect("it is there"))).expect("read");
    views
}

/// A hub that was killed while an orchestration waits for an event, one sleeps, and one waits for another.
fn killed() -> Arc<dyn Store> {
    let store = memory();
    let hub = hub(Arc::clone(&store));
    let client = hub.client();
    block(async {
        client.start(ASK.start(&()).expect("JSON").id("ask").expect("an id")).await.expect("started");
        client.start(SLEEP.start(&()).expect("JSON").id("sleep").expect("an id")).await.expect("started");
        let parent = PARENT.start(&"child".to_owned()).expect("JSON").id("parent").expect("an id");
        client.start(parent).await.expect("started");
        client.signal_entity(&SUM.id("x").expect("an entity"), ADD, &7).await.expect("signalled");
        while client.get(&id("child")).await.expect("asked").is_none() {
            tokio::task::yield_now().await;
        }
    });
    hub.halt();
    store
}

fn terminate(id: &str) -> Change {
    Change::Terminate { id: self::id(id), reason: "enough".to_owned() }
}

fn apply(store: &Arc<dyn Store>, changes: impl IntoIterator<Item = Change>) -> ChangeResults {
    let mut maintenance = HubMaintenance::open(Arc::clone(store)).expect("taken");
    let applied = maintenance.apply(changes).expect("applied");
    maintenance.close().expect("given back");
    applied
}

fn status(store: &Arc<dyn Store>, id: &str) -> Option<Status> {
    let reader = HubReader::open(store).expect("read");
    reader.get(&self::id(id)).expect("read").map(|view| view.status)
}

#[test]
fn one_change_leaves_everything_else_as_it_was() {
    let store = killed();
    let before = views(&HubReader::open(&store).expect("read"));
    // The timer is due by then, and must not fire.
    std::thread::sleep(Duration::from_millis(60));
    let applied = apply(&store, [terminate("ask")]);
    assert!(applied.each[0].is_ok());
    assert_eq!(applied.instances, 1);
    let after = views(&HubReader::open(&store).expect("read"));
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        if before.id == id("ask") {
            assert_eq!(after.status, Status::Terminated);
        } else {
            assert_eq!(before, after);
        }
    }
    let hub = hub(store);
    let slept = block(hub.client().wait(&id("sleep"), TIMEOUT)).expect("it goes on");
    assert_eq!(slept.status, Status::Completed);
}

#[test]
fn sub_orchestrations_are_terminated_and_purged_with_their_parent() {
    let store = killed();
    assert_eq!(apply(&store, [terminate("parent")]).instances, 2);
    assert_eq!(status(&store, "child"), Some(Status::Terminated));
    let history = HubReader::open(&store).expect("read").history(&id("child")).expect("read").expect("a history");
    assert!(matches!(&history[history.len() - 1].kind, EventKind::Terminated { reason } if reason == "enough"));
    assert_eq!(apply(&store, [Change::Purge { id: id("parent") }]).instances, 2);
    assert_eq!((status(&store, "parent"), status(&store, "child")), (None, None));
    hub(store).close().expect("what was sent twice does no harm");
}

#[test]
fn a_parent_hears_of_the_end_when_its_code_runs_again() {
    let store = killed();
    assert_eq!(apply(&store, [terminate("child")]).instances, 1);
    assert_eq!(status(&store, "parent"), Some(Status::Running));
    let hub = hub(store);
    let parent = block(hub.client().wait(&id("parent"), TIMEOUT)).expect("ended");
    let failure = parent.output.expect("it ended").expect_err("its child was terminated");
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Terminated, "enough"));
}

#[test]
fn one_that_is_suspended_goes_on_once_it_was_resumed_and_its_code_runs() {
    let store = killed();
    let change = |resumes: bool| {
        let (id, reason) = (id("ask"), String::new());
        if resumes { Change::Resume { id, reason } } else { Change::Suspend { id, reason } }
    };
    assert!(apply(&store, [change(false)]).each[0].is_ok());
    assert_eq!(status(&store, "ask"), Some(Status::Suspended));
    let running = hub(Arc::clone(&store));
    let reply = Payload::encode("yes").expect("JSON");
    block(running.client().raise(&id("ask"), "Reply", reply)).expect("raised");
    running.close().expect("closed");
    assert_eq!(status(&store, "ask"), Some(Status::Suspended), "it took no event");
    assert!(apply(&store, [change(true)]).each[0].is_ok());
    assert_eq!(status(&store, "ask"), Some(Status::Suspended), "its code has not run");
    let running = hub(store);
    let asked = block(running.client().wait(&id("ask"), TIMEOUT)).expect("ended");
    assert_eq!(asked.output_as::<String>(), Some(Ok("yes".to_owned())));
}

#[test]
fn refused_changes_say_why_and_leave_the_others() {
    let store = killed();
    let purge = |name: &str| Change::Purge { id: id(name) };
    let applied =
        apply(&store, [purge("ask"), terminate("nobody"), purge("@Sum@x"), terminate("ask"), terminate("ask")]);
    let told: Vec<String> =
        applied.each.iter().map(|each| each.as_ref().err().map_or(String::new(), Error::to_string)).collect();
    assert_eq!(
        told,
        [
            "instance ask is running, so it cannot be purged",
            "there is no instance nobody",
            "",
            "",
            "instance ask was terminated, so it cannot be terminated"
        ]
    );
    assert_eq!(applied.instances, 2);
    assert_eq!(status(&store, "@Sum@x"), None);
}

#[test]
fn the_newest_come_first_page_by_page() {
    let store = memory();
    let running = hub(Arc::clone(&store));
    block(async {
        for n in 0..25 {
            let start = ASK.start(&()).expect("JSON").id(format!("ask-{n:02}")).expect("an id");
            running.client().start(start).await.expect("started");
        }
    });
    running.close().expect("closed");
    let reader = HubReader::open(&store).expect("read");
    let mut pages: Vec<InstanceView> = Vec::new();
    loop {
        let after = pages.last().map(|view| view.id.clone());
        let page = reader.newest(&Filter::default(), 10, after.as_ref(), |_| true).expect("read");
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 10);
        pages.extend(page);
    }
    let ranks: Vec<(Time, &InstanceId)> = pages.iter().map(|view| (view.created, &view.id)).collect();
    assert!(ranks.windows(2).all(|pair| pair[0] > pair[1]), "{ranks:?}");
    assert_eq!(ranks.len(), 25);
    let odd = reader.newest(&Filter::default(), 100, None, |view| view.id.as_str().ends_with('1')).expect("read");
    assert_eq!(odd.len(), 3);
    assert!(matches!(reader.newest(&Filter::default(), 1, Some(&id("gone")), |_| true), Err(Error::NotFound(_))));
}

#[test]
fn a_missing_hub_is_not_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("none");
    let reader: Arc<dyn Store> = Arc::new(FileReader::new(&path));
    let error = HubReader::open(&reader).err().expect("there is no hub").to_string();
    assert_eq!(error, format!("{} is not a hub: it has no file `hub`", path.display()));
    assert!(!path.exists());
}

#[test]
fn a_partition_that_is_gone_is_not_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = FileStore::open(folder.path(), FileStoreOptions::default()).expect("a store");
    hub(Arc::new(store)).close().expect("closed");
    let reader: Arc<dyn Store> = Arc::new(FileReader::new(folder.path()));
    assert!(HubReader::open(&reader).is_ok());
    std::fs::remove_dir_all(folder.path().join("p1")).expect("removed");
    let error = HubReader::open(&reader).err().expect("it is damaged").to_string();
    let epoch = folder.path().join("p1/epoch");
    assert_eq!(error, format!("{} is damaged: it is missing, and partition 1 of the hub with it", epoch.display()));
}

/// Every file below a folder with its bytes.
fn files(folder: &Path, into: &mut Vec<(std::path::PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            files(&entry.path(), into);
        } else {
            into.push((entry.path(), std::fs::read(entry.path()).expect("a file")));
        }
    }
    into.sort();
}

#[test]
fn reading_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Arc::new(FileStore::open(folder.path(), FileStoreOptions::default()).expect("a store"));
    let running = hub(open());
    block(running.client().start(ASK.start(&()).expect("JSON"))).expect("started");
    running.close().expect("closed");
    drop(running);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    files(folder.path(), &mut before);
    let store: Arc<dyn Store> = Arc::new(FileReader::new(folder.path()));
    assert_eq!(views(&HubReader::open(&store).expect("read")).len(), 1);
    files(folder.path(), &mut after);
    assert!(before == after, "a file changed");
    assert!(HubMaintenance::open(store).is_err(), "a reader takes nothing");
}

#[test]
fn a_hub_is_read_while_it_writes_snapshots_cuts_its_log_and_forgets() {
    const SNAPSHOTS: u64 = 4;
    let folder = tempfile::tempdir().expect("a folder");
    let options = FileStoreOptions { segment_bytes: 64 << 10 };
    let store = Arc::new(FileStore::open(folder.path(), options).expect("a store"));
    let settings =
        HubOptions { partitions: 2, snapshot_after_bytes: 64 << 10, spill_above_bytes: 1024, ..HubOptions::default() };
    let running = Hub::open(store, code(), settings).expect("a hub");
    let is_over = AtomicBool::new(false);
    let (reader, snapshots) = std::thread::scope(|scope| {
        scope.spawn(|| write(&running.client(), &is_over));
        let store: Arc<dyn Store> = Arc::new(FileReader::new(folder.path()));
        let mut readings = 0;
        let snapshots = || running.stats().partitions.iter().map(|partition| partition.snapshots).sum::<u64>();
        while readings < 5 || snapshots() < SNAPSHOTS {
            let read = HubReader::read(&store, |reader| reader.get(&id("kept")));
            is_over.store(read.is_err(), Ordering::Relaxed);
            read.expect("read beside a hub");
            readings += 1;
        }
        is_over.store(true, Ordering::Relaxed);
        (FileReader::new(folder.path()), snapshots())
    });
    assert_eq!(reader.holder(), Some(std::process::id()));
    assert!(snapshots >= SNAPSHOTS);
    running.close().expect("closed");
    let store: Arc<dyn Store> = Arc::new(reader);
    let read = views(&HubReader::open(&store).expect("read"));
    assert!(read.iter().any(|view| view.id.as_str() == "kept"));
}

/// Starts orchestrations, some with an input that is kept out of line, ends and forgets half of them, until it is
/// stopped.
fn write(client: &Client, is_over: &AtomicBool) {
    const AT_ONCE: u64 = 64;
    block(async {
        client.start(ASK.start(&()).expect("JSON").id("kept").expect("an id")).await.expect("started");
        for round in 0_u64.. {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let start = |n: u64| {
                let input = Payload::encode(&"x".repeat(if n.is_multiple_of(8) { 2_000 } else { 900 })).expect("JSON");
                Start::new(Name::Static("Echo")).input(input).id(format!("echo-{round}-{n}")).expect("an id")
            };
            client.start_many((0..AT_ONCE).map(start).collect()).await.expect("started");
            for n in (0..AT_ONCE).step_by(2) {
                let echo = id(&format!("echo-{round}-{n}"));
                client.wait(&echo, TIMEOUT).await.expect("ended");
                client.purge(&echo).await.expect("purged");
            }
        }
    });
}
