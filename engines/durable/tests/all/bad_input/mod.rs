//! Bad conditions: no room, no right to write, a folder in use, values of no and of very many bytes, code that
//! panics or never ends, files that are damaged or not ours.
//!
//! Each time the error names the file or the instance, nothing that was acknowledged is lost, and the rest goes on.

#![allow(clippy::print_stdout, reason = "what is skipped is to be known")]

mod another;
mod code;
mod disk;
mod files;
mod values;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use narrows_durable::store::{FileStore, FileStoreOptions, StoreError};
use narrows_durable::{Error, Hub, HubOptions};

/// How long a test waits before it fails; nothing is measured by it.
const TIMEOUT: Duration = Duration::from_secs(120);

fn store(folder: &Path) -> Result<FileStore, StoreError> {
    FileStore::open(folder, FileStoreOptions { segment_bytes: 64 << 10 })
}

fn options() -> HubOptions {
    let mut options = HubOptions::default();
    options.partitions = 2;
    options.activity_threads = 2;
    options.snapshot_after_bytes = 64 << 10;
    options
}

fn open(folder: &Path) -> Result<Hub, Error> {
    Hub::open(Arc::new(store(folder)?), code::code(), options())
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
