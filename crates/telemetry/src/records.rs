//! Telemetry on its way from the machine where it was seen to the one that writes it down.

use std::sync::Arc;

use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::Span;
use serde::{Deserialize, Serialize};

use crate::Store;
use crate::run_file::clean;

/// Records of each kind, by one clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Records {
    /// Spans.
    pub spans: Vec<Span>,
    /// Points of series.
    pub points: Vec<(SeriesKey, Point)>,
    /// Log lines.
    pub logs: Vec<LogLine>,
}

impl Records {
    /// How many there are.
    pub fn len(&self) -> u64 {
        (self.spans.len() + self.points.len() + self.logs.len()) as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds others.
    pub fn append(&mut self, mut others: Records) {
        self.spans.append(&mut others.spans);
        self.points.append(&mut others.points);
        self.logs.append(&mut others.logs);
    }

    /// Blanks secrets and cuts texts, as the run file does: before they leave the machine.
    pub fn clean(&mut self) {
        clean(&mut self.spans, &mut self.points, &mut self.logs);
    }

    /// Moves all times to a clock that shows so many nanoseconds less.
    pub fn shift_back(&mut self, offset_ns: i64) {
        let spans = self.spans.iter_mut().flat_map(|span| [&mut span.start_ns, &mut span.end_ns]);
        let points = self.points.iter_mut().map(|(_, point)| &mut point.time_ns);
        let logs = self.logs.iter_mut().map(|line| &mut line.time_ns);
        spans.chain(points).chain(logs).for_each(|at_ns| *at_ns = at_ns.saturating_sub(offset_ns));
    }

    /// Hands them to a store, which counts what it refuses.
    pub fn keep(self, store: &Arc<dyn Store>) {
        if !self.spans.is_empty() {
            drop(store.spans(self.spans));
        }
        if !self.points.is_empty() {
            drop(store.points(self.points));
        }
        if !self.logs.is_empty() {
            drop(store.logs(self.logs));
        }
    }
}
