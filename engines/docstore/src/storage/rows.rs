//! Records as rows. Each row carries a CRC of all its values; an impossible row is damage.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Row, RowIndex, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fault::Fault;
use super::record::{ContainerRecord, DatabaseRecord, Mark, RangeRecord, RangesRecord};
use crate::definition::Definition;
use crate::effective_key::{EffectiveKey, KeySpan};
use crate::resource_id::ContainerId;
use crate::stored_document::{Entry, StoredDocument};
use crate::throughput::Throughput;

#[derive(Serialize, Deserialize)]
struct DatabaseBody {
    name: String,
    created_unix_s: u64,
    throughput: Option<Throughput>,
}

#[derive(Serialize, Deserialize)]
struct ContainerBody {
    created_unix_s: u64,
    definition: Map<String, Value>,
    throughput: Throughput,
    ranges: Vec<RangeBody>,
    retired: Vec<RangeBody>,
    next_range: u32,
}

#[derive(Serialize, Deserialize)]
struct RangeBody {
    id: u32,
    /// Hexadecimal digits, as those of `end`.
    min: String,
    end: String,
    parents: Vec<u32>,
}

/// The CRC of a row: of each value its length and its bytes.
fn crc(values: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for value in values {
        hasher.update(&(value.len() as u64).to_le_bytes());
        hasher.update(value);
    }
    hasher.finalize()
}

/// SQLite's integers have a sign; the numbers here count up from 0 and never get there.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row, column: impl RowIndex) -> Result<u64, Fault> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| Fault::Damaged(format!("{number} stands where numbers begin at 0")))
}

fn checked(row: &Row, column: &str, values: &[&[u8]], what: &str) -> Result<(), Fault> {
    let found: u32 = row.get(column)?;
    if found == crc(values) {
        return Ok(());
    }
    Err(Fault::Damaged(format!("{what} does not match its checksum")))
}

fn body<'a, T: Deserialize<'a>>(text: &'a str, what: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| Fault::Damaged(format!("{what} cannot be read: {error}")))
}

fn text_of(body: &impl Serialize) -> String {
    // Plain data with text keys always has a JSON text.
    serde_json::to_string(body).unwrap_or_default()
}

/// Writes a database.
pub(super) fn put_database(connection: &Connection, record: &DatabaseRecord) -> rusqlite::Result<()> {
    let DatabaseRecord { number, name, created_unix_s, throughput } = record;
    let body = DatabaseBody { name: name.clone(), created_unix_s: *created_unix_s, throughput: *throughput };
    let text = text_of(&body);
    let crc = crc(&[&number.to_le_bytes(), text.as_bytes()]);
    let mut put = connection.prepare_cached("INSERT OR REPLACE INTO databases VALUES (?1, ?2, ?3)")?;
    put.execute(params![number, text, crc]).map(drop)
}

/// Reads a row of `databases`.
pub(super) fn database(row: &Row) -> Result<DatabaseRecord, Fault> {
    let (number, text): (u32, String) = (row.get("number")?, row.get("body")?);
    let what = format!("database number {number}");
    checked(row, "crc", &[&number.to_le_bytes(), text.as_bytes()], &what)?;
    let DatabaseBody { name, created_unix_s, throughput } = body(&text, &what)?;
    Ok(DatabaseRecord { number, name, created_unix_s, throughput })
}

/// Writes a container.
pub(super) fn put_container(connection: &Connection, record: &ContainerRecord) -> rusqlite::Result<()> {
    let ContainerId { database, container } = record.id;
    let ranges = |ranges: &[RangeRecord]| ranges.iter().map(RangeBody::from).collect();
    let body = ContainerBody {
        created_unix_s: record.created_unix_s,
        definition: record.definition.to_json(),
        throughput: record.throughput,
        ranges: ranges(&record.ranges.current),
        retired: ranges(&record.ranges.retired),
        next_range: record.ranges.next_id,
    };
    let text = text_of(&body);
    let crc = crc(&[&container.to_le_bytes(), &database.to_le_bytes(), text.as_bytes()]);
    let mut put = connection.prepare_cached("INSERT OR REPLACE INTO containers VALUES (?1, ?2, ?3, ?4)")?;
    put.execute(params![container, database, text, crc]).map(drop)
}

/// Reads a row of `containers`.
pub(super) fn container(row: &Row) -> Result<ContainerRecord, Fault> {
    let (container, database, text): (u32, u32, String) = (row.get("number")?, row.get("database")?, row.get("body")?);
    let what = format!("container number {container}");
    checked(row, "crc", &[&container.to_le_bytes(), &database.to_le_bytes(), text.as_bytes()], &what)?;
    let body: ContainerBody = body(&text, &what)?;
    let wrong = |error: String| Fault::Damaged(format!("{what}: {error}"));
    let definition = Definition::from_json(&body.definition).map_err(wrong)?;
    let ranges = |bodies: Vec<RangeBody>| bodies.into_iter().map(RangeBody::read).collect::<Result<_, _>>();
    Ok(ContainerRecord {
        id: ContainerId { database, container },
        created_unix_s: body.created_unix_s,
        definition: Arc::new(definition),
        throughput: body.throughput,
        ranges: RangesRecord {
            current: ranges(body.ranges).map_err(wrong)?,
            retired: ranges(body.retired).map_err(wrong)?,
            next_id: body.next_range,
        },
    })
}

