//! Folds old data, so that a run of hours takes little more space in the file, and little more memory to read, than a
//! run of minutes.
//!
//! The distributions of each second are what grows with time. Buckets add, so those of a minute are moved to the row in
//! its middle; every second keeps its counts, sums and extremes. Windows consist of whole seconds between boundaries
//! that are known when the load begins, and no minute crosses a boundary: the distribution of a window is the same
//! before and after.
//!
//! Of a minute's sampled requests, as many are kept as for one second: the slowest, some errors, and an even selection
//! that represents the rest. Of the points of a series in a long window, one every five seconds is kept, which is
//! enough for means and medians.
//!
//! Folding handles one minute at a time, between commits, ten minutes behind the newest second of the load or of the
//! sampler.

mod samples;

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::series::{SeriesKey, names};
use rusqlite::{Connection, OptionalExtension, params};

use self::samples::{Candidate, chosen};

pub(super) const SECOND_NS: i64 = 1_000_000_000;
/// Age up to which nothing is folded.
const RECENT_NS: i64 = 600 * SECOND_NS;
/// Length of the interval that is folded into one row.
const MINUTE_NS: i64 = 60 * SECOND_NS;
/// One point of a series is kept per interval of this length: the first.
const POINT_EVERY_NS: i64 = 5 * SECOND_NS;
/// Length of a window from which a part of its points is enough.
const LONG_NS: i64 = 300 * SECOND_NS;
/// Maximum number of boundaries of a trial; a trial with more is no longer folded.
const BOUNDARIES_MAX: usize = 10_000;

/// The trial that is folded, and how far.
#[derive(Debug, Default)]
pub(super) struct Folding {
    of_trial: Option<OfTrial>,
}

#[derive(Debug)]
struct OfTrial {
    trial: i64,
    boundaries_ns: BTreeSet<i64>,
    /// The end of the newest second of the load, or the newest point of the sampler, whichever is later.
    newest_ns: i64,
    cursor: Cursor,
}

/// The progress of folding a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cursor {
    /// Start of the first second that is not folded.
    load_ns: i64,
    /// Start of the points that are not thinned out; `None` before the first point.
    points_ns: Option<i64>,
    /// End of a second before which nothing is due.
    due_ns: i64,
}

/// One step of folding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    cursor: Cursor,
    /// Number of samples that were deleted.
    pub(super) samples: u64,
    /// Number of points that were deleted.
    pub(super) points: u64,
}

/// Seconds that are folded together: those that start from `from_ns` up to `to_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Minute {
    from_ns: i64,
    to_ns: i64,
    /// Start of the next minute.
    next_ns: i64,
}

impl Folding {
    /// Folds this trial, and no other, from now on. Adds boundaries if it is already being folded.
    pub(super) fn begin(&mut self, trial: i64, boundaries_ns: &[i64]) {
        let known = self.of_trial.take().filter(|of_trial| of_trial.trial == trial);
        let mut of_trial = known.unwrap_or_else(|| OfTrial {
            trial,
            boundaries_ns: BTreeSet::new(),
            newest_ns: i64::MIN,
            cursor: Cursor { load_ns: i64::MIN, points_ns: None, due_ns: i64::MIN + 1 },
        });
        of_trial.boundaries_ns.extend(boundaries_ns);
        self.of_trial = Some(of_trial).filter(|of_trial| of_trial.boundaries_ns.len() <= BOUNDARIES_MAX);
    }

    /// Records the end of a second of the load.
    pub(super) fn see(&mut self, trial: i64, end_ns: i64) {
        if let Some(of_trial) = self.of_trial.as_mut().filter(|of_trial| of_trial.trial == trial) {
            of_trial.newest_ns = of_trial.newest_ns.max(end_ns);
        }
    }

    /// Records a point. Only points of the sampler advance the time, because other clocks may be wrong.
    pub(super) fn see_point(&mut self, trial: i64, key: &SeriesKey, time_ns: i64) {
        let Some(of_trial) = self.of_trial.as_mut().filter(|of_trial| of_trial.trial == trial) else { return };
        let is_news = of_trial.cursor.points_ns.is_none() || time_ns > of_trial.newest_ns;
        if is_news && names::SAMPLED.contains(&(key.name.as_str(), key.unit.as_str())) {
            of_trial.newest_ns = of_trial.newest_ns.max(time_ns);
            of_trial.cursor.points_ns.get_or_insert(time_ns);
        }
    }

