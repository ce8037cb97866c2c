//! The number of each trace in the file.
//!
//! Two generations of the traces seen last are remembered: spans of a trace come within seconds of each other. What was
//! forgotten is looked up.

use std::collections::HashMap;

use narrows_model::trace::{TraceId, hex};
use rusqlite::{Connection, OptionalExtension, params};

use super::key_hash::HashKeys;

/// Most traces of one generation.
const GENERATION_MAX: usize = 65_536;

/// A trace that is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownTrace {
    pub(super) id: i64,
}

/// The traces of one trial.
#[derive(Debug, Default)]
pub(super) struct Traces {
    recent: HashMap<TraceId, KnownTrace, HashKeys>,
    older: HashMap<TraceId, KnownTrace, HashKeys>,
}

impl Traces {
    /// A trace that was seen not long ago.
    pub(super) fn recall(&mut self, trace: &TraceId) -> Option<KnownTrace> {
        if let Some(known) = self.recent.get(trace) {
            return Some(*known);
        }
        let known = self.older.remove(trace)?;
        self.remember(trace, known);
        Some(known)
    }

    /// A trace that is in the file, but is not remembered.
    pub(super) fn find(
        &mut self,
        connection: &Connection,
        trial: i64,
        trace: &TraceId,
    ) -> rusqlite::Result<Option<KnownTrace>> {
        let found = find(connection, trial, trace)?;
        found.into_iter().for_each(|known| self.remember(trace, known));
        Ok(found)
    }

    /// A trace that is in the file, or is added to it and stands for so many.
    pub(super) fn find_or_add(
        &mut self,
        connection: &Connection,
        trial: i64,
        trace: &TraceId,
        weight: u32,
    ) -> rusqlite::Result<KnownTrace> {
        let insert = "INSERT INTO trace_rows (trial, trace_id, weight) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let known = match connection.prepare_cached(insert)?.execute(params![trial, trace, weight])? {
            0 => find(connection, trial, trace)?.unwrap_or(KnownTrace { id: 0 }),
            _ => KnownTrace { id: connection.last_insert_rowid() },
        };
        self.remember(trace, known);
        Ok(known)
    }

    /// A trace is not in the file any more.
    pub(super) fn remove(&mut self, trace: &TraceId) {
        self.recent.remove(trace);
        self.older.remove(trace);
    }

    /// Needed after a rollback, which takes traces back, and when another trial begins.
    pub(super) fn forget(&mut self) {
        self.recent.clear();
        self.older.clear();
    }

    fn remember(&mut self, trace: &TraceId, known: KnownTrace) {
        if self.recent.len() >= GENERATION_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(*trace, known);
    }
}

fn find(connection: &Connection, trial: i64, trace: &TraceId) -> rusqlite::Result<Option<KnownTrace>> {
    let sql = "SELECT id FROM trace_rows WHERE trace_hex = ?1 AND trial = ?2";
    let mut find = connection.prepare_cached(sql)?;
    find.query_row(params![hex(trace), trial], |row| Ok(KnownTrace { id: row.get(0)? })).optional()
}
