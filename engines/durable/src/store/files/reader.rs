//! A folder that is only read, also while another process has it open: no lock is taken and no file is written.
//!
//! The process that writes goes on meanwhile, so a reading may meet a log that was just cut, a snapshot that was just
//! replaced, or the first half of an append. Such a reading fails, and the next one does not; only what fails twice in
//! the same way is wrong. [`HubReader`](crate::HubReader) reads in that manner. What it gives may be a moment away from
//! being durable.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::RealDisk;
use super::log::Log;
use super::sealed::{self, Sort};
use super::{blob_path, list_blobs, read_shape};
use crate::ids::{Epoch, PartitionId, Position};
use crate::store::lock_holder::{Sort as Lock, holder};
use crate::store::{Batching, FrameBatch, HubShape, Location, Store, StoreError, Visit};

/// A hub in a folder, for reading. Everything that would change it fails with [`StoreError::ReadOnly`].
#[derive(Debug)]
pub struct FileReader {
    folder: PathBuf,
}

impl FileReader {
    /// A reader of a folder, which need not be free.
    #[must_use]
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self { folder: folder.as_ref().to_owned() }
    }

    /// The process that has the folder open, if there is one and the kernel reports it.
    #[must_use]
    pub fn holder(&self) -> Option<u32> {
        holder(&self.folder, Lock::Flock)
    }

    fn place(&self) -> Location {
        Location::File { path: self.folder.clone(), offset: None }
    }

    fn refuse<T>(&self) -> Result<T, StoreError> {
        Err(StoreError::ReadOnly { place: self.place() })
    }
}

impl Store for FileReader {
    fn describe(&self) -> String {
        format!("files in {}, for reading", self.folder.display())
    }

    fn batching(&self) -> Batching {
        Batching::Group
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        let what = || "it has no file `hub`".to_owned();
        read_shape(&RealDisk, &self.folder, wanted.format)?
            .ok_or_else(|| StoreError::Foreign { place: self.place(), what: what() })
    }

    fn acquire(&self, _: PartitionId, _: &str) -> Result<Epoch, StoreError> {
        self.refuse()
    }

    fn release(&self, _: PartitionId, _: Epoch) -> Result<(), StoreError> {
        self.refuse()
    }

    fn append(&self, _: PartitionId, _: Epoch, _: Position, _: &FrameBatch) -> Result<(), StoreError> {
        self.refuse()
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        let log = Log::new(Arc::new(RealDisk), partition, &self.folder);
        // Without its folder, a log would be empty.
        log.epoch()?;
        log.scan(from, visit).map(|(end, _)| Position(end.next))
    }

    fn truncate(&self, _: PartitionId, _: Epoch, _: Position) -> Result<(), StoreError> {
        self.refuse()
    }

    fn put_blob(&self, _: &str, _: &[u8]) -> Result<(), StoreError> {
        self.refuse()
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        sealed::read(&RealDisk, &blob_path(&self.folder, name)?, Sort::Blob)
    }

    fn delete_blob(&self, _: &str) -> Result<(), StoreError> {
        self.refuse()
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        list_blobs(&RealDisk, &self.folder, prefix)
    }
}
