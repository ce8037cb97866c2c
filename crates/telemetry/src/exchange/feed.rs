//! From what was read to the store: in batches, one of which is under way while the next is read.
//!
//! With never more than one batch in the store's queue, the store is never too busy, so nothing is lost and nothing has
//! to be sent again.

use narrows_model::trace::{Span, SpanKind};

use super::formats::Records;
use super::kinds;
use crate::otlp::convert::cut;
use crate::{Receipt, Store};

/// Spans that make a batch.
const BATCH_SPANS: usize = 4_096;
/// Maximum number of spans that wait for the rest of their traces because some of them have no kind.
const WAITING_MAX: usize = 32_768;
/// How many complaints are kept word for word.
const COMPLAINTS_MAX: usize = 10;
/// The longest complaint, in bytes: a name in it may be of any length.
const COMPLAINT_BYTES_MAX: usize = 1 << 10;

/// Counts of files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportCounts {
    /// Number of spans that were kept.
    pub spans: u64,
    /// Number of spans that arrived again and were kept once.
    pub repeated: u64,
    /// Number of spans without a kind, which got the one that the change of services implies.
    pub without_kind: u64,
    /// Metric points that were kept.
    pub points: u64,
    /// Log lines that were kept.
    pub logs: u64,
    /// Records that made sense and were not kept, because a ceiling is reached.
    pub over_limit: u64,
    /// Lines, traces and records that made no sense.
    pub malformed: u64,
    /// Faults of the first of them, each with its place.
    pub complaints: Vec<String>,
}

impl ImportCounts {
    /// All that was kept.
    pub fn records(&self) -> u64 {
        self.spans + self.points + self.logs
    }

    /// Counts what made no sense.
    pub(super) fn complain(&mut self, malformed: u64, complaint: impl FnOnce() -> String) {
        self.malformed += malformed;
        if malformed > 0 && self.complaints.len() < COMPLAINTS_MAX {
            self.complaints.push(cut(complaint(), COMPLAINT_BYTES_MAX));
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Spans,
    Points,
    Logs,
}

/// Hands records to a store.
pub(super) struct Feed<'a> {
    store: &'a dyn Store,
    under_way: Option<(Kind, Receipt)>,
    spans: Vec<Span>,
    /// Spans that wait for the rest of their traces, from the first span without a kind on.
    waiting: Vec<Span>,
    /// Positions of the waiting spans without a kind.
    without_kind: Vec<usize>,
    /// Whether any span has a kind other than internal. Until then, internal spans count as spans without a kind: a program
    /// that makes its own spans often leaves the default.
    has_kinds: bool,
    /// Fate of everything so far.
    pub(super) imported: &'a mut ImportCounts,
    /// Records that were taken, whatever became of them.
    pub(super) taken: u64,
}

impl<'a> Feed<'a> {
    pub(super) fn new(store: &'a dyn Store, imported: &'a mut ImportCounts) -> Self {
        let (spans, waiting, without_kind) = (Vec::new(), Vec::new(), Vec::new());
        Self { store, under_way: None, spans, waiting, without_kind, has_kinds: false, imported, taken: 0 }
    }

    /// Adds the contents of one part of a document, except its complaint.
    pub(super) fn take(&mut self, records: Records) -> Result<(), String> {
        let Records { spans, without_kind, points, logs, over_limit, .. } = records;
        self.imported.over_limit += over_limit;
        self.taken += (spans.len() + points.len() + logs.len()) as u64;
        self.spans(spans, without_kind)?;
        self.push(Kind::Points, points.len(), |store| store.points(points))?;
        self.push(Kind::Logs, logs.len(), |store| store.logs(logs))
    }

    fn spans(&mut self, spans: Vec<Span>, without_kind: Vec<usize>) -> Result<(), String> {
        self.has_kinds |= spans.iter().any(|span| span.kind != SpanKind::Internal);
        let before = self.waiting.len();
        self.without_kind.extend(without_kind.into_iter().map(|at| before + at));
        self.waiting.extend(spans);
        let is_known = self.has_kinds && self.without_kind.is_empty();
        if is_known || self.waiting.len() >= WAITING_MAX { self.infer_kinds() } else { Ok(()) }
    }

    fn infer_kinds(&mut self) -> Result<(), String> {
        let (mut spans, mut without_kind) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.without_kind));
        if !self.has_kinds {
            without_kind = (0..spans.len()).collect();
        }
        kinds::infer(&mut spans, &without_kind);
        self.imported.without_kind += without_kind.len() as u64;
        self.batch(spans)
    }

    fn batch(&mut self, spans: Vec<Span>) -> Result<(), String> {
        self.spans.extend(spans);
        if self.spans.len() < BATCH_SPANS { Ok(()) } else { self.flush_spans() }
    }

    /// Hands over what waits and waits until it is kept.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.infer_kinds()?;
        self.flush_spans()?;
        self.settle()
    }

    fn flush_spans(&mut self) -> Result<(), String> {
        let spans = std::mem::take(&mut self.spans);
        self.push(Kind::Spans, spans.len(), |store| store.spans(spans))
    }

    fn push(&mut self, kind: Kind, records: usize, keep: impl FnOnce(&dyn Store) -> Receipt) -> Result<(), String> {
        if records == 0 {
            return Ok(());
        }
        self.settle()?;
        self.under_way = Some((kind, keep(self.store)));
        Ok(())
    }

    fn settle(&mut self) -> Result<(), String> {
        let Some((kind, receipt)) = self.under_way.take() else { return Ok(()) };
        let kept = receipt.blocking_recv().map_err(|_| "the run file was left unwritten".to_owned())?;
        let kept = kept.map_err(|refused| refused.to_string())?;
        let count = match kind {
            Kind::Spans => &mut self.imported.spans,
            Kind::Points => &mut self.imported.points,
            Kind::Logs => &mut self.imported.logs,
        };
        *count += kept.kept - kept.repeated;
        self.imported.repeated += kept.repeated;
        self.imported.over_limit += kept.over_limit;
        Ok(())
    }
}
