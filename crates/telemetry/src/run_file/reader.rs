//! Reads a run file, finished or not, and never writes to it, but for one thing: spans that a killed process left to be
//! made rows are made rows when the file is opened (`settle.rs`), for they could not be read otherwise.
//!
//! Other people's runs are mailed around, so a file is distrusted: it is verified when it is opened (`open.rs`), every
//! call is bounded in time and memory (`bounds.rs`), and a value out of its range is an error (`words.rs`).

use std::path::{Path, PathBuf};

use narrows_model::caveat::TrialCaveat;
use narrows_model::load::LoadProgram;
use narrows_model::run::{Machine, Run, RunState, ServiceInstance, Trial, TrialState, Validity, Window};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, Row, Transaction};

use super::bounds::{BoundedConnection, Bounds, Call};
use super::counts::Counts;
use super::error::{Error, Result};
use super::open;
use super::owner::Owner;
use super::packed_requests::size_of;
use super::settle::settle;
use super::words::{ADDEND_MAX, Count, Finite, Instant, Json, Name, Word, signed};

/// An open run file. While it is open, the file's writer cannot make it a plain file: keep it short.
#[derive(Debug)]
pub struct Reader {
    connection: BoundedConnection,
    pub(super) path: PathBuf,
}

impl Reader {
    /// Opens a run file. When a process that was killed left spans in it that wait for their rows, they get them first,
    /// which may take seven seconds for a million of them.
    ///
    /// Errors when it is not one, has another version or other tables and views than run files have, is damaged, or
    /// cannot be read where it lies.
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

    /// The trials of a run file, at once: spans that wait are left alone.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn trials_in(path: &Path) -> Result<Vec<Trial>> {
        Self::open_as_it_is(path)?.trials()
    }

    /// As [`Reader::open`], but spans that wait are left alone.
    pub(super) fn open_as_it_is(path: &Path) -> Result<Self> {
        Self::open_within(path, Bounds::of_file(path))
    }

    /// As [`Reader::open_as_it_is`], with other bounds.
    pub(super) fn open_within(path: &Path, bounds: Bounds) -> Result<Self> {
        Ok(Self { connection: open::for_reading(path, bounds)?, path: path.to_owned() })
    }

    /// The run. Its state is `interrupted` when the file says `running` but its writer has gone.
    pub fn run(&self) -> Result<Run> {
        let (mut run, owner) = self.query(|connection| run_of(connection))?;
        if run.state == RunState::Running && !owner.is_alive() {
            run.state = RunState::Interrupted;
        }
        Ok(run)
    }

    /// The process that writes it; `None` if it has ended.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn writer(&self) -> Result<Option<u32>> {
        let (run, owner) = self.query(|connection| run_of(connection))?;
        Ok((run.state == RunState::Running && owner.is_alive()).then_some(owner.pid))
    }

    /// The trials in order. One that was under way when the writer went is `interrupted`.
    pub fn trials(&self) -> Result<Vec<Trial>> {
        let is_over = self.run()?.state != RunState::Running;
        let sql = "SELECT *, (SELECT coalesce(sum(spans), 0) FROM inbox_rows WHERE inbox_rows.trial = trials.id) \
                   AS spans_waiting FROM trials ORDER BY id";
        let mut trials = self.query(|connection| connection.few_rows(sql, [], trial_of))?;
        for trial in trials.iter_mut().filter(|trial| is_over && trial.state == TrialState::Running) {
            trial.state = TrialState::Interrupted;
        }
        Ok(trials)
    }

    /// The windows of a trial, in order.
    pub fn windows(&self, trial: i64) -> Result<Vec<Window>> {
        let sql = "SELECT * FROM windows WHERE trial = ?1 ORDER BY position";
        self.query(|connection| connection.few_rows(sql, [trial], window_of))
    }

    /// The replicas of a trial, in the order they were started.
    pub fn services(&self, trial: i64) -> Result<Vec<ServiceInstance>> {
        let sql = "SELECT * FROM services WHERE trial = ?1 ORDER BY id";
        self.query(|connection| connection.few_rows(sql, [trial], service_of))
    }

    /// How many spans are kept but cannot be read yet: those of a trial that is under way, mostly, until it ends.
    pub fn waiting(&self) -> Result<u64> {
        self.query(|connection| Ok(size_of(connection)?.spans))
    }

    /// Conclusion under this name; `None` without one.
    ///
    /// # Errors
    /// When it is not JSON, and as for every reading.
    pub fn conclusion(&self, key: &str) -> Result<Option<serde_json::Value>> {
        let sql = "SELECT value FROM conclusions WHERE key = ?1";
        let found = self.query(|connection| connection.few_rows(sql, [key], |row| row.get::<_, Json<_>>("value")))?;
        Ok(found.into_iter().next().map(|Json(value)| value))
    }

    /// How many records of a trial are in the file, and how many were refused.
    pub fn counts(&self, trial: i64) -> Result<Counts> {
        self.query(|connection| Counts::load(connection, trial))?.ok_or(Error::UnknownTrial(trial))
    }

    /// A snapshot of the file, for all queries until this is dropped. It ends by a rollback that has nothing to take
    /// back.
    pub(super) fn snapshot(&self) -> Result<Transaction<'_>> {
        self.connection.unchecked_transaction().map_err(|error| Error::sqlite(&self.path, error))
    }

    /// Begins a reading call of several queries, which share its bounds and end with what is returned.
    pub(super) fn begin(&self) -> Call<'_> {
        self.connection.begin()
    }

    /// Reads, within the bounds of a call.
    pub(super) fn query<T>(&self, read: impl FnOnce(&BoundedConnection) -> rusqlite::Result<T>) -> Result<T> {
        let _call = self.connection.begin();
        read(&self.connection).map_err(|error| Error::sqlite(&self.path, error))
    }
}

