//! Runs a query over documents: rows, filter, groups, order, window.
//!
//! A query without groups, order and DISTINCT streams: a page ends wherever it is full and the next goes on from the
//! document and row where it ended. The others are computed from all documents for each page, of which the page is a
//! part: sorted documents from the one after the last that was given, groups and distinct results by their count. Either
//! way [`Progress`] says how far the pages have come.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::aggregates::Accumulator;
use super::ast::{AggregateCall, Bound, Expression, Projection, Query, Rows};
use super::evaluate::{Context, Frame, Scope};
use super::rows::{self, Flow};
use super::sort_position::SortPosition;
use super::value::Value;
use super::{Allowance, Parameters, TooMuchWork};

/// The text one page may hold before it is cut, as in Cosmos DB.
pub(crate) const MAX_PAGE_BYTES: usize = 4 << 20;
/// Steps after which a page that streams ends before the next document, even if it is empty.
const STREAM_STEPS: u64 = 10_000_000;
/// Maximum memory of results, groups and rows before they become a page, in bytes.
const MAX_STORED_BYTES: usize = 128 << 20;
/// Minimum number of results to keep before those beyond the page are dropped.
const KEPT_MIN: usize = 1_000;

/// How far the pages of a query have come on one partition.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Progress {
    /// The number of the document to go on with.
    pub(crate) number: u64,
    /// The row of that document to go on with.
    pub(crate) row: u32,
    /// Results that earlier pages gave or skipped.
    pub(crate) emitted: u64,
    /// The last of these, of results that are sorted.
    pub(crate) after: Option<Box<SortPosition>>,
}

impl Progress {
    fn at(number: u64, row: u32, emitted: u64) -> Self {
        Self { number, row, emitted, after: None }
    }
}

/// One page.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Box<str>>,
    /// Where each item stands, if the query [`is_sorted`].
    positions: Vec<SortPosition>,
    /// Where the next page starts, if there may be one.
    pub(crate) next: Option<Progress>,
    /// Documents that were read for this page and are no item of it.
    pub(crate) examined: usize,
}

/// A query bound to its parameters.
#[derive(Debug)]
pub(crate) struct Run<'q> {
    query: &'q Query,
    context: Context<'q>,
    window: Window,
}

/// The results that OFFSET, LIMIT and TOP let through.
#[derive(Debug, Clone, Copy)]
struct Window {
    skip: u64,
    end: u64,
}

impl Window {
    fn of(query: &Query, context: &Context<'_>) -> Self {
        let number = |bound: &Bound| match bound {
            Bound::Number(number) => *number,
            Bound::Parameter(name) => match context.parameter(name) {
                Value::Number(number) => *number as u64,
                _ => 0,
            },
        };
        match (&query.top, &query.offset_limit) {
            (Some(top), _) => Self { skip: 0, end: number(top) },
            (None, Some((offset, limit))) => {
                let skip = number(offset);
                Self { skip, end: skip.saturating_add(number(limit)) }
            }
            (None, None) => Self { skip: 0, end: u64::MAX },
        }
    }
}

impl<'q> Run<'q> {
    pub(crate) fn new(query: &'q Query, parameters: &'q Parameters, now_ticks: i64, allowance: Allowance) -> Self {
        let context = Context::new(parameters, now_ticks, allowance);
        let window = Window::of(query, &context);
        Self { query, context, window }
    }

    /// The first document a page needs.
    pub(crate) fn first(query: &Query, progress: &Progress) -> u64 {
        if is_gathered(query) { 0 } else { progress.number }
    }

    /// One page of up to `limit` results from `documents`, ascending from [`Run::first`] on, as far as they are admitted.
    pub(crate) fn page<'d>(
        &self,
        documents: impl Iterator<Item = (u64, &'d str)>,
        admits: Option<&dyn Fn(&Value) -> bool>,
        progress: &Progress,
        limit: usize,
    ) -> Result<Batch, TooMuchWork> {
        if is_gathered(self.query) {
            self.gathered(documents, admits, progress, limit)
        } else {
            self.streamed(documents, admits, progress, limit)
        }
    }

