//! Content of a frame as rows that people can read: instances, their histories, messages on their way.
//!
//! Written in the transaction of the frame, one statement for each thing that changed, as engines do that keep every
//! step of an orchestration in tables. The engine never reads them back.

use rusqlite::{Transaction, params};

use crate::codec::{CodecError, Entry, Events, KEPT, Skip, read_frame};
use crate::event::EventKind;
use crate::ids::{PartitionId, Time};

pub(super) const TABLES: &str = "
create table if not exists instances (
  partition integer not null, handle integer not null, id text not null, created_us integer not null,
  updated_us integer not null, status text not null, events integer not null,
  primary key (partition, handle)) without rowid;
create table if not exists history (
  partition integer not null, handle integer not null, number integer not null, time_us integer not null,
  kind text not null, bytes integer not null,
  primary key (partition, handle, number)) without rowid;
create table if not exists messages (
  partition integer not null, receiver integer not null, sequence integer not null, instance text not null,
  primary key (partition, receiver, sequence)) without rowid;
create table if not exists deferred (
  partition integer not null, number integer not null, at_us integer not null, instance text not null,
  primary key (partition, number)) without rowid;
";

/// Why rows could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowsError {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Writes the rows of a frame.
pub(super) fn write(transaction: &Transaction<'_>, partition: PartitionId, frame: &[u8]) -> Result<(), RowsError> {
    let mut failed = None;
    let rows = Rows { transaction, partition: i64::from(partition.0) };
    let read = read_frame(frame, &mut Skip, &mut |time, entry| {
        rows.put(time, entry).map_err(|error| {
            let text = error.to_string();
            failed = Some(error);
            CodecError { at: 0, what: text }
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(read?),
    }
}

struct Rows<'a> {
    transaction: &'a Transaction<'a>,
    partition: i64,
}

impl Rows<'_> {
    fn put(&self, time: Time, entry: Entry<'_>) -> Result<(), RowsError> {
        match entry {
            Entry::Created { handle, time, id } => self.run(
                "insert or replace into instances values (?1, ?2, ?3, ?4, ?4, 'pending', 0)",
                params![self.partition, handle as i64, id, time.0 as i64],
            ),
            Entry::Appended { handle, events } => self.history(handle as i64, time, events),
            Entry::Restarted { handle, time, events } => {
                self.run(
                    "delete from history where partition = ?1 and handle = ?2",
                    params![self.partition, handle as i64],
                )?;
                self.run(
                    "update instances set events = 0, created_us = ?3 where partition = ?1 and handle = ?2",
                    params![self.partition, handle as i64, time.0 as i64],
                )?;
                self.history(handle as i64, time, events)
            }
            Entry::Entity { handle, delta } => self.run(
                "update instances set updated_us = ?3, status = 'entity' where partition = ?1 and handle = ?2",
                params![self.partition, handle as i64, delta.time.0 as i64],
            ),
            Entry::Sent { to, sequence, message } => self.run(
                "insert or replace into messages values (?1, ?2, ?3, ?4)",
                params![self.partition, i64::from(to.0), sequence as i64, message.to.as_str()],
            ),
            Entry::Acknowledged { to, up_to } => self.run(
                "delete from messages where partition = ?1 and receiver = ?2 and sequence <= ?3",
                params![self.partition, i64::from(to.0), up_to as i64],
            ),
            Entry::Deferred { number, at, message } => self.run(
                "insert or replace into deferred values (?1, ?2, ?3, ?4)",
                params![self.partition, number as i64, at.0 as i64, message.to.as_str()],
            ),
            Entry::Undeferred { number } => self.run(
                "delete from deferred where partition = ?1 and number = ?2",
                params![self.partition, number as i64],
            ),
            Entry::Dropped { id } => self.run(
                "delete from deferred where partition = ?1 and instance = ?2 and at_us = ?3",
                params![self.partition, id, KEPT.0 as i64],
            ),
            Entry::Purged { handle } => self.purge(handle as i64),
            Entry::Consumed { .. }
            | Entry::Numbered { .. }
            | Entry::NextHandle { .. }
            | Entry::Parked { .. }
            | Entry::NextGeneration { .. } => Ok(()),
        }
    }

    fn run(&self, sql: &str, params: impl rusqlite::Params) -> Result<(), RowsError> {
        self.transaction.prepare_cached(sql)?.execute(params)?;
        Ok(())
    }

    fn history(&self, handle: i64, now: Time, events: &[u8]) -> Result<(), RowsError> {
        let mut number: i64 = self
            .transaction
            .prepare_cached("select events from instances where partition = ?1 and handle = ?2")?
            .query_row(params![self.partition, handle], |row| row.get(0))?;
        let mut skip = Skip;
        let mut events = Events::new(events, Time(0), &mut skip);
        let mut insert =
            self.transaction.prepare_cached("insert or replace into history values (?1, ?2, ?3, ?4, ?5, ?6)")?;
        let mut status = "running";
        let mut began = 0;
        while let Some(event) = events.next() {
            let event = event?;
            let ends = events.offset();
            insert.execute(params![
                self.partition,
                handle,
                number,
                now.0 as i64,
                event.kind.name(),
                (ends - began) as i64
            ])?;
            (number, began) = (number + 1, ends);
            status = status_after(&event.kind).unwrap_or(status);
        }
        self.run(
            "update instances set events = ?3, updated_us = ?4, status = ?5 where partition = ?1 and handle = ?2",
            params![self.partition, handle, number, now.0 as i64, status],
        )
    }

    fn purge(&self, handle: i64) -> Result<(), RowsError> {
        self.run("delete from history where partition = ?1 and handle = ?2", params![self.partition, handle])?;
        self.run("delete from instances where partition = ?1 and handle = ?2", params![self.partition, handle])
    }
}

fn status_after(kind: &EventKind) -> Option<&'static str> {
    match kind {
        EventKind::Completed { .. } => Some("completed"),
        EventKind::Failed { .. } => Some("failed"),
        EventKind::Terminated { .. } => Some("terminated"),
        EventKind::Suspended { .. } => Some("suspended"),
        EventKind::Resumed { .. } | EventKind::Started { .. } => Some("running"),
        _ => None,
    }
}
