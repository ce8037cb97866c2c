//! Repair of a damaged hub in PostgreSQL: reads logs as far as possible, copies them, and restarts them.

use narrows_durable::store::{LogPiece, Scan, StoreError};
use narrows_durable::{Epoch, PartitionId, Position};

use super::calls::Act;
use super::session::Values;
use super::{PostgresStore, signed, sql, unsigned};
use crate::calls::refused;
use crate::row::{self, Key};

/// Maximum number of copies. Another repair is refused until one is removed.
const COPIES_MAX: usize = 8;

impl PostgresStore {
    /// Passes everything readable of a log to `found`. Returns the end of the log.
    pub(super) fn scan_log(&self, partition: PartitionId, found: &mut Scan<'_>) -> Result<Position, StoreError> {
        let ends = self.partition(partition, 0)?.ends;
        let mut next = 0;
        loop {
            let values: Values = vec![Box::new(i64::from(partition.0)), Box::new(signed(next))];
            let act = Act::new("read", format!("the log of partition {partition} at {next}"));
            let page = self.calls.of_partition(partition, sql::Statement::repeatable(sql::SCAN), values, act)?;
            if page.rows.is_empty() {
                return Ok(Position(ends));
            }
            for batch in &page.rows {
                let position = unsigned(batch.get(0));
                self.scan_batch(partition, batch, found)?;
                next = position + 1;
            }
        }
    }

    fn scan_batch(
        &self,
        partition: PartitionId,
        batch: &tokio_postgres::Row,
        found: &mut Scan<'_>,
    ) -> Result<(), StoreError> {
        let (position, frames, epoch) = (unsigned(batch.get(0)), unsigned(batch.get(1)), unsigned(batch.get(2)));
        let bytes: &[u8] = batch.get(4);
        let crc = row::checksum(Key { partition, position, epoch }, frames, bytes);
        let decoded = if i64::from(crc) == batch.get::<_, i64>(3) {
            row::decode(frames, bytes)
        } else {
            Err("its checksum does not fit its bytes".to_owned())
        };
        match decoded {
            Ok(frames) => (position..)
                .zip(frames)
                .try_for_each(|(position, frame)| found(LogPiece::Frame(Position(position), frame))),
            Err(why) => {
                found(LogPiece::Damage(self.damaged(format!("frame {position} of partition {partition}"), why)))
            }
        }
    }

    /// Restarts a log. Only the current owner can do this.
    pub(super) fn restart_log(&self, partition: PartitionId, epoch: Epoch, at: Position) -> Result<(), StoreError> {
        let values: Values = vec![Box::new(i64::from(partition.0)), Box::new(signed(epoch.0)), Box::new(signed(at.0))];
        let act = Act::new("begin", format!("the log of partition {partition} anew"));
        let done = self.calls.of_partition(partition, sql::Statement::repeatable(sql::RESTART), values, act)?;
        if done.rows.is_empty() { self.fenced(partition, epoch) } else { Ok(()) }
    }

    /// Copies logs and snapshots into separate tables, whose names are returned.
    pub(super) fn keep_copies(&self, partitions: &[PartitionId]) -> Result<String, StoreError> {
        let schema = self.calls.schema().to_owned();
        let act = Act::new("read", format!("schema {schema}"));
        let found = self.calls.of_hub(sql::COPIES, vec![Box::new(schema.clone())], act)?;
        let tables: Vec<String> = found.rows.iter().map(|row| row.get(0)).collect();
        let is_free = |number: &usize| !tables.iter().any(|table| table.starts_with(&format!("damaged_{number}_")));
        let number = (1..=COPIES_MAX).find(is_free).ok_or_else(|| {
            let why = format!(
                "it holds {COPIES_MAX} copies from earlier repairs, damaged_1_batches to damaged_{COPIES_MAX}_blobs"
            );
            refused("keep copies in", self.calls.place(format!("schema {schema}")), why)
        })?;
        let numbers: Vec<String> = partitions.iter().map(ToString::to_string).collect();
        let of_snapshots = partitions.iter().map(|id| format!("starts_with(name, 'p{id}/snapshot/')"));
        let of_snapshots: Vec<String> = of_snapshots.collect();
        let script = format!(
            "begin;
             create table if not exists damaged_{number}_batches as select * from batches where partition in ({});
             create table if not exists damaged_{number}_blobs as select * from blobs where {};
             commit",
            numbers.join(", "),
            of_snapshots.join(" or ")
        );
        self.calls.script(script, Act::new("copy", "the damaged logs"))?;
        Ok(format!("tables damaged_{number}_batches and damaged_{number}_blobs of schema {schema}"))
    }
}
