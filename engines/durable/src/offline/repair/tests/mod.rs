//! Hubs that are damaged in each way that keeps them from opening, and repaired. What is reported as lost is held against
//! the undamaged hub.

mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::client::{Filter, Status};
use crate::event::Event;
use crate::hub::Hub;
use crate::model::{Ctx, ExternalEvent, Orchestration, Registry};
use crate::offline::HubReader;
use crate::store::{FileReader, FileStore, FileStoreOptions, Store};

const ASK: Orchestration<String, String> = Orchestration::new("Ask");
const PARENT: Orchestration<String, String> = Orchestration::new("Parent");
const REPLY: ExternalEvent<String> = ExternalEvent::new("Reply");
const TIMEOUT: Duration = Duration::from_secs(60);
const PARTITIONS: u16 = 3;
const ASKS: usize = 90;
const ASKS_PER_PARENT: usize = 5;
/// The partition that is damaged.
const OURS: PartitionId = PartitionId(1);
/// A log that is cut by no snapshot, or by some.
const NEVER: u64 = 1 << 30;
const OFTEN: u64 = 64 << 10;

fn code() -> Registry {
    let mut code = Registry::new();
    code.orchestration(ASK, |ctx: Ctx, _: String| async move { ctx.event(REPLY).await });
    code.orchestration(
        PARENT,
        |ctx: Ctx, child: String| async move { ctx.sub(ASK, &String::new()).id(&id(&child)).await },
    );
    code
}

fn id(text: &str) -> InstanceId {
    InstanceId::parse(text).expect("an identifier")
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn open(folder: &Path, snapshot_after_bytes: u64) -> Result<Hub, Error> {
    open_of(PARTITIONS, folder, snapshot_after_bytes)
}

fn open_of(partitions: u16, folder: &Path, snapshot_after_bytes: u64) -> Result<Hub, Error> {
    let store = FileStore::open(folder, FileStoreOptions { segment_bytes: 64 << 10 })?;
    let options = HubOptions { partitions, activity_threads: 1, snapshot_after_bytes, ..HubOptions::default() };
    Hub::open(Arc::new(store), code(), options)
}

/// Starts orchestrations that wait, with names that begin with `round`.
fn work(hub: &Hub, round: &str) {
    let client = hub.client();
    block(async {
        for n in 0..ASKS {
            let start = ASK.start(&"x".repeat(3_000)).expect("JSON").id(format!("{round}-ask-{n}")).expect("an id");
            client.start(start).await.expect("started");
            let (parent, child) = (format!("{round}-parent-{n}"), format!("{round}-child-{n}"));
            if n.is_multiple_of(ASKS_PER_PARENT) {
                client.start(PARENT.start(&child).expect("JSON").id(parent).expect("an id")).await.expect("started");
                while client.get(&id(&child)).await.expect("read").is_none() {
                    tokio::task::yield_now().await;
                }
            }
        }
    });
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        if entry.path().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
        }
    }
}

/// A hub as a process leaves it that is killed, and another copy of it.
struct Scene {
    _folder: tempfile::TempDir,
    whole: PathBuf,
    hub: PathBuf,
}

fn scene(snapshot_after_bytes: u64) -> Scene {
    let folder = tempfile::tempdir().expect("a folder");
    let (live, whole, hub) = (folder.path().join("live"), folder.path().join("whole"), folder.path().join("hub"));
    let running = open(&live, snapshot_after_bytes).expect("a hub");
    work(&running, "a");
    if snapshot_after_bytes == NEVER {
        copy(&live, &whole);
        running.halt();
    } else {
        // Snapshots that are being written would be copied in part.
        running.close().expect("closed");
        copy(&live, &whole);
    }
    copy(&whole, &hub);
    Scene { _folder: folder, whole, hub }
}

impl Scene {
    fn path(&self, path: &str) -> PathBuf {
        self.hub.join(path)
    }

    fn segments(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("p1")).expect("a folder").flatten().map(|entry| entry.path());
        let is_segment =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"));
        let mut found: Vec<PathBuf> = entries.filter(is_segment).collect();
        found.sort();
        found
    }
}

/// Every file below a folder with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.insert(entry.path(), fs::read(entry.path()).expect("a file"));
        }
    }
    found
}

