//! Content of a partition: its documents in slots, and every way to find one.
//!
//! Slots are in the order of creation, so a document's number, which is unique in its container and never used again, says
//! where a reader goes on, also after a split or a restart. A slot that was vacated keeps its number; slots are closed up
//! once most are vacant. The index is built when a query first needs it, which lets a store open before it has parsed
//! its documents.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::stamp::Stamp;
use super::texts::Texts;
use crate::budget::Budget;
use crate::charge::Charge;
use crate::definition::{Definition, ttl_from_json};
use crate::index::Index;
use crate::partition_key::value_at;
use crate::scalar::Scalar;
use crate::storage::{Change, Journal, Mark, Ticket, Write};
use crate::stored_document::{Entry, StoredDocument};

/// Vacant slots that are not worth closing up.
const VACANT_MIN: usize = 1_024;
/// Documents that room is made for before they are there.
const RESERVED_MAX: usize = 1 << 16;

#[derive(Debug)]
pub(crate) struct State {
    pub(super) budget: Budget,
    pub(super) consumed: Charge,
    pub(super) throttled: u64,
    /// The text of each slot, empty for a vacant one.
    pub(super) documents: Texts,
    pub(super) entries: Vec<Entry>,
    pub(super) positions: HashMap<Arc<[u8]>, u32>,
    pub(super) index: Index,
    /// Number of slots that are indexed so far, from the first; `None` once all are.
    pub(super) indexed: Option<u32>,
    pub(super) by_lsn: BTreeMap<u64, u32>,
    by_expiry: BTreeSet<(u64, u32)>,
    unique: HashMap<Vec<u8>, u32>,
    pub(super) definition: Arc<Definition>,
    pub(super) stamp: Stamp,
    pub(super) journal: Journal,
    /// The last of its changes.
    pub(super) ticket: Ticket,
    pub(super) lsn: u64,
    /// The greatest number of a document it or a partition it came from has or had.
    number: u64,
    pub(super) text_bytes: usize,
    vacant: usize,
    /// The text it had when it was found to have one partition key.
    pub(super) indivisible_bytes: usize,
    /// Split into others; its documents are theirs.
    pub(super) is_retired: bool,
}

impl State {
    pub(super) fn new(budget: Budget, definition: Arc<Definition>, stamp: Stamp, journal: Journal) -> Self {
        Self {
            budget,
            consumed: Charge::ZERO,
            throttled: 0,
            documents: Texts::default(),
            entries: Vec::new(),
            positions: HashMap::new(),
            index: Index::default(),
            indexed: None,
            by_lsn: BTreeMap::new(),
            by_expiry: BTreeSet::new(),
            unique: HashMap::new(),
            definition,
            stamp,
            journal,
            ticket: Ticket::default(),
            lsn: 0,
            number: 0,
            text_bytes: 0,
            vacant: 0,
            indivisible_bytes: 0,
            is_retired: false,
        }
    }

    /// The document in a slot.
    pub(super) fn held(&self, position: u32) -> Option<StoredDocument> {
        let text = &self.documents[position as usize];
        (!text.is_empty())
            .then(|| StoredDocument { entry: self.entries[position as usize].clone(), text: text.clone() })
    }

    /// The first slot of a document with this number or a later one.
    pub(super) fn position_of(&self, number: u64) -> u32 {
        as_position(self.entries.partition_point(|entry| entry.number < number))
    }

    /// Puts a new document into its own slot; its number is greater than all others.
    pub(super) fn push(&mut self, held: StoredDocument, fields: Option<&Map<String, Value>>) -> u32 {
        assert!(self.entries.last().is_none_or(|last| last.number < held.entry.number), "slots are in order");
        self.number = self.number.max(held.entry.number);
        let position = as_position(self.documents.len());
        self.documents.push(held.entry.number);
        self.entries.push(held.entry.clone());
        self.vacant += 1;
        self.occupy(position, held, fields);
        position
    }

