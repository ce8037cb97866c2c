//! A document as its partition and the disk keep it: facts about it, and its text.

use std::sync::Arc;

use crate::effective_key::EffectiveKey;

/// Facts about a document besides its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    /// Partition key and id.
    pub(crate) key: Arc<[u8]>,
    pub(crate) effective: EffectiveKey,
    /// The partition's log sequence number at its last write.
    pub(crate) lsn: u64,
    /// When it was last written, in seconds since 1970.
    pub(crate) unix_s: u64,
    /// Its own time to live.
    pub(crate) ttl: Option<i64>,
}

/// A document with its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredDocument {
    pub(crate) entry: Entry,
    pub(crate) text: Arc<str>,
}
