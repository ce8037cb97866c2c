//! Counts the messages of each service while its lines are read: of a line, its kind, time and trace are kept.

use narrows_model::evidence::TrialEvidence;
use narrows_model::messages::{LoggedLine, MessageTally};

use super::bounds::BoundedConnection;
use super::words::plausible;
use crate::logs::{is_error, template};

/// The lines of a trial, not yet assigned to the calls that wrote them.
pub(super) fn lines_of(connection: &BoundedConnection, trial: &TrialEvidence) -> rusqlite::Result<MessageTally> {
    let sql = "SELECT l.time_ns, l.service, (SELECT text FROM strings WHERE id = l.severity), l.text, l.trace_id \
               FROM log_rows AS l WHERE l.trial = ?1 ORDER BY l.time_ns, l.id";
    let mut tally = MessageTally::new(trial);
    let mut statement = connection.prepare_cached(sql)?;
    let mut lines = statement.query([trial.trial.id])?;
    while let Some(line) = lines.next()? {
        let time_ns = plausible(line.get(0)?);
        if !trial.is_counted(time_ns) {
            continue;
        }
        let text = |at: usize| Ok::<_, rusqlite::Error>(line.get_ref(at)?.as_str_or_null()?.unwrap_or_default());
        let (severity, message) = (text(2)?, text(3)?);
        let id: Option<[u8; 16]> = line.get(4)?;
        let held = tally.add(LoggedLine {
            time_ns,
            service: line.get(1)?,
            template: template(message),
            is_error: is_error(severity, message),
            trace: id.map(u128::from_be_bytes),
        });
        connection.collect(held)?;
    }
    Ok(tally)
}

/// Number of a text in the table `strings` to its text.
pub(super) fn text_of(connection: &BoundedConnection, id: u32) -> rusqlite::Result<String> {
    let mut find = connection.prepare_cached("SELECT text FROM strings WHERE id = ?1")?;
    let text: String = find.query_row([id], |row| row.get(0))?;
    connection.collect(text.len())?;
    Ok(text)
}