    fn streamed<'d>(
        &self,
        documents: impl Iterator<Item = (u64, &'d str)>,
        admits: Option<&dyn Fn(&Value) -> bool>,
        progress: &Progress,
        limit: usize,
    ) -> Result<Batch, TooMuchWork> {
        let mut stream = Stream { run: self, limit, bytes: 0, emitted: progress.emitted, batch: Batch::default() };
        let as_is = is_whole(self.query) && self.query.filter.is_none() && admits.is_none();
        for (number, text) in documents {
            let skipped = if number == progress.number { progress.row } else { 0 };
            if stream.emitted >= self.window.end {
                break;
            }
            if self.context.steps() > STREAM_STEPS {
                stream.batch.next = Some(Progress::at(number, skipped, stream.emitted));
                break;
            }
            let before = stream.emitted;
            let flow = if as_is {
                self.context.work(1)?;
                stream.offer(Progress::at(number, 0, before), text.into())
            } else {
                self.rows_of(&mut stream, number, text, admits, skipped)?
            };
            if flow.is_break() {
                break;
            }
            stream.batch.examined += usize::from(stream.emitted == before);
        }
        Ok(stream.batch)
    }

    fn rows_of(
        &self,
        stream: &mut Stream<'_, '_>,
        number: u64,
        text: &str,
        admits: Option<&dyn Fn(&Value) -> bool>,
        skipped: u32,
    ) -> Flow {
        let Some(document) = self.read(text, admits)? else { return Ok(ControlFlow::Continue(())) };
        let mut row = 0;
        each_match(self.query, &self.frame(&document), &mut |frame| {
            row += 1;
            if row <= skipped {
                return Ok(ControlFlow::Continue(()));
            }
            let output = if is_whole(self.query) { Some(text.into()) } else { projected(self.query, frame)? };
            let Some(output) = output else { return Ok(ControlFlow::Continue(())) };
            Ok(stream.offer(Progress::at(number, row - 1, stream.emitted), output))
        })
    }

    fn gathered<'d>(
        &self,
        documents: impl Iterator<Item = (u64, &'d str)>,
        admits: Option<&dyn Fn(&Value) -> bool>,
        progress: &Progress,
        limit: usize,
    ) -> Result<Batch, TooMuchWork> {
        // Results from the front that are given or skipped, if where the last one stands does not say it.
        let begin = if progress.after.is_some() { 0 } else { self.window.skip.saturating_add(progress.emitted) };
        let end = begin.saturating_add(self.left(progress));
        let needed = begin.saturating_add(limit as u64).saturating_add(1).min(end);
        let wanted = ResultWindow { results: needed, page_begin: Some(begin) };
        let mut gathering = ResultCollector::new(self.query, wanted, progress.after.as_deref());
        let mut read = 0;
        for (number, text) in documents {
            read += 1;
            let Some(document) = self.read(text, admits)? else { continue };
            let whole = is_whole(self.query).then_some(text);
            gathering.start(number);
            let _ = each_match(self.query, &self.frame(&document), &mut |frame| gathering.take(frame, whole))?;
        }
        let results = gathering.finish(&self.frame(&Value::Undefined))?.into_iter();
        let results = results.take(usize::try_from(end).unwrap_or(usize::MAX));
        let results = results.skip(usize::try_from(begin).unwrap_or(usize::MAX));
        let batch = self.filled(results.map(|result| (result.position, result.text)), progress, limit);
        Ok(Batch { examined: if progress.emitted == 0 { read } else { 0 }, ..batch })
    }

    /// How many results the window lets through after `progress`.
    fn left(&self, progress: &Progress) -> u64 {
        self.window.end.saturating_sub(self.window.skip.saturating_add(progress.emitted))
    }

    /// A page of the first of these results, which come after `progress`.
    fn filled(
        &self,
        results: impl Iterator<Item = (SortPosition, Box<str>)>,
        progress: &Progress,
        limit: usize,
    ) -> Batch {
        let mut batch = Batch::default();
        let mut bytes = 0;
        for (position, item) in results {
            let full = batch.items.len() >= limit || bytes + item.len() > MAX_PAGE_BYTES;
            if full && !batch.items.is_empty() {
                let next = Progress::at(0, 0, progress.emitted + batch.items.len() as u64);
                batch.next = Some(Progress { after: batch.positions.last().cloned().map(Box::new), ..next });
                break;
            }
            bytes += item.len();
            batch.items.push(item);
            if is_sorted(self.query) {
                batch.positions.push(position);
            }
        }
        batch
    }

