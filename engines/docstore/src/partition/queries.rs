//! Pages of queries on one partition. The candidates are the documents that the index proposes, or all, ordered by
//! number.
//!
//! A short page is made under the partition's lock, like every other request. A long one is made on a separate thread
//! from a snapshot, without the lock: it is admitted when it begins and booked when it ends.

use std::sync::Arc;

use super::state::{State, as_position, parsed};
use super::texts::Texts;
use super::{Completed, Partition, Refusal, Undone};
use crate::charge::Charge;
use crate::index::entries_of;
use crate::moment::{Moment, Pace};
use crate::query::Selection;
use crate::sql::{Allowance, Batch, Equality, Progress, TooMuchWork, Watch};

/// Number of slots that are indexed in one step while other requests wait.
const INDEX_SLOTS: usize = 256;
/// Maximum number of conditions that the index resolves for one page: those with the fewest documents. The filter
/// checks all conditions again.
const CONDITIONS_MAX: usize = 8;
/// Maximum number of proposals of one condition that are looked up in the others.
const LOOKED_UP_MAX: usize = 1 << 16;
/// Maximum number of lookups while other requests wait: proposals of one condition times lists of the others.
const BRIEF_LOOKUPS: usize = 1 << 14;

type PageResult = Result<Batch, TooMuchWork>;

impl Partition {
    /// Reads up to `limit` results from `progress` on.
    ///
    /// [`Refusal::Long`] means that nothing was done, because it takes longer than the pace of `moment` allows.
    pub(crate) fn query(
        &self,
        moment: &Moment,
        selection: &Selection,
        progress: &Progress,
        limit: usize,
    ) -> Result<Completed<PageResult>, Refusal> {
        match moment.pace() {
            Pace::Brief => self.brief_query(moment, selection, progress, limit).inspect_err(|refused| {
                if *refused == Refusal::Long {
                    moment.defer();
                }
            }),
            Pace::Long(watch) => self.long_query(moment, watch, selection, progress, limit),
        }
    }

    fn brief_query(
        &self,
        moment: &Moment,
        selection: &Selection,
        progress: &Progress,
        limit: usize,
    ) -> Result<Completed<PageResult>, Refusal> {
        self.metered(moment, |state| {
            let conditions = state.conditions(selection);
            if state.indexed.is_some() || conditions.lookups() > BRIEF_LOOKUPS {
                return Err(Undone::Long);
            }
            let candidates = state.candidates(conditions, selection, progress);
            let page = candidates.page(&state.documents, selection, progress, limit, Allowance::brief());
            let batch = page.map_err(|TooMuchWork| Undone::Long)?;
            let charge = Charge::query_page(batch.items.len(), batch.examined);
            Ok((Ok(batch), charge))
        })
    }

    fn long_query(
        &self,
        moment: &Moment,
        watch: &Watch,
        selection: &Selection,
        progress: &Progress,
        limit: usize,
    ) -> Result<Completed<PageResult>, Refusal> {
        while self.index_some() {}
        let (lsn, candidates, documents) = {
            let state = self.admitted(moment)?;
            let conditions = state.conditions(selection);
            (state.lsn, state.candidates(conditions, selection, progress), state.documents.clone())
        };
        let batch = candidates.page(&documents, selection, progress, limit, Allowance::long(watch.clone()));
        let charge = match &batch {
            Ok(batch) => Charge::query_page(batch.items.len(), batch.examined),
            Err(TooMuchWork) => Charge::query_page(0, documents.len()),
        };
        let mut state = self.lock();
        if state.is_retired {
            return Err(Refusal::Moved);
        }
        if watch.is_abandoned() {
            return Err(Refusal::Long);
        }
        let done = state.booked(moment, batch, charge)?;
        Ok(Completed { lsn, ..done })
    }

