//! How many records of a trial were stored and how many refused, exactly.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::words::{self, signed};

/// Records of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// In the file.
    pub stored: u64,
    /// Arrived beyond the trial's ceiling, or found the queue full and do not come again.
    pub refused: u64,
}

/// Records of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Spans; one that is sent twice is stored once.
    pub spans: Count,
    /// Spans that are neither stored nor refused: their traces were thinned out, and others stand for them.
    pub thinned: u64,
    /// Points of all series.
    pub points: Count,
    /// Log lines.
    pub logs: Count,
    /// Sampled requests.
    pub samples: Count,
}

impl Counts {
    /// The counts of a trial; `None` if there is no such trial.
    pub(super) fn load(connection: &Connection, trial: i64) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT spans_stored, spans_refused, points_stored, points_refused, \
                   logs_stored, logs_refused, samples_stored, samples_refused, spans_thinned FROM trials WHERE id = ?1";
        connection.prepare_cached(sql)?.query_row([trial], Self::from_row).optional()
    }

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let count = |at: usize| -> rusqlite::Result<Count> {
            Ok(Count { stored: row.get::<_, words::Count>(at)?.0, refused: row.get::<_, words::Count>(at + 1)?.0 })
        };
        let thinned = row.get::<_, words::Count>(8)?.0;
        Ok(Self { spans: count(0)?, thinned, points: count(2)?, logs: count(4)?, samples: count(6)? })
    }

    pub(super) fn save(&self, connection: &Connection, trial: i64) -> rusqlite::Result<()> {
        let sql = "UPDATE trials SET spans_stored = ?2, spans_refused = ?3, points_stored = ?4, points_refused = ?5, \
                   logs_stored = ?6, logs_refused = ?7, samples_stored = ?8, samples_refused = ?9, spans_thinned = ?10 WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![
            trial,
            signed(self.spans.stored),
            signed(self.spans.refused),
            signed(self.points.stored),
            signed(self.points.refused),
            signed(self.logs.stored),
            signed(self.logs.refused),
            signed(self.samples.stored),
            signed(self.samples.refused),
            signed(self.thinned),
        ])?;
        Ok(())
    }
}
