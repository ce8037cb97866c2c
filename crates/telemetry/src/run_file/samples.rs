//! Reads the sampled requests of a trial back, for those who take them elsewhere.
//!
//! All of them at once: a trial has a ceiling. Of evidence only the stalls rest on them, which need the order of responses
//! within a second; all else is in the distributions.

use narrows_model::evidence::TrialEvidence;
use narrows_model::load::{ErrorKind, Sample};
use narrows_model::stalls::{Stalls, TimedRequest};
use rusqlite::Row;

use super::bounds::BoundedConnection;
use super::error::Result;
use super::reader::Reader;
use super::words::{Count, Name, Word};

impl Reader {
    /// The sampled requests of a trial, by intended send.
    pub fn samples(&self, trial: i64) -> Result<Vec<Sample>> {
        self.query(|connection| samples_of(connection, trial))
    }
}

fn samples_of(connection: &BoundedConnection, trial: i64) -> rusqlite::Result<Vec<Sample>> {
    let sql = "SELECT (SELECT text FROM strings WHERE id = s.scenario) AS scenario_name, \
               coalesce((SELECT text FROM strings WHERE id = s.request), '') AS request_name, \
               (SELECT text FROM strings WHERE id = s.agent) AS agent_name, s.* \
               FROM sample_rows AS s WHERE s.trial = ?1 ORDER BY s.intended_ns, s.id";
    connection.rows(sql, [trial], sample_of)
}

/// The stalls that the successful requests in counted windows show.
pub(super) fn stalls_of(connection: &BoundedConnection, trial: &TrialEvidence) -> rusqlite::Result<Stalls> {
    let sql =
        "SELECT sent_ns, done_ns, weight FROM sample_rows WHERE trial = ?1 AND error IS NULL ORDER BY sent_ns, id";
    let mut requests = connection.rows(sql, [trial.trial.id], |row| {
        Ok(TimedRequest { sent_ns: row.get(0)?, done_ns: row.get(1)?, weight: row.get(2)? })
    })?;
    requests.retain(|request| trial.is_counted(request.sent_ns));
    Ok(Stalls::of(requests))
}

fn sample_of(row: &Row<'_>) -> rusqlite::Result<Sample> {
    Ok(Sample {
        scenario: row.get::<_, Name>("scenario_name")?.0,
        request: row.get::<_, Name>("request_name")?.0,
        vu: row.get("vu")?,
        agent: row.get::<_, Option<Name>>("agent_name")?.map(|name| name.0),
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
