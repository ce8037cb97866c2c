//! The life of a run file: made or taken up, written, ended.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use narrows_model::run::{Run, RunState, Trial};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use super::bounds::Bounds;
use super::calls::PUT_CONCLUSION;
use super::error::{Error, Result};
use super::owner::Owner;
use super::queue::Queue;
use super::reader::{Reader, run_of};
use super::recorder::Recorder;
use super::rows::Rows;
use super::words::{json, word};
use super::{Limits, SCHEMA_VERSION, open, schema, writer};

/// How long to wait for another process that holds a lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long [`RunFile::finish`] waits for readers to let go, so that the file can become plain.
const PLAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// 1 of so many pages of a finished file may be free.
const FREE_PART_MAX: i64 = 8;
/// Bytes of a file that may be copied to give free ones back; beyond, it would keep who waits for the end of a run.
const VACUUMED_BYTES_MAX: i64 = 1 << 30;
/// SQLite's page cache while the file is written, in KiB: a long run must not need more memory than a short one.
const CACHE_KIB: i64 = 8 << 10;
/// The same at the end of the run, when indexes are created.
const CACHE_AT_END_KIB: i64 = 64 << 10;
/// Prepared statements kept ready; more than the writer has.
const STATEMENTS_MAX: usize = 64;

/// A run file that is being written, by this process alone.
///
/// Dropping it without [`RunFile::finish`] ends the run as `interrupted`.
#[derive(Debug)]
pub struct RunFile {
    path: PathBuf,
    recorder: Recorder,
    thread: Option<JoinHandle<Rows>>,
}

impl RunFile {
    /// Makes the file.
    /// Errors when there is a file of that name, or when the place cannot be written to.
    pub fn create(path: &Path, run: &Run) -> Result<Self> {
        Self::create_with(path, run, Limits::default())
    }

    /// As [`RunFile::create`], with other ceilings.
    pub(super) fn create_with(path: &Path, run: &Run, limits: Limits) -> Result<Self> {
        match File::create_new(path) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(Error::Exists(path.to_owned())),
            Err(error) => return Err(Error::io(path, error)),
        }
        match fill(path, run) {
            Ok(connection) => Self::start(path, connection, limits),
            Err(error) => {
                // A file that could not be filled is useless, and would be in the way of a second try.
                let _ = std::fs::remove_file(path);
                Err(Error::sqlite(path, error))
            }
        }
    }

    /// Takes up a run that was cut short or failed, and says what the file knows. Trials that were under way are
    /// `interrupted`. Errors when the run is complete, when its writer still lives, or when the file is not a whole run
    /// file.
    pub fn resume(path: &Path) -> Result<(Self, Run, Vec<Trial>)> {
        Self::resume_with(path, Limits::default())
    }

    /// As [`RunFile::resume`], with other ceilings.
    pub(super) fn resume_with(path: &Path, limits: Limits) -> Result<(Self, Run, Vec<Trial>)> {
        drop(Reader::open_as_it_is(path)?);
        let mut connection = open::for_writing(path, Bounds::of_file(path))?;
        take_over(&mut connection, path)?;
        open::trust_time(&mut connection).map_err(|error| Error::sqlite(path, error))?;
        let file = Self::start(path, connection, limits)?;
        file.recorder.settle()?;
        let reader = Reader::open(path)?;
        let (run, trials) = (reader.run()?, reader.trials()?);
        Ok((file, run, trials))
    }

    /// Adds a conclusion to the file of a run that has ended. The file's modification time stays: it says which run is the
    /// newest.
    ///
    /// # Errors
    /// When the file cannot be written to, or its writer still lives.
    pub fn amend(path: &Path, key: &str, value: &serde_json::Value) -> Result<()> {
        let (io, wrap) = (|error| Error::io(path, error), |error| Error::sqlite(path, error));
        let modified = std::fs::metadata(path).and_then(|file| file.modified()).map_err(io)?;
        let mut connection = open::for_writing(path, Bounds::of_file(path))?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrap)?;
        let (run, owner) = run_of(&transaction).map_err(wrap)?;
        if run.state == RunState::Running && owner.is_alive() {
            return Err(Error::InUse { path: path.to_owned(), pid: owner.pid });
        }
        transaction.execute(PUT_CONCLUSION, [key, &value.to_string()]).map_err(wrap)?;
        transaction.commit().map_err(wrap)?;
        make_plain(connection).map_err(wrap)?;
        File::options().write(true).open(path).and_then(|file| file.set_modified(modified)).map_err(io)
    }

    fn start(path: &Path, connection: Connection, limits: Limits) -> Result<Self> {
        let queue = Arc::new(Queue::new(limits.queued));
        let recorder = Recorder::new(queue.clone());
        let rows = Rows::new(connection, path, limits);
        let thread = thread::Builder::new()
            .name("run-file".into())
            .spawn(move || writer::run(&queue, rows))
            .map_err(|error| Error::io(path, error))?;
        Ok(Self { path: path.to_owned(), recorder, thread: Some(thread) })
    }

    /// The handle to write through.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Deletes all rows of a trial, which is `planned` again, before it is redone.
    pub fn restart_trial(&self, trial: i64) -> Result<()> {
        self.recorder.restart_trial(trial)
    }

    /// Writes what waits, ends the run, makes the index of spans (1 to 2 seconds for each million of them) and makes the
    /// file a plain one, without files beside it. Trials that are still
    /// under way become `interrupted`. A run that is `interrupted` has no end time.
    ///
    /// If another process reads the file for more than two seconds, the file is whole but keeps its write-ahead log
    /// beside it. Errors when `state` is `running`, and when the file cannot be written.
    pub fn finish(mut self, state: RunState) -> Result<()> {
        if state == RunState::Running {
            return Err(Error::EndsRunning);
        }
        self.end(state)
    }

    fn end(&mut self, state: RunState) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.recorder.close();
        let mut rows = thread.join().map_err(|_| Error::WriterFailed)?;
        rows.settle_all()?;
        let connection = rows.into_connection();
        write_end(&connection, state)
            .and_then(|()| make_plain(connection))
            .map_err(|error| Error::sqlite(&self.path, error))
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        let _ = self.end(RunState::Interrupted);
    }
}

