//! One physical partition: its documents, their index and the budget they are read and written from.
//!
//! Every operation requests admission, runs and books its charge under one lock, so the sum booked in a second never
//! depends on how requests interleave. Documents are kept as the text that responses carry.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::charge::Charge;
use crate::index::Index;
use crate::query::Selection;

/// The text one partition may hold; Cosmos DB's 50 GB would not fit in memory.
const MAX_TEXT_BYTES: usize = 1 << 30;
/// The text one page of a query may hold before it is cut, as in Cosmos DB.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// What was done, with what it cost and the partition's log sequence number after it.
#[derive(Debug)]
pub(crate) struct Done<T> {
    pub(crate) outcome: T,
    pub(crate) charge: Charge,
    pub(crate) lsn: u64,
}

/// The second's budget is used up; the next second begins after `retry_after`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Throttled {
    pub(crate) retry_after: Duration,
}

/// A partition's throughput since the store opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// What each second provides.
    pub(crate) provisioned: Charge,
    /// What all requests together have cost.
    pub(crate) consumed: Charge,
    /// Requests that were refused because the budget was spent.
    pub(crate) throttled: u64,
}

/// Some documents of a query's result.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) documents: Vec<Box<str>>,
    /// Where the next page starts, if there may be one.
    pub(crate) next: Option<u32>,
}

/// How a write treats a document that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    Create,
    Upsert,
    Replace,
}

/// What became of a write.
#[derive(Debug)]
pub(crate) enum Written {
    Created(Box<str>),
    Replaced(Box<str>),
    /// A document with this id exists and the write was to create one.
    Exists,
    /// No document with this id exists and the write was to replace one.
    Missing,
    /// The partition holds as much text as it may.
    Full,
}

/// Gives a document its system properties, from its position and its log sequence number.
pub(crate) trait Stamp {
    fn stamp(&self, document: &mut Map<String, Value>, position: u32, lsn: u64);
}

/// One physical partition.
#[derive(Debug)]
pub(crate) struct Partition {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    budget: Budget,
    consumed: Charge,
    throttled: u64,
    documents: Vec<Box<str>>,
    positions: HashMap<Vec<u8>, u32>,
    index: Index,
    lsn: u64,
    text_bytes: usize,
}

impl Partition {
    pub(crate) fn new(budget: Budget) -> Self {
        let state = State {
            budget,
            consumed: Charge::ZERO,
            throttled: 0,
            documents: Vec::new(),
            positions: HashMap::new(),
            index: Index::default(),
            lsn: 0,
            text_bytes: 0,
        };
        Self { state: Mutex::new(state) }
    }

    /// Reads the document `key` names.
    pub(crate) fn read(&self, now: Duration, key: &[u8]) -> Result<Done<Option<Box<str>>>, Throttled> {
        self.metered(now, |state| {
            let found = state.positions.get(key).map(|&position| state.documents[position as usize].clone());
            let charge = Charge::point_read(found.as_ref().map_or(0, |text| text.len()));
            (found, charge)
        })
    }

    /// Reads up to `limit` documents that match, from position `from` on.
    pub(crate) fn page(
        &self,
        now: Duration,
        selection: &Selection,
        from: u32,
        limit: usize,
    ) -> Result<Done<Page>, Throttled> {
        self.metered(now, |state| {
            let page = state.page(selection, from, limit);
            let charge = Charge::query_page(page.documents.len());
            (page, charge)
        })
    }

    /// Writes a document under `key`.
    pub(crate) fn write(
        &self,
        now: Duration,
        key: Vec<u8>,
        document: Map<String, Value>,
        mode: WriteMode,
        stamp: &dyn Stamp,
    ) -> Result<Done<Written>, Throttled> {
        self.metered(now, |state| state.write(key, document, mode, stamp))
    }

    /// Writes a document before the store opens, without checking the budget.
    pub(crate) fn load(&self, key: Vec<u8>, document: Map<String, Value>, stamp: &dyn Stamp) {
        self.lock().write(key, document, WriteMode::Upsert, stamp);
    }

    /// What was provided, used and refused so far.
    pub(crate) fn usage(&self) -> Usage {
        let state = self.lock();
        Usage { provisioned: state.budget.per_second(), consumed: state.consumed, throttled: state.throttled }
    }

