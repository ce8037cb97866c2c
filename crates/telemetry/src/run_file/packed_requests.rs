//! Spans that wait in the file for their rows.
//!
//! To take a span apart costs more than to keep it, and while a load runs the cost is borne by the machine that is
//! measured. So spans are committed packed, a request of them a row (`crate::otlp::convert::Packed`): their sender gets
//! the receipt that they are kept, and a kill loses none. They become rows, are counted and thinned out when their
//! trial ends, when more wait than a limit allows, and when a file that a killed process left is opened. From that
//! limit on until none waits, those that come are written as rows at once; who sends too much pays for it then.
//!
//! None waits in a trial that nears a ceiling: what is refused is decided when rows are written, and by then the sender
//! has its response.

use rusqlite::{Connection, OptionalExtension, params};

use super::words::{Count, signed};
use crate::otlp::convert::PackedSpans;

/// Spans that become rows in one transaction, about; it delays a response by no more than a tenth of a second.
pub(super) const SLICE_SPANS: u64 = 20_000;

/// How many spans, and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Size {
    pub(super) spans: u64,
    pub(super) bytes: u64,
}

impl Size {
    pub(super) fn from_packed(packed: &PackedSpans) -> Self {
        Self { spans: packed.spans() as u64, bytes: packed.bytes().len() as u64 }
    }

    fn plus(self, more: Self) -> Self {
        Self { spans: self.spans.saturating_add(more.spans), bytes: self.bytes.saturating_add(more.bytes) }
    }

    fn less(self, less: Self) -> Self {
        Self { spans: self.spans.saturating_sub(less.spans), bytes: self.bytes.saturating_sub(less.bytes) }
    }
}

/// Content of a request.
#[derive(Debug)]
pub(super) struct PackedRequest {
    pub(super) id: i64,
    pub(super) trial: i64,
    pub(super) size: Size,
    pub(super) packed: Vec<u8>,
}

/// The writer's side of the table.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// None until the first request for it.
    size: Option<Size>,
    is_draining: bool,
}

impl Inbox {
    /// Whether as much may wait besides, up to `max`. If not, none may until none waits.
    pub(super) fn has_room(&mut self, connection: &Connection, more: Size, max: Size) -> rusqlite::Result<bool> {
        let all = self.size(connection)?.plus(more);
        self.is_draining |= all.spans > max.spans || all.bytes > max.bytes;
        Ok(!self.is_draining)
    }

    /// From now on none may wait until none waits.
    pub(super) fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Whether those that wait are to become rows now.
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// How much waits.
    pub(super) fn size(&mut self, connection: &Connection) -> rusqlite::Result<Size> {
        if let Some(size) = self.size {
            return Ok(size);
        }
        let size = size_of(connection)?;
        self.size = Some(size);
        self.is_draining &= size.spans > 0;
        Ok(size)
    }

    pub(super) fn put(&mut self, connection: &Connection, trial: i64, packed: &PackedSpans) -> rusqlite::Result<()> {
        let (size, more) = (self.size(connection)?, Size::from_packed(packed));
        let sql = "INSERT INTO inbox_rows (trial, spans, packed) VALUES (?1, ?2, ?3)";
        connection.prepare_cached(sql)?.execute(params![trial, signed(more.spans), packed.bytes()])?;
        self.size = Some(size.plus(more));
        Ok(())
    }

    /// Takes out what waits longest; `None` if nothing does.
    pub(super) fn take(&mut self, connection: &Connection) -> rusqlite::Result<Option<PackedRequest>> {
        let sql = "SELECT id, trial, spans, packed FROM inbox_rows ORDER BY id LIMIT 1";
        let waiting = |row: &rusqlite::Row<'_>| {
            let packed: Vec<u8> = row.get(3)?;
            let size = Size { spans: row.get::<_, Count>(2)?.0, bytes: packed.len() as u64 };
            Ok(PackedRequest { id: row.get(0)?, trial: row.get(1)?, size, packed })
        };
        let Some(oldest) = connection.prepare_cached(sql)?.query_row([], waiting).optional()? else {
            self.size = Some(Size::default());
            self.is_draining = false;
            return Ok(None);
        };
        let size = self.size(connection)?;
        connection.prepare_cached("DELETE FROM inbox_rows WHERE id = ?1")?.execute([oldest.id])?;
        self.size = Some(size.less(oldest.size));
        Ok(Some(oldest))
    }

    /// Forgets what it knows of the file; needed after a rollback, and when rows went another way.
    pub(super) fn forget(&mut self) {
        self.size = None;
    }
}

/// How much waits in a file.
pub(super) fn size_of(connection: &Connection) -> rusqlite::Result<Size> {
    let sql = "SELECT coalesce(sum(spans), 0), coalesce(sum(length(packed)), 0) FROM inbox_rows";
    connection
        .prepare_cached(sql)?
        .query_row([], |row| Ok(Size { spans: row.get::<_, Count>(0)?.0, bytes: row.get::<_, Count>(1)?.0 }))
}