/// All instances of a partition with their histories.
fn state(folder: &Path, partition: PartitionId) -> BTreeMap<InstanceId, Vec<Event>> {
    let store: Arc<dyn Store> = Arc::new(FileReader::new(folder));
    let reader = HubReader::open(&store).expect("read");
    let mut found = BTreeMap::new();
    let all = Filter { statuses: Status::ALL.to_vec(), ..Filter::default() };
    reader
        .each(&all, |view| {
            if view.id.partition(PARTITIONS) == partition {
                found.insert(view.id.clone(), reader.history(&view.id).expect("read").unwrap_or_default());
            }
        })
        .expect("read");
    found
}

/// The instances of the damaged partition that are not there any more, or not as they were.
fn lost(scene: &Scene) -> BTreeSet<InstanceId> {
    let (before, after) = (state(&scene.whole, OURS), state(&scene.hub, OURS));
    assert!(after.keys().all(|id| before.contains_key(id)), "a repair makes no instances");
    before.into_iter().filter(|(id, history)| after.get(id) != Some(history)).map(|(id, _)| id).collect()
}

/// The damage found, and the instances lost.
struct Outcome {
    findings: Findings,
    lost: BTreeSet<InstanceId>,
}

impl Outcome {
    fn damage(&self) -> &Damage {
        let [damage] = &self.findings.damages[..] else { panic!("{:?}", self.findings) };
        assert_eq!(damage.partition, OURS);
        damage
    }
}

/// The whole way: the hub does not open, the look changes nothing, and after the repair everything that is left goes on.
fn repaired(scene: &Scene) -> Outcome {
    let error = open(&scene.hub, NEVER).err().expect("it is damaged");
    assert!(error.hint().is_some_and(|hint| hint.contains("narrows orchestrations repair")), "{error}");
    let before = files(&scene.hub);
    let findings = HubRepair::open(&scene.hub).expect("looked").findings;
    assert!(!findings.is_sound());
    assert!(files(&scene.hub) == before, "a look changed a file");
    let kept = HubRepair::open(&scene.hub).expect("looked").accept().expect("repaired").expect("it was damaged");
    let kept = PathBuf::from(kept);
    let (copies, name) = (files(&kept), kept.file_name().expect("a name").to_owned());
    assert_eq!(name, "damaged-1");
    for damage in &findings.damages {
        let segment = |path: &&PathBuf| path.starts_with(scene.path(&format!("p{}", damage.partition)));
        for path in before.keys().filter(segment) {
            let copied = kept.join(path.strip_prefix(&scene.hub).expect("in the hub"));
            assert_eq!(copies.get(&copied), before.get(path), "{} was not kept", path.display());
        }
    }
    assert!(HubRepair::open(&scene.hub).expect("looked").findings.is_sound(), "it is still damaged");
    let lost = lost(scene);
    for other in [PartitionId(0), PartitionId(2)] {
        assert_eq!(state(&scene.whole, other), state(&scene.hub, other), "another partition has changed");
    }
    everything_goes_on(&scene.hub, &findings);
    Outcome { findings, lost }
}

/// Remaining orchestrations end, those that wait for lost instances are reported, and new ones run.
fn everything_goes_on(folder: &Path, findings: &Findings) {
    let hub = open(folder, NEVER).expect("it opens");
    let client = hub.client();
    let waiting: BTreeSet<&InstanceId> = findings.waiting.iter().map(|(caller, _)| caller).collect();
    block(async {
        let mut parents = Vec::new();
        for n in 0..ASKS {
            for ask in [id(&format!("a-ask-{n}")), id(&format!("a-child-{n}"))] {
                if client.get(&ask).await.expect("read").is_some() {
                    client.raise_event(&ask, REPLY, &"yes".to_owned()).await.expect("raised");
                    let ended = client.wait(&ask, TIMEOUT).await.expect("ended");
                    assert_eq!(ended.output_as::<String>(), Some(Ok("yes".to_owned())), "{ask}");
                }
            }
            let parent = id(&format!("a-parent-{n}"));
            if client.get(&parent).await.expect("read").is_some() {
                parents.push((parent, id(&format!("a-child-{n}"))));
            }
        }
        for (parent, child) in parents {
            if waiting.contains(&parent) {
                let view = client.get(&parent).await.expect("read").expect("it is there");
                if view.status == Status::Running {
                    client.terminate(&parent, "its child is lost").await.expect("terminated");
                }
            } else {
                assert!(client.get(&child).await.expect("read").is_some(), "{parent} waits for what is not there");
            }
            client.wait(&parent, TIMEOUT).await.expect("ended");
        }
    });
    work(&hub, "b");
    hub.close().expect("closed");
}

