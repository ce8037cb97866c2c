//! A disk that is full, one that cannot be written, and a folder that another process has.

use std::io::{BufRead, BufReader};
use std::path::Path;

use narrows_durable::store::StoreError;
use narrows_durable::{Client, Error, InstanceId, Status};

use super::code::{ECHO, GO, WAIT};
use super::{TIMEOUT, another, block, open, store};

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    const TEST: &str = "bad_input::disk::a_full_disk_is_reported_and_loses_nothing";
    if let Some(disk) = another::folder() {
        return fill(&disk);
    }
    let folder = tempfile::tempdir().unwrap();
    another::on_a_small_disk(TEST, folder.path(), "head -c 1000000 /dev/zero >\"$0/ballast\"");
}

/// Starts orchestrations until the disk is full, makes room, opens the hub again and finds all of them.
fn fill(folder: &Path) {
    let hub_folder = folder.join("hub");
    let hub = open(&hub_folder).unwrap();
    let (started, error) = block(start_until_it_fails(&hub.client()));
    assert!(!started.is_empty(), "{error}");
    let Error::Stopped { source: StoreError::Io { is_full: true, .. }, .. } = &error else { panic!("{error:?}") };
    let text = error.to_string();
    assert!(text.contains(hub_folder.to_str().unwrap()) && text.contains("No space left"), "{text}");
    // Whether the other partition finds room or not, the hub closes, and says why it could not do so in order.
    drop(hub);
    std::fs::remove_file(folder.join("ballast")).unwrap();
    let hub = open(&hub_folder).unwrap();
    block(async {
        for id in &started {
            hub.client().raise_event(id, GO, &()).await.unwrap();
            let view = hub.client().wait(id, TIMEOUT).await.unwrap();
            assert_eq!(view.status, Status::Completed, "{id}");
        }
        assert_eq!(hub.client().run(ECHO, &"more".to_owned(), TIMEOUT).await.unwrap(), "more");
    });
    hub.close().unwrap();
}

async fn start_until_it_fails(client: &Client) -> (Vec<InstanceId>, Error) {
    let mut started = Vec::new();
    loop {
        let text = "x".repeat(10_000);
        let start = WAIT.start(&text).unwrap().id(format!("wait-{}", started.len())).unwrap();
        match client.start(start).await {
            Ok(id) => started.push(id),
            Err(error) => return (started, error),
        }
        assert!(started.len() < 1_000, "a disk of 2 MiB took 10 MB");
    }
}

#[test]
fn a_disk_that_cannot_be_written_is_named() {
    const TEST: &str = "bad_input::disk::a_disk_that_cannot_be_written_is_named";
    if let Some(disk) = another::folder() {
        return open_on_read_only(&disk);
    }
    let folder = tempfile::tempdir().unwrap();
    let prepare = "mkdir \"$0/hub\"; mount -o remount,ro \"$0\"";
    another::on_a_small_disk(TEST, folder.path(), prepare);
}

fn open_on_read_only(folder: &Path) {
    for hub in ["hub", "none"] {
        let error = store(&folder.join(hub)).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, StoreError::Io { is_full: false, .. }), "{text}");
        assert!(text.contains(folder.join(hub).to_str().unwrap()) && text.contains("Read-only"), "{text}");
    }
}

#[test]
fn a_folder_that_another_process_has_is_refused_and_free_again_after_it() {
    const TEST: &str = "bad_input::disk::a_folder_that_another_process_has_is_refused_and_free_again_after_it";
    if let Some(folder) = another::folder() {
        return hold(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut other = another::process(TEST, folder.path()).spawn().unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("it is mine")), "the other process has ended");
    let error = store(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    let who = format!("{} is in use by process {}", folder.path().display(), other.id());
    assert_eq!(error.to_string(), who);
    // Killed, it gives nothing back by itself.
    other.kill().unwrap();
    other.wait().unwrap();
    let hub = open(folder.path()).unwrap();
    assert_eq!(block(hub.client().run(ECHO, &"mine".to_owned(), TIMEOUT)).unwrap(), "mine");
}

/// Keeps the folder until the process that started this one is gone or kills it.
fn hold(folder: &Path) {
    let _store = store(folder).unwrap();
    println!("it is mine");
    let _ = std::io::stdin().lines().count();
}
