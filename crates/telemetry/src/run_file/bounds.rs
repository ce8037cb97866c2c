//! Limits of reading a run file: time, memory, and the length of one value.
//!
//! Run files come from other people. Even one with the right tables can make SQLite work without end, because its pages
//! can refer to each other and so hold a few rows a billion times. Every connection that reads a run file is therefore
//! bounded, and this is the only place that does it; `narrows query` requests narrower bounds.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use narrows_model::units;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, Params, Result, Row};

/// The longest value or row that is read, in bytes; the longest that is written are the spans of one OTLP request.
const VALUE_BYTES_MAX: i32 = 128 << 20;
/// The longest statement, also of those that a file declares, in bytes.
const SQL_BYTES_MAX: i32 = 1 << 20;
/// Bytes that rows that were read may hold in memory together.
const COLLECTED_BYTES_MAX: usize = 4 << 30;
/// Rows of a table that has few: trials of a run, windows or replicas of a trial.
const FEW_ROWS_MAX: usize = 10_000;
/// Bytes that SQLite itself may hold in memory, all connections of the process together.
const HEAP_BYTES_MAX: u64 = 1 << 30;
/// The time that reading the smallest file may take.
const TIME_LEAST: Duration = Duration::from_secs(60);
/// The time that each further MiB of a file may take.
const TIME_OF_MIB: Duration = Duration::from_millis(300);
/// The time that reading the largest file may take.
const TIME_MOST: Duration = Duration::from_secs(3600);
/// Steps of SQLite's machine between two looks at the clock; a step is well below a microsecond.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

/// How far reading may go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The time of one reading call, without what its caller does meanwhile.
    pub(super) time: Duration,
    /// The longest value or row, in bytes.
    pub(super) value_bytes: i32,
    /// Bytes that rows that were read may hold together.
    pub(super) collected_bytes: usize,
}

impl Bounds {
    /// Bounds that an honest file of this size stays far below. An unknown size counts as small.
    pub(super) fn of_file(path: &Path) -> Self {
        let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let mib = u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        let time = TIME_LEAST.saturating_add(TIME_OF_MIB.saturating_mul(mib)).min(TIME_MOST);
        Self { time, value_bytes: VALUE_BYTES_MAX, collected_bytes: COLLECTED_BYTES_MAX }
    }
}

/// Sets the limits that hold for every connection to a file that others may have written. Nothing is read for it.
pub(super) fn distrust(connection: &Connection, value_bytes: i32) -> Result<()> {
    for (setting, is_on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    ] {
        connection.set_db_config(setting, is_on)?;
    }
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, value_bytes),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES_MAX),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }
    connection.execute_batch(&format!("PRAGMA cell_size_check = ON; PRAGMA hard_heap_limit = {HEAP_BYTES_MAX}"))
}

/// A connection that reads within bounds.
#[derive(Debug)]
pub(super) struct BoundedConnection {
    connection: Connection,
    clock: Arc<Clock>,
    /// Reading calls that are under way, one within the other.
    depth: Cell<u32>,
    collected: Cell<usize>,
    bounds: Bounds,
}

impl BoundedConnection {
    /// Bounds a connection, whose time begins now.
    pub(super) fn new(mut connection: Connection, bounds: Bounds) -> Result<Self> {
        distrust(&connection, bounds.value_bytes)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        // Otherwise, a statement is planned again whenever a value changes, such as that of its LIMIT.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        let clock = Arc::new(Clock::new(bounds.time));
        stop_with(&mut connection, Arc::clone(&clock))?;
        Ok(Self { connection, clock, depth: Cell::new(0), collected: Cell::new(0), bounds })
    }

    /// Begins a reading call, which ends with what is returned. Within another one it has what is left of that one's time
    /// and memory.
    pub(super) fn begin(&self) -> Call<'_> {
        if self.depth.get() == 0 {
            self.clock.restart(self.bounds.time);
            self.collected.set(0);
        }
        self.depth.set(self.depth.get() + 1);
        Call(self)
    }

    /// Does something that is no reading, and takes no time of it.
    pub(super) fn pause<T>(&self, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = work();
        self.clock.extend(begun.elapsed());
        done
    }

    /// Counts bytes that the rows read by this call hold in memory. Errors when they are too many.
    pub(super) fn collect(&self, bytes: usize) -> Result<()> {
        let collected = self.collected.get().saturating_add(bytes);
        self.collected.set(collected);
        if collected <= self.bounds.collected_bytes {
            return Ok(());
        }
        let most = units::bytes(self.bounds.collected_bytes as f64);
        Err(rusqlite::Error::UserFunctionError(format!("its rows need more than {most} of memory").into()))
    }

    /// How many bytes were counted so far.
    pub(super) fn collected(&self) -> usize {
        self.collected.get()
    }

    /// All rows of a query.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.rows_at_most(usize::MAX, sql, parameters, map)
    }

    /// All rows of a query that has few. Errors when there are more than [`FEW_ROWS_MAX`].
    pub(super) fn few_rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.rows_at_most(FEW_ROWS_MAX, sql, parameters, map)
    }

    fn rows_at_most<T>(
        &self,
        rows_max: usize,
        sql: &str,
        parameters: impl Params,
        mut map: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut found = statement.query(parameters)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            if rows.len() == rows_max {
                let what = format!("a table has more than {rows_max} rows, expected fewer");
                return Err(rusqlite::Error::UserFunctionError(what.into()));
            }
            self.collect(size_of::<T>() + text_bytes(row)?)?;
            rows.push(map(row)?);
        }
        Ok(rows)
    }
}

