//! Results of queries with groups, an order or DISTINCT, which are complete only once all rows are there.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::TooMuchWork;
use super::aggregates::Accumulator;
use super::ast::{AggregateCall, Query};
use super::evaluate::{Context, Frame, Scope};
use super::rows::Flow;
use super::run::{MAX_PAGE_BYTES, MAX_STORED_BYTES, printed, project};
use super::sort_position::SortPosition;
use super::value::Value;

/// Minimum number of results to keep before those beyond the page are dropped.
const KEPT_MIN: usize = 1_000;

/// The results so far, and what is needed of them.
pub(super) struct ResultCollector<'q> {
    query: &'q Query,
    /// The aggregates of SELECT.
    calls: Vec<&'q AggregateCall>,
    wanted: ResultWindow,
    /// Memory used so far, in bytes.
    stored_bytes: usize,
    /// Results up to here were given.
    after: Option<&'q SortPosition>,
    /// The document and row that is being taken.
    number: u64,
    row: u32,
    results: Vec<SortedResult>,
    seen: HashSet<String>,
    groups: Vec<Group>,
    places: HashMap<String, usize>,
}

/// The results that are needed, from the first in order.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResultWindow {
    pub(super) results: u64,
    /// The first result of the page, if only one page is needed.
    pub(super) page_begin: Option<u64>,
}

pub(super) struct SortedResult {
    pub(super) position: SortPosition,
    pub(super) text: Box<str>,
    /// Equal for equal results; set only for `DISTINCT` with an order.
    canonical: String,
}

impl SortedResult {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.position.weight() + self.text.len() + self.canonical.len()
    }
}

/// Rows with equal values of GROUP BY: the first of them, and what its aggregates have gathered.
struct Group {
    row: Vec<(String, Value)>,
    accumulators: Vec<Accumulator>,
}

impl Group {
    fn bytes(&self) -> usize {
        let row: usize = self.row.iter().map(|(name, value)| size_of::<String>() + name.len() + value.weight()).sum();
        size_of::<Self>() + row + self.accumulators.len() * size_of::<Accumulator>()
    }
}

