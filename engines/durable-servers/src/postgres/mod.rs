//! A store in a PostgreSQL database: a schema for each hub, a row for each batch of frames.
//!
//! An append is one statement, so one transaction and one round trip: it moves the end of the log in the partition's
//! row, where epoch and end are as expected, and inserts the batch if it did. A node that takes the partition changes
//! the same row; one of the two is first. What an append returns is known even if the connection was lost in the
//! middle: it is sent again, and where the log has moved on, the row at its position shows by whom.
//!
//! A commit is confirmed once it is on the server's disk (and, where the server has synchronous standbys, on theirs):
//! the server's `fsync` must be on. Poolers that change connections between transactions do not work, since a store's
//! connections hold a lock that shows that the process lives. Connections are not encrypted.

mod calls;
mod create;
mod failure;
mod options;
mod repair;
mod session;
mod sql;

pub use options::PostgresStoreOptions;

use std::net::IpAddr;
use std::sync::Arc;

use narrows_durable::store::{
    Batching, Bus, FrameBatch, HubShape, Line, Owner, Receive, Scan, SharedStore, Store, StoreError, Visit,
    check_blob_name, check_node_name,
};
use narrows_durable::{Epoch, PartitionId, Position};

use self::calls::{Act, Calls};
use self::options::Address;
use self::session::Values;
use crate::calls::refused;
use crate::names::check_said;
use crate::row::{self, Key};
use crate::tcp_bus::TcpBus;

/// How often, and how far apart, a partition of a process that may just have ended is tried again.
const ACQUIRE_ATTEMPTS: u32 = 10;
const ACQUIRE_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// A hub in a PostgreSQL database.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    calls: Arc<Calls>,
    batching: Batching,
    bus: IpAddr,
}

/// The row of a partition.
struct Partition {
    epoch: u64,
    owner: Option<String>,
    begins: u64,
    ends: u64,
    /// The checksum of the batch at the position that was asked for.
    crc: Option<i64>,
}

impl PostgresStore {
    /// Connects. `url` is `postgres://user:password@host:port/database?hub=name`; the hub's schema is `narrows_name`,
    /// and `narrows_main` if none is named. `connections`, `batching` (`group`, `each-step`) and `bus` may follow as
    /// the hub does and go before `options`. Nothing is made before [`Store::open_or_create`].
    ///
    /// # Errors
    /// [`StoreError::Io`] if the text is not as above, the server cannot be reached within 5 s (`connect_timeout` in
    /// the text), or it refuses user or password. Errors and descriptions show no password.
    pub fn open(url: &str, mut options: PostgresStoreOptions) -> Result<Self, StoreError> {
        let address = Address::parse(url, &mut options)?;
        let calls = Arc::new(Calls::open(address, &options)?);
        Ok(Self { calls, batching: options.batching, bus: options.bus })
    }

    fn partition(&self, partition: PartitionId, at: u64) -> Result<Partition, StoreError> {
        let values: Values = vec![Box::new(i64::from(partition.0)), Box::new(signed(at))];
        let act = Act::new("read", format!("partition {partition}"));
        let found = self.calls.of_partition(partition, sql::Statement::repeatable(sql::LOOK), values, act)?;
        let row = found.rows.first().ok_or_else(|| self.unknown(partition))?;
        Ok(Partition {
            epoch: unsigned(row.get(0)),
            owner: row.get(1),
            begins: unsigned(row.get(2)),
            ends: unsigned(row.get(3)),
            crc: row.get(4),
        })
    }

    fn unknown(&self, partition: PartitionId) -> StoreError {
        let place = self.calls.place(format!("partition {partition}"));
        refused("find", place, "the hub has no partition of this number".to_owned())
    }

    fn damaged(&self, what: impl Into<String>, why: impl Into<String>) -> StoreError {
        StoreError::Damaged { place: self.calls.place(what), what: why.into() }
    }

