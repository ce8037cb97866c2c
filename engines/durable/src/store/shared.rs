//! Further duties of a store that several processes, the *nodes* of a hub, open at the same time.
//!
//! Nothing here depends on clocks. That two nodes never write one partition follows from epochs alone: whoever takes a
//! partition raises its epoch, and the store refuses the appends of every lower one. When to take a partition from a
//! node that is silent is decided by the nodes, each of which times with its own monotonic clock how long ago another
//! one last said something new.

use std::sync::Arc;

use bytes::Bytes;

use super::{Store, StoreError};
use crate::ids::{Epoch, PartitionId, Position};

/// A store that several nodes open at once.
pub trait SharedStore: Store {
    /// A number greater than all that the store has returned before, to any process. Nodes use it to decide which of
    /// two nodes with the same name was opened later.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn number(&self) -> Result<u64, StoreError>;

    /// Replaces the report of `node` about itself, and returns the last report of every node,
    /// this one included, sorted by name. A node that says something is a member until it is forgotten.
    /// Names are those of [`put_blob`](Store::put_blob) without `/`; at most 64 KiB are said.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::BadName`].
    fn say(&self, node: &str, said: &[u8]) -> Result<Vec<(String, Vec<u8>)>, StoreError>;

    /// The last report of every node, sorted by name.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn said(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError>;

    /// Deletes the report of a node, if there is one.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::BadName`].
    fn forget(&self, node: &str) -> Result<(), StoreError>;

    /// Who has each partition, in order of their numbers.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn owners(&self) -> Result<Vec<Owner>, StoreError>;

    /// Takes a partition for `node`, whoever has it, and fences off all former owners, if its epoch is still `seen`.
    /// Returns the new epoch.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if its epoch is another one by now.
    fn take(&self, partition: PartitionId, seen: Epoch, node: &str) -> Result<Epoch, StoreError>;

    /// Passes everything readable of a log to `found`, in order: whole frames, and the damage between them. Returns a
    /// position that the log is known to have reached; 0 if only its frames show it.
    ///
    /// # Errors
    /// [`StoreError::Io`], and the first error of `found`.
    fn scan(&self, partition: PartitionId, found: &mut Scan<'_>) -> Result<Position, StoreError>;

    /// Restarts the log of a partition, without frames, at a position of at least 1 after everything that it ever held.
    /// Can be repeated after an error.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] or [`StoreError::Io`].
    fn restart(&self, partition: PartitionId, epoch: Epoch, at: Position) -> Result<(), StoreError>;

    /// Copies the logs and snapshots of partitions unchanged, damage included, to a new place in the store. Returns a
    /// description of that place.
    ///
    /// # Errors
    /// [`StoreError::Io`], also if eight copies already exist.
    fn keep(&self, partitions: &[PartitionId]) -> Result<String, StoreError>;

    /// The bus that carries messages between the nodes of this store.
    fn bus(&self) -> Arc<dyn Bus>;
}

/// A piece of a log that may be damaged.
#[derive(Debug)]
pub enum LogPiece<'a> {
    /// A whole frame and its position.
    Frame(Position, &'a [u8]),
    /// Unreadable data.
    Damage(StoreError),
}

/// The callback for each piece of a scanned log.
pub type Scan<'a> = dyn FnMut(LogPiece<'_>) -> Result<(), StoreError> + 'a;

/// Who has a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The partition.
    pub partition: PartitionId,
    /// Its epoch: 0 if no node ever had it.
    pub epoch: Epoch,
    /// The node that took it; `None` once it was given back.
    pub node: Option<String>,
}

/// Receiver of the messages that arrive. It must not block, and is never called by who sends.
pub type Receive = Arc<dyn Fn(Bytes) + Send + Sync>;

/// Carries messages between nodes. It may lose them, also without an error, but neither changes them nor mixes up the
/// order of those that one node sends to another. Who sends numbers and repeats what matters.
pub trait Bus: Send + Sync + 'static {
    /// Receives messages to this node until the returned line is dropped.
    ///
    /// # Errors
    /// [`StoreError::Io`] if it cannot listen.
    fn open(&self, node: &str, receive: Receive) -> Result<Box<dyn Line>, StoreError>;
}

/// One node's end of a [`Bus`].
pub trait Line: Send + Sync {
    /// Where others reach this node: 1 to 200 bytes of ASCII, which it tells them by [`SharedStore::say`].
    fn address(&self) -> &str;

    /// Sends a message of at most 64 MiB to the node at `address`. It does not wait.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the message was not sent, as when too many are on their way already.
    fn send(&self, address: &str, message: Bytes) -> Result<(), StoreError>;
}
