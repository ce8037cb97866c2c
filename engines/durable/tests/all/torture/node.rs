//! The process of a node: its part of a hub on a server, and clients that go on whatever fails.

use std::path::Path;
use std::time::Duration;

use narrows_durable::{Client, Error, InstanceId, Mode, Node, NodeOptions, Reuse};
use narrows_durable_servers::open_shared;

use super::TIMEOUT;
use super::code::{self, COUNT, INBOX, TOKEN};
use super::worker::{EVENT_EVERY, id, say, start};

/// The connection text of the hub.
pub(crate) const HUB: &str = "NARROWS_TORTURE_HUB";
/// The name of the node, if it needs a fixed one.
pub(crate) const NAME: &str = "NARROWS_TORTURE_NAME";
pub(crate) const PARTITIONS: u16 = 6;
pub(crate) const LEASE: Duration = Duration::from_secs(2);
const TASKS: u64 = 6;
/// Between two starts of a task, so that what is there in the end can be looked at in a reasonable time.
const PAUSE: Duration = Duration::from_millis(50);

/// Interval at which a node checks whether another one was opened under its name.
const LOOK: Duration = Duration::from_millis(20);

/// Runs until the process is killed or its node has been replaced.
pub(crate) fn work(url: &str, folder: &Path, round: u64) {
    let node = open(url, folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..TASKS).map(|task| tokio::spawn(load(node.client(), round, task))).collect();
        while node.ended().is_none() {
            assert!(!tasks.iter().any(tokio::task::JoinHandle::is_finished), "a task has failed");
            tokio::time::sleep(LOOK).await;
        }
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
    });
}

/// Opens a node. Servers that fail just then are waited for.
pub(crate) fn open(url: &str, folder: &Path) -> Node {
    let begun = std::time::Instant::now();
    loop {
        match try_open(url, folder) {
            Ok(node) => return node,
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}"),
        }
    }
}

fn try_open(url: &str, folder: &Path) -> Result<Node, Error> {
    let mut options = NodeOptions::default();
    options.lease = LEASE;
    options.name = std::env::var(NAME).unwrap_or(options.name);
    let hub = code::options(PARTITIONS, Mode::Speculative);
    Node::open(open_shared(url)?, code::registry(folder), hub, options)
}

/// Sends requests. After an unknown outcome signals and events are left at that; starts are made again.
async fn load(client: Client, round: u64, task: u64) {
    let inbox = InstanceId::new(code::inbox(task)).unwrap();
    loop {
        let start = INBOX.start(&0).unwrap().id(inbox.as_str()).unwrap().reuse(Reuse::Ignore);
        if is_done(round, client.start(start).await) {
            break;
        }
    }
    for number in (task..).step_by(TASKS as usize) {
        tokio::time::sleep(PAUSE).await;
        let token = format!("signal-{round}-{number}");
        if is_done(round, client.signal_entity(&code::tally(round, number), COUNT, &token).await) {
            say(&token);
        }
        if (number / TASKS).is_multiple_of(EVENT_EVERY) {
            let token = format!("event-{round}-{number}");
            if is_done(round, client.raise_event(&inbox, TOKEN, &token).await) {
                say(&token);
            }
        }
        loop {
            let started = client.start(start(round, number).reuse(Reuse::Never)).await;
            // If it is there already, an attempt before this one was done.
            if matches!(started, Err(Error::Exists { .. })) || is_done(round, started) {
                break;
            }
        }
        say(&id(round, number));
    }
}

/// Whether a request is done. It may fail only because its partition was out of reach or was lost.
fn is_done<T>(round: u64, result: Result<T, Error>) -> bool {
    match result {
        Ok(_) => true,
        Err(error @ (Error::Unknown { .. } | Error::Unavailable { .. } | Error::Stopped { .. })) => {
            eprintln!("node of round {round}: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}
