//! Stores of hubs: the contract between the engine and the places that keep its data.
//!
//! A store keeps, per partition, one log of frames, and beside the logs blobs under names. It is small enough that a
//! SQL table or a stream of a message broker can be one. A store knows nothing of instances; what a frame means is
//! [`codec`](crate::codec)'s.
//!
//! # Requirements
//! - [`Store::append`] returns only after the frames are durable: they survive the end of the process and the loss of
//!   power. It writes all frames given or, as far as a later [`Store::read`] shows, a prefix of them.
//! - At most one owner per partition: after [`Store::acquire`] has given epoch `n + 1`, appends, truncations and
//!   releases of epoch `n` fail with [`StoreError::Fenced`] and change nothing.
//! - [`Store::read`] gives back the frames that were appended, in order and unchanged, or an error that names the
//!   place. A torn end (an append that was cut short, and so never acknowledged) is not an error: it is cut off.
//! - [`Store::put_blob`] is atomic and durable: afterwards the name holds the old bytes or the new, never a mixture.
//! - Bytes that come back are checked. Damage is an error, never silence.
//!
//! Deliberately absent: transactions over partitions, listing instances, and any notion of time.

mod classic;
mod distant;
mod faults;
pub(crate) mod files;
mod lock_holder;
mod memory;
mod memory_bus;
mod names;
mod shared;

pub use classic::ClassicStore;
pub use distant::{AppendLayer, DistantStore};
pub use faults::{Fault, FaultyStore};
pub use files::{FileReader, FileStore, FileStoreOptions};
pub use memory::MemoryStore;
pub use names::{BLOB_NAME_BYTES_MAX, check_blob_name, check_node_name};
pub use shared::{Bus, Line, LogPiece, Owner, Receive, Scan, SharedStore};

use std::fmt;
use std::path::PathBuf;

use crate::ids::{Epoch, PartitionId, Position};

/// How frames should reach a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Batching {
    /// Many frames of many steps at once; one commit for all of them.
    Group,
    /// Each step of each instance in its own commit, and nothing speculated on it before.
    EachStep,
}

/// The longest frame, in bytes: 32 MiB.
pub const FRAME_BYTES_MAX: usize = 32 << 20;

/// Frames on their way to a log, one behind another in one buffer.
#[derive(Clone, Debug, Default)]
pub struct FrameBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl FrameBatch {
    /// Adds a frame.
    pub fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    /// How many frames there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many bytes they are together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Checks that no frame is empty or longer than stores take. `place` is where they go.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn check(&self, place: impl FnOnce() -> Location) -> Result<(), StoreError> {
        match self.frames().map(<[u8]>::len).find(|length| !(1..=FRAME_BYTES_MAX).contains(length)) {
            None => Ok(()),
            Some(length) => Err(StoreError::Io {
                action: "append to",
                place: place(),
                reason: format!("a frame of {length} bytes, expected 1 to {FRAME_BYTES_MAX}"),
                is_full: false,
            }),
        }
    }

    /// Takes all frames out and keeps the room for new ones.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The frames in order.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().scan(0, |start, end| {
            let frame = &self.bytes[*start..*end];
            *start = *end;
            Some(frame)
        })
    }
}

/// Visitor of the frames that are read.
pub type Visit<'a> = dyn FnMut(Position, &[u8]) -> Result<(), StoreError> + 'a;

/// Identity of a hub, kept by the store so that it cannot change unnoticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HubShape {
    /// How many partitions it has, 1 to 64. Fixed when the hub is created.
    pub partitions: u16,
    /// The version of the frames' format.
    pub format: u16,
}

