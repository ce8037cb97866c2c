//! Snapshots and logs that are damaged or another's: the hub does not open, names the file, and opens with everything
//! once they are back.

use std::path::{Path, PathBuf};

use narrows_durable::{Error, InstanceId, Status};

use super::code::{GO, WAIT};
use super::{TIMEOUT, block, open};

const STARTED: usize = 40;

fn id(number: usize) -> InstanceId {
    InstanceId::new(format!("wait-{number}")).unwrap()
}

/// A hub with snapshots, and orchestrations that wait.
fn fill(folder: &Path) {
    let hub = open(folder).unwrap();
    block(async {
        for number in 0..STARTED {
            let start = WAIT.start(&"x".repeat(10_000)).unwrap().id(id(number).as_str()).unwrap();
            hub.client().start(start).await.unwrap();
        }
    });
    hub.close().unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// The hub does not open and says that it is because of this file.
fn refused(folder: &Path, file: &Path) {
    let error = open(folder).err().unwrap_or_else(|| panic!("the hub opened in spite of {}", file.display()));
    assert!(matches!(error, Error::Store(_)), "{error:?}");
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(error.to_string().contains(name), "{error} does not name {name}");
}

fn everything_is_there(folder: &Path) {
    let hub = open(folder).unwrap();
    block(async {
        for number in 0..STARTED {
            hub.client().raise_event(&id(number), GO, &()).await.unwrap();
            let view = hub.client().wait(&id(number), TIMEOUT).await.unwrap();
            assert_eq!((view.status, view.output_as::<usize>()), (Status::Completed, Some(Ok(10_000))));
        }
    });
    hub.close().unwrap();
}

#[test]
fn a_damaged_or_missing_part_of_a_snapshot_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let parts = files(&folder.path().join("blobs/p0/snapshot"));
    assert!(parts.len() >= 3, "no snapshot was taken: {parts:?}");
    for part in &parts {
        let whole = std::fs::read(part).unwrap();
        for at in [0, whole.len() / 2, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x20;
            std::fs::write(part, &bytes).unwrap();
            refused(folder.path(), part);
        }
        std::fs::write(part, b"the text of somebody else, long enough to be taken for a part").unwrap();
        refused(folder.path(), part);
        std::fs::write(part, &whole).unwrap();
    }
    let part = parts.iter().find(|part| !part.ends_with("list")).unwrap();
    std::fs::rename(part, folder.path().join("aside")).unwrap();
    refused(folder.path(), part);
    std::fs::rename(folder.path().join("aside"), part).unwrap();
    everything_is_there(folder.path());
}

#[test]
fn the_log_of_another_partition_or_program_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let log = |partition: &str| {
        let logs = files(&folder.path().join(partition));
        logs.into_iter().rfind(|path| path.file_name().unwrap().to_str().unwrap().starts_with("log-")).unwrap()
    };
    let (ours, theirs) = (log("p0"), log("p1"));
    let whole = std::fs::read(&ours).unwrap();
    std::fs::copy(&theirs, &ours).unwrap();
    refused(folder.path(), &ours);
    std::fs::write(&ours, "no log at all, but text that goes on for a while. ".repeat(100)).unwrap();
    refused(folder.path(), &ours);
    std::fs::write(&ours, &whole).unwrap();
    everything_is_there(folder.path());
}
