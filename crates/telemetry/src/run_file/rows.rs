//! The tables as the writer thread sees them: transactions, ceilings, and the rows of telemetry.
//!
//! Run-level rows are in `calls.rs`. Counts and caches belong to the trial last written to; a rollback forgets them all,
//! so that they never say more than the file.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::Span;
use rusqlite::{Connection, OptionalExtension, params};

use super::Limits;
use super::counts::{Count, Counts};
use super::error::{Error, Result};
use super::folding::{Folding, Step};
use super::intern::Strings;
use super::packed_requests::Inbox;
use super::queue::Losses;
use super::redaction::Record;
use super::spans::{Ceiling, Context, Spans};
use super::words::json;
use crate::KeptCounts;
use crate::secrets::KnownSecrets;

/// The connection and what the writer knows of its content.
pub(super) struct Rows {
    pub(super) connection: Connection,
    pub(super) strings: Strings,
    pub(super) inbox: Inbox,
    spans: Spans,
    pub(super) folding: Folding,
    pub(super) limits: Limits,
    path: PathBuf,
    current: Option<Current>,
}

/// State of the trial last written to.
struct Current {
    trial: i64,
    counts: Counts,
    /// The counts as they are in the file.
    saved: Counts,
    series: HashMap<SeriesKey, i64>,
    series_count: u64,
}

impl Rows {
    pub(super) fn new(connection: Connection, path: &Path, limits: Limits) -> Self {
        Self {
            connection,
            strings: Strings::default(),
            inbox: Inbox::default(),
            spans: Spans::default(),
            folding: Folding::default(),
            limits,
            path: path.to_owned(),
            current: None,
        }
    }

    pub(super) fn into_connection(self) -> Connection {
        self.connection
    }

