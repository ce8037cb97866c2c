//! Pages of queries on one partition: the documents the index proposes, else all, in the order of their numbers.

use super::state::State;
use super::{Done, Partition, Refused};
use crate::charge::Charge;
use crate::moment::Moment;
use crate::query::Selection;
use crate::sql::{Batch, Equality, Progress, TooMuchWork};

impl Partition {
    /// Reads up to `limit` results from where `progress` stands.
    pub(crate) fn query(
        &self,
        moment: &Moment,
        selection: &Selection,
        progress: &Progress,
        limit: usize,
    ) -> Result<Done<Result<Batch, TooMuchWork>>, Refused> {
        self.metered(moment, |state| {
            state.ensure_index();
            let batch = state.query(selection, progress, limit);
            let charge = match &batch {
                Ok(batch) => Charge::query_page(batch.items.len(), batch.examined),
                Err(TooMuchWork) => Charge::query_page(0, state.documents.len()),
            };
            Some((batch, charge))
        })
    }
}

impl State {
    fn query(&self, selection: &Selection, progress: &Progress, limit: usize) -> Result<Batch, TooMuchWork> {
        let first = self.position_of(selection.first(progress));
        let mut lists: Vec<Vec<u32>> = selection.indexed().iter().map(|equality| self.holders(equality)).collect();
        lists.sort_by_key(Vec::len);
        let read = |position: u32| {
            let text = &*self.documents[position as usize];
            // A vacant slot has no text.
            (!text.is_empty()).then(|| (self.entries[position as usize].number, text))
        };
        let Some((shortest, others)) = lists.split_first() else {
            let end = u32::try_from(self.documents.len()).unwrap_or(u32::MAX);
            return selection.page((first..end).filter_map(read), progress, limit);
        };
        let rest = &shortest[shortest.partition_point(|&position| position < first)..];
        let in_all = |position: &u32| others.iter().all(|list| list.binary_search(position).is_ok());
        selection.page(rest.iter().copied().filter(in_all).filter_map(read), progress, limit)
    }

    /// The positions that may hold one of the values, ascending.
    fn holders(&self, equality: &Equality) -> Vec<u32> {
        let lists = equality.values.iter().map(|value| self.index.proposals(&equality.path, value));
        let mut positions: Vec<u32> = lists.flatten().copied().collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }
}
