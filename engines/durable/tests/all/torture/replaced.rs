//! A paused node that wakes up after another process was started under its name ends, and the other one goes on.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use narrows_durable::NodeWatch;
use narrows_durable_servers::open_shared;
use rustix::process::Signal;

use super::node::{HUB, NAME, PARTITIONS};
use super::{TIMEOUT, worker};
use crate::servers::{Nats, Postgres, signal};

const CALLED: &str = "the-node";

/// A process with a node, and a channel that signals its acknowledgements.
struct NodeProcess {
    process: Child,
    done: Receiver<()>,
}

impl NodeProcess {
    fn start(url: &str, folder: &std::path::Path, round: u64) -> Self {
        let mut command = super::command();
        command.env(worker::FOLDER, folder).env(worker::ROUND, round.to_string());
        let mut process = command.env(HUB, url).env(NAME, CALLED).stderr(Stdio::null()).spawn().unwrap();
        let stdout = process.stdout.take().unwrap();
        let (tell, done) = sync_channel(1);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.starts_with(worker::MARK) {
                    // One pending signal is enough.
                    let _ = tell.try_send(());
                }
            }
        });
        Self { process, done }
    }

    /// Waits for an acknowledgement that is newer than this call.
    fn progress(&self) {
        for _ in 0..2 {
            self.done.recv_timeout(TIMEOUT).expect("the node works");
        }
    }

    /// Waits until the process ends without being killed.
    fn ends(&mut self) {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return assert_eq!(status.code(), Some(0), "it was to end in order");
            }
            assert!(begun.elapsed() < TIMEOUT, "the node that was woken still runs");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // This fails if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_process_that_is_woken_ends_and_its_replacement_on_postgresql_stays() {
    if let Some(server) = Postgres::start() {
        replaced(&server.url("replaced"));
    }
}

#[test]
fn a_process_that_is_woken_ends_and_its_replacement_on_nats_stays() {
    if let Some(server) = Nats::start() {
        replaced(&server.url("replaced"));
    }
}

fn replaced(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut old = NodeProcess::start(url, folder.path(), 0);
    old.progress();
    signal(old.process.id(), Signal::STOP);
    let mut new = NodeProcess::start(url, folder.path(), 1);
    new.progress();
    let begun = Instant::now();
    let mut watch = NodeWatch::open(open_shared(url).unwrap()).unwrap();
    let of_newest = |watch: &NodeWatch| {
        let newest = watch.nodes().into_iter().max_by_key(|node| node.incarnation).expect("a node");
        (newest.partitions.len() == usize::from(PARTITIONS)).then_some(newest.partitions)
    };
    while of_newest(&watch).is_none() {
        assert!(begun.elapsed() < TIMEOUT, "{:?}", watch.nodes());
        watch.look().unwrap();
    }
    let before = of_newest(&watch).unwrap();
    signal(old.process.id(), Signal::CONT);
    old.ends();
    new.progress();
    watch.look().unwrap();
    let epochs = |owned: Vec<narrows_durable::OwnedPartition>| -> Vec<_> {
        owned.into_iter().map(|owned| (owned.partition, owned.epoch)).collect()
    };
    assert_eq!(of_newest(&watch).map(epochs), Some(epochs(before)), "a partition has moved");
    assert!(new.process.try_wait().unwrap().is_none(), "the replacement has ended");
}
