//! Damaged hubs in shared stores: the store reports why a partition has no node, and a repair opens it without the lost
//! data.

use std::time::{Duration, Instant};

use narrows_durable::store::StoreError;
use narrows_durable::{
    Client, Ctx, Error, Failure, Health, Hub, HubOptions, HubRepair, InstanceId, Node, NodeOptions, NodeWatch,
    Orchestration, PartitionId, Registry, Status,
};

use super::P;
use super::stage::{Stage, Subject};
use crate::servers::WAIT;

const ECHO: Orchestration<String, String> = Orchestration::new("echo");
const PARTITIONS: u16 = 2;
/// Orchestrations per partition: enough that the log is truncated after a snapshot.
const RUNS: usize = 40;
const TEXT_BYTES: usize = 3_000;

fn code() -> Registry {
    let mut code = Registry::new();
    code.orchestration(ECHO, |_: Ctx, text: String| async move { Ok::<_, Failure>(text) });
    code
}

fn options() -> HubOptions {
    let mut options = HubOptions::default();
    (options.partitions, options.snapshot_after_bytes) = (PARTITIONS, 64 << 10);
    options
}

fn node(subject: &Subject<'_>) -> Node {
    let mut options_of_node = NodeOptions::default();
    (options_of_node.name, options_of_node.lease) = ("a".to_owned(), Duration::from_secs(2));
    Node::open(subject.connect(), code(), options(), options_of_node).unwrap()
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WAIT, "after {WAIT:?} it is still not so that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Identifiers of a partition, all different.
fn ids(of: PartitionId, prefix: &str) -> impl Iterator<Item = InstanceId> {
    let all = (0..).map(move |number| InstanceId::new(format!("{prefix}-{number}")).unwrap());
    all.filter(move |id| id.partition(PARTITIONS) == of)
}

async fn run(client: &Client, id: &InstanceId, bytes: usize) {
    let start = ECHO.start(&"x".repeat(bytes)).unwrap().id(id.as_str()).unwrap();
    client.start(start).await.unwrap();
    assert_eq!(client.wait(id, WAIT).await.unwrap().status, Status::Completed);
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    /// One of the last batches of the log is changed or missing.
    Batch,
    /// The list of the snapshot is changed.
    Snapshot,
}

impl Harm {
    fn happens(self, subject: &Subject<'_>) {
        let lists = subject.connect().list_blobs("p0/snapshot/list").unwrap();
        let [list] = &lists[..] else { panic!("{lists:?}") };
        match self {
            Self::Batch => subject.damage_batch(),
            Self::Snapshot => subject.damage_blob(list),
        }
    }
}

/// A hub with partition 0 damaged.
fn damaged(subject: &Subject<'_>, harm: Harm) {
    let hub = Hub::open(subject.connect(), code(), options()).unwrap();
    block(async {
        for partition in [P, PartitionId(1)] {
            for id in ids(partition, "before").take(RUNS) {
                run(&hub.client(), &id, TEXT_BYTES).await;
            }
            for id in ids(partition, "last").take(3) {
                run(&hub.client(), &id, 1).await;
            }
        }
    });
    hub.close().unwrap();
    harm.happens(subject);
}

#[test]
fn a_damaged_partition_says_why_it_has_no_node_and_runs_again_after_a_repair() {
    let stage = Stage::start();
    for harm in [Harm::Batch, Harm::Snapshot] {
        for subject in stage.shared() {
            damaged(&subject, harm);
            let what = format!("{:?}, {harm:?}", subject.kind);
            says_why(&subject);
            repaired(&subject, harm);
            goes_on(&subject, harm);
            eprintln!("{what} is repaired");
        }
    }
}

fn says_why(subject: &Subject<'_>) {
    let node = node(subject);
    until("the other partition runs", || node.partitions() == [PartitionId(1)]);
    until("the reason is known", || matches!(&node.health()[0], Health::Stopped(StoreError::Damaged { .. })));
    let watch = NodeWatch::open(subject.connect()).unwrap();
    let stopped = watch.stopped();
    assert_eq!(stopped.iter().map(|stopped| stopped.partition).collect::<Vec<_>>(), [0], "{:?}", subject.kind);
    assert!(stopped[0].reason.contains("is damaged"), "{:?}", stopped[0]);
    let Err(Error::Store(in_use)) = HubRepair::open_shared(subject.connect()) else { panic!("a node runs") };
    assert!(matches!(&in_use, StoreError::InUse { by, .. } if by == "node a"), "{in_use}");
    node.close().unwrap();
}

fn repaired(subject: &Subject<'_>, harm: Harm) {
    let repair = HubRepair::open_shared(subject.connect()).unwrap();
    let [damage] = &repair.findings().damages[..] else { panic!("{:?}", repair.findings()) };
    assert_eq!(damage.partition, P);
    match harm {
        Harm::Batch => assert!(!damage.is_everything && !damage.frames.is_empty(), "{damage:?}"),
        Harm::Snapshot => assert!(damage.is_everything, "{damage:?}"),
    }
    let before = subject.connect().list_blobs("").unwrap();
    drop(repair);
    assert_eq!(subject.connect().list_blobs("").unwrap(), before, "a look changed something");
    let repair = HubRepair::open_shared(subject.connect()).unwrap();
    let kept = repair.accept().unwrap().expect("it was damaged");
    assert!(kept.contains("damaged_1"), "{kept}");
    let again = HubRepair::open_shared(subject.connect()).unwrap();
    assert!(again.findings().is_sound(), "{:?}", again.findings());
    assert_eq!(again.accept().unwrap(), None);
}

fn goes_on(subject: &Subject<'_>, harm: Harm) {
    let node = node(subject);
    until("both partitions run", || node.partitions().len() == usize::from(PARTITIONS));
    assert!(NodeWatch::open(subject.connect()).unwrap().stopped().is_empty(), "the note is gone");
    let client = node.client();
    block(async {
        for id in ids(PartitionId(1), "before").take(RUNS).chain(ids(PartitionId(1), "last").take(3)) {
            assert!(client.get(&id).await.unwrap().is_some(), "{id} of the other partition is gone");
        }
        let first = ids(P, "before").next().unwrap();
        assert_eq!(client.get(&first).await.unwrap().is_some(), matches!(harm, Harm::Batch), "{first}");
        for partition in [P, PartitionId(1)] {
            for id in ids(partition, "after").take(RUNS) {
                run(&client, &id, TEXT_BYTES).await;
            }
        }
    });
    node.close().unwrap();
    drop(node);
    let hub = Hub::open(subject.connect(), code(), options()).unwrap();
    let last = ids(P, "after").nth(RUNS - 1).unwrap();
    assert!(block(hub.client().get(&last)).unwrap().is_some());
    hub.close().unwrap();
}
