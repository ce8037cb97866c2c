//! Assignment of pool spans to requests.

use std::collections::{HashMap, HashSet};

use narrows_model::trace::{Forest, Span, SpanId, SpanKind, Trace, TraceId};

use crate::read::Reading;
use crate::read::calls::Handled;
use crate::read::pools::is_taking;

/// Pool spans by request, with the connections opened under them.
pub(super) struct Takings<'a> {
    /// Pool spans by trace and request span.
    by_request: HashMap<(TraceId, SpanId), Vec<&'a Span>>,
    /// Pool spans under no request, by trace and service, in order of start: only their time shows which request they
    /// belong to.
    strays: HashMap<(TraceId, &'a str), Vec<&'a Span>>,
    /// Start and end of openings, by pool span.
    openings: HashMap<SpanId, Vec<(i64, i64)>>,
}

impl<'a> Takings<'a> {
    pub(super) fn new(reading: &Reading<'a>) -> Self {
        let mut takings = Self { by_request: HashMap::new(), strays: HashMap::new(), openings: HashMap::new() };
        for trace in &reading.trial.traces {
            takings.add(trace);
        }
        takings.strays.values_mut().for_each(|spans| spans.sort_by_key(|span| span.start_ns));
        takings
    }

    /// Start and end of connection openings under a pool span.
    pub(super) fn openings(&self, span: &Span) -> impl Iterator<Item = (i64, i64)> {
        self.openings.get(&span.span_id).into_iter().flatten().copied()
    }

    fn add(&mut self, trace: &'a Trace) {
        let ids: HashSet<SpanId> = trace.spans.iter().filter(|span| is_taking(span)).map(|span| span.span_id).collect();
        if ids.is_empty() {
            return;
        }
        let forest = Forest::new(trace);
        for (at, span) in trace.spans.iter().enumerate() {
            if let Some(parent) = span.parent_id.filter(|parent| ids.contains(parent)) {
                self.openings.entry(parent).or_default().push((span.start_ns, span.end_ns));
            } else if ids.contains(&span.span_id) {
                match entry_above(&forest, at) {
                    Some(entry) => self.by_request.entry((trace.id, entry.span_id)).or_default().push(span),
                    None => self.strays.entry((trace.id, &span.service)).or_default().push(span),
                }
            }
        }
    }

    /// The pool spans that are part of a request.
    pub(super) fn within(&self, handled: &Handled<'a>) -> Vec<&'a Span> {
        let (entry, trace_id) = (handled.request.entry, handled.request.trace.id);
        let own = self.by_request.get(&(trace_id, entry.span_id)).into_iter().flatten();
        let own = own.filter(|span| (entry.start_ns..=entry.end_ns).contains(&span.start_ns));
        let strays = self.strays.get(&(trace_id, entry.service.as_str())).map_or(&[][..], Vec::as_slice);
        let from = strays.partition_point(|span| span.start_ns < entry.start_ns);
        own.chain(strays[from..].iter().take_while(|span| span.start_ns <= entry.end_ns)).copied().collect()
    }
}

/// The span of the request that contains this span: the nearest server or consumer span above it in its service, else
/// the topmost.
fn entry_above<'a>(forest: &Forest<'a>, at: usize) -> Option<&'a Span> {
    let service = &forest.span(at).service;
    let above = forest.upwards(at).skip(1).map(|above| forest.span(above));
    let mut topmost = None;
    for span in above.take_while(|span| span.service == *service) {
        topmost = Some(span);
        if matches!(span.kind, SpanKind::Server | SpanKind::Consumer) {
            break;
        }
    }
    topmost
}
