//! Reads a run file, finished or not, and never writes to it, but for one thing: spans that a killed process left to be
//! made rows are made rows when the file is opened (`settle.rs`), for they could not be read otherwise.
//!
//! A file whose run was cut short has a write-ahead log beside it, which SQLite reads along; for that it needs a place
//! for its shared index, so the folder must be writable. Whatever a file holds is distrusted: other people's runs are
//! mailed around.
//!
//! The file is opened through SQLite alone. Opening and closing it any other way in a process that also writes it would
//! drop the writer's locks, as POSIX has it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_model::run::{Run, RunState, ServiceInstance, Trial, TrialState, Validity, Window};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row};
use rustix::fs::Access;

use super::counts::Counts;
use super::error::{Error, Result};
use super::inbox::size_of;
use super::owner::Owner;
use super::schema::Schema;
use super::settle::settle;
use super::words::{Count, Json, Word};
use super::{APPLICATION_ID, SCHEMA_VERSION};

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open run file. While it is open, the file's writer cannot make it a plain file: keep it short.
#[derive(Debug)]
pub struct Reader {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) schema: Schema,
}

impl Reader {
    /// Opens a run file. When a process that was killed left spans in it that wait for their rows, they get them first,
    /// which may take seven seconds for a million of them.
    ///
    /// Errors when it is not one, was written by a newer version, is damaged, or cannot be read where it lies.
    pub fn open(path: &Path) -> Result<Self> {
        let reader = Self::open_as_it_is(path)?;
        let waiting = reader.waiting()?;
        if waiting == 0 || reader.run()?.state == RunState::Running {
            return Ok(reader);
        }
        drop(reader);
        settle(path, waiting)?;
        Self::open_as_it_is(path)
    }

    /// As [`Reader::open`], but spans that wait are left alone.
    pub(super) fn open_as_it_is(path: &Path) -> Result<Self> {
        rustix::fs::access(path, Access::READ_OK).map_err(|error| Error::io(path, error.into()))?;
        if path.is_dir() {
            return Err(Error::NotARunFile(path.to_owned()));
        }
        let connection = connect(path)?;
        let schema = check(&connection, path)?;
        Ok(Self { connection, path: path.to_owned(), schema })
    }

    /// The run. Its state is `interrupted` when the file says `running` but its writer has gone.
    pub fn run(&self) -> Result<Run> {
        let (mut run, owner) = self.query(run_of)?;
        if run.state == RunState::Running && !owner.is_alive() {
            run.state = RunState::Interrupted;
        }
        Ok(run)
    }

    /// The trials in order. One that was under way when the writer went is `interrupted`.
    pub fn trials(&self) -> Result<Vec<Trial>> {
        let is_over = self.run()?.state != RunState::Running;
        let waiting = self.schema.waiting_column();
        let sql = format!("SELECT *, {waiting} AS spans_waiting FROM trials ORDER BY id");
        let mut trials = self.query(|connection| rows(connection, &sql, [], trial_of))?;
        for trial in trials.iter_mut().filter(|trial| is_over && trial.state == TrialState::Running) {
            trial.state = TrialState::Interrupted;
        }
        Ok(trials)
    }

    /// The windows of a trial, in order.
    pub fn windows(&self, trial: i64) -> Result<Vec<Window>> {
        let rate = self.schema.rate_column();
        let sql = format!("SELECT *, {rate} AS arrivals FROM windows WHERE trial = ?1 ORDER BY position");
        self.query(|connection| rows(connection, &sql, [trial], window_of))
    }

    /// The replicas of a trial, in the order they were started.
    pub fn services(&self, trial: i64) -> Result<Vec<ServiceInstance>> {
        let ports = self.schema.stand_in_ports_column();
        let sql = format!("SELECT *, {ports} AS ports FROM services WHERE trial = ?1 ORDER BY id");
        self.query(|connection| rows(connection, &sql, [trial], service_of))
    }

    /// How many spans are kept but cannot be read yet: those of a trial that is under way, mostly, until it ends.
    pub fn waiting(&self) -> Result<u64> {
        if self.schema.has_inbox() { self.query(|connection| Ok(size_of(connection)?.spans)) } else { Ok(0) }
    }

    /// How many records of a trial are in the file, and how many were refused.
    pub fn counts(&self, trial: i64) -> Result<Counts> {
        self.query(|connection| Counts::load(connection, self.schema, trial))?.ok_or(Error::UnknownTrial(trial))
    }

    pub(super) fn query<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        read(&self.connection).map_err(|error| Error::sqlite(&self.path, error))
    }
}

/// All rows of a query.
pub(super) fn rows<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    map: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(parameters, map)?.collect()
}

/// The single row of `run`, as it is written, and who writes the file.
pub(super) fn run_of(connection: &Connection) -> rusqlite::Result<(Run, Owner)> {
    connection.query_row("SELECT * FROM run", [], |row| {
        let run = Run {
            id: row.get("id")?,
            experiment: row.get("experiment")?,
            narrows_version: row.get("narrows_version")?,
            started_ns: row.get("started_ns")?,
            ended_ns: row.get("ended_ns")?,
            state: row.get::<_, Word<RunState>>("state")?.0,
            seed: row.get::<_, Json<u64>>("seed")?.0,
            time_scale: row.get("time_scale")?,
            repetitions: row.get("repetitions")?,
            experiment_source: row.get("experiment_source")?,
            environment: row.get::<_, Json<_>>("environment")?.0,
        };
        let owner = Owner {
            pid: row.get("writer_pid")?,
            start_ticks: row.get::<_, Count>("writer_start_ticks")?.0,
            boot_id: row.get("writer_boot_id")?,
        };
        Ok((run, owner))
    })
}