/// The position after the last frame of the damaged partition, as the undamaged hub has it.
fn end(scene: &Scene) -> u64 {
    let salvage = Salvage::open(&scene.whole).expect("free");
    let frames = Frames { visit: &mut |_, _| Ok(()), stray: &mut |_, _| {} };
    salvage.read_log(OURS, Position(0), frames).expect("read").end
}

/// How many messages between partitions a copy of the hub has lost track of: sent, and taken.
fn messages(scene: &Scene, kept: u64) -> (u64, u64) {
    let salvage = Salvage::open(&scene.whole).expect("free");
    let read = |id: u16| Part::read(&salvage, PartitionId(id), PARTITIONS).expect("read").partition.lane_progress();
    let all: Vec<_> = (0..PARTITIONS).map(read).collect();
    let blobs: Arc<dyn Store> = Arc::new(salvage.blobs());
    let mut cut = Partition::new(OURS, PARTITIONS, Arc::new(NoProgram), Arc::clone(&blobs), &HubOptions::default());
    cut.salvage(&*blobs, &mut |from, visit| {
        let mut until =
            |position: Position, frame: &[u8]| if position.0 < kept { visit(position, frame) } else { Ok(()) };
        salvage.read_log(OURS, from, Frames { visit: &mut until, stray: &mut |_, _| {} }).map(|_| Position(kept))
    })
    .expect("read");
    let ours = cut.lane_progress();
    let others = [0, 2].map(|other: usize| (all[other][1], ours[other]));
    let sent = others.iter().map(|(theirs, own)| theirs.taken.saturating_sub(own.sent)).sum();
    let taken = others.iter().map(|(theirs, own)| theirs.arrived.saturating_sub(own.taken)).sum();
    (sent, taken)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[at] ^= 0x20;
    fs::write(path, bytes).expect("written");
}

#[test]
fn a_hub_that_is_sound_is_left_alone() {
    let scene = scene(NEVER);
    let before = files(&scene.hub);
    let repair = HubRepair::open(&scene.hub).expect("looked");
    assert!(repair.findings().is_sound(), "{:?}", repair.findings());
    assert_eq!(repair.accept().expect("nothing to do"), None);
    assert!(files(&scene.hub) == before, "a file changed");
}

#[test]
fn a_last_segment_that_was_cut_loses_the_records_behind_the_cut() {
    let scene = scene(NEVER);
    let last = scene.segments().pop().expect("a segment");
    let bytes = fs::read(&last).expect("a file");
    let written = bytes.iter().rposition(|byte| *byte != 0).expect("records");
    fs::write(&last, &bytes[..written / 2]).expect("cut");
    let outcome = repaired(&scene);
    let damage = outcome.damage();
    assert!(damage.frames.start < end(&scene), "records were lost: {damage:?}");
    assert!(damage.bytes[0].0 == last && damage.bytes[0].1.end == bytes.len() as u64, "{:?}", damage.bytes);
    assert_eq!((damage.messages_sent, damage.messages_taken), messages(&scene, damage.frames.start));
    assert!(!outcome.lost.is_empty());
}

#[test]
fn a_last_segment_that_is_gone_loses_its_records() {
    let scene = scene(NEVER);
    let segments = scene.segments();
    assert!(segments.len() > 1, "{segments:?}");
    let last = segments.last().expect("a segment");
    let first: u64 = last.file_name().unwrap().to_string_lossy()["log-".len()..].parse().expect("a position");
    fs::remove_file(last).expect("removed");
    let outcome = repaired(&scene);
    let damage = outcome.damage();
    assert_eq!(damage.frames.start, first);
    assert!((first + 1..=end(&scene)).contains(&damage.frames.end), "{damage:?}");
    assert_eq!((damage.messages_sent, damage.messages_taken), messages(&scene, first));
    assert!(damage.messages_taken > 0 && !outcome.lost.is_empty());
}

