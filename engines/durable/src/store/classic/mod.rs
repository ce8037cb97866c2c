//! A store in one SQLite database where each step is its own transaction, with rows for all that it changed: what
//! engines do that keep orchestrations in tables, and what this engine is measured against.
//!
//! Every commit waits for the disk (`synchronous = full`). Deliberately absent: anything that would make it fast.

mod rows;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};

use super::lock_holder::{Sort, holder};
use super::names::check_blob_name;
use super::{Batching, FrameBatch, HubShape, Location, Store, StoreError, Visit};
use crate::ids::{Epoch, PartitionId, Position};

/// `NRWd`: kind of database, in its head.
const APPLICATION: i64 = 0x4e52_5764;
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

const TABLES: &str = "
create table if not exists hub (partitions integer not null, format integer not null);
create table if not exists partitions (
  id integer primary key, epoch integer not null, owner text, begins integer not null, ends integer not null);
create table if not exists frames (
  partition integer not null, position integer not null, crc integer not null, bytes blob not null,
  primary key (partition, position)) without rowid;
create table if not exists blobs (name text primary key, crc integer not null, bytes blob not null) without rowid;
";

/// Handling of a database without tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tables {
    /// They are made.
    Made,
    /// It is refused.
    Needed,
}

/// A hub in a database.
#[derive(Debug)]
pub struct ClassicStore {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl ClassicStore {
    /// Opens a database, which is made if it is not there, for this process alone.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process has it open; [`StoreError::Foreign`] if it is something else;
    /// [`StoreError::Io`] if it cannot be made or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let connection = Connection::open(&path).map_err(|error| said("open", &path, "the database", &error))?;
        let store = Self { path, connection: Mutex::new(connection) };
        store.prepare()?;
        Ok(store)
    }

    /// Opens a database for reading. It must be there, and free: a hub has its database for itself. Writes fail.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if a process has it open; [`StoreError::Foreign`] if it is something else;
    /// [`StoreError::Io`] if it cannot be read.
    pub fn open_for_reading(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(&path, flags);
        let connection = opened.map_err(|error| said("open", &path, "the database", &error))?;
        let store = Self { path, connection: Mutex::new(connection) };
        store.check_sort(Tables::Needed)?;
        Ok(store)
    }

