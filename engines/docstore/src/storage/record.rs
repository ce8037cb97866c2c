//! Records as plain data: descriptions of databases and containers, the marks of ranges, and changes to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::acknowledgement::Commits;
use crate::definition::Definition;
use crate::effective_key::KeySpan;
use crate::resource_id::ContainerId;
use crate::stored_document::StoredDocument;
use crate::throughput::Throughput;

/// A database without its containers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DatabaseRecord {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) created_unix_s: u64,
    pub(crate) throughput: Option<Throughput>,
}

/// A container without its documents.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContainerRecord {
    pub(crate) id: ContainerId,
    pub(crate) created_unix_s: u64,
    pub(crate) definition: Arc<Definition>,
    pub(crate) throughput: Throughput,
    pub(crate) ranges: RangesRecord,
}

/// The ranges of a container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RangesRecord {
    pub(crate) current: Vec<RangeRecord>,
    /// Those that were split.
    pub(crate) retired: Vec<RangeRecord>,
    pub(crate) next_id: u32,
}

/// One range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RangeRecord {
    pub(crate) id: u32,
    pub(crate) span: KeySpan,
    pub(crate) parents: Vec<u32>,
}

/// How far a range has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The log sequence number of its last change.
    pub(crate) lsn: u64,
    /// The greatest number of a document that it or a range it came from has or had.
    pub(crate) number: u64,
    /// The documents it holds.
    pub(crate) documents: u64,
}

/// Change of one document.
#[derive(Debug)]
pub(crate) enum Write {
    Put(StoredDocument),
    /// The document with this number is gone.
    Delete(u64),
}

/// A change that is kept as a whole or not at all. Those to a database or container that was deleted before have no effect.
#[derive(Debug)]
pub(crate) enum Change {
    CreateDatabase(DatabaseRecord),
    AlterDatabase(DatabaseRecord),
    DeleteDatabase(u32),
    CreateContainer(ContainerRecord),
    AlterContainer(ContainerRecord),
    /// The container as it is after the split, and the marks of the halves that take the place of `parent`.
    Split {
        container: ContainerRecord,
        parent: u32,
        halves: Vec<(u32, Mark)>,
    },
    DeleteContainer(u32),
    Documents {
        container: u32,
        range: u32,
        writes: Vec<Write>,
        /// The range's after the writes.
        mark: Mark,
    },
}

/// Everything that is kept besides documents.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// The last commit; `None` before the first.
    pub(crate) commits: Option<Commits>,
    /// The number of the next database or container.
    pub(crate) next_number: u32,
    pub(crate) databases: Vec<DatabaseRecord>,
    /// With the mark of each current range.
    pub(crate) containers: Vec<(ContainerRecord, BTreeMap<u32, Mark>)>,
}

impl Change {
    /// About as much memory as it takes.
    pub(super) fn bytes(&self) -> usize {
        let of = |write: &Write| match write {
            Write::Put(held) => size_of::<Write>() + held.text.len(),
            Write::Delete(_) => size_of::<Write>(),
        };
        let documents = match self {
            Self::Documents { writes, .. } => writes.iter().map(of).sum(),
            _ => 0,
        };
        size_of::<Self>() + documents
    }
}