    pub(super) fn begin(&self) -> Result<()> {
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute([]))
            .map_err(self.wrap())?;
        Ok(())
    }

    pub(super) fn commit(&mut self) -> Result<()> {
        self.save_counts()?;
        self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])).map_err(self.wrap())?;
        Ok(())
    }

    /// Takes the transaction back. It may be gone already: SQLite takes it back itself after some errors.
    pub(super) fn roll_back(&mut self) {
        self.strings.forget();
        self.spans.forget();
        self.inbox.forget();
        self.current = None;
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Says which file an SQLite error is about.
    pub(super) fn wrap(&self) -> impl Fn(rusqlite::Error) -> Error + use<> {
        let path = self.path.clone();
        move |source| Error::sqlite(&path, source)
    }

    /// Forgets a trial without saving what was counted for it.
    pub(super) fn forget_trial(&mut self, trial: i64) {
        self.current = self.current.take().filter(|current| current.trial != trial);
        self.spans.forget();
        self.inbox.forget();
        self.folding.forget(trial);
    }

    /// Makes a trial the one that is written to. Errors, before anything is written, when it is not in the file.
    pub(super) fn enter(&mut self, trial: i64) -> Result<()> {
        if self.current.as_ref().is_some_and(|current| current.trial == trial) {
            return Ok(());
        }
        let counts = Counts::load(&self.connection, trial).map_err(self.wrap())?.ok_or(Error::UnknownTrial(trial))?;
        self.save_counts()?;
        let count_series = "SELECT count(*) FROM series WHERE trial = ?1";
        let series_count: i64 =
            self.connection.query_row(count_series, [trial], |row| row.get(0)).map_err(self.wrap())?;
        let series_count = series_count.unsigned_abs();
        self.current = Some(Current { trial, counts, saved: counts, series: HashMap::new(), series_count });
        Ok(())
    }

    fn save_counts(&mut self) -> Result<()> {
        let wrap = self.wrap();
        self.spans.save(&self.connection).map_err(&wrap)?;
        match &mut self.current {
            Some(current) if current.counts != current.saved => {
                current.saved = current.counts;
                current.counts.save(&self.connection, current.trial).map_err(wrap)
            }
            _ => Ok(()),
        }
    }

    /// Counts what was refused before it came here, as refused. Of a trial that is not in the file nothing is said.
    pub(super) fn count_lost(&mut self, lost: &BTreeMap<i64, Losses>) -> Result<()> {
        for (trial, lost) in lost {
            match self.enter(*trial) {
                Err(Error::UnknownTrial(_)) => continue,
                entered => entered?,
            }
            if let Some(current) = &mut self.current {
                current.counts.points.refused += lost.points;
                current.counts.logs.refused += lost.logs;
            }
        }
        Ok(())
    }

    /// Writes items one by one until the trial's ceiling, and counts. `write` says how many rows it added.
    pub(super) fn keep<T>(
        &mut self,
        trial: i64,
        items: impl IntoIterator<Item = T>,
        ceiling: impl Fn(&Limits) -> u64,
        count: impl Fn(&mut Counts) -> &mut Count,
        mut write: impl FnMut(&Connection, &mut Strings, T) -> rusqlite::Result<usize>,
    ) -> Result<KeptCounts> {
        self.enter(trial)?;
        let wrap = self.wrap();
        let ceiling = ceiling(&self.limits);
        let mut kept = KeptCounts::default();
        let Some(current) = &mut self.current else { return Err(Error::UnknownTrial(trial)) };
        let count = count(&mut current.counts);
        for item in items {
            if count.stored >= ceiling {
                count.refused += 1;
                kept.over_limit += 1;
                continue;
            }
            count.stored += write(&self.connection, &mut self.strings, item).map_err(&wrap)? as u64;
            kept.kept += 1;
        }
        Ok(kept)
    }

    pub(super) fn put_spans(&mut self, trial: i64, spans: &[Span]) -> Result<KeptCounts> {
        self.enter(trial)?;
        let wrap = self.wrap();
        let Some(current) = &mut self.current else { return Err(Error::UnknownTrial(trial)) };
        let mut context = Context {
            connection: &self.connection,
            strings: &mut self.strings,
            counts: &mut current.counts,
            ceiling: Ceiling { spans: self.limits.spans, bytes: self.limits.bytes },
        };
        self.spans.put(&mut context, trial, spans).map_err(wrap)
    }

    /// Cleans spans as the door cleans those that come as such, and writes them.
    pub(super) fn put_cleaned(&mut self, trial: i64, mut spans: Vec<Span>) -> Result<KeptCounts> {
        // Packed spans hold no known secret: those that do are not packed.
        spans.iter_mut().for_each(|span| span.clean(&KnownSecrets::default()));
        self.put_spans(trial, &spans)
    }

    /// Makes a trial the one that spans are written to, and says how many of it are stored.
    pub(super) fn enter_spans(&mut self, trial: i64) -> Result<u64> {
        self.enter(trial)?;
        let wrap = self.wrap();
        let Some(current) = &self.current else { return Err(Error::UnknownTrial(trial)) };
        self.spans.enter(&self.connection, self.limits.bytes, trial).map_err(wrap)?;
        Ok(current.counts.spans.stored)
    }

    /// Whether the trial that spans are written to has taken little of its share of the file.
    pub(super) fn has_much_room(&mut self, spans: u64) -> Result<bool> {
        let wrap = self.wrap();
        self.spans.has_much_room(&self.connection, spans).map_err(wrap)
    }

    /// Housekeeping between commits: turns waiting spans into rows if there are too many, else thins out stored traces
    /// if the file nears its limit, and folds old data. Each call does a little, in a separate transaction. If that
    /// fails, it is rolled back and retried after the next commit, so the error is not reported.
    pub(super) fn tidy(&mut self) {
        self.tidy_spans();
        // A failed attempt is repeated later; the file is consistent without it.
        let _ = self.fold();
    }

    fn tidy_spans(&mut self) {
        let tidied = match (self.inbox.is_draining(), self.spans.wants_room()) {
            (true, _) => self.begin().and_then(|()| self.settle_some().map(drop)),
            (false, Some(trial)) => self.begin().and_then(|()| self.thin_trial(trial)),
            (false, None) => return,
        };
        if tidied.and_then(|()| self.commit()).is_err() {
            self.roll_back();
        }
    }

    /// Folds the oldest minute that is due, in a separate transaction. `None` if none is due.
    fn fold(&mut self) -> Result<Option<Step>> {
        let Some(trial) = self.folding.due() else { return Ok(None) };
        let folded = self.begin().and_then(|()| self.fold_some(trial)).and_then(|step| self.commit().map(|()| step));
        match folded {
            Ok(step) => self.folding.advance(step),
            Err(_) => self.roll_back(),
        }
        folded.map(Some)
    }

    fn fold_some(&mut self, trial: i64) -> Result<Step> {
        self.enter(trial)?;
        let step = self.folding.step(&self.connection).map_err(self.wrap())?;
        let Some(current) = &mut self.current else { return Err(Error::UnknownTrial(trial)) };
        current.counts.samples.stored = current.counts.samples.stored.saturating_sub(step.samples);
        current.counts.points.stored = current.counts.points.stored.saturating_sub(step.points);
        Ok(step)
    }

    fn thin_trial(&mut self, trial: i64) -> Result<()> {
        self.enter(trial)?;
        let wrap = self.wrap();
        let Some(current) = &mut self.current else { return Err(Error::UnknownTrial(trial)) };
        let mut context = Context {
            connection: &self.connection,
            strings: &mut self.strings,
            counts: &mut current.counts,
            ceiling: Ceiling { spans: self.limits.spans, bytes: self.limits.bytes },
        };
        self.spans.thin(&mut context).map_err(wrap)
    }

    pub(super) fn put_logs(&mut self, trial: i64, lines: Vec<LogLine>) -> Result<KeptCounts> {
        let sql = "INSERT INTO log_rows (trial, time_ns, service, replica, stream, severity, text, trace_id) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        self.keep(
            trial,
            lines,
            |limits| limits.logs,
            |counts| &mut counts.logs,
            |connection, strings, line| {
                connection.prepare_cached(sql)?.execute(params![
                    trial,
                    line.time_ns,
                    strings.id(connection, &line.service)?,
                    line.replica,
                    line.stream.as_str(),
                    strings.id(connection, &line.severity)?,
                    line.text,
                    line.trace_id,
                ])
            },
        )
    }

    pub(super) fn put_points(&mut self, trial: i64, points: Vec<(SeriesKey, Point)>) -> Result<KeptCounts> {
        self.enter(trial)?;
        let wrap = self.wrap();
        let Some(current) = &mut self.current else { return Err(Error::UnknownTrial(trial)) };
        let mut kept = KeptCounts::default();
        for (key, point) in points {
            self.folding.see_point(trial, &key, point.time_ns);
            let has_room = current.counts.points.stored < self.limits.points;
            let series = match has_room {
                true => current.series_id(&self.connection, key, self.limits.series).map_err(&wrap)?,
                false => None,
            };
            match series {
                Some(series) => {
                    insert_point(&self.connection, series, point).map_err(&wrap)?;
                    current.counts.points.stored += 1;
                    kept.kept += 1;
                }
                None => {
                    current.counts.points.refused += 1;
                    kept.over_limit += 1;
                }
            }
        }
        Ok(kept)
    }
}