impl From<&RangeRecord> for RangeBody {
    fn from(range: &RangeRecord) -> Self {
        let RangeRecord { id, span, parents } = range;
        let (min, end) = (format!("{:x}", span.min()), format!("{:x}", span.end()));
        Self { id: *id, min, end, parents: parents.clone() }
    }
}

impl RangeBody {
    fn read(self) -> Result<RangeRecord, String> {
        let Self { id, min, end, parents } = self;
        let place = |digits: &str| u128::from_str_radix(digits, 16).ok();
        let span = place(&min).zip(place(&end)).and_then(|(min, end)| KeySpan::between(min, end));
        let span = span.ok_or_else(|| format!("range {id} goes from {min:?} to {end:?}"))?;
        Ok(RangeRecord { id, span, parents })
    }
}

/// The container and the range of the last commit's row in `marks`. No container has this number.
pub(super) const COMMITS: (u32, u32) = (u32::MAX, 0);

/// Writes the mark of a range.
pub(super) fn put_mark(connection: &Connection, container: u32, range: u32, mark: Mark) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached("INSERT OR REPLACE INTO marks VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let [lsn, number, documents] = [mark.lsn, mark.number, mark.documents].map(signed);
    put.execute(params![container, range, lsn, number, documents, crc_of_mark(container, range, mark)]).map(drop)
}

fn crc_of_mark(container: u32, range: u32, mark: Mark) -> u32 {
    let Mark { lsn, number, documents } = mark;
    let ids = [container, range].map(u32::to_le_bytes).concat();
    crc(&[&ids, &[lsn, number, documents].map(u64::to_le_bytes).concat()])
}

/// Reads a row of `marks`: container, range and mark.
pub(super) fn mark(row: &Row) -> Result<(u32, u32, Mark), Fault> {
    let (container, range) = (row.get("container")?, row.get("range")?);
    let mark =
        Mark { lsn: unsigned(row, "lsn")?, number: unsigned(row, "number")?, documents: unsigned(row, "documents")? };
    if row.get::<_, u32>("crc")? != crc_of_mark(container, range, mark) {
        let what = format!("the mark of range {range} of container number {container} does not match its checksum");
        return Err(Fault::Damaged(what));
    }
    Ok((container, range, mark))
}

/// The statement that writes a document of a container.
pub(super) fn statement_to_put(container: u32) -> String {
    format!("INSERT OR REPLACE INTO documents_{container} VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
}

/// Writes a document with [`statement_to_put`].
pub(super) fn put_document(put: &mut CachedStatement, held: &StoredDocument) -> rusqlite::Result<()> {
    let Entry { number, key, effective, lsn, unix_s, ttl } = &held.entry;
    let effective = effective.to_bytes();
    let crc = crc_of_document(held, &effective);
    let [number, lsn, unix_s] = [*number, *lsn, *unix_s].map(signed);
    put.execute(params![number, &**key, effective, lsn, unix_s, ttl, &*held.text, crc]).map(drop)
}

fn crc_of_document(held: &StoredDocument, effective: &[u8]) -> u32 {
    let Entry { number, key, lsn, unix_s, ttl, .. } = &held.entry;
    let numbers = [*number, *lsn, *unix_s].map(u64::to_le_bytes).concat();
    let ttl = ttl.map(i64::to_le_bytes);
    let ttl: &[u8] = ttl.as_ref().map_or(&[], |bytes| bytes);
    crc(&[&numbers, key, effective, ttl, held.text.as_bytes()])
}

/// Reads a row of `documents_N`, whose columns are in the order of the table.
pub(super) fn document(row: &Row) -> Result<StoredDocument, Fault> {
    let number = unsigned(row, 0)?;
    let damaged = |what: &str| Fault::Damaged(format!("document number {number} {what}"));
    let bytes = |column: usize| match row.get_ref(column)? {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Ok(bytes),
        _ => Err(damaged("has a number for a text")),
    };
    let (key, places, text) = (bytes(1)?, bytes(2)?, bytes(6)?);
    let effective = EffectiveKey::from_bytes(places).ok_or_else(|| damaged("has no place in the hash space"))?;
    let text = str::from_utf8(text).map_err(|_| damaged("is no text"))?;
    if !(text.starts_with('{') && text.ends_with('}')) {
        return Err(damaged("is no JSON object"));
    }
    let (lsn, unix_s, ttl) = (unsigned(row, 3)?, unsigned(row, 4)?, row.get(5)?);
    let held =
        StoredDocument { entry: Entry { number, key: key.into(), effective, lsn, unix_s, ttl }, text: text.into() };
    if row.get::<_, u32>(7)? != crc_of_document(&held, places) {
        return Err(damaged("does not match its checksum"));
    }
    Ok(held)
}
