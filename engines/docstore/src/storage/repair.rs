//! Repair of a folder that is damaged or has less than was acknowledged: reads the intact rows and makes a new database
//! of them.
//!
//! Here damage is not an error but a finding. Reading changes nothing. A repair writes the readable data to a new
//! database, copies the old files to a folder beside them, and only then replaces the old database. An interrupted
//! repair can be repeated.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use super::acknowledgement::{Commits, Note};
use super::fault::Fault;
use super::folder::Folder;
use super::record::{ContainerRecord, DatabaseRecord, Mark};
use super::{disk, rows, schema};
use crate::stored_document::StoredDocument;
use crate::{Error, Flush};

/// Maximum number of damaged rows of a table that are named.
const NAMED_MAX: usize = 5;

/// A folder and its damage. The folder is locked as long as this value lives.
#[derive(Debug)]
pub struct Repair {
    folder: Folder,
    findings: Vec<String>,
    rest: ReadableContent,
}

/// The readable content.
#[derive(Debug, Default)]
struct ReadableContent {
    commits: Option<Commits>,
    next_number: u32,
    databases: Vec<DatabaseRecord>,
    containers: Vec<SalvagedContainer>,
}

/// A container with its readable documents.
#[derive(Debug)]
struct SalvagedContainer {
    record: ContainerRecord,
    marks: BTreeMap<u32, Mark>,
    documents: Vec<StoredDocument>,
}

impl Repair {
    /// Reads a folder and changes nothing in it.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] if it cannot be read, [`Error::InUse`] if a process has it open, [`Error::Foreign`] and
    /// [`Error::OtherVersion`] for another file, and [`Error::Damaged`] if nothing of the file can be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let folder = Folder::lock_existing(path)?;
        let file = folder.file();
        let connection = disk::connect(&file, Flush::Always).map_err(|fault| fault.of(&file))?;
        let mut reader = Reader { connection: &connection, findings: Vec::new() };
        let mut rest = reader.rest();
        let mut findings = reader.findings;
        if let Some(loss) = folder.loss(rest.commits)? {
            findings.insert(0, loss);
        }
        if let Note::Read(noted) = folder.acknowledged()? {
            let found = rest.commits.unwrap_or_default();
            rest.commits = Some(Commits { number: found.number.max(noted.commits.number), ..found });
        }
        Ok(Self { folder, findings, rest })
    }

    /// The damage and the losses, one sentence each; empty if the folder is sound.
    #[must_use]
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// Number of readable documents.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.rest.containers.iter().map(|container| container.documents.len()).sum()
    }

    /// Replaces the folder's content by the readable data, and returns the folder with copies of the old files.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] and [`Error::Storage`] if the folder cannot be written.
    pub fn accept(self) -> Result<PathBuf, Error> {
        let Self { folder, rest, .. } = self;
        let draft = folder.new_draft()?;
        let commits = rest.write(&draft).map_err(|fault| fault.of(&draft))?;
        let kept = folder.keep_damaged()?;
        folder.remove_log()?;
        folder.adopt_draft()?;
        folder.acknowledge(commits, Flush::Always)?;
        Ok(kept)
    }
}

/// Reads the readable data and notes the damage.
struct Reader<'a> {
    connection: &'a Connection,
    findings: Vec<String>,
}