    /// Reports of nodes, from rows with name, checksum and bytes.
    fn nodes_of(&self, rows: &[tokio_postgres::Row]) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let node = |row: &tokio_postgres::Row| {
            let (name, crc, said): (String, i64, Vec<u8>) = (row.get(0), row.get(1), row.get(2));
            if crc != named_checksum(&name, &said) {
                return Err(self.damaged(format!("what node {name} says"), "its checksum does not fit its bytes"));
            }
            Ok((name, said))
        };
        rows.iter().map(node).collect()
    }

    /// The error of a statement that found another epoch than expected; `None` if it is as expected.
    fn fenced(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        let found = self.partition(partition, 0)?;
        if found.epoch == epoch.0 && found.owner.is_some() {
            return Ok(());
        }
        Err(StoreError::Fenced { partition, ours: epoch.0, theirs: found.epoch })
    }

    /// Appends frames as one row in one transaction.
    fn append_row(&self, partition: PartitionId, epoch: Epoch, at: u64, batch: &FrameBatch) -> Result<(), StoreError> {
        let frames = batch.len() as u64;
        let bytes = row::encode(batch);
        let crc = i64::from(row::checksum(Key { partition, position: at, epoch: epoch.0 }, frames, &bytes));
        let values: Values = vec![
            Box::new(i64::from(partition.0)),
            Box::new(signed(epoch.0)),
            Box::new(signed(at)),
            Box::new(signed(frames)),
            Box::new(crc),
            Box::new(bytes),
        ];
        let act = Act::new("append to", format!("the log of partition {partition} at {at}"));
        let done = self.calls.of_partition(partition, sql::Statement::repeatable(sql::APPEND), values, act)?;
        if !done.rows.is_empty() {
            return Ok(());
        }
        let found = self.partition(partition, at)?;
        if found.epoch != epoch.0 || found.owner.is_none() {
            return Err(StoreError::Fenced { partition, ours: epoch.0, theirs: found.epoch });
        }
        // An earlier attempt of this call did it, and its result was lost.
        if done.attempts > 1 && found.ends == at + frames && found.crc == Some(crc) {
            return Ok(());
        }
        Err(StoreError::Conflict { partition, ends: found.ends, at })
    }

    /// Gives the frames from `next` on to `visit` that one query finds; how far it came.
    fn read_page(
        &self,
        partition: PartitionId,
        mut next: u64,
        ends: u64,
        visit: &mut Visit<'_>,
    ) -> Result<u64, StoreError> {
        let values: Values = vec![Box::new(i64::from(partition.0)), Box::new(signed(next))];
        let act = Act::new("read", format!("the log of partition {partition} at {next}"));
        let page = self.calls.of_partition(partition, sql::Statement::repeatable(sql::READ), values, act)?;
        for found in &page.rows {
            let (position, frames, epoch) = (unsigned(found.get(0)), unsigned(found.get(1)), unsigned(found.get(2)));
            let what = || format!("frame {position} of partition {partition}");
            let bytes: &[u8] = found.get(4);
            let crc = row::checksum(Key { partition, position, epoch }, frames, bytes);
            if i64::from(crc) != found.get::<_, i64>(3) {
                return Err(self.damaged(what(), "its checksum does not fit its bytes"));
            }
            let batch = row::decode(frames, bytes).map_err(|why| self.damaged(what(), why))?;
            if position > next || position + frames <= next {
                break;
            }
            for (position, frame) in (position..ends).zip(batch).filter(|(position, _)| *position >= next) {
                visit(Position(position), frame)?;
            }
            next = (position + frames).min(ends);
        }
        Ok(next)
    }
}

impl Store for PostgresStore {
    fn describe(&self) -> String {
        self.calls.server().to_owned()
    }

    fn batching(&self) -> Batching {
        self.batching
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }

    fn open_or_create(&self, wanted: HubShape) -> Result<HubShape, StoreError> {
        create::create(&self.calls, wanted)?;
        let shape = create::hub(&self.calls)?.shape;
        if shape.format == wanted.format {
            return Ok(shape);
        }
        let what = format!("its format is {}, expected {}", shape.format, wanted.format);
        Err(StoreError::Foreign { place: self.calls.place("table hub"), what })
    }

    /// Takes a partition that was given back, that this store holds, or whose owner's connections are all gone; the
    /// last is waited for half a second.
    fn acquire(&self, partition: PartitionId, owner: &str) -> Result<Epoch, StoreError> {
        for attempt in 1.. {
            let values: Values =
                vec![Box::new(i64::from(partition.0)), Box::new(owner.to_owned()), Box::new(self.calls.session())];
            let act = Act::new("take", format!("partition {partition}"));
            let done = self.calls.of_partition(partition, sql::Statement::repeatable(sql::ACQUIRE), values, act)?;
            if let Some(row) = done.rows.first() {
                return Ok(Epoch(unsigned(row.get(0))));
            }
            if attempt >= ACQUIRE_ATTEMPTS {
                break;
            }
            std::thread::sleep(ACQUIRE_PAUSE);
        }
        let by = self.partition(partition, 0)?.owner.unwrap_or_else(|| "another process".to_owned());
        Err(StoreError::InUse { place: self.calls.place(format!("partition {partition}")), by })
    }