    /// Merges pages of two partitions after the same `progress`, for a query that [`is_sorted`].
    pub(crate) fn merged(&self, pages: [Batch; 2], progress: &Progress, limit: usize) -> Batch {
        let is_more_there = pages.iter().any(|page| page.next.is_some());
        let order = |one: &SortPosition, other: &SortPosition| one.order(other, &self.query.order_by);
        // Later results are not known yet for a page that has a next one.
        let ends = pages.iter().filter(|page| page.next.is_some()).filter_map(|page| page.positions.last());
        let known_to = ends.min_by(|one, other| order(one, other)).cloned();
        let pages = pages.into_iter().flat_map(|page| page.positions.into_iter().zip(page.items));
        let is_known = |position: &SortPosition| known_to.as_ref().is_none_or(|end| order(position, end).is_le());
        let mut results: Vec<(SortPosition, Box<str>)> = pages.filter(|(position, _)| is_known(position)).collect();
        results.sort_by(|(one, _), (other, _)| order(one, other));
        results.truncate(usize::try_from(self.left(progress)).unwrap_or(usize::MAX));
        let mut batch = self.filled(results.into_iter(), progress, limit);
        let emitted = progress.emitted + batch.items.len() as u64;
        let is_within = emitted < self.window.end.saturating_sub(self.window.skip);
        if let Some(last) = batch.positions.last().filter(|_| is_more_there && is_within && batch.next.is_none()) {
            batch.next = Some(Progress { after: Some(Box::new(last.clone())), ..Progress::at(0, 0, emitted) });
        }
        batch
    }

    fn read(&self, text: &str, admits: Option<&dyn Fn(&Value) -> bool>) -> Result<Option<Value>, TooMuchWork> {
        self.context.work(1 + text.len() / 16)?;
        let document = serde_json::from_str::<Value>(text).ok();
        Ok(document.filter(|document| admits.is_none_or(|admits| admits(document))))
    }

    fn frame<'a>(&'a self, document: &'a Value) -> Frame<'a> {
        Frame { context: &self.context, document, scope: None, aggregates: &[] }
    }
}

/// A page that is being filled.
struct Stream<'r, 'q> {
    run: &'r Run<'q>,
    limit: usize,
    bytes: usize,
    emitted: u64,
    batch: Batch,
}

impl Stream<'_, '_> {
    /// Takes a result, skips it, or ends the page before it.
    fn offer(&mut self, progress: Progress, output: Box<str>) -> ControlFlow<()> {
        let window = self.run.window;
        if self.emitted >= window.end {
            return ControlFlow::Break(());
        }
        if self.emitted >= window.skip {
            let full = self.batch.items.len() >= self.limit || self.bytes + output.len() > MAX_PAGE_BYTES;
            if full && !self.batch.items.is_empty() {
                self.batch.next = Some(progress);
                return ControlFlow::Break(());
            }
            self.bytes += output.len();
            self.batch.items.push(output);
        }
        self.emitted += 1;
        ControlFlow::Continue(())
    }
}

/// Whether results depend on all rows.
pub(crate) fn is_gathered(query: &Query) -> bool {
    query.distinct || query.is_grouped || !query.order_by.is_empty()
}

/// Whether results are rows in an order, each of which stands where its values say.
pub(crate) fn is_sorted(query: &Query) -> bool {
    !query.order_by.is_empty() && !query.distinct && !query.is_grouped
}

/// Whether each result is a document as it is stored.
fn is_whole(query: &Query) -> bool {
    let [source] = query.sources.as_slice() else { return false };
    matches!(&source.rows, Rows::Below(Expression::Name(..)))
        && match &query.projection {
            Projection::Star => true,
            Projection::Value(Expression::Name(name, _)) => *name == source.alias,
            _ => false,
        }
}

