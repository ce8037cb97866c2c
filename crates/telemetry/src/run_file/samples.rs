//! Reads the sampled requests of a trial back, for those who take them elsewhere.
//!
//! All of them at once: a trial has a ceiling. Evidence does without, because a sample proves little that the
//! distributions do not.

use narrows_model::load::{ErrorKind, Sample};
use rusqlite::{Connection, Row};

use super::error::Result;
use super::reader::{Reader, rows};
use super::schema::Schema;
use super::words::{Count, Word};

impl Reader {
    /// The sampled requests of a trial, by intended send.
    pub fn samples(&self, trial: i64) -> Result<Vec<Sample>> {
        self.query(|connection| samples_of(connection, self.schema, trial))
    }
}

fn samples_of(connection: &Connection, schema: Schema, trial: i64) -> rusqlite::Result<Vec<Sample>> {
    let sql = format!(
        "SELECT (SELECT text FROM strings WHERE id = s.scenario) AS scenario_name, {} AS request_name, s.* \
         FROM sample_rows AS s WHERE s.trial = ?1 ORDER BY s.intended_ns, s.id",
        schema.sample_request_column()
    );
    rows(connection, &sql, [trial], sample_of)
}

fn sample_of(row: &Row<'_>) -> rusqlite::Result<Sample> {
    Ok(Sample {
        scenario: row.get("scenario_name")?,
        request: row.get("request_name")?,
        vu: row.get("vu")?,
        intended_ns: row.get("intended_ns")?,
        sent_ns: row.get("sent_ns")?,
        done_ns: row.get("done_ns")?,
        status: row.get("status")?,
        error: row.get::<_, Option<Word<ErrorKind>>>("error")?.map(|word| word.0),
        bytes: row.get::<_, Count>("bytes")?.0,
        trace_id: row.get("trace_id")?,
        weight: row.get("weight")?,
    })
}