#[test]
fn records_behind_a_damaged_one_name_the_instances_that_are_lost() {
    let scene = scene(NEVER);
    let first = scene.segments().remove(0);
    let bytes = fs::read(&first).expect("a file");
    flip(&first, bytes.len() / 2);
    let outcome = repaired(&scene);
    let damage = outcome.damage();
    assert_eq!(damage.frames.end, end(&scene));
    // The frame that was hit cannot be read; it may be about one or two instances, as each start is its own turn.
    let unreadable = damage.frames.end - damage.frames.start - damage.frames_readable;
    assert_eq!(unreadable, 1);
    let named: BTreeSet<InstanceId> = damage.instances.iter().cloned().collect();
    assert!(named.is_subset(&outcome.lost), "{:?} are as they were", named.difference(&outcome.lost));
    assert!(outcome.lost.difference(&named).count() <= 2, "{:?}", outcome.lost.difference(&named));
    assert_eq!((damage.messages_sent, damage.messages_taken), messages(&scene, damage.frames.start));
}

#[test]
fn a_segment_whose_head_is_damaged_loses_nothing() {
    let scene = scene(NEVER);
    flip(&scene.segments().remove(0), 20);
    let outcome = repaired(&scene);
    assert!(outcome.damage().frames.is_empty() && outcome.lost.is_empty(), "{:?}", outcome.findings);
}

#[test]
fn a_folder_that_is_gone_loses_its_partition() {
    let scene = scene(NEVER);
    fs::remove_dir_all(scene.path("p1")).expect("removed");
    let outcome = repaired(&scene);
    assert_eq!((outcome.damage().messages_sent, outcome.damage().messages_taken), messages(&scene, 0));
    assert_eq!(outcome.lost.len(), state(&scene.whole, OURS).len());
}

#[test]
fn a_folder_that_is_gone_leaves_its_snapshot() {
    let scene = scene(OFTEN);
    fs::remove_dir_all(scene.path("p1")).expect("removed");
    let outcome = repaired(&scene);
    assert!(outcome.lost.len() < state(&scene.whole, OURS).len(), "the snapshot was not used");
}

#[test]
fn a_log_that_is_gone_leaves_the_snapshot_before_it() {
    let scene = scene(OFTEN);
    scene.segments().into_iter().for_each(|segment| fs::remove_file(segment).expect("removed"));
    fs::remove_file(scene.path("p1/end")).expect("removed");
    let outcome = repaired(&scene);
    assert!(outcome.lost.len() < state(&scene.whole, OURS).len(), "the snapshot was not used");
}

#[test]
fn a_log_that_is_gone_is_noticed_by_its_snapshot_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = open_of(1, folder.path(), OFTEN).expect("a hub");
    work(&hub, "a");
    hub.close().expect("closed");
    drop(hub);
    let entries = fs::read_dir(folder.path().join("p0")).expect("a folder").flatten().map(|entry| entry.path());
    entries.filter(|path| !path.ends_with("epoch")).for_each(|path| fs::remove_file(path).expect("removed"));
    let error = open_of(1, folder.path(), OFTEN).err().expect("it is damaged").to_string();
    let text = "the log of partition 0 is damaged: it ends before frame 0, and its snapshot was taken before frame ";
    assert!(error.starts_with(text), "{error}");
}

#[test]
fn the_file_that_says_what_the_hub_is_costs_nothing() {
    for damage in ["missing", "garbled"] {
        let scene = scene(NEVER);
        match damage {
            "missing" => fs::remove_file(scene.path("hub")).expect("removed"),
            _ => fs::write(scene.path("hub"), b"something else altogether").expect("written"),
        }
        let opened = open(&scene.hub, NEVER).err().expect("it is damaged");
        let outcome = if damage == "missing" { repaired(&scene).findings } else { look_and_repair(&scene) };
        assert!(outcome.hub.is_some() && outcome.damages.is_empty(), "{opened}: {outcome:?}");
        assert_eq!(outcome.partitions, PARTITIONS);
        assert!(lost_after(&scene).is_empty());
    }
}