    fn metered<T>(&self, now: Duration, run: impl FnOnce(&mut State) -> (T, Charge)) -> Result<Done<T>, Throttled> {
        let mut state = self.lock();
        if let Err(retry_after) = state.budget.admit(now) {
            state.throttled += 1;
            return Err(Throttled { retry_after });
        }
        let (outcome, charge) = run(&mut state);
        state.budget.spend(charge);
        state.consumed = state.consumed + charge;
        Ok(Done { outcome, charge, lsn: state.lsn })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn page(&self, selection: &Selection, from: u32, limit: usize) -> Page {
        let end = u32::try_from(self.documents.len()).unwrap_or(u32::MAX);
        let mut lists: Vec<&[u32]> =
            selection.indexed().map(|(path, value)| self.index.proposals(path, value)).collect();
        lists.sort_by_key(|list| list.len());
        let Some((shortest, others)) = lists.split_first() else {
            return self.fill(selection, from..end, limit);
        };
        let rest = &shortest[shortest.partition_point(|&position| position < from)..];
        let in_all = |position: &u32| others.iter().all(|list| list.binary_search(position).is_ok());
        self.fill(selection, rest.iter().copied().filter(in_all), limit)
    }

    fn fill(&self, selection: &Selection, proposals: impl Iterator<Item = u32>, limit: usize) -> Page {
        let mut page = Page { documents: Vec::new(), next: None };
        let mut bytes = 0;
        for position in proposals {
            let text = &self.documents[position as usize];
            if !selection.matches(text) {
                continue;
            }
            let full = page.documents.len() >= limit || bytes + text.len() > MAX_PAGE_BYTES;
            if full && !page.documents.is_empty() {
                page.next = Some(position);
                break;
            }
            bytes += text.len();
            page.documents.push(text.clone());
        }
        page
    }

    fn write(
        &mut self,
        key: Vec<u8>,
        mut document: Map<String, Value>,
        mode: WriteMode,
        stamp: &dyn Stamp,
    ) -> (Written, Charge) {
        let properties = document.len();
        let existing = self.positions.get(&key).copied();
        match (existing, mode) {
            (Some(_), WriteMode::Create) => return (Written::Exists, Charge::point_read(0)),
            (None, WriteMode::Replace) => return (Written::Missing, Charge::point_read(0)),
            _ => {}
        }
        let position = existing.unwrap_or_else(|| u32::try_from(self.documents.len()).unwrap_or(u32::MAX));
        stamp.stamp(&mut document, position, self.lsn + 1);
        let text = as_text(&document);
        let replaced_bytes = existing.map_or(0, |position| self.documents[position as usize].len());
        if self.text_bytes - replaced_bytes + text.len() > MAX_TEXT_BYTES {
            return (Written::Full, Charge::point_read(0));
        }
        self.lsn += 1;
        self.text_bytes = self.text_bytes - replaced_bytes + text.len();
        if existing.is_some() {
            self.replace(position, &document, text.clone());
            let charge = Charge::replace(text.len(), properties);
            (Written::Replaced(text), charge)
        } else {
            self.index.add(position, &document);
            self.documents.push(text.clone());
            self.positions.insert(key, position);
            let charge = Charge::create(text.len(), properties);
            (Written::Created(text), charge)
        }
    }

    fn replace(&mut self, position: u32, document: &Map<String, Value>, text: Box<str>) {
        let old = std::mem::replace(&mut self.documents[position as usize], text);
        if let Ok(Value::Object(old)) = serde_json::from_str(&old) {
            self.index.remove(position, &old);
        }
        self.index.add(position, document);
    }
}

fn as_text(document: &Map<String, Value>) -> Box<str> {
    // A map with text keys always has a JSON text.
    serde_json::to_string(document).unwrap_or_default().into_boxed_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::budget::Stagger;
    use crate::scalar::Scalar;

    struct Unstamped;

    impl Stamp for Unstamped {
        fn stamp(&self, document: &mut Map<String, Value>, position: u32, lsn: u64) {
            document.insert("at".to_owned(), json!([position, lsn]));
        }
    }

    fn partition(documents: usize, bytes_each: usize) -> Partition {
        let partition =
            Partition::new(Budget::new(Charge::from_hundredths(10_000), Stagger { partition: 0, partitions: 1 }));
        for number in 0..documents {
            let document = json!({ "n": number, "even": number % 2 == 0, "text": "x".repeat(bytes_each) });
            let Value::Object(document) = document else { continue };
            partition.load(number.to_string().into_bytes(), document, &Unstamped);
        }
        partition
    }

    fn selection(sql: &str) -> Selection {
        Selection::from_body(json!({ "query": sql }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn requests_at_once_are_admitted_as_many_as_in_turn() {
        let partition = partition(0, 0);
        let selection = selection("SELECT * FROM c");
        let admitted: usize = std::thread::scope(|scope| {
            let ask = || (0..50).filter(|_| partition.page(Duration::ZERO, &selection, 0, 1).is_ok()).count();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 32);
        let usage = partition.usage();
        assert_eq!((usage.consumed, usage.throttled), (Charge::from_hundredths(32 * 320), 8 * 50 - 32));
    }

    #[test]
    fn usage_adds_up_over_the_seconds() {
        let partition = partition(0, 0);
        for second in 0..3 {
            for _ in 0..40 {
                let _ = partition.page(Duration::from_secs(second), &selection("SELECT * FROM c"), 0, 1);
            }
        }
        let expected = Usage {
            provisioned: Charge::from_hundredths(10_000),
            consumed: Charge::from_hundredths(3 * 32 * 320),
            throttled: 3 * 8,
        };
        assert_eq!(partition.usage(), expected);
    }

    #[test]
    fn conditions_meet_in_the_index() {
        let partition = partition(10, 0);
        let count = |sql| partition.page(Duration::ZERO, &selection(sql), 0, 100).unwrap().outcome.documents.len();
        assert_eq!(count("SELECT * FROM c WHERE c.even = true"), 5);
        assert_eq!(count("SELECT * FROM c WHERE c.even = true AND c.n = 4"), 1);
        assert_eq!(count("SELECT * FROM c WHERE c.even = true AND c.n = 5"), 0);
        assert_eq!(count("SELECT * FROM c WHERE c.missing = true"), 0);
    }

    #[test]
    fn a_replaced_document_leaves_nothing_in_the_index() {
        let partition = partition(1, 0);
        let Value::Object(changed) = json!({ "n": 7 }) else { panic!("an object") };
        partition.load(b"0".to_vec(), changed, &Unstamped);
        let state = partition.lock();
        let holders = |n| state.index.proposals(&["n".to_owned()], &Scalar::Number(n));
        assert_eq!((holders(0.0), holders(7.0)), ([].as_slice(), [0].as_slice()));
    }

    #[test]
    fn a_page_is_cut_at_its_bytes_but_never_empty() {
        let partition = partition(5, MAX_PAGE_BYTES / 2);
        let page = partition.page(Duration::ZERO, &selection("SELECT * FROM c"), 1, 100).unwrap();
        assert_eq!((page.outcome.documents.len(), page.outcome.next), (1, Some(2)));
    }
}