    /// Whether it is a database of ours, or may become one.
    fn check_sort(&self, tables: Tables) -> Result<(), StoreError> {
        let failed = |error| self.failed("read", "the database", &error);
        let connection = self.lock();
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        let application: i64 = connection.query_row("pragma application_id", [], |row| row.get(0)).map_err(failed)?;
        let found: i64 =
            connection.query_row("select count(*) from sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
        let may_become_ours = tables == Tables::Made && application == 0 && found == 0;
        if application != APPLICATION && !may_become_ours {
            let place = Location::File { path: self.path.clone(), offset: None };
            return Err(StoreError::Foreign { place, what: "it is a database of something else".to_owned() });
        }
        Ok(())
    }

    fn prepare(&self) -> Result<(), StoreError> {
        self.check_sort(Tables::Made)?;
        // The lock of one process on the whole database, until it ends; without it two hubs would share partitions.
        self.lock()
            .execute_batch(&format!(
                "pragma locking_mode = exclusive; pragma journal_mode = wal; pragma synchronous = full;
                 pragma application_id = {APPLICATION}; begin immediate; {TABLES} {} commit;",
                rows::TABLES
            ))
            .map_err(|error| self.failed("prepare", "the database", &error))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A transaction that a panic left open is rolled back when its guard is dropped.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, action: &'static str, row: &str, error: &rusqlite::Error) -> StoreError {
        said(action, &self.path, row, error)
    }

    fn damaged(&self, row: String, what: String) -> StoreError {
        StoreError::Damaged { place: Location::Row { database: self.path.clone(), row }, what }
    }

    fn commit_frame(
        &self,
        connection: &mut Connection,
        partition: PartitionId,
        epoch: Epoch,
        at: u64,
        frame: &[u8],
    ) -> Result<(), StoreError> {
        let row = || format!("frame {at} of partition {partition}");
        let failed = |error| self.failed("write", &row(), &error);
        let transaction = connection.transaction().map_err(failed)?;
        let ends = self.owned(&transaction, partition, epoch)?;
        if ends != at {
            return Err(StoreError::Conflict { partition, ends, at });
        }
        transaction
            .prepare_cached("insert into frames values (?1, ?2, ?3, ?4)")
            .and_then(|mut insert| insert.execute(params![partition.0, at as i64, crc32fast::hash(frame), frame]))
            .map_err(failed)?;
        transaction
            .prepare_cached("update partitions set ends = ?2 where id = ?1")
            .and_then(|mut update| update.execute(params![partition.0, at as i64 + 1]))
            .map_err(failed)?;
        rows::write(&transaction, partition, frame).map_err(|error| match error {
            rows::RowsError::Sql(error) => failed(error),
            rows::RowsError::Codec(error) => self.damaged(row(), error.to_string()),
        })?;
        transaction.commit().map_err(failed)
    }

    /// The end of a partition's log, if `epoch` owns it.
    fn owned(&self, connection: &Connection, partition: PartitionId, epoch: Epoch) -> Result<u64, StoreError> {
        let (theirs, owner, ends) = self.partition(connection, partition)?;
        if theirs != epoch.0 || owner.is_none() {
            return Err(StoreError::Fenced { partition, ours: epoch.0, theirs });
        }
        Ok(ends)
    }

    /// Epoch, owner and end.
    fn partition(
        &self,
        connection: &Connection,
        partition: PartitionId,
    ) -> Result<(u64, Option<String>, u64), StoreError> {
        connection
            .prepare_cached("select epoch, owner, ends from partitions where id = ?1")
            .and_then(|mut select| {
                select
                    .query_row([partition.0], |row| {
                        Ok((row.get::<_, i64>(0)? as u64, row.get(1)?, row.get::<_, i64>(2)? as u64))
                    })
                    .optional()
            })
            .map(|found| found.unwrap_or((0, None, 0)))
            .map_err(|error| self.failed("read", &format!("partition {partition}"), &error))
    }
}

/// The error of a statement about a row.
fn said(action: &'static str, path: &Path, row: &str, error: &rusqlite::Error) -> StoreError {
    let place = Location::Row { database: path.to_owned(), row: row.to_owned() };
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let place = Location::File { path: path.to_owned(), offset: None };
            let by = holder(path, Sort::Posix).map_or("another process".to_owned(), |id| format!("process {id}"));
            StoreError::InUse { place, by }
        }
        Some(ErrorCode::NotADatabase) => StoreError::Foreign {
            place: Location::File { path: path.to_owned(), offset: Some(0) },
            what: error.to_string(),
        },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { place, what: error.to_string() },
        code => StoreError::Io { action, place, reason: error.to_string(), is_full: code == Some(ErrorCode::DiskFull) },
    }
}

impl Store for ClassicStore {
    fn describe(&self) -> String {
        format!("tables in {}", self.path.display())
    }