/// Visits the rows of the frame's document that meet the filter.
fn each_match(query: &Query, frame: &Frame<'_>, visit: &mut dyn FnMut(&Frame<'_>) -> Flow) -> Flow {
    rows::each(&query.sources, frame, &mut |frame| match &query.filter {
        Some(filter) if !frame.evaluate(filter)?.is_true() => Ok(ControlFlow::Continue(())),
        _ => visit(frame),
    })
}

fn projected(query: &Query, frame: &Frame<'_>) -> Result<Option<Box<str>>, TooMuchWork> {
    let value = project(query, frame)?;
    if value.is_undefined() { Ok(None) } else { printed(&value, frame.context).map(Some) }
}

/// The JSON text of a result, which must fit on a page.
fn printed(value: &Value, context: &Context<'_>) -> Result<Box<str>, TooMuchWork> {
    context.work(value.weight() / 8)?;
    let text = value.to_string();
    if text.len() > MAX_PAGE_BYTES { Err(TooMuchWork) } else { Ok(text.into()) }
}

/// The result for a row; undefined for none.
fn project(query: &Query, frame: &Frame<'_>) -> Result<Value, TooMuchWork> {
    match &query.projection {
        Projection::Star => match frame.scope {
            Some(scope) => {
                frame.context.work(scope.value.weight() / 4)?;
                Ok(scope.value.clone())
            }
            None => Ok(Value::Undefined),
        },
        Projection::Value(expression) => frame.owned(expression),
        Projection::Items(items) => frame.object(items.iter().map(|item| (&item.name, &item.expression))),
    }
}

/// Results that are complete only once all rows are there.
struct ResultCollector<'q> {
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
struct ResultWindow {
    results: u64,
    /// The first result of the page, if only one page is needed.
    page_begin: Option<u64>,
}

struct SortedResult {
    position: SortPosition,
    text: Box<str>,
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
    fn new(query: &'q Query, wanted: ResultWindow, after: Option<&'q SortPosition>) -> Self {
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
    fn start(&mut self, number: u64) {
        (self.number, self.row) = (number, 0);
    }

    fn take(&mut self, frame: &Frame<'_>, whole: Option<&str>) -> Flow {
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
    fn finish(mut self, frame: &Frame<'_>) -> Result<Vec<SortedResult>, TooMuchWork> {
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

/// The results of a subquery in a row of the outer query.
pub(super) fn subquery(query: &Query, frame: &Frame<'_>) -> Result<Vec<Value>, TooMuchWork> {
    let window = Window::of(query, frame.context);
    if is_gathered(query) {
        let mut gathering = ResultCollector::new(query, ResultWindow { results: window.end, page_begin: None }, None);
        let _ = each_match(query, frame, &mut |frame| gathering.take(frame, None))?;
        let results = gathering.finish(frame)?;
        let within = results.iter().take(usize::try_from(window.end).unwrap_or(usize::MAX));
        let within = within.skip(usize::try_from(window.skip).unwrap_or(usize::MAX));
        let mut values = Vec::new();
        for result in within {
            // One byte may be half of a number with its comma.
            frame.context.work(result.text.len() * size_of::<Value>() / 16)?;
            // The text was printed as JSON, so it parses.
            values.extend(serde_json::from_str::<Value>(&result.text));
        }
        return Ok(values);
    }
    let (mut values, mut seen, mut stored_bytes) = (Vec::new(), 0, 0);
    let _ = each_match(query, frame, &mut |frame| {
        if seen >= window.end {
            return Ok(ControlFlow::Break(()));
        }
        let value = project(query, frame)?;
        if !value.is_undefined() {
            seen += 1;
            if seen > window.skip {
                stored_bytes += value.weight();
                if stored_bytes > MAX_STORED_BYTES {
                    return Err(TooMuchWork);
                }
                values.push(value);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(values)
}

/// Whether a subquery has any result.
pub(super) fn has_rows(query: &Query, frame: &Frame<'_>) -> Result<bool, TooMuchWork> {
    if is_gathered(query) || query.top.is_some() || query.offset_limit.is_some() {
        return Ok(!subquery(query, frame)?.is_empty());
    }
    Ok(each_match(query, frame, &mut |_| Ok(ControlFlow::Break(())))?.is_break())
}