/// The bytes of the texts and blobs of a row.
fn text_bytes(row: &Row<'_>) -> Result<usize> {
    use rusqlite::types::ValueRef::{Blob, Text};
    (0..row.as_ref().column_count()).try_fold(0, |bytes, at| match row.get_ref(at)? {
        Text(value) | Blob(value) => Ok(bytes + value.len()),
        _ => Ok(bytes),
    })
}

impl Deref for BoundedConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for BoundedConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

/// A reading call under way.
#[derive(Debug)]
pub(super) struct Call<'a>(&'a BoundedConnection);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.0.depth.get().saturating_sub(1));
    }
}

/// Stops whatever a connection does once the clock has run out.
fn stop_with(connection: &mut Connection, clock: Arc<Clock>) -> Result<()> {
    connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || clock.is_over()))
}

/// Stops whatever a connection that writes does after `time`.
pub(super) fn stop_after(connection: &mut Connection, time: Duration) -> Result<()> {
    stop_with(connection, Arc::new(Clock::new(time)))
}

/// When a reading call must end.
#[derive(Debug)]
struct Clock {
    made: Instant,
    /// In nanoseconds after `made`.
    end_ns: AtomicU64,
}

impl Clock {
    fn new(time: Duration) -> Self {
        let clock = Self { made: Instant::now(), end_ns: AtomicU64::new(0) };
        clock.restart(time);
        clock
    }

    fn restart(&self, time: Duration) {
        self.end_ns.store(nanoseconds(self.made.elapsed().saturating_add(time)), Ordering::Relaxed);
    }

    fn extend(&self, time: Duration) {
        let end_ns = self.end_ns.load(Ordering::Relaxed).saturating_add(nanoseconds(time));
        self.end_ns.store(end_ns, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        nanoseconds(self.made.elapsed()) >= self.end_ns.load(Ordering::Relaxed)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDLESS: &str = "WITH RECURSIVE t (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x FROM t";

    fn bounded(time: Duration, collected_bytes: usize) -> BoundedConnection {
        let bounds = Bounds { time, value_bytes: 1 << 20, collected_bytes };
        BoundedConnection::new(Connection::open_in_memory().unwrap(), bounds).unwrap()
    }

    #[test]
    fn reading_ends_when_its_time_or_its_memory_is_spent() {
        let brief = bounded(Duration::from_millis(50), usize::MAX);
        let call = brief.begin();
        let error = brief.query_row(&format!("SELECT sum(x % 7) FROM ({ENDLESS})"), [], |_| Ok(())).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::OperationInterrupted), "{error}");
        drop(call);
        let _call = brief.begin();
        brief.query_row("SELECT 1", [], |_| Ok(())).expect("the next call has its own time");

        let narrow = bounded(Duration::from_secs(3600), 1 << 20);
        let error = narrow.rows(ENDLESS, [], |row| row.get::<_, i64>(0)).unwrap_err();
        assert!(error.to_string().contains("its rows need more than 1.00 MiB"), "{error}");
        let error = narrow.query_row("SELECT zeroblob(2000000)", [], |_| Ok(())).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::TooBig), "{error}");
    }

    #[test]
    fn a_larger_file_may_take_longer_but_not_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        assert_eq!(Bounds::of_file(&path).time, TIME_LEAST);
        for (mib, expected) in [(0, TIME_LEAST), (10, TIME_LEAST + 10 * TIME_OF_MIB), (4 << 20, TIME_MOST)] {
            std::fs::File::create(&path).unwrap().set_len(mib << 20).unwrap();
            assert_eq!(Bounds::of_file(&path).time, expected, "{mib} MiB");
        }
    }

    #[test]
    fn a_pause_takes_no_time_of_a_call() {
        let clock = Clock::new(Duration::ZERO);
        assert!(clock.is_over());
        clock.extend(Duration::from_secs(3600));
        assert!(!clock.is_over());
    }
}
