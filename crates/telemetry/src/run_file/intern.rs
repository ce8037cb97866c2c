//! Interned text: the `strings` table, with a bounded cache before it.
//!
//! The table is the truth and knows every string once; the cache only saves the look-up. When the cache is full it is
//! emptied, because what a run repeats returns to it within one batch.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

/// Most entries of the cache.
const CACHED_STRINGS_MAX: usize = 65_536;
/// Most bytes of text in the cache.
const CACHED_BYTES_MAX: usize = 32 << 20;

/// Gives each text its id.
#[derive(Debug, Default)]
pub(super) struct Strings {
    ids: HashMap<Box<str>, i64>,
    bytes: usize,
}

impl Strings {
    /// The id of a text, which is added when it is new.
    pub(super) fn id(&mut self, connection: &Connection, text: &str) -> rusqlite::Result<i64> {
        if let Some(id) = self.ids.get(text) {
            return Ok(*id);
        }
        let id = look_up_or_insert(connection, text)?;
        if self.ids.len() >= CACHED_STRINGS_MAX || self.bytes + text.len() > CACHED_BYTES_MAX {
            self.forget();
        }
        self.bytes += text.len();
        self.ids.insert(text.into(), id);
        Ok(id)
    }

    /// The id of a text, if it has one already.
    pub(super) fn known(&self, connection: &Connection, text: &str) -> rusqlite::Result<Option<i64>> {
        self.ids.get(text).map_or_else(|| look_up(connection, text), |id| Ok(Some(*id)))
    }

    /// The id of a text that may be missing.
    pub(super) fn optional(&mut self, connection: &Connection, text: Option<&str>) -> rusqlite::Result<Option<i64>> {
        text.map(|text| self.id(connection, text)).transpose()
    }

    /// Empties the cache; needed after a rollback, which takes ids back.
    pub(super) fn forget(&mut self) {
        self.ids.clear();
        self.bytes = 0;
    }
}

fn look_up(connection: &Connection, text: &str) -> rusqlite::Result<Option<i64>> {
    let mut find = connection.prepare_cached("SELECT id FROM strings WHERE text = ?1")?;
    find.query_row([text], |row| row.get(0)).optional()
}

fn look_up_or_insert(connection: &Connection, text: &str) -> rusqlite::Result<i64> {
    if let Some(id) = look_up(connection, text)? {
        return Ok(id);
    }
    connection.prepare_cached("INSERT INTO strings (text) VALUES (?1)")?.insert([text])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_id_also_when_the_cache_was_emptied() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE strings (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)").unwrap();
        let mut strings = Strings::default();
        let first: Vec<i64> =
            (0..CACHED_STRINGS_MAX + 10).map(|i| strings.id(&connection, &format!("text {i}")).unwrap()).collect();
        assert!(strings.ids.len() <= CACHED_STRINGS_MAX, "the cache is bounded");
        assert_eq!(strings.id(&connection, "text 0").unwrap(), first[0]);
        let rows: i64 = connection.query_row("SELECT count(*) FROM strings", [], |row| row.get(0)).unwrap();
        assert_eq!(rows as usize, CACHED_STRINGS_MAX + 10);
    }
}