impl Reader<'_> {
    fn rest(&mut self) -> ReadableContent {
        if let Err(Fault::Damaged(what)) = schema::check_tables(self.connection) {
            self.findings.push(what);
        }
        let number = self.connection.query_row("SELECT next_number FROM store WHERE id = 1", [], |row| row.get(0));
        let next_number = number.unwrap_or_else(|error| {
            self.findings.push(format!("the number of the next container cannot be read: {error}"));
            0
        });
        let databases = self.table("databases", "number", rows::database);
        let mut marks: BTreeMap<u32, BTreeMap<u32, Mark>> = BTreeMap::new();
        let mut commits = None;
        for (container, range, mark) in self.table("marks", "container", rows::mark) {
            if (container, range) == rows::COMMITS {
                commits = Some(Commits::of_mark(mark));
            } else {
                marks.entry(container).or_default().insert(range, mark);
            }
        }
        let mut containers = Vec::new();
        for record in self.table("containers", "number", rows::container) {
            let number = record.id.container;
            if databases.iter().all(|database| database.number != record.id.database) {
                self.findings.push(format!("container number {number} is lost: its database cannot be read"));
                continue;
            }
            containers.push(self.container(record, marks.remove(&number).unwrap_or_default()));
        }
        let numbers = databases.iter().map(|database| database.number);
        let numbers = numbers.chain(containers.iter().map(|container| container.record.id.container));
        let next_number = numbers.max().map_or(0, |last| last.saturating_add(1)).max(next_number);
        ReadableContent { commits, next_number, databases, containers }
    }

    fn container(&mut self, record: ContainerRecord, noted: BTreeMap<u32, Mark>) -> SalvagedContainer {
        let number = record.id.container;
        let documents = self.table(&format!("documents_{number}"), "number", rows::document);
        let mut salvaged = SalvagedContainer { record, marks: BTreeMap::new(), documents: Vec::new() };
        for range in &salvaged.record.ranges.current {
            let mark = noted.get(&range.id).copied().unwrap_or_default();
            salvaged.marks.insert(range.id, Mark { documents: 0, ..mark });
        }
        let mut seen = UniqueValues::default();
        salvaged.documents = documents.into_iter().filter(|held| salvaged.takes(held, &mut seen)).collect();
        let name = &salvaged.record.definition.name;
        if salvaged.record.ranges.current.iter().any(|range| !noted.contains_key(&range.id)) {
            self.findings.push(format!("container {name:?} has no mark for some of its ranges"));
        }
        let (found, expected) = (salvaged.documents.len(), noted.values().map(|mark| mark.documents).sum::<u64>());
        if found as u64 != expected {
            self.findings.push(format!("container {name:?} has {found} documents, expected {expected}"));
        }
        salvaged
    }

    /// Every readable row of a table, by key: from the first one on, and, if that stops early, from the last one back.
    fn table<T>(&mut self, table: &str, key: &str, read: fn(&Row) -> Result<T, Fault>) -> Vec<T> {
        let mut faults = Vec::new();
        let mut last = i64::MIN;
        let (mut found, is_whole) = self.scan(&format!("SELECT * FROM {table} ORDER BY {key}"), &mut faults, |row| {
            last = row.get(0)?;
            read(row)
        });
        if !is_whole {
            let query = format!("SELECT * FROM {table} WHERE {key} > {last} ORDER BY {key} DESC");
            let (mut others, _) = self.scan(&query, &mut faults, read);
            others.reverse();
            found.append(&mut others);
        }
        let more = faults.len().saturating_sub(NAMED_MAX);
        let named = faults.into_iter().take(NAMED_MAX).map(|fault| format!("in table {table}: {fault}"));
        self.findings.extend(named);
        if more > 0 {
            self.findings.push(format!("in table {table}: {more} more rows cannot be read"));
        }
        found
    }

    /// The readable rows, and whether the scan reached the end.
    fn scan<T>(
        &self,
        query: &str,
        faults: &mut Vec<Fault>,
        mut read: impl FnMut(&Row) -> Result<T, Fault>,
    ) -> (Vec<T>, bool) {
        let mut found = Vec::new();
        let scanned = self.connection.prepare(query).and_then(|mut statement| {
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                match read(row) {
                    Ok(value) => found.push(value),
                    Err(fault) => faults.push(fault),
                }
            }
            Ok(())
        });
        let is_whole = scanned.is_ok();
        faults.extend(scanned.err().map(Fault::from));
        (found, is_whole)
    }
}

/// Values that must be unique among the documents of a container.
#[derive(Debug, Default)]
struct UniqueValues {
    number: Option<u64>,
    keys: HashSet<Arc<[u8]>>,
    /// With the range of the document.
    lsns: HashSet<(u32, u64)>,
}

impl SalvagedContainer {
    /// Whether the document belongs here; if so, its range counts it.
    fn takes(&mut self, held: &StoredDocument, seen: &mut UniqueValues) -> bool {
        let entry = &held.entry;
        let ranges = &self.record.ranges.current;
        let Some(range) = ranges.iter().find(|range| range.span.contains(entry.effective.place())) else {
            return false;
        };
        let is_new = seen.number < Some(entry.number)
            && !seen.keys.contains(&entry.key)
            && seen.lsns.insert((range.id, entry.lsn));
        if is_new {
            seen.number = Some(entry.number);
            seen.keys.insert(Arc::clone(&entry.key));
            let mark = self.marks.entry(range.id).or_default();
            *mark = Mark {
                lsn: mark.lsn.max(entry.lsn),
                number: mark.number.max(entry.number),
                documents: mark.documents + 1,
            };
        }
        is_new
    }
}

impl ReadableContent {
    /// Writes all of it to a new database.
    fn write(&self, draft: &Path) -> Result<Commits, Fault> {
        let mut connection = disk::create(draft)?;
        let transaction = connection.transaction()?;
        transaction.execute("UPDATE store SET next_number = ?1", params![self.next_number])?;
        for database in &self.databases {
            rows::put_database(&transaction, database)?;
        }
        for SalvagedContainer { record, marks, documents } in &self.containers {
            let number = record.id.container;
            transaction.execute_batch(&schema::documents(number))?;
            rows::put_container(&transaction, record)?;
            for (range, mark) in marks {
                rows::put_mark(&transaction, number, *range, *mark)?;
            }
            let mut put = transaction.prepare_cached(&rows::statement_to_put(number))?;
            for held in documents {
                rows::put_document(&mut put, held)?;
            }
        }
        let documents = self.containers.iter().map(|container| container.documents.len() as u64).sum();
        let commits = Commits { documents, ..self.commits.unwrap_or_default() };
        let (container, range) = rows::COMMITS;
        rows::put_mark(&transaction, container, range, commits.to_mark())?;
        transaction.commit()?;
        Ok(commits)
    }
}
