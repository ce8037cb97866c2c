//! Runs a query over documents: rows, filter, groups, order, window.
//!
//! A query without groups, order and DISTINCT streams: a page ends wherever it is full and the next goes on from the
//! document and row where it ended. The others are computed from all documents for each page, of which the page is a
//! part: sorted documents from the one after the last that was given, groups and distinct results by their count. Either
//! way [`Progress`] says how far the pages have come.

use std::ops::ControlFlow;

use super::ast::{Bound, Expression, Projection, Query, Rows};
use super::evaluate::{Context, Frame};
use super::result_collector::{ResultCollector, ResultWindow};
use super::rows::{self, Flow};
use super::sort_position::SortPosition;
use super::value::Value;
use super::{Allowance, Parameters, TooMuchWork};

/// The text one page may hold before it is cut, as in Cosmos DB.
pub(crate) const MAX_PAGE_BYTES: usize = 4 << 20;
/// Steps after which a page that streams ends before the next document, even if it is empty.
const STREAM_STEPS: u64 = 10_000_000;
/// Maximum memory of results, groups and rows before they become a page, in bytes.
pub(super) const MAX_STORED_BYTES: usize = 128 << 20;

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
pub(super) struct Window {
    pub(super) skip: u64,
    pub(super) end: u64,
}

impl Window {
    pub(super) fn of(query: &Query, context: &Context<'_>) -> Self {
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
pub(super) fn each_match(query: &Query, frame: &Frame<'_>, visit: &mut dyn FnMut(&Frame<'_>) -> Flow) -> Flow {
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
pub(super) fn printed(value: &Value, context: &Context<'_>) -> Result<Box<str>, TooMuchWork> {
    context.work(value.weight() / 8)?;
    let text = value.to_string();
    if text.len() > MAX_PAGE_BYTES { Err(TooMuchWork) } else { Ok(text.into()) }
}

/// The result for a row; undefined for none.
pub(super) fn project(query: &Query, frame: &Frame<'_>) -> Result<Value, TooMuchWork> {
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