    fn batching(&self) -> Batching {
        Batching::EachStep
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        let failed = |error| self.failed("read", "table hub", &error);
        let connection = self.lock();
        let found = connection
            .query_row("select partitions, format from hub", [], |row| {
                Ok(HubShape { partitions: row.get(0)?, format: row.get(1)? })
            })
            .optional()
            .map_err(failed)?;
        match found {
            None => {
                connection
                    .execute("insert into hub values (?1, ?2)", params![wanted.partitions, wanted.format])
                    .map_err(failed)?;
                Ok(wanted)
            }
            Some(shape) if shape.format == wanted.format => Ok(shape),
            Some(shape) => Err(StoreError::Foreign {
                place: Location::Row { database: self.path.clone(), row: "table hub".to_owned() },
                what: format!("its format is {}, expected {}", shape.format, wanted.format),
            }),
        }
    }

    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        let connection = self.lock();
        let epoch = self.partition(&connection, partition)?.0 + 1;
        connection
            .execute(
                "insert into partitions values (?1, ?2, ?3, 0, 0)
                 on conflict (id) do update set epoch = excluded.epoch, owner = excluded.owner",
                params![partition.0, epoch as i64, owner],
            )
            .map_err(|error| self.failed("take", &format!("partition {partition}"), &error))?;
        Ok(Epoch(epoch))
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        let connection = self.lock();
        self.owned(&connection, partition, epoch)?;
        connection
            .execute("update partitions set owner = null where id = ?1", [partition.0])
            .map(drop)
            .map_err(|error| self.failed("release", &format!("partition {partition}"), &error))
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        let mut connection = self.lock();
        (at.0..)
            .zip(batch.frames())
            .try_for_each(|(position, frame)| self.commit_frame(&mut connection, partition, epoch, position, frame))
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        let connection = self.lock();
        let row = |position: u64| format!("frame {position} of partition {partition}");
        let failed = |error| self.failed("read", &format!("the frames of partition {partition}"), &error);
        let (begins, ends): (u64, u64) = connection
            .query_row("select begins, ends from partitions where id = ?1", [partition.0], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
            })
            .optional()
            .map_err(failed)?
            .unwrap_or((0, 0));
        if from.0 < begins {
            return Err(StoreError::Missing { partition, begins, wanted: from.0 });
        }
        let mut select = connection
            .prepare_cached(
                "select position, crc, bytes from frames where partition = ?1 and position >= ?2 order by position",
            )
            .map_err(failed)?;
        let mut frames = select.query(params![partition.0, from.0 as i64]).map_err(failed)?;
        let mut next = from.0.min(ends);
        while let Some(found) = frames.next().map_err(failed)? {
            let position: i64 = found.get(0).map_err(failed)?;
            let crc: u32 = found.get(1).map_err(failed)?;
            let bytes = found.get_ref(2).and_then(|value| Ok(value.as_blob()?)).map_err(failed)?;
            if position as u64 != next {
                return Err(self.damaged(row(next), format!("it is missing, {} follows", row(position as u64))));
            }
            if crc32fast::hash(bytes) != crc {
                return Err(self.damaged(row(next), "its checksum does not fit its bytes".to_owned()));
            }
            visit(Position(next), bytes)?;
            next += 1;
        }
        if next != ends {
            return Err(self.damaged(row(next), format!("it is missing, the log ends at {ends}")));
        }
        Ok(Position(ends))
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        let mut connection = self.lock();
        let failed = |error| self.failed("truncate", &format!("partition {partition}"), &error);
        let transaction = connection.transaction().map_err(failed)?;
        let before = before.0.min(self.owned(&transaction, partition, epoch)?) as i64;
        transaction
            .execute("delete from frames where partition = ?1 and position < ?2", params![partition.0, before])
            .map_err(failed)?;
        transaction
            .execute("update partitions set begins = max(begins, ?2) where id = ?1", params![partition.0, before])
            .map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        check_blob_name(name)?;
        self.lock()
            .execute("insert or replace into blobs values (?1, ?2, ?3)", params![name, crc32fast::hash(bytes), bytes])
            .map(drop)
            .map_err(|error| self.failed("write", &format!("blob {name}"), &error))
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        check_blob_name(name)?;
        let found: Option<(u32, Vec<u8>)> = self
            .lock()
            .query_row("select crc, bytes from blobs where name = ?1", [name], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(|error| self.failed("read", &format!("blob {name}"), &error))?;
        match found {
            Some((crc, bytes)) if crc32fast::hash(&bytes) != crc => {
                Err(self.damaged(format!("blob {name}"), "its checksum does not fit its bytes".to_owned()))
            }
            found => Ok(found.map(|(_, bytes)| bytes)),
        }
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        check_blob_name(name)?;
        self.lock()
            .execute("delete from blobs where name = ?1", [name])
            .map(drop)
            .map_err(|error| self.failed("delete", &format!("blob {name}"), &error))
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let failed = |error| self.failed("list", "table blobs", &error);
        let connection = self.lock();
        let mut select = connection
            .prepare_cached("select name from blobs where substr(name, 1, length(?1)) = ?1 order by name")
            .map_err(failed)?;
        let names = select.query_map([prefix], |row| row.get(0)).map_err(failed)?;
        names.collect::<Result<_, _>>().map_err(failed)
    }
}
