//! Payloads too large for the log: kept as blobs, referred to from histories and messages.
//!
//! A blob is written before the frame that refers to it. It is deleted only after a snapshot, when no frame that is
//! still in the log can refer to it: a payload older than the snapshot and in no history that the snapshot holds.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::codec::{BlobRef, CodecError, Fetch, Spill};
use crate::ids::PartitionId;
use crate::partition::size::Measure;
use crate::payload::Payload;
use crate::store::{Location, Store, StoreError};

/// Payloads on their way out of line, and the way to read them back.
pub(super) struct Spiller {
    partition: PartitionId,
    store: Arc<dyn Store>,
    above: usize,
    next: u64,
    /// Of the frame being written.
    fresh: Vec<(String, Payload)>,
    /// Not yet known to be in the store.
    under_way: HashMap<u64, Payload>,
    /// The error of the store that did not return a payload.
    fault: RefCell<Option<StoreError>>,
    /// The present bound: lower once the frame is large.
    above_now: usize,
}

/// Bytes of a frame from which on smaller payloads are kept out of it too, so that it stays below what stores take.
const LARGE_FRAME_BYTES: usize = 4 << 20;
/// Their size.
const ABOVE_IN_LARGE_FRAMES: usize = 1024;

/// The prefix of the names of a partition's payloads; their numbers follow.
pub(super) fn blob_prefix(partition: PartitionId) -> String {
    format!("p{partition}/payload/")
}

/// Where a payload is kept.
pub(super) fn blob_name(blob: BlobRef) -> String {
    format!("{}{}", blob_prefix(blob.partition), blob.number)
}

impl Spiller {
    pub(super) fn new(partition: PartitionId, store: Arc<dyn Store>, above: usize) -> Self {
        Self {
            partition,
            store,
            above,
            next: 0,
            fresh: Vec::new(),
            under_way: HashMap::new(),
            fault: RefCell::default(),
            above_now: above,
        }
    }

    /// Measures what things take in a frame, however large it is.
    pub(super) fn measure(&self) -> Measure {
        Measure { inline_max: self.above }
    }

    /// Adapts the bound to how large the frame is already.
    pub(super) fn tighten(&mut self, frame_bytes: usize) {
        self.above_now = if frame_bytes > LARGE_FRAME_BYTES { ABOVE_IN_LARGE_FRAMES } else { self.above };
    }

    /// Why a payload that the engine itself needed could not be read back, if ever one could not.
    pub(super) fn fault(&self) -> Option<StoreError> {
        self.fault.borrow().clone()
    }

    /// The blobs that the frame being written refers to.
    pub(super) fn take_fresh(&mut self) -> Vec<(String, Payload)> {
        std::mem::take(&mut self.fresh)
    }

    /// The number of the next blob.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Blobs below this number are in the store.
    pub(super) fn kept(&mut self, below: u64) {
        if !self.under_way.is_empty() {
            self.under_way.retain(|number, _| *number >= below);
        }
    }

    /// A reader for responses and for recovery, which deal with what cannot be read.
    pub(super) fn reader(&self) -> Reader<'_> {
        Reader { spiller: self, seen: None, need: Need::Requested }
    }

    /// A reader for steps, which cannot be taken if the store does not respond. Damage is not the store's but one
    /// instance's trouble.
    pub(super) fn step_reader(&self) -> Reader<'_> {
        Reader { spiller: self, seen: None, need: Need::Step }
    }

    fn read(&self, blob: BlobRef, need: Need) -> Result<Payload, CodecError> {
        let ours = (blob.partition == self.partition).then(|| self.under_way.get(&blob.number)).flatten();
        if let Some(payload) = ours {
            return Ok(payload.clone());
        }
        let name = blob_name(blob);
        let place = Location::File { path: name.clone().into(), offset: None };
        let damaged = |what| StoreError::Damaged { place, what };
        let error = match self.store.get_blob(&name) {
            Ok(Some(bytes)) if bytes.len() as u64 == blob.bytes => return Ok(Payload::from_bytes(bytes)),
            Ok(Some(bytes)) => damaged(format!("it has {} bytes, expected {}", bytes.len(), blob.bytes)),
            Ok(None) => damaged("it is missing".to_owned()),
            Err(error) => error,
        };
        let what = error.to_string();
        if need == Need::Step && !matches!(error, StoreError::Damaged { .. }) {
            self.fault.borrow_mut().get_or_insert(error);
        }
        Err(CodecError { at: 0, what })
    }

    /// Takes note of numbers that are in use.
    pub(super) fn restore_next(&mut self, next: u64) {
        self.next = self.next.max(next);
    }
}

impl Spill for Spiller {
    fn spill(&mut self, payload: &Payload) -> Option<BlobRef> {
        if payload.len() <= self.above_now {
            return None;
        }
        let blob = BlobRef { partition: self.partition, number: self.next, bytes: payload.len() as u64 };
        self.next += 1;
        self.fresh.push((blob_name(blob), payload.clone()));
        self.under_way.insert(blob.number, payload.clone());
        Some(blob)
    }
}

/// Reads payloads back from where they were spilled.
pub(super) struct Reader<'a> {
    spiller: &'a Spiller,
    seen: Option<u64>,
    need: Need,
}

/// The reason to read a payload.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Requested,
    Step,
}

impl Reader<'_> {
    /// One more than the greatest number met, if any was.
    pub(super) fn next_seen(&self) -> u64 {
        self.seen.map_or(0, |number| number + 1)
    }
}

impl Fetch for Reader<'_> {
    fn fetch(&mut self, blob: BlobRef) -> Result<Payload, CodecError> {
        if blob.partition == self.spiller.partition {
            self.seen = self.seen.max(Some(blob.number));
        }
        self.spiller.read(blob, self.need)
    }
}

/// Collects references and reads nothing.
#[derive(Default)]
pub(super) struct References(pub(super) Vec<BlobRef>);

impl Fetch for References {
    fn fetch(&mut self, blob: BlobRef) -> Result<Payload, CodecError> {
        self.0.push(blob);
        Ok(Payload::EMPTY)
    }
}
