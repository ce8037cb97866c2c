//! Documents without a query: all of them in the order of creation, or those that changed, in the order of change.

use std::sync::Arc;

use super::state::State;
use crate::partition_key::PartitionKey;
use crate::sql::MAX_PAGE_BYTES;
use crate::stored_document::Entry;

/// Which documents of a partition a reader is after.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scope {
    All,
    /// Those with this partition key, or below it in a hierarchy.
    Key(PartitionKey),
    /// Those whose effective key lies between these digits, the second excluded.
    Digits {
        min: String,
        max: String,
    },
}

/// Where a reader of changes begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// After the change with this log sequence number; 0 is the beginning.
    Change(u64),
    /// With the first change at this second since 1970 or later.
    UnixSecond(u64),
    /// With the next change.
    Now,
}

/// Changed documents, and the number of the last change looked at.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) documents: Vec<String>,
    pub(crate) until: u64,
}

impl Scope {
    fn holds(&self, entry: &Entry, prefix: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Key(_) => entry.key.starts_with(prefix),
            Self::Digits { min, max } => {
                let digits = entry.effective.digits();
                *min <= digits && digits < *max
            }
        }
    }

    /// Prefix of the keys of documents; no encoded value is the beginning of another.
    fn prefix(&self) -> Vec<u8> {
        let mut prefix = Vec::new();
        if let Self::Key(key) = self {
            key.encode(&mut prefix);
        }
        prefix
    }
}

impl State {
    /// Up to `limit` documents from slot `from` on, and the slot to go on at.
    pub(super) fn list(&self, scope: &Scope, from: u32, limit: usize) -> (Vec<Arc<str>>, Option<u32>) {
        let (prefix, mut documents, mut bytes) = (scope.prefix(), Vec::new(), 0);
        let slots = self.entries.iter().zip(self.documents.iter()).zip(0_u32..).skip(from as usize);
        for ((entry, text), position) in slots {
            if text.is_empty() || !scope.holds(entry, &prefix) {
                continue;
            }
            let is_full = documents.len() >= limit || bytes + text.len() > MAX_PAGE_BYTES;
            if is_full && !documents.is_empty() {
                return (documents, Some(position));
            }
            bytes += text.len();
            documents.push(Arc::clone(text));
        }
        (documents, None)
    }

    /// Up to `limit` documents by their last change, each once.
    pub(super) fn changes(&self, scope: &Scope, since: Since, limit: usize) -> Changes {
        let (after, from_unix_s) = match since {
            Since::Change(lsn) => (lsn, 0),
            Since::UnixSecond(second) => (0, second),
            Since::Now => (self.lsn, 0),
        };
        let prefix = scope.prefix();
        let mut changes = Changes { documents: Vec::new(), until: self.lsn };
        let mut bytes = 0;
        for (&lsn, &position) in self.by_lsn.range(after.saturating_add(1)..) {
            let (entry, text) = (&self.entries[position as usize], &self.documents[position as usize]);
            if entry.unix_s < from_unix_s || !scope.holds(entry, &prefix) {
                continue;
            }
            let is_full = changes.documents.len() >= limit || bytes + text.len() > MAX_PAGE_BYTES;
            if is_full && !changes.documents.is_empty() {
                changes.until = lsn - 1;
                break;
            }
            bytes += text.len();
            let end = text.len() - 1;
            changes.documents.push(format!("{},\"_lsn\":{lsn}}}", &text[..end]));
        }
        changes
    }
}