    /// Puts a document into a vacant slot. `fields` saves parsing its text.
    pub(super) fn occupy(&mut self, position: u32, held: StoredDocument, fields: Option<&Map<String, Value>>) {
        let StoredDocument { entry, text } = held;
        let is_indexed = self.is_indexed(position);
        if is_indexed || !self.definition.unique_keys.is_empty() {
            let parsed = if fields.is_none() { parsed(&text) } else { Map::new() };
            let fields = fields.unwrap_or(&parsed);
            if is_indexed {
                self.index.add(position, fields);
            }
            for key in unique_keys(&self.definition, &entry, fields) {
                self.unique.insert(key, position);
            }
        }
        self.positions.insert(Arc::clone(&entry.key), position);
        self.by_lsn.insert(entry.lsn, position);
        self.by_expiry.extend(self.expiry(&entry).map(|at| (at, position)));
        self.text_bytes += text.len();
        self.vacant -= 1;
        self.documents.set(position, text);
        self.entries[position as usize] = entry;
    }

    /// Takes a document out of its slot.
    pub(super) fn vacate(&mut self, position: u32) -> Option<StoredDocument> {
        let held = self.held(position)?;
        let is_indexed = self.is_indexed(position);
        if is_indexed || !self.definition.unique_keys.is_empty() {
            let fields = parsed(&held.text);
            if is_indexed {
                self.index.remove(position, &fields);
            }
            for key in unique_keys(&self.definition, &held.entry, &fields) {
                self.unique.remove(&key);
            }
        }
        self.positions.remove(&held.entry.key);
        self.by_lsn.remove(&held.entry.lsn);
        if let Some(at) = self.expiry(&held.entry) {
            self.by_expiry.remove(&(at, position));
        }
        self.text_bytes -= held.text.len();
        self.vacant += 1;
        self.documents.set(position, Arc::default());
        Some(held)
    }

    /// Whether another document of the logical partition has the unique values of this one.
    pub(super) fn is_taken(&self, entry: &Entry, fields: &Map<String, Value>, own: Option<u32>) -> bool {
        unique_keys(&self.definition, entry, fields)
            .iter()
            .any(|key| self.unique.get(key).is_some_and(|&holder| Some(holder) != own))
    }

    /// Takes out every document whose time is over; they are gone without a charge.
    pub(super) fn expire(&mut self, unix_s: u64) {
        let mut expired = Vec::new();
        while let Some(&(at, position)) = self.by_expiry.first()
            && at <= unix_s
        {
            self.by_expiry.pop_first();
            expired.extend(self.vacate(position).map(|held| Write::Delete(held.entry.number)));
        }
        if expired.is_empty() {
            return;
        }
        self.lsn += 1;
        // A disk that takes no more writes finds out by itself when the folder is opened again.
        if self.journal.check().is_ok() {
            self.keep(expired);
        }
        self.close_up();
    }

    /// Hands changed documents to the disk, with how far the partition is after them.
    fn keep(&mut self, writes: Vec<Write>) {
        let Stamp { container, range, .. } = &self.stamp;
        let (container, range, mark) = (container.container, *range, self.mark());
        self.ticket = self.journal.write(Change::Documents { container, range, writes, mark });
    }

    /// Hands the documents in these slots to the disk, as they are now.
    pub(super) fn keep_slots(&mut self, mut positions: Vec<u32>) {
        if positions.is_empty() || !self.journal.keeps() {
            return;
        }
        positions.sort_unstable();
        positions.dedup();
        let write = |position: &u32| match self.held(*position) {
            Some(held) => Write::Put(held),
            None => Write::Delete(self.entries[*position as usize].number),
        };
        self.keep(positions.iter().map(write).collect());
    }

    /// How far the partition is.
    pub(super) fn mark(&self) -> Mark {
        Mark { lsn: self.lsn, number: self.number, documents: self.positions.len() as u64 }
    }

    /// Goes on where `mark` was, with the documents to come.
    pub(super) fn go_on(&mut self, mark: Mark) {
        (self.lsn, self.number) = (mark.lsn, mark.number);
        self.defer_index();
    }

    /// Makes room for so many documents to come, within bounds.
    pub(super) fn reserve(&mut self, documents: u64) {
        let documents = usize::try_from(documents).unwrap_or(usize::MAX).min(RESERVED_MAX);
        self.documents.reserve(documents);
        self.entries.reserve(documents);
        self.positions.reserve(documents);
    }

