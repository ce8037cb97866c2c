//! Turns the spans that wait in a file ([`super::packed_requests`]) into rows.

use std::path::Path;
use std::time::Duration;

use narrows_model::run::RunState;
use narrows_model::trace::Span;
use rusqlite::ErrorCode;

use super::bounds::Bounds;
use super::error::{Error, Result};
use super::packed_requests::{SLICE_SPANS, Size};
use super::reader::run_of;
use super::rows::Rows;
use super::{Limits, open};
use crate::KeptCounts;
use crate::otlp::convert::{PackedSpans, unpack};

/// How long to wait for another process that does the same: a file holds a few seconds of it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

impl Rows {
    /// Keeps spans packed, or as rows when they may not wait; the others as rows.
    pub(super) fn put_packed(&mut self, trial: i64, packed: &PackedSpans, others: &[Span]) -> Result<KeptCounts> {
        if self.may_wait(trial, Size::from_packed(packed), others.len() as u64)? {
            let wrap = self.wrap();
            self.inbox.put(&self.connection, trial, packed).map_err(wrap)?;
            let kept = if others.is_empty() { KeptCounts::default() } else { self.put_spans(trial, others)? };
            return Ok(KeptCounts { kept: kept.kept + packed.spans() as u64, ..kept });
        }
        let spans = packed.unpack().map_err(|error| Error::damaged(self.path(), error.to_string()))?;
        let (first, second) = (self.put_cleaned(trial, spans)?, self.put_spans(trial, others)?);
        Ok(first + second)
    }

    /// Whether spans may wait. Before those that may not are written, a trial that nears its ceiling has none that wait:
    /// they came earlier.
    fn may_wait(&mut self, trial: i64, packed: Size, others: u64) -> Result<bool> {
        let stored = self.enter_spans(trial)?;
        let wrap = self.wrap();
        let max = self.limits.waiting;
        let waiting = self.inbox.size(&self.connection).map_err(&wrap)?.spans;
        let all = stored.saturating_add(waiting).saturating_add(packed.spans).saturating_add(others);
        if all > self.limits.spans {
            while self.settle_some()? > 0 {}
            return Ok(false);
        }
        if !self.has_much_room(packed.spans)? {
            self.inbox.drain();
        }
        self.inbox.has_room(&self.connection, packed, max).map_err(wrap)
    }

    /// Turns about [`SLICE_SPANS`] of the spans that wait into rows. Says how many; 0 when none waits.
    pub(super) fn settle_some(&mut self) -> Result<u64> {
        let mut settled = 0;
        while settled < SLICE_SPANS {
            let wrap = self.wrap();
            let Some(waiting) = self.inbox.take(&self.connection).map_err(wrap)? else { break };
            let mut spans = Vec::new();
            unpack(&waiting.packed, |span| spans.push(span)).map_err(|error| self.unreadable(waiting.id, &error))?;
            if spans.len() as u64 != waiting.size.spans {
                let what = format!("{} spans, expected {}", spans.len(), waiting.size.spans);
                return Err(self.unreadable(waiting.id, &what));
            }
            self.put_cleaned(waiting.trial, spans)?;
            settled += waiting.size.spans;
        }
        Ok(settled)
    }

    /// Turns all spans that wait into rows, some in each transaction.
    pub(super) fn settle_all(&mut self) -> Result<()> {
        loop {
            let settled = self.begin().and_then(|()| self.settle_some());
            let committed = settled.and_then(|settled| self.commit().map(|()| settled));
            match committed {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => {
                    self.roll_back();
                    return Err(error);
                }
            }
        }
    }

    fn unreadable(&self, id: i64, what: &dyn std::fmt::Display) -> Error {
        Error::damaged(
            self.path(),
            format!("spans that wait for their rows cannot be read (inbox_rows, id {id}): {what}"),
        )
    }
}

/// Turns all spans that wait in a file that nobody writes into rows, in one transaction. When somebody writes it after
/// all, nothing is done.
pub(super) fn settle(path: &Path, waiting: u64) -> Result<()> {
    settle_at_once(path).map_err(|error| match error {
        Error::DiskFull(path) => Error::Unsettled { path, waiting },
        Error::Database { reason, .. } if is_read_only(&reason) => Error::Unsettled { path: path.to_owned(), waiting },
        error => error,
    })
}

fn settle_at_once(path: &Path) -> Result<()> {
    let connection = open::for_writing(path, Bounds::of_file(path))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| Error::sqlite(path, error))?;
    let mut rows = Rows::new(connection, path, Limits::default());
    rows.begin()?;
    let (run, owner) = run_of(&rows.connection).map_err(rows.wrap())?;
    if run.state == RunState::Running && owner.is_alive() {
        rows.roll_back();
        return Ok(());
    }
    while rows.settle_some()? > 0 {}
    rows.commit()
}

/// Whether the file's location is read-only.
fn is_read_only(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}
