//! Changes as one transaction. Requests under way may still write to a container that was deleted: such writes are left out.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::Connection;

use super::acknowledgement::Commits;
use super::record::{Change, ContainerRecord, Content, Mark, Write};
use super::{disk, rows, schema};

/// The database, and what lives in it.
#[derive(Debug)]
pub(super) struct Disk {
    connection: Connection,
    live: Live,
    commits: Commits,
}

#[derive(Debug, Default)]
struct Live {
    databases: HashSet<u32>,
    /// Containers with their databases.
    containers: HashMap<u32, u32>,
}

/// The marks that a transaction has to write, by container and range: one of each, whatever the number of writes.
type Marks = BTreeMap<(u32, u32), Mark>;

impl Disk {
    /// `content` is the content of the database.
    pub(super) fn new(connection: Connection, content: &Content) -> Self {
        let databases = content.databases.iter().map(|database| database.number).collect();
        let ids = content.containers.iter().map(|(container, _)| container.id);
        let containers = ids.map(|id| (id.container, id.database)).collect();
        let commits = content.commits.unwrap_or_default();
        Self { connection, live: Live { databases, containers }, commits }
    }

    /// Writes `changes` in one transaction.
    pub(super) fn commit(&mut self, changes: &[Change]) -> rusqlite::Result<Commits> {
        let transaction = self.connection.transaction()?;
        let mut marks = Marks::new();
        for change in changes {
            self.live.apply(&transaction, change, &mut marks)?;
        }
        for ((container, range), mark) in marks {
            rows::put_mark(&transaction, container, range, mark)?;
        }
        let (container, range) = rows::COMMITS;
        let mut count = transaction.prepare_cached("SELECT total(documents) FROM marks WHERE container < ?1")?;
        let documents: f64 = count.query_row([container], |row| row.get(0))?;
        drop(count);
        let commits = Commits { number: self.commits.number + 1, documents: documents as u64 };
        rows::put_mark(&transaction, container, range, commits.to_mark())?;
        transaction.commit()?;
        self.commits = commits;
        Ok(commits)
    }

    /// The last commit.
    pub(super) fn commits(&self) -> Commits {
        self.commits
    }

    /// Leaves the files as they are from now on, after a commit that failed.
    pub(super) fn leave(&self) {
        // Should it fail, the log is read when the folder is opened again, and copied then.
        let _ = disk::leave(&self.connection);
    }
}

impl Live {
    fn apply(&mut self, connection: &Connection, change: &Change, marks: &mut Marks) -> rusqlite::Result<()> {
        match change {
            Change::CreateDatabase(record) => {
                self.databases.insert(record.number);
                rows::put_database(connection, record)?;
                count(connection, record.number)
            }
            Change::AlterDatabase(record) if self.databases.contains(&record.number) => {
                rows::put_database(connection, record)
            }
            Change::DeleteDatabase(number) => self.delete_database(connection, *number, marks),
            Change::CreateContainer(record) if self.databases.contains(&record.id.database) => {
                self.create_container(connection, record, marks)
            }
            Change::AlterContainer(record) if self.has(record) => rows::put_container(connection, record),
            Change::Split { container, parent, halves } if self.has(container) => {
                let number = container.id.container;
                rows::put_container(connection, container)?;
                marks.remove(&(number, *parent));
                marks.extend(halves.iter().map(|(range, mark)| ((number, *range), *mark)));
                let mut delete = connection.prepare_cached("DELETE FROM marks WHERE container = ?1 AND range = ?2")?;
                delete.execute((number, parent)).map(drop)
            }
            Change::DeleteContainer(number) if self.containers.contains_key(number) => {
                self.delete_container(connection, *number, marks)
            }
            Change::Documents { container, range, writes, mark } if self.containers.contains_key(container) => {
                marks.insert((*container, *range), *mark);
                write(connection, *container, writes)
            }
            Change::AlterDatabase(_)
            | Change::CreateContainer(_)
            | Change::AlterContainer(_)
            | Change::Split { .. }
            | Change::DeleteContainer(_)
            | Change::Documents { .. } => Ok(()),
        }
    }

    fn has(&self, record: &ContainerRecord) -> bool {
        self.containers.contains_key(&record.id.container)
    }

    fn create_container(
        &mut self,
        connection: &Connection,
        record: &ContainerRecord,
        marks: &mut Marks,
    ) -> rusqlite::Result<()> {
        let number = record.id.container;
        self.containers.insert(number, record.id.database);
        connection.execute_batch(&schema::documents(number))?;
        rows::put_container(connection, record)?;
        marks.extend(record.ranges.current.iter().map(|range| ((number, range.id), Mark::default())));
        count(connection, number)
    }

    fn delete_container(&mut self, connection: &Connection, number: u32, marks: &mut Marks) -> rusqlite::Result<()> {
        self.containers.remove(&number);
        marks.retain(|(container, _), _| *container != number);
        connection.execute("DELETE FROM marks WHERE container = ?1", [number])?;
        connection.execute("DELETE FROM containers WHERE number = ?1", [number])?;
        connection.execute_batch(&format!("DROP TABLE documents_{number}"))
    }

    fn delete_database(&mut self, connection: &Connection, number: u32, marks: &mut Marks) -> rusqlite::Result<()> {
        self.databases.remove(&number);
        let theirs = self.containers.iter().filter(|(_, database)| **database == number);
        let theirs: Vec<u32> = theirs.map(|(container, _)| *container).collect();
        for container in theirs {
            self.delete_container(connection, container, marks)?;
        }
        connection.execute("DELETE FROM databases WHERE number = ?1", [number]).map(drop)
    }
}

/// Keeps the number of a database or container from being used again.
fn count(connection: &Connection, number: u32) -> rusqlite::Result<()> {
    let next = number.saturating_add(1);
    connection.execute("UPDATE store SET next_number = max(next_number, ?1)", [next]).map(drop)
}

fn write(connection: &Connection, container: u32, writes: &[Write]) -> rusqlite::Result<()> {
    let put = rows::statement_to_put(container);
    let delete = format!("DELETE FROM documents_{container} WHERE number = ?1");
    for write in writes {
        match write {
            Write::Put(held) => rows::put_document(&mut connection.prepare_cached(&put)?, held)?,
            Write::Delete(number) => {
                connection.prepare_cached(&delete)?.execute([number.cast_signed()])?;
            }
        }
    }
    Ok(())
}