    /// Takes a document from the disk; the error says why it cannot be here.
    pub(super) fn restore(&mut self, held: StoredDocument) -> Result<(), String> {
        let Entry { number, key, lsn, .. } = &held.entry;
        let why = if self.entries.last().is_some_and(|last| last.number >= *number) {
            "is not in order"
        } else if *number > self.number || *lsn > self.lsn {
            "is newer than its range"
        } else if self.positions.contains_key(key) || self.by_lsn.contains_key(lsn) {
            "is there twice"
        } else {
            self.push(held, None);
            return Ok(());
        };
        Err(format!("document number {number} {why}"))
    }

    /// Obeys a changed definition from now on.
    pub(super) fn redefine(&mut self, definition: Arc<Definition>) {
        self.definition = definition;
        let expiries = |(position, entry): (usize, &Entry)| Some((self.expiry(entry)?, as_position(position)));
        let is_held = |(position, _): &(usize, &Entry)| !self.documents[*position].is_empty();
        self.by_expiry = self.entries.iter().enumerate().filter(is_held).filter_map(expiries).collect();
    }

    /// Leaves the index to the first query that needs it.
    pub(super) fn defer_index(&mut self) {
        self.index = Index::default();
        self.indexed = Some(0);
    }

    /// Whether the index covers this slot, now or once it is complete.
    fn is_indexed(&self, position: u32) -> bool {
        self.indexed.is_none_or(|indexed| position < indexed)
    }

    /// Closes up vacant slots if most are.
    pub(super) fn close_up(&mut self) {
        if self.vacant < VACANT_MIN || self.vacant * 2 < self.documents.len() {
            return;
        }
        let held = self.drain();
        self.defer_index();
        for held in held {
            self.push(held, None);
        }
    }

    /// Takes every document out, in order.
    pub(super) fn drain(&mut self) -> Vec<StoredDocument> {
        let texts = std::mem::take(&mut self.documents);
        let texts = texts.iter().map(Arc::clone);
        let entries = std::mem::take(&mut self.entries);
        self.positions.clear();
        self.by_lsn.clear();
        self.by_expiry.clear();
        self.unique.clear();
        self.index = Index::default();
        (self.vacant, self.text_bytes) = (0, 0);
        let held = entries.into_iter().zip(texts).map(|(entry, text)| StoredDocument { entry, text });
        held.filter(|held| !held.text.is_empty()).collect()
    }

    /// When the document is over, in seconds since 1970; never while its container has no time to live.
    fn expiry(&self, entry: &Entry) -> Option<u64> {
        let ttl = entry.ttl.or(self.definition.default_ttl);
        self.definition.default_ttl?;
        u64::try_from(ttl?).ok().map(|ttl| entry.unix_s.saturating_add(ttl))
    }
}

/// A document's own time to live, or the fault in it.
pub(super) fn own_ttl(fields: &Map<String, Value>) -> Result<Option<i64>, String> {
    match fields.get("ttl") {
        None | Some(Value::Null) => Ok(None),
        Some(ttl) => {
            let read = ttl_from_json(ttl);
            read.map(Some).ok_or_else(|| format!("the property \"ttl\" is {ttl}, expected {}", crate::definition::TTL))
        }
    }
}

/// One entry for each unique key: its number, the partition key and the values.
fn unique_keys(definition: &Definition, entry: &Entry, fields: &Map<String, Value>) -> Vec<Vec<u8>> {
    let of_key = |(number, paths): (usize, &Vec<Vec<String>>)| {
        let mut bytes = vec![u8::try_from(number).unwrap_or(u8::MAX)];
        bytes.extend(entry.effective.digits().bytes());
        for path in paths {
            match value_at(fields, path) {
                None => Scalar::Undefined.encode(&mut bytes),
                Some(value) => match Scalar::from_json(value) {
                    Some(scalar) => scalar.encode(&mut bytes),
                    // No tag of a scalar begins like this.
                    None => bytes.extend([0xFE].into_iter().chain(value.to_string().bytes()).chain([0xFF])),
                },
            }
        }
        bytes
    };
    definition.unique_keys.iter().enumerate().map(of_key).collect()
}

pub(super) fn parsed(text: &str) -> Map<String, Value> {
    // The text was written from a valid document.
    serde_json::from_str(text).unwrap_or_default()
}

pub(super) fn as_position(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