/// A place that keeps the logs and blobs of one hub. The module states its duties. All methods may block;
/// the engine calls them from threads of its own. Calls for different partitions may come at the same time.
pub trait Store: Send + Sync + 'static {
    /// Kind and place of the store, for people: `files in /data/hub`.
    fn describe(&self) -> String;

    /// How frames should reach it.
    fn batching(&self) -> Batching;

    /// The store as several processes open it at once; `None` if it is for one process at a time.
    fn shared(&self) -> Option<&dyn SharedStore> {
        None
    }

    /// The shape of the hub kept here; creates one of the shape `wanted` if there is none yet.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] if the content is no hub of this format.
    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError>;

    /// Takes a partition for this process and fences off all former owners. Those who meet the lock get `owner`.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another live process holds it.
    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError>;

    /// Gives a partition back.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if it has changed hands.
    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError>;

    /// Appends frames, the first of which gets the position `at`, and makes them durable. At most 64 MiB at a time,
    /// frames of 1 to [`FRAME_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// [`StoreError::Fenced`]; [`StoreError::Conflict`] if the log does not end at `at`; [`StoreError::Io`], after
    /// which this owner must not append again (it cannot know which are durable) and has to open the hub anew.
    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError>;

    /// Gives every frame from `from` on to `visit`, in order, and returns the position where the log ends. Frames
    /// before `from` that are still there are passed over.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if the log begins after `from`; [`StoreError::Damaged`] with file and offset; the first
    /// error of `visit`.
    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError>;

    /// Forgets frames before `before`, as far as that is cheap.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] or [`StoreError::Io`].
    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError>;

    /// Keeps bytes under a name, durably, in place of earlier ones. Names are 1 to 200 characters of
    /// `a-z 0-9 - . /`, parts between slashes are neither empty nor `.` nor `..`.
    /// No name may be the folder of another: with `a/b`, there is no `a`.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::BadName`].
    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// The bytes under a name, checked; `None` if it holds none.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`] or [`StoreError::BadName`].
    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Forgets the bytes under a name, if there are any.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::BadName`].
    fn delete_blob(&self, name: &str) -> Result<(), StoreError>;

    /// The names that begin with `prefix`, sorted.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError>;
}

/// Why a call to a store failed. The text names the place.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system or database refused.
    #[error("cannot {action} {place}: {reason}")]
    Io {
        /// The failed action: "write", "open".
        action: &'static str,
        /// File and offset, or table and row.
        place: Location,
        /// Error of the system.
        reason: String,
        /// Whether the disk is full.
        is_full: bool,
    },
    /// The content is not what was written.
    #[error("{place} is damaged: {what}")]
    Damaged {
        /// Where.
        place: Location,
        /// Actual and expected value.
        what: String,
    },
    /// The content was never a hub's, or has another format.
    #[error("{place} is not a hub: {what}")]
    Foreign {
        /// Where.
        place: Location,
        /// Actual and expected value.
        what: String,
    },
    /// Frames that are needed are not there any more.
    #[error("the log of partition {partition} begins at {begins}, expected at most {wanted}")]
    Missing {
        /// The partition.
        partition: PartitionId,
        /// Where it begins.
        begins: u64,
        /// Request.
        wanted: u64,
    },
    /// Another process holds it.
    #[error("{place} is in use by {by}")]
    InUse {
        /// What.
        place: Location,
        /// By whom, as far as is known.
        by: String,
    },
    /// It was opened for reading.
    #[error("{place} is open for reading only")]
    ReadOnly {
        /// What.
        place: Location,
    },
    /// A later owner has taken the partition.
    #[error("partition {partition} has a new owner: epoch {ours} was given up for {theirs}")]
    Fenced {
        /// The partition.
        partition: PartitionId,
        /// The epoch of the call.
        ours: u64,
        /// The epoch of the store.
        theirs: u64,
    },
    /// The log does not end where the caller thinks.
    #[error("the log of partition {partition} ends at {ends}, the append is for {at}")]
    Conflict {
        /// The partition.
        partition: PartitionId,
        /// Where it ends.
        ends: u64,
        /// Where the frames were to go.
        at: u64,
    },
    /// A blob cannot be named so.
    #[error("{name:?} cannot name a blob, expected 1 to 200 characters of a-z 0-9 - . and /")]
    BadName {
        /// The name.
        name: String,
    },
}

impl StoreError {
    /// Advice, where there is more than the text says.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Damaged { place: Location::Row { .. }, .. } => Some("restore the database from a copy"),
            Self::Damaged { place: Location::Remote { .. }, .. } => {
                Some("restore the hub from a copy, or see what `narrows orchestrations repair URL` can save")
            }
            Self::Io { action: "open", place: Location::Remote { .. }, .. } => {
                Some("see that the server runs and can be reached from here, and that user and password are right")
            }
            Self::Damaged { .. } | Self::Missing { .. } => {
                Some("restore the folder from a copy, or see what `narrows orchestrations repair HUB` can save")
            }
            // A file of another program, or the file `hub` after something else was written over it.
            Self::Foreign { place: Location::File { offset: Some(_), .. }, .. } => {
                Some("if this was a hub, see what `narrows orchestrations repair HUB` can save")
            }
            _ => None,
        }
    }
}

/// Where in a store something is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// A file, and the offset of a byte in it.
    File {
        /// The file.
        path: PathBuf,
        /// The offset, if it is about a place inside.
        offset: Option<u64>,
    },
    /// A row of a table.
    Row {
        /// The database.
        database: PathBuf,
        /// Table and key.
        row: String,
    },
    /// Something on a server.
    Remote {
        /// The server and the hub, without user and password.
        server: String,
        /// Subject.
        what: String,
    },
    /// A partition as a whole.
    Partition {
        /// Which.
        partition: PartitionId,
    },
    /// A log.
    Log {
        /// Its partition.
        partition: PartitionId,
    },
    /// A frame.
    Frame {
        /// Its partition.
        partition: PartitionId,
        /// Its position.
        position: u64,
    },
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, offset: Some(offset) } => write!(f, "{} at byte {offset}", path.display()),
            Self::File { path, offset: None } => write!(f, "{}", path.display()),
            Self::Row { database, row } => write!(f, "{row} of {}", database.display()),
            Self::Remote { server, what } => write!(f, "{what} of {server}"),
            Self::Partition { partition } => write!(f, "partition {partition}"),
            Self::Log { partition } => write!(f, "the log of partition {partition}"),
            Self::Frame { partition, position } => write!(f, "frame {position} of partition {partition}"),
        }
    }
}