impl<'q> ResultCollector<'q> {
    pub(super) fn new(query: &'q Query, wanted: ResultWindow, after: Option<&'q SortPosition>) -> Self {
        Self {
            query,
            calls: query.aggregates(),
            wanted,
            stored_bytes: 0,
            after,
            number: 0,
            row: 0,
            results: Vec::new(),
            seen: HashSet::new(),
            groups: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Counts newly used memory.
    fn store(&mut self, bytes: usize) -> Result<(), TooMuchWork> {
        self.stored_bytes += bytes;
        if self.stored_bytes > MAX_STORED_BYTES { Err(TooMuchWork) } else { Ok(()) }
    }

    /// The rows of document number `number` come next.
    pub(super) fn start(&mut self, number: u64) {
        (self.number, self.row) = (number, 0);
    }

    pub(super) fn take(&mut self, frame: &Frame<'_>, whole: Option<&str>) -> Flow {
        if self.query.is_grouped {
            self.group(frame)?;
            return Ok(ControlFlow::Continue(()));
        }
        if whole.is_some() && !self.query.distinct {
            // Only the text of the document is needed.
            self.add(frame, &Value::Null, whole)?;
            return Ok(ControlFlow::Continue(()));
        }
        let value = project(self.query, frame)?;
        if !value.is_undefined() {
            self.add(frame, &value, whole)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn add(&mut self, frame: &Frame<'_>, value: &Value, whole: Option<&str>) -> Result<(), TooMuchWork> {
        let mut keys = Vec::with_capacity(self.query.order_by.len());
        for key in &self.query.order_by {
            keys.push(frame.owned(&key.expression)?);
        }
        let position = SortPosition { keys, number: self.number, row: self.row };
        self.row += 1;
        frame.context.work(position.weight() / 8)?;
        if self.after.is_some_and(|after| position.order(after, &self.query.order_by).is_le()) {
            return Ok(());
        }
        let mut canonical = String::new();
        if self.query.distinct {
            frame.context.work(value.weight() / 4)?;
            canonical = value.canonical();
        }
        // Without an order, the first of equal results is the one that counts.
        if self.query.distinct && position.keys.is_empty() {
            if self.seen.contains(&canonical) {
                return Ok(());
            }
            self.store(size_of::<String>() + canonical.len())?;
            self.seen.insert(std::mem::take(&mut canonical));
        }
        let text = match whole {
            Some(text) => {
                frame.context.work(text.len() / 64)?;
                text.into()
            }
            None => printed(value, frame.context)?,
        };
        let result = SortedResult { position, text, canonical };
        self.stored_bytes += result.bytes();
        self.results.push(result);
        self.drop_unwanted(frame.context)
    }

    /// Drops results that are not needed, if that is worth the effort.
    fn drop_unwanted(&mut self, context: &Context<'_>) -> Result<(), TooMuchWork> {
        let most = usize::try_from(self.wanted.results).unwrap_or(usize::MAX);
        let is_crowded = self.results.len() / 2 > most.max(KEPT_MIN);
        if self.query.distinct || !(is_crowded || self.stored_bytes > MAX_STORED_BYTES) {
            return self.store(0);
        }
        // Half of the sorted results are dropped each time, so repeated sorting costs no more than sorting once.
        self.sort(context)?;
        let end = self.end_of_page().min(most);
        let dropped = self.results.drain(end.min(self.results.len())..);
        self.stored_bytes -= dropped.map(|result| result.bytes()).sum::<usize>();
        if self.stored_bytes > MAX_STORED_BYTES / 2 { Err(TooMuchWork) } else { Ok(()) }
    }

    /// Number of sorted results to keep: those that fit on the page, and one to show that there are more.
    fn end_of_page(&self) -> usize {
        let Some(begin) = self.wanted.page_begin else { return usize::MAX };
        let begin = usize::try_from(begin).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let last = self.results.iter().enumerate().skip(begin).find(|(_, result)| {
            bytes += result.text.len();
            bytes > MAX_PAGE_BYTES
        });
        last.map_or(usize::MAX, |(place, _)| place + 2)
    }

    fn group(&mut self, frame: &Frame<'_>) -> Result<(), TooMuchWork> {
        let mut key = String::new();
        for expression in &self.query.group_by {
            key.push_str(&frame.owned(expression)?.canonical());
            key.push('\n');
        }
        let place = match self.places.get(&key) {
            Some(&place) => place,
            None => {
                frame.context.work(key.len() / 8 + self.calls.len())?;
                let group = Group { row: row_of(frame)?, accumulators: self.accumulators() };
                self.store(2 * key.len() + group.bytes())?;
                self.places.insert(key, self.groups.len());
                self.groups.push(group);
                self.groups.len() - 1
            }
        };
        let mut grown = 0;
        for (call, accumulator) in self.calls.iter().zip(&mut self.groups[place].accumulators) {
            let value = frame.evaluate(&call.argument)?;
            frame.context.work(value.weight() / 8)?;
            grown += accumulator.add(&value);
        }
        self.store(grown)
    }

    fn accumulators(&self) -> Vec<Accumulator> {
        self.calls.iter().map(|call| Accumulator::new(call.function)).collect()
    }

    fn sort(&mut self, context: &Context<'_>) -> Result<(), TooMuchWork> {
        let order_by = &self.query.order_by;
        let rounds = self.results.len().max(2).ilog2() as usize;
        let keys: usize = self.results.iter().map(|result| result.position.weight()).sum();
        context.work(keys / 32 * rounds)?;
        self.results.sort_by(|one, other| one.position.order(&other.position, order_by));
        Ok(())
    }

    /// All results in their order, before the window.
    pub(super) fn finish(mut self, frame: &Frame<'_>) -> Result<Vec<SortedResult>, TooMuchWork> {
        if self.query.is_grouped {
            // Aggregates without GROUP BY have one group even of no rows.
            if self.groups.is_empty() && self.query.group_by.is_empty() {
                self.groups.push(Group { row: Vec::new(), accumulators: self.accumulators() });
            }
            self.stored_bytes = 0;
            for group in std::mem::take(&mut self.groups) {
                let results: Vec<Value> = group.accumulators.iter().map(Accumulator::result).collect();
                let frame = Frame { aggregates: &results, ..*frame };
                let value = in_row(&group.row, &frame, &mut |frame| project(self.query, frame))?;
                if !value.is_undefined() {
                    self.add(&frame, &value, None)?;
                }
            }
        }
        self.sort(frame.context)?;
        if self.query.distinct && !self.query.order_by.is_empty() {
            let mut seen = HashSet::new();
            self.results.retain(|result| seen.insert(result.canonical.clone()));
        }
        Ok(self.results)
    }
}

/// The names and values of a row, the innermost last.
fn row_of(frame: &Frame<'_>) -> Result<Vec<(String, Value)>, TooMuchWork> {
    let mut row = Vec::new();
    let mut scope = frame.scope;
    while let Some(inner) = scope {
        frame.context.work(inner.value.weight() / 4)?;
        row.push((inner.name.to_owned(), inner.value.clone()));
        scope = inner.outer;
    }
    row.reverse();
    Ok(row)
}

/// Evaluates within a row that was kept.
fn in_row(
    row: &[(String, Value)],
    frame: &Frame<'_>,
    evaluate: &mut dyn FnMut(&Frame<'_>) -> Result<Value, TooMuchWork>,
) -> Result<Value, TooMuchWork> {
    let Some(((name, value), others)) = row.split_first() else { return evaluate(frame) };
    let scope = Scope { name, value, outer: frame.scope };
    in_row(others, &Frame { scope: Some(&scope), ..*frame }, evaluate)
}