    /// Ends folding a trial.
    pub(super) fn forget(&mut self, trial: i64) {
        self.of_trial = self.of_trial.take().filter(|of_trial| of_trial.trial != trial);
    }

    /// The trial that may have data to fold.
    pub(super) fn due(&self) -> Option<i64> {
        let due = self.of_trial.as_ref().filter(|of_trial| of_trial.newest_ns >= of_trial.cursor.due_ns)?;
        Some(due.trial)
    }

    /// Folds the next minute of load and the next of points. Call it within a transaction, and [`Self::advance`] after
    /// the commit.
    pub(super) fn step(&self, connection: &Connection) -> rusqlite::Result<Step> {
        let Some(of_trial) = &self.of_trial else { return Err(rusqlite::Error::QueryReturnedNoRows) };
        let mut step = Step { cursor: of_trial.cursor, samples: 0, points: 0 };
        let (load, points) = (of_trial.next_of_load(connection)?, of_trial.next_of_points());
        if let Some(minute) = load.filter(|minute| of_trial.is_old(*minute)) {
            fold_seconds(connection, of_trial.trial, minute)?;
            step.samples = thin_samples(connection, of_trial.trial, minute)?;
            step.cursor.load_ns = minute.next_ns;
        }
        if let Some(minute) = points.filter(|minute| of_trial.is_old(*minute)) {
            if of_trial.is_within_long(minute) {
                step.points = thin_points(connection, of_trial.trial, minute)?;
            }
            step.cursor.points_ns = Some(minute.next_ns);
        }
        let next = [load, points].into_iter().flatten().map(|minute| minute.next_ns).min();
        let next_ns = next.unwrap_or(of_trial.newest_ns);
        step.cursor.due_ns = next_ns.saturating_add(RECENT_NS);
        Ok(step)
    }

    /// Records a committed step.
    pub(super) fn advance(&mut self, step: Step) {
        if let Some(of_trial) = &mut self.of_trial {
            of_trial.cursor = step.cursor;
        }
    }
}

impl OfTrial {
    fn is_old(&self, minute: Minute) -> bool {
        minute.next_ns <= self.newest_ns.saturating_sub(RECENT_NS)
    }

    /// The next minute of load; `None` if it has no more seconds. It starts with an existing second, so that pauses
    /// cost nothing.
    fn next_of_load(&self, connection: &Connection) -> rusqlite::Result<Option<Minute>> {
        let sql = "SELECT start_ns FROM load_second_rows WHERE trial = ?1 AND start_ns >= ?2 ORDER BY start_ns LIMIT 1";
        let mut find = connection.prepare_cached(sql)?;
        let first = find.query_row(params![self.trial, self.cursor.load_ns], |row| row.get::<_, i64>(0)).optional()?;
        Ok(first.map(|first_ns| self.minute_from(first_ns)))
    }

    /// The minute that begins with a second, shortened at the next boundary. A second that crosses the boundary belongs
    /// to neither side.
    fn minute_from(&self, first_ns: i64) -> Minute {
        let to_ns = first_ns.saturating_add(MINUTE_NS);
        match self.boundaries_ns.range(first_ns + 1..=to_ns).next() {
            Some(boundary_ns) => {
                Minute { from_ns: first_ns, to_ns: boundary_ns - SECOND_NS + 1, next_ns: *boundary_ns }
            }
            None => Minute { from_ns: first_ns, to_ns, next_ns: to_ns },
        }
    }

    /// Whether a minute is between two boundaries that are far apart. A median over a shorter interval needs every
    /// point.
    fn is_within_long(&self, minute: Minute) -> bool {
        let before = self.boundaries_ns.range(..=minute.from_ns).next_back();
        match self.boundaries_ns.range(minute.from_ns + 1..).next() {
            Some(next_ns) => {
                let from_ns = before.copied().unwrap_or(minute.from_ns);
                *next_ns >= minute.to_ns && next_ns.saturating_sub(from_ns) >= LONG_NS
            }
            None => true,
        }
    }