impl Current {
    /// The id of a series, which is added when it is new; `None` if the trial has as many as it may.
    fn series_id(&mut self, connection: &Connection, key: SeriesKey, max: u64) -> rusqlite::Result<Option<i64>> {
        if let Some(id) = self.series.get(&key) {
            return Ok(Some(*id));
        }
        let columns = params![self.trial, key.name, key.unit, key.service, key.replica, json(&key.labels)];
        let find = "SELECT id FROM series WHERE trial = ?1 AND name = ?2 AND unit = ?3 AND service = ?4 \
                    AND replica = ?5 AND labels = ?6";
        let found = connection.prepare_cached(find)?.query_row(columns, |row| row.get(0)).optional()?;
        let id = match found {
            Some(id) => id,
            None if self.series_count >= max => return Ok(None),
            None => {
                let insert = "INSERT INTO series (trial, name, unit, service, replica, labels) \
                              VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                self.series_count += 1;
                connection.prepare_cached(insert)?.insert(columns)?
            }
        };
        self.series.insert(key, id);
        Ok(Some(id))
    }
}

fn insert_point(connection: &Connection, series: i64, point: Point) -> rusqlite::Result<usize> {
    // SQLite turns "not a number" into NULL by itself.
    let sql = "INSERT INTO points (series, time_ns, value) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![series, point.time_ns, point.value])
}