    /// Adds some of the slots that the index does not have yet. Returns whether any may remain. Reads their texts
    /// without the lock.
    fn index_some(&self) -> bool {
        let (first, texts): (u32, Vec<Arc<str>>) = {
            let mut state = self.lock();
            let Some(first) = state.indexed else { return false };
            let texts: Vec<_> = state.documents.from(first).take(INDEX_SLOTS).map(Arc::clone).collect();
            if texts.is_empty() {
                state.indexed = None;
                return false;
            }
            (first, texts)
        };
        let entries = texts.iter().map(|text| entries_of(&parsed(text)));
        let read: Vec<(&Arc<str>, Vec<u128>)> = texts.iter().zip(entries).collect();
        let mut state = self.lock();
        if state.indexed == Some(first) {
            for (position, (text, entries)) in (first..).zip(read) {
                if position as usize >= state.documents.len() {
                    break;
                }
                let now = Arc::clone(&state.documents[position as usize]);
                let entries = if Arc::ptr_eq(&now, text) { entries } else { entries_of(&parsed(&now)) };
                state.index.insert(position, entries);
                state.indexed = Some(position + 1);
            }
        }
        true
    }
}

/// Conditions that the index resolves: for each, the documents of every value. Conditions with the fewest come first.
struct Conditions<'a>(Vec<Vec<&'a [u32]>>);

impl Conditions<'_> {
    fn proposals(lists: &[&[u32]]) -> usize {
        lists.iter().map(|list| list.len()).sum()
    }

    /// Number of lookups of proposals of the first condition among those of the others.
    fn lookups(&self) -> usize {
        let Some((first, others)) = self.0.split_first() else { return 0 };
        let lists: usize = others.iter().map(Vec::len).sum();
        Self::proposals(first).min(LOOKED_UP_MAX).saturating_mul(lists)
    }

    /// Positions from `first` on that may meet all conditions, ascending; `None` if there is no condition.
    fn holders(&self, first: u32) -> Option<Vec<u32>> {
        let (shortest, others) = self.0.split_first()?;
        let mut positions = Vec::new();
        for list in shortest {
            positions.extend_from_slice(&list[list.partition_point(|&position| position < first)..]);
        }
        // These are ascending lists one after another, which a stable sort merges.
        positions.sort();
        positions.dedup();
        if positions.len() <= LOOKED_UP_MAX {
            let is_among =
                |position: u32, lists: &[&[u32]]| lists.iter().any(|list| list.binary_search(&position).is_ok());
            positions.retain(|&position| others.iter().all(|lists| is_among(position, lists)));
        }
        Some(positions)
    }
}

/// The slots that a page must examine.
enum Candidates {
    /// From the first to the second, exclusive.
    All(u32, u32),
    Proposed(Vec<u32>),
}

impl Candidates {
    fn page(
        &self,
        documents: &Texts,
        selection: &Selection,
        progress: &Progress,
        limit: usize,
        allowance: Allowance,
    ) -> PageResult {
        let read = |position: u32| documents.document(position);
        match self {
            Self::All(first, end) => selection.page((*first..*end).filter_map(read), progress, limit, allowance),
            Self::Proposed(positions) => {
                selection.page(positions.iter().copied().filter_map(read), progress, limit, allowance)
            }
        }
    }
}

impl State {
    fn conditions(&self, selection: &Selection) -> Conditions<'_> {
        let mut conditions: Vec<Vec<&[u32]>> =
            selection.indexed().iter().map(|condition| self.lists_of(condition)).collect();
        conditions.sort_by_key(|lists| Conditions::proposals(lists));
        conditions.truncate(CONDITIONS_MAX);
        // A condition with many lists would need a lookup in each of them for every proposal.
        let mut place = 0;
        conditions.retain(|lists| {
            place += 1;
            place == 1 || lists.len() <= CONDITIONS_MAX
        });
        Conditions(conditions)
    }

    /// The documents that may meet a condition, one list per value.
    fn lists_of(&self, condition: &Equality) -> Vec<&[u32]> {
        condition.values.iter().map(|value| self.index.proposals(&condition.path, value)).collect()
    }

    fn candidates(&self, conditions: Conditions<'_>, selection: &Selection, progress: &Progress) -> Candidates {
        let first = self.position_of(selection.first(progress));
        match conditions.holders(first) {
            Some(positions) => Candidates::Proposed(positions),
            None => Candidates::All(first, as_position(self.documents.len())),
        }
    }
}