fn look_and_repair(scene: &Scene) -> Findings {
    let findings = HubRepair::open(&scene.hub).expect("looked").findings;
    HubRepair::open(&scene.hub).expect("looked").accept().expect("repaired");
    findings
}

/// Instances that are gone, whatever has happened to the others since.
fn lost_after(scene: &Scene) -> BTreeSet<InstanceId> {
    let after = state(&scene.hub, OURS);
    state(&scene.whole, OURS).into_keys().filter(|id| !after.contains_key(id)).collect()
}

#[test]
fn a_partition_that_is_older_than_the_others_is_made_to_fit_them() {
    let scene = scene(NEVER);
    let folder = tempfile::tempdir().expect("a folder");
    let aside = folder.path().join("p1");
    copy(&scene.path("p1"), &aside);
    let hub = open(&scene.hub, NEVER).expect("it opens");
    work(&hub, "c");
    hub.close().expect("closed");
    drop(hub);
    let whole = folder.path().join("whole");
    copy(&scene.hub, &whole);
    fs::remove_dir_all(scene.path("p1")).expect("removed");
    copy(&aside, &scene.path("p1"));
    let scene = Scene { whole, ..scene };
    let outcome = repaired(&scene);
    let damage = outcome.damage();
    assert!(damage.frames.is_empty() && damage.messages_taken > 0 && damage.messages_sent > 0, "{damage:?}");
    assert!(outcome.lost.iter().all(|id| id.as_str().starts_with("c-")), "{:?}", outcome.lost);
}

#[test]
fn a_part_of_a_snapshot_loses_its_instances_and_the_list_all_of_them() {
    for damaged in ["list", "part"] {
        let scene = scene(OFTEN);
        let list = FileReader::new(&scene.hub).get_blob("p1/snapshot/list").expect("read").expect("a snapshot");
        let list: serde_json::Value = serde_json::from_slice(&list).expect("a list");
        let part = list["parts"][0]["name"].as_str().expect("a name");
        let name = if damaged == "list" { "p1/snapshot/list" } else { part };
        flip(&scene.path("blobs").join(name), 30);
        let outcome = repaired(&scene);
        assert_eq!(outcome.damage().is_everything, damaged == "list", "{:?}", outcome.findings);
        assert!(!outcome.lost.is_empty());
        if damaged == "list" {
            assert_eq!(outcome.lost.len(), state(&scene.whole, OURS).len());
        }
    }
}

#[test]
fn a_repair_that_was_cut_short_is_repeated() {
    let scene = scene(NEVER);
    let last = scene.segments().pop().expect("a segment");
    fs::remove_file(&last).expect("removed");
    let first = HubRepair::open(&scene.hub).expect("looked");
    // The snapshot is there and the new log is not: what a repair leaves that ends between the two.
    let mut part = Part::read(&*first.place, OURS, PARTITIONS).expect("read");
    part.partition.rebase(Position(part.log.reached + 1));
    first.place.put_snapshot(OURS, &part.partition.snapshot_at_once()).expect("written");
    let left: BTreeSet<InstanceId> = part.partition.identifiers().map(|(_, id)| id.clone()).collect();
    drop(first);
    let repair = HubRepair::open(&scene.hub).expect("looked");
    assert!(repair.findings.damages[0].frames.is_empty(), "{:?}", repair.findings);
    repair.accept().expect("repaired");
    assert_eq!(state(&scene.hub, OURS).into_keys().collect::<BTreeSet<_>>(), left);
}

#[test]
fn no_hub_is_made_where_none_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = HubRepair::open(folder.path()).err().expect("there is no hub").to_string();
    assert!(error.ends_with("is not a hub: it has no file `hub` and nothing that a hub has written"), "{error}");
    fs::create_dir_all(folder.path().join("blobs")).expect("a folder");
    fs::write(folder.path().join("blobs/photo"), "of another program").expect("written");
    assert!(HubRepair::open(folder.path()).is_err(), "blobs alone are no hub");
    fs::remove_dir_all(folder.path().join("blobs")).expect("removed");
    let hub = open(folder.path(), NEVER).expect("a hub");
    let error = HubRepair::open(folder.path()).err().expect("it is in use");
    assert!(matches!(error, Error::Store(StoreError::InUse { .. })), "{error}");
    hub.close().expect("closed");
}