    fn release(&self, partition: PartitionId, epoch: Epoch) -> Result<(), StoreError> {
        let values: Values = vec![Box::new(i64::from(partition.0)), Box::new(signed(epoch.0))];
        let act = Act::new("release", format!("partition {partition}"));
        let done = self.calls.of_partition(
            partition,
            sql::Statement { first: sql::RELEASE, again: sql::RELEASE_AGAIN },
            values,
            act,
        )?;
        if done.rows.is_empty() { self.fenced(partition, epoch) } else { Ok(()) }
    }

    fn append(&self, partition: PartitionId, epoch: Epoch, at: Position, batch: &FrameBatch) -> Result<(), StoreError> {
        batch.check(|| self.calls.place(format!("the log of partition {partition} at {}", at.0)))?;
        if batch.is_empty() {
            return self.fenced(partition, epoch);
        }
        match self.batching {
            Batching::Group if batch.len() <= row::FRAMES_MAX => self.append_row(partition, epoch, at.0, batch),
            _ => (at.0..).zip(batch.frames()).try_for_each(|(at, frame)| {
                let mut single = FrameBatch::default();
                single.push(frame);
                self.append_row(partition, epoch, at, &single)
            }),
        }
    }

    fn read(&self, partition: PartitionId, from: Position, visit: &mut Visit<'_>) -> Result<Position, StoreError> {
        let Partition { begins, ends, .. } = self.partition(partition, 0)?;
        let missing = |begins| StoreError::Missing { partition, begins, wanted: from.0 };
        if from.0 < begins {
            return Err(missing(begins));
        }
        let mut next = from.0;
        while next < ends {
            let reached = self.read_page(partition, next, ends, visit)?;
            if reached == next {
                // Its owner may have cut it off in the meantime.
                let begins = self.partition(partition, 0)?.begins;
                let what = format!("frame {next} of partition {partition}");
                let why = format!("it is missing, the log ends at {ends}");
                return Err(if next < begins { missing(begins) } else { self.damaged(what, why) });
            }
            next = reached;
        }
        Ok(Position(ends))
    }

    fn truncate(&self, partition: PartitionId, epoch: Epoch, before: Position) -> Result<(), StoreError> {
        let values: Values =
            vec![Box::new(i64::from(partition.0)), Box::new(signed(epoch.0)), Box::new(signed(before.0))];
        let act = Act::new("truncate", format!("the log of partition {partition}"));
        let done = self.calls.of_partition(partition, sql::Statement::repeatable(sql::TRUNCATE), values, act)?;
        if done.rows.is_empty() { self.fenced(partition, epoch) } else { Ok(()) }
    }

    fn put_blob(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        check_blob_name(name)?;
        let values: Values =
            vec![Box::new(name.to_owned()), Box::new(named_checksum(name, bytes)), Box::new(bytes.to_vec())];
        self.calls.of_blob(name, sql::PUT_BLOB, values, Act::new("write", format!("blob {name}"))).map(drop)
    }

    fn get_blob(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        check_blob_name(name)?;
        let act = Act::new("read", format!("blob {name}"));
        let found = self.calls.of_blob(name, sql::GET_BLOB, vec![Box::new(name.to_owned())], act)?;
        let Some(row) = found.rows.first() else { return Ok(None) };
        let bytes: Vec<u8> = row.get(1);
        if row.get::<_, i64>(0) != named_checksum(name, &bytes) {
            return Err(self.damaged(format!("blob {name}"), "its checksum does not fit its bytes"));
        }
        Ok(Some(bytes))
    }

    fn delete_blob(&self, name: &str) -> Result<(), StoreError> {
        check_blob_name(name)?;
        let act = Act::new("delete", format!("blob {name}"));
        self.calls.of_blob(name, sql::DELETE_BLOB, vec![Box::new(name.to_owned())], act).map(drop)
    }