/// The single row of `run`, as it is written, and who writes the file.
pub(super) fn run_of(connection: &Connection) -> rusqlite::Result<(Run, Owner)> {
    connection.query_row("SELECT * FROM run", [], |row| {
        let run = Run {
            id: row.get::<_, Name>("id")?.0,
            experiment: row.get::<_, Name>("experiment")?.0,
            narrows_version: row.get::<_, Name>("narrows_version")?.0,
            started_ns: row.get::<_, Instant>("started_ns")?.0,
            ended_ns: optional_instant(row, "ended_ns")?,
            state: row.get::<_, Word<RunState>>("state")?.0,
            seed: row.get::<_, Json<u64>>("seed")?.0,
            time_scale: row.get::<_, Finite>("time_scale")?.0,
            repetitions: row.get("repetitions")?,
            experiment_source: row.get("experiment_source")?,
            environment: row.get::<_, Json<_>>("environment")?.0,
        };
        let owner = Owner {
            pid: row.get("writer_pid")?,
            start_ticks: row.get::<_, Count>("writer_start_ticks")?.0,
            boot_id: row.get::<_, Name>("writer_boot_id")?.0,
        };
        Ok((run, owner))
    })
}

fn trial_of(row: &Row<'_>) -> rusqlite::Result<Trial> {
    Ok(Trial {
        id: row.get("id")?,
        variant: row.get::<_, Name>("variant")?.0,
        repetition: row.get("repetition")?,
        state: row.get::<_, Word<_>>("state")?.0,
        started_ns: optional_instant(row, "started_ns")?,
        ended_ns: optional_instant(row, "ended_ns")?,
        parameters: row.get::<_, Json<_>>("parameters")?.0,
        validity: Validity {
            verdict: row.get::<_, Word<_>>("validity")?.0,
            reasons: row.get::<_, Json<_>>("validity_reasons")?.0,
        },
        error: row.get("error")?,
        caveats: caveats_of(row)?,
        load_program: load_program_of(row)?,
    })
}

/// The program that sent the load. Its counts are small enough to be added up.
fn load_program_of(row: &Row<'_>) -> rusqlite::Result<Option<LoadProgram>> {
    let program: Option<LoadProgram> = row.get::<_, Option<Json<_>>>("load_program")?.map(|json| json.0);
    match program.iter().flat_map(LoadProgram::counts).find(|count| *count > ADDEND_MAX) {
        Some(count) => Err(FromSqlError::OutOfRange(signed(count)).into()),
        None => Ok(program),
    }
}

/// Caveats of the trial, and those that the file knows itself.
fn caveats_of(row: &Row<'_>) -> rusqlite::Result<Vec<TrialCaveat>> {
    let mut caveats: Vec<TrialCaveat> = row.get::<_, Json<_>>("caveats")?.0;
    let waiting = row.get::<_, Count>("spans_waiting")?.0;
    if waiting > 0 {
        caveats.push(TrialCaveat::SpansWaiting { spans: waiting });
    }
    let thinned = row.get::<_, Count>("spans_thinned")?.0;
    if thinned > 0 {
        let stored = row.get::<_, Count>("spans_thinned_one_in")?.0;
        let one_in = stored.max(row.get::<_, Count>("spans_one_in")?.0);
        let caveat = TrialCaveat::SpansThinned { spans: thinned, one_in, is_slow_preferred: stored > 1 };
        if !caveats.contains(&caveat) {
            caveats.push(caveat);
        }
    }
    Ok(caveats)
}

fn window_of(row: &Row<'_>) -> rusqlite::Result<Window> {
    let (start_ns, end_ns) = (row.get::<_, Instant>("start_ns")?.0, row.get::<_, Instant>("end_ns")?.0);
    if end_ns < start_ns {
        return Err(FromSqlError::OutOfRange(end_ns).into());
    }
    Ok(Window {
        index: row.get("position")?,
        kind: row.get::<_, Word<_>>("kind")?.0,
        label: row.get::<_, Name>("label")?.0,
        start_ns,
        end_ns,
        drained_ns: optional_instant(row, "drained_ns")?.filter(|drained_ns| *drained_ns >= end_ns),
        vus: row.get("vus")?,
        rate: row.get::<_, Option<Finite>>("rate")?.map(|rate| rate.0),
    })
}

fn service_of(row: &Row<'_>) -> rusqlite::Result<ServiceInstance> {
    Ok(ServiceInstance {
        service: row.get::<_, Name>("service")?.0,
        replica: row.get("replica")?,
        pid: row.get("pid")?,
        port: row.get("port")?,
        command: row.get::<_, Json<_>>("command")?.0,
        cpu_limit_cores: row.get::<_, Option<Finite>>("cpu_limit_cores")?.map(|cores| cores.0),
        memory_limit_bytes: row.get::<_, Option<Count>>("memory_limit_bytes")?.map(|count| count.0),
        stand_in_ports: row.get::<_, Json<_>>("stand_in_ports")?.0,
        machine: Machine::Here,
    })
}

fn optional_instant(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<i64>> {
    Ok(row.get::<_, Option<Instant>>(column)?.map(|instant| instant.0))
}