    fn next_of_points(&self) -> Option<Minute> {
        let from_ns = self.cursor.points_ns?;
        let to_ns = from_ns.saturating_add(MINUTE_NS);
        Some(Minute { from_ns, to_ns, next_ns: to_ns })
    }
}

/// Moves the buckets of each request's seconds to the second in the middle.
fn fold_seconds(connection: &Connection, trial: i64, minute: Minute) -> rusqlite::Result<()> {
    let find = "SELECT scenario, request, id FROM load_second_rows \
                WHERE trial = ?1 AND start_ns >= ?2 AND start_ns < ?3 ORDER BY start_ns, id";
    let mut seconds: BTreeMap<(i64, Option<i64>), Vec<i64>> = BTreeMap::new();
    let mut find = connection.prepare_cached(find)?;
    let mut rows = find.query(params![trial, minute.from_ns, minute.to_ns])?;
    while let Some(row) = rows.next()? {
        seconds.entry((row.get(0)?, row.get(1)?)).or_default().push(row.get(2)?);
    }
    let mut add = connection.prepare_cached(
        "INSERT INTO load_latency_rows (second, measure, lower_ns, upper_ns, count) \
         SELECT ?1, measure, lower_ns, upper_ns, count FROM load_latency_rows WHERE second = ?2 \
         ON CONFLICT (second, measure, lower_ns) DO UPDATE SET count = count + excluded.count",
    )?;
    let mut remove = connection.prepare_cached("DELETE FROM load_latency_rows WHERE second = ?1")?;
    for ids in seconds.values() {
        let holder = ids[ids.len() / 2];
        for other in ids.iter().filter(|id| **id != holder) {
            add.execute([holder, *other])?;
            remove.execute([other])?;
        }
    }
    Ok(())
}

/// Keeps a selection of each request's samples. Returns the number of deleted ones.
fn thin_samples(connection: &Connection, trial: i64, minute: Minute) -> rusqlite::Result<u64> {
    let find = "SELECT scenario, request, id, done_ns - intended_ns, error IS NOT NULL, weight FROM sample_rows \
                WHERE trial = ?1 AND intended_ns >= ?2 AND intended_ns < ?3 ORDER BY intended_ns, id";
    let mut samples: BTreeMap<(i64, Option<i64>), Vec<Candidate>> = BTreeMap::new();
    let mut find = connection.prepare_cached(find)?;
    let mut rows = find.query(params![trial, minute.from_ns, minute.next_ns])?;
    while let Some(row) = rows.next()? {
        let candidate =
            Candidate { id: row.get(2)?, latency_ns: row.get(3)?, has_failed: row.get(4)?, weight: row.get(5)? };
        samples.entry((row.get(0)?, row.get(1)?)).or_default().push(candidate);
    }
    let mut weigh = connection.prepare_cached("UPDATE sample_rows SET weight = ?2 WHERE id = ?1")?;
    let mut remove = connection.prepare_cached("DELETE FROM sample_rows WHERE id = ?1")?;
    let mut gone = 0;
    for candidates in samples.values() {
        let kept = chosen(candidates);
        for candidate in candidates {
            match kept.get(&candidate.id) {
                Some(weight) => {
                    weigh.execute(params![candidate.id, weight])?;
                }
                None => gone += remove.execute([candidate.id])? as u64,
            }
        }
    }
    Ok(gone)
}

/// Keeps one point of each series per interval. Returns the number of deleted ones. The up/down series of replicas is
/// kept whole, because it cannot be averaged.
fn thin_points(connection: &Connection, trial: i64, minute: Minute) -> rusqlite::Result<u64> {
    let mut series = connection.prepare_cached("SELECT id FROM series WHERE trial = ?1 AND name <> ?2")?;
    let ids: Vec<i64> =
        series.query_map(params![trial, names::REPLICA_UP], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut remove = connection.prepare_cached(
        "DELETE FROM points WHERE id IN (SELECT id FROM (SELECT id, \
         row_number() OVER (PARTITION BY time_ns / ?4 ORDER BY time_ns, id) AS place FROM points \
         WHERE series = ?1 AND time_ns >= ?2 AND time_ns < ?3) WHERE place > 1)",
    )?;
    let mut gone = 0;
    for id in ids {
        gone += remove.execute(params![id, minute.from_ns, minute.to_ns, POINT_EVERY_NS])? as u64;
    }
    Ok(gone)
}