    fn list_blobs(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let act = Act::new("list", "table blobs");
        let found = self.calls.of_blob(prefix, sql::LIST_BLOBS, vec![Box::new(prefix.to_owned())], act)?;
        Ok(found.rows.iter().map(|row| row.get(0)).collect())
    }
}

impl SharedStore for PostgresStore {
    fn number(&self) -> Result<u64, StoreError> {
        let found = self.calls.of_hub(sql::NUMBER, Vec::new(), Act::new("read", "the number of the transaction"))?;
        Ok(found.rows.first().map_or(0, |row| unsigned(row.get(0))))
    }

    fn say(&self, node: &str, said: &[u8]) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        check_node_name(node)?;
        let what = || format!("what node {node} says");
        check_said(said, || self.calls.place(what()))?;
        let values: Values =
            vec![Box::new(node.to_owned()), Box::new(named_checksum(node, said)), Box::new(said.to_vec())];
        let others = self.calls.of_hub(sql::SAY, values, Act::new("write", what()))?;
        let mut all = self.nodes_of(&others.rows)?;
        all.push((node.to_owned(), said.to_vec()));
        all.sort();
        Ok(all)
    }

    fn said(&self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let found = self.calls.of_hub(sql::SAID, Vec::new(), Act::new("read", "table nodes"))?;
        self.nodes_of(&found.rows)
    }

    fn forget(&self, node: &str) -> Result<(), StoreError> {
        check_node_name(node)?;
        let act = Act::new("forget", format!("node {node}"));
        self.calls.of_hub(sql::FORGET, vec![Box::new(node.to_owned())], act).map(drop)
    }

    fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        let found = self.calls.of_hub(sql::OWNERS, Vec::new(), Act::new("read", "table partitions"))?;
        let owner = |row: &tokio_postgres::Row| {
            let id = u16::try_from(row.get::<_, i64>(0)).ok()?;
            Some(Owner { partition: PartitionId(id), epoch: Epoch(unsigned(row.get(1))), node: row.get(2) })
        };
        let owners: Option<Vec<Owner>> = found.rows.iter().map(owner).collect();
        owners.ok_or_else(|| self.damaged("table partitions", "a number is out of range"))
    }

    fn take(&self, partition: PartitionId, seen: Epoch, node: &str) -> Result<Epoch, StoreError> {
        check_node_name(node)?;
        let values: Values = vec![
            Box::new(i64::from(partition.0)),
            Box::new(signed(seen.0)),
            Box::new(node.to_owned()),
            Box::new(self.calls.session()),
        ];
        let act = Act::new("take", format!("partition {partition}"));
        let done = self.calls.of_partition(
            partition,
            sql::Statement { first: sql::TAKE, again: sql::TAKE_AGAIN },
            values,
            act,
        )?;
        match done.rows.first() {
            Some(row) => Ok(Epoch(unsigned(row.get(0)))),
            None => {
                let theirs = self.partition(partition, 0)?.epoch;
                Err(StoreError::Fenced { partition, ours: seen.0, theirs })
            }
        }
    }

    fn scan(&self, partition: PartitionId, found: &mut Scan<'_>) -> Result<Position, StoreError> {
        self.scan_log(partition, found)
    }

    fn restart(&self, partition: PartitionId, epoch: Epoch, at: Position) -> Result<(), StoreError> {
        self.restart_log(partition, epoch, at)
    }

    fn keep(&self, partitions: &[PartitionId]) -> Result<String, StoreError> {
        self.keep_copies(partitions)
    }

    fn bus(&self) -> Arc<dyn Bus> {
        Arc::new(self.clone())
    }
}

/// Nodes are connected to each other; only those that can read the hub's secret in the database are let in.
impl Bus for PostgresStore {
    fn open(&self, node: &str, receive: Receive) -> Result<Box<dyn Line>, StoreError> {
        let secret = create::hub(&self.calls)?.secret;
        TcpBus::new(self.bus, &secret).open(node, receive)
    }
}

/// The checksum of bytes under a name, which it covers too.
fn named_checksum(name: &str, bytes: &[u8]) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(name.as_bytes());
    hasher.update(&[0]);
    hasher.update(bytes);
    i64::from(hasher.finalize())
}

/// A number as the database has it.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of the database, which has no negative ones.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