/// Sets how a connection writes.
pub(super) fn prepare_to_write(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // The log is written back in larger portions than SQLite's own 1,000 pages: index pages are then written once for
    // many insertions.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; \
         PRAGMA wal_autocheckpoint = 8000; PRAGMA journal_size_limit = 67108864;",
    )?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)
}

/// Makes an empty file a run file.
fn fill(path: &Path, run: &Run) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    prepare_to_write(&connection)?;
    let transaction = connection.transaction()?;
    schema::create(&transaction)?;
    let owner = Owner::this_process();
    let sql = "INSERT INTO run (id, schema_version, experiment, narrows_version, started_ns, ended_ns, state, seed, \
               time_scale, repetitions, experiment_source, environment, writer_pid, writer_start_ticks, \
               writer_boot_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    let columns = params![
        run.id,
        SCHEMA_VERSION,
        run.experiment,
        run.narrows_version,
        run.started_ns,
        run.ended_ns,
        word(run.state),
        run.seed.to_string(),
        run.time_scale,
        run.repetitions,
        run.experiment_source,
        json(&run.environment),
        owner.pid,
        owner.start_ticks as i64,
        owner.boot_id,
    ];
    transaction.execute(sql, columns)?;
    transaction.commit()?;
    Ok(connection)
}

/// Makes this process the writer, unless there is one or nothing is left to do.
fn take_over(connection: &mut Connection, path: &Path) -> Result<()> {
    let wrap = |error| Error::sqlite(path, error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrap)?;
    let (run, owner) = run_of(&transaction).map_err(wrap)?;
    match run.state {
        RunState::Complete => return Err(Error::Complete(path.to_owned())),
        RunState::Running if owner.is_alive() => return Err(Error::InUse { path: path.to_owned(), pid: owner.pid }),
        _ => {}
    }
    schema::drop_spans_index(&transaction).map_err(wrap)?;
    let me = Owner::this_process();
    transaction.execute("UPDATE trials SET state = 'interrupted' WHERE state = 'running'", []).map_err(wrap)?;
    let sql = "UPDATE run SET state = 'running', ended_ns = NULL, writer_pid = ?1, writer_start_ticks = ?2, \
               writer_boot_id = ?3";
    transaction.execute(sql, params![me.pid, me.start_ticks as i64, me.boot_id]).map_err(wrap)?;
    transaction.commit().map_err(wrap)
}

fn write_end(connection: &Connection, state: RunState) -> rusqlite::Result<()> {
    let ended_ns = (state != RunState::Interrupted).then(crate::now_ns);
    let transaction = connection.unchecked_transaction()?;
    transaction.execute("UPDATE trials SET state = 'interrupted' WHERE state = 'running'", [])?;
    transaction.execute("UPDATE run SET state = ?1, ended_ns = ?2", params![word(state), ended_ns])?;
    transaction.commit()?;
    connection.pragma_update(None, "cache_size", -CACHE_AT_END_KIB)?;
    give_room_back(connection)?;
    schema::index_spans(connection)?;
    // So that SQLite, in whatever program people query the file with, knows which index is more selective.
    connection.execute_batch("PRAGMA analysis_limit = 1000; ANALYZE")
}

/// Makes the file smaller where much of it is free: what waited for its rows took twice the room of them.
fn give_room_back(connection: &Connection) -> rusqlite::Result<()> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (all, free, bytes) = (pragma("page_count")?, pragma("freelist_count")?, pragma("page_size")?);
    if free <= all / FREE_PART_MAX || (all - free).saturating_mul(bytes) > VACUUMED_BYTES_MAX {
        return Ok(());
    }
    connection.execute_batch("PRAGMA temp_store = FILE")?;
    match connection.execute_batch("VACUUM") {
        // It takes as much room again for a while; without it the file is as good, only larger.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) => Ok(()),
        vacuumed => vacuumed,
    }
}

/// Writes the log back and leaves WAL mode, for which nobody else may have the file open.
fn make_plain(connection: Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    let begun = Instant::now();
    loop {
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        match connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "delete" => break,
            Ok(_) => {}
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {}
            Err(error) => return Err(error),
        }
        if begun.elapsed() > PLAIN_TIMEOUT {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    connection.close().map_err(|(_, error)| error)
}