fn trial_of(row: &Row<'_>) -> rusqlite::Result<Trial> {
    Ok(Trial {
        id: row.get("id")?,
        variant: row.get("variant")?,
        repetition: row.get("repetition")?,
        state: row.get::<_, Word<_>>("state")?.0,
        started_ns: row.get("started_ns")?,
        ended_ns: row.get("ended_ns")?,
        parameters: row.get::<_, Json<_>>("parameters")?.0,
        validity: Validity {
            verdict: row.get::<_, Word<_>>("validity")?.0,
            reasons: row.get::<_, Json<_>>("validity_reasons")?.0,
        },
        error: row.get("error")?,
        caveats: caveats_of(row)?,
    })
}

/// What the trial was given, and what the file knows itself.
fn caveats_of(row: &Row<'_>) -> rusqlite::Result<Vec<String>> {
    let mut caveats: Vec<String> = row.get::<_, Json<_>>("caveats")?.0;
    let waiting = row.get::<_, Count>("spans_waiting")?.0;
    if waiting > 0 {
        caveats.push(format!(
            "{waiting} spans came that cannot be read yet: they are put into tables when their trial ends."
        ));
    }
    let thinned = match row.get::<_, Count>("spans_thinned") {
        Ok(Count(thinned)) => thinned,
        Err(rusqlite::Error::InvalidColumnName(_)) => 0,
        Err(error) => return Err(error),
    };
    if thinned > 0 {
        let stored = match row.get::<_, Count>("spans_thinned_one_in") {
            Ok(Count(one_in)) => one_in,
            Err(rusqlite::Error::InvalidColumnName(_)) => 1,
            Err(error) => return Err(error),
        };
        let one_in = stored.max(row.get::<_, Count>("spans_one_in")?.0);
        let (preferred, rare) = match stored {
            1 => ("", "what is rare may be missing"),
            _ => (" and most of the failed and the slowest ones", "counts by `span_counts` are exact"),
        };
        let caveat = format!(
            "The run file neared its limit of size: {thinned} spans were counted but not kept. Whole traces stand for \
             them by their weight, at the end 1 of {one_in}{preferred}; {rare}."
        );
        if !caveats.contains(&caveat) {
            caveats.push(caveat);
        }
    }
    Ok(caveats)
}

fn window_of(row: &Row<'_>) -> rusqlite::Result<Window> {
    Ok(Window {
        index: row.get("position")?,
        kind: row.get::<_, Word<_>>("kind")?.0,
        label: row.get("label")?,
        start_ns: row.get("start_ns")?,
        end_ns: row.get("end_ns")?,
        vus: row.get("vus")?,
        rate: row.get("arrivals")?,
    })
}

fn service_of(row: &Row<'_>) -> rusqlite::Result<ServiceInstance> {
    Ok(ServiceInstance {
        service: row.get("service")?,
        replica: row.get("replica")?,
        pid: row.get("pid")?,
        port: row.get("port")?,
        command: row.get::<_, Json<_>>("command")?.0,
        cpu_limit_cores: row.get("cpu_limit_cores")?,
        memory_limit_bytes: row.get::<_, Option<Count>>("memory_limit_bytes")?.map(|count| count.0),
        stand_in_ports: row.get::<_, Json<_>>("ports")?.0,
    })
}

/// Opens the file for reading, as far as its place allows.
pub(super) fn connect(path: &Path) -> Result<Connection> {
    let error = match first_look(path.as_os_str(), OpenFlags::empty()) {
        Ok(connection) => return Ok(connection),
        Err(error) => error,
    };
    if !matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) {
        return Err(Error::sqlite(path, error));
    }
    if has_log(path) {
        return Err(Error::DirectoryReadOnly(path.to_owned()));
    }
    // In WAL mode but without a log, in a folder that cannot be written to: nobody can be writing the file.
    first_look(&immutable_uri(path), OpenFlags::SQLITE_OPEN_URI).map_err(|error| Error::sqlite(path, error))
}

/// Opens the file and reads its first page, without which SQLite has not opened anything.
fn first_look(name: &OsStr, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(name, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.execute_batch("PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

fn has_log(path: &Path) -> bool {
    let mut log = OsString::from(path);
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|metadata| metadata.len() > 0)
}

fn immutable_uri(path: &Path) -> OsString {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}

fn check(connection: &Connection, path: &Path) -> Result<Schema> {
    let pragma = |name: &str| -> Result<i64> {
        connection.pragma_query_value(None, name, |row| row.get(0)).map_err(|error| Error::sqlite(path, error))
    };
    if pragma("application_id")? != APPLICATION_ID {
        return Err(Error::NotARunFile(path.to_owned()));
    }
    is_as_long_as_it_says(connection, path)?;
    match pragma("user_version")? {
        found if found > SCHEMA_VERSION => {
            Err(Error::Newer { path: path.to_owned(), found, supported: SCHEMA_VERSION })
        }
        found if found < 1 => Err(Error::damaged(path, format!("schema {found}, expected 1 or more"))),
        found => Ok(Schema(found)),
    }
}

/// SQLite itself does not mind when the end of the last page is missing. With a log beside it, a file may be shorter.
fn is_as_long_as_it_says(connection: &Connection, path: &Path) -> Result<()> {
    let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size, pragma_journal_mode \
               WHERE journal_mode <> 'wal'";
    let size = connection.query_row(sql, [], |row| row.get::<_, Count>(0)).optional();
    let length = std::fs::metadata(path).map_err(|error| Error::io(path, error))?.len();
    match size.map_err(|error| Error::sqlite(path, error))? {
        Some(Count(size)) if length < size => {
            Err(Error::damaged(path, format!("it is cut off after {length} of {size} bytes")))
        }
        _ => Ok(()),
    }
}
