//! Activity of the sessions of a MariaDB or MySQL server: which of them wait for a row lock, and which statements its time
//! goes to.
//!
//! MariaDB tells of InnoDB's lock waits in `information_schema`, MySQL in `performance_schema` (MySQL Reference Manual,
//! *The data_lock_waits Table*). Either names who blocks whom at once for the whole queue. InnoDB responds from a copy
//! of its own that it renews once that was not read for 0.1 s, so both questions of a sample see one state.

use std::collections::{BTreeMap, BTreeSet};

use mysql_async::Row;

use crate::components::gauges::{Gauge, TIMEOUT};
use crate::components::mariadb::client::{Client, column};
use crate::components::sessions::{Lock, SESSIONS_MAX, STATEMENT_CHARS_MAX, Session};

/// Rows of who waits for whom at most; each session of a queue waits for all before it.
const WAITS_MAX: usize = 2000;
/// Statements that are told of a server at most.
const STATEMENTS_MAX: usize = 20;
/// Characters of a statement's text that are kept.
const TEXT_CHARS_MAX: usize = 200;
/// The label with the text of a statement.
const TEXT: &str = "db.query.text";
/// States of a session that waits for a lock on a table or its definition.
const TABLE_LOCKS: &str = "Waiting for table";

const VERSION: &str = "SELECT CAST(version() AS CHAR), CAST(@@performance_schema AS SIGNED)";

/// A row of the list of sessions.
#[derive(Debug, Clone, PartialEq, Default)]
struct ProcessRow {
    id: i64,
    command: String,
    state: String,
    statement: String,
    /// Since the session is in this state.
    seconds: f64,
}

impl ProcessRow {
    fn read(row: &Row) -> Self {
        Self {
            id: column(row, 0).unwrap_or_default(),
            command: column(row, 1).unwrap_or_default(),
            state: column(row, 2).unwrap_or_default(),
            statement: column(row, 3).unwrap_or_default(),
            seconds: column(row, 4).unwrap_or_default(),
        }
    }
}

/// A row of InnoDB's lock waits.
#[derive(Debug, Clone, PartialEq)]
struct WaitRow {
    waiting: i64,
    blocking: i64,
    /// `RECORD`, `TABLE` or empty.
    lock_type: String,
    lock_table: String,
}

impl WaitRow {
    fn read(row: &Row) -> Self {
        Self {
            waiting: column(row, 0).unwrap_or_default(),
            blocking: column(row, 1).unwrap_or_default(),
            lock_type: column(row, 2).unwrap_or_default(),
            lock_table: column(row, 3).unwrap_or_default(),
        }
    }
}

/// Facts of the server that do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Server {
    is_mariadb: bool,
    has_performance_schema: bool,
}

/// Asks what the sessions of one server do.
#[derive(Debug, Default)]
pub(super) struct Activity {
    server: Option<Server>,
    /// The statements told so far.
    told: BTreeSet<String>,
}

impl Activity {
    /// A sample of the sessions that are not idle.
    pub(super) fn sessions(&mut self, client: &mut Client) -> Result<Vec<Session>, String> {
        let server = self.server(client)?;
        let waits: Vec<WaitRow> = client.rows(&waits_query(server), TIMEOUT)?.iter().map(WaitRow::read).collect();
        let processes = client.rows(&processes_query(server), TIMEOUT)?;
        let processes: Vec<ProcessRow> = processes.iter().map(ProcessRow::read).collect();
        Ok(sessions(&processes, &waits))
    }

    /// The statements that cost most so far; empty where the server does not count them.
    pub(super) fn statements(&mut self, client: &mut Client) -> Result<Vec<Gauge>, String> {
        if !self.server(client)?.has_performance_schema {
            return Ok(Vec::new());
        }
        let mut gauges = Vec::new();
        for row in client.rows(DIGESTS, TIMEOUT)? {
            let (Some(text), Some(calls), Some(seconds)) =
                (column::<String>(&row, 0), column(&row, 1), column(&row, 2))
            else {
                continue;
            };
            let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
            if !self.told.contains(&text) && self.told.len() >= STATEMENTS_MAX {
                continue;
            }
            gauges.push(Gauge::new("mysql.statement.calls", "{call}", calls).with(TEXT, &text));
            gauges.push(Gauge::new("mysql.statement.time", "s", seconds).with(TEXT, &text));
            self.told.insert(text);
        }
        Ok(gauges)
    }

    fn server(&mut self, client: &mut Client) -> Result<Server, String> {
        if let Some(server) = self.server {
            return Ok(server);
        }
        let rows = client.rows(VERSION, TIMEOUT)?;
        let version: String = rows.first().and_then(|row| column(row, 0)).ok_or("it does not tell its version")?;
        let has_performance_schema = column(&rows[0], 1) == Some(1_i64);
        let server = Server { is_mariadb: version.contains("MariaDB"), has_performance_schema };
        self.server = Some(server);
        Ok(server)
    }
}

const DIGESTS: &str = "\
SELECT digest_text, CAST(count_star AS DOUBLE), CAST(sum_timer_wait AS DOUBLE) / 1e12
  FROM performance_schema.events_statements_summary_by_digest
 WHERE digest_text IS NOT NULL AND digest_text NOT LIKE '%performance_schema%'
   AND digest_text NOT LIKE '%information_schema%' AND digest_text NOT LIKE '%innodb_trx%'
 ORDER BY sum_timer_wait DESC LIMIT 5";

/// Sessions at work, and those that sleep in a transaction.
fn processes_query(server: Server) -> String {
    let seconds = if server.is_mariadb { "CAST(p.time_ms AS DOUBLE) / 1e3" } else { "CAST(p.time AS DOUBLE)" };
    format!(
        "SELECT CAST(p.id AS SIGNED), p.command, p.state, LEFT(p.info, {STATEMENT_CHARS_MAX}), {seconds} \
           FROM information_schema.processlist p \
           LEFT JOIN information_schema.innodb_trx t ON t.trx_mysql_thread_id = p.id \
          WHERE p.id <> connection_id() AND p.command NOT IN ('Daemon', 'Binlog Dump') \
            AND (p.command <> 'Sleep' OR t.trx_id IS NOT NULL) \
          LIMIT {SESSIONS_MAX}"
    )
}

fn waits_query(server: Server) -> String {
    let (lock_type, table, waits) = if server.is_mariadb {
        let waits = "information_schema.innodb_lock_waits l \
                     JOIN information_schema.innodb_trx w ON w.trx_id = l.requesting_trx_id \
                     JOIN information_schema.innodb_trx b ON b.trx_id = l.blocking_trx_id \
                     LEFT JOIN information_schema.innodb_locks k ON k.lock_id = l.requested_lock_id";
        ("k.lock_type", "k.lock_table", waits)
    } else {
        let waits = "performance_schema.data_lock_waits l \
                     JOIN information_schema.innodb_trx w ON w.trx_id = l.requesting_engine_transaction_id \
                     JOIN information_schema.innodb_trx b ON b.trx_id = l.blocking_engine_transaction_id \
                     LEFT JOIN performance_schema.data_locks k ON k.engine_lock_id = l.requesting_engine_lock_id";
        ("k.lock_type", "k.object_name", waits)
    };
    format!(
        "SELECT CAST(w.trx_mysql_thread_id AS SIGNED), CAST(b.trx_mysql_thread_id AS SIGNED), {lock_type}, {table} \
           FROM {waits} LIMIT {WAITS_MAX}"
    )
}

/// The sessions of a list, with what they wait for.
fn sessions(processes: &[ProcessRow], waits: &[WaitRow]) -> Vec<Session> {
    let mut by_waiting: BTreeMap<i64, Vec<&WaitRow>> = BTreeMap::new();
    for wait in waits {
        by_waiting.entry(wait.waiting).or_default().push(wait);
    }
    let session = |row: &ProcessRow| {
        let waits = by_waiting.get(&row.id).map(Vec::as_slice).unwrap_or_default();
        let is_for_table = row.state.starts_with(TABLE_LOCKS);
        let of_table = || is_for_table.then(|| Lock { lock_type: "table".to_owned(), ..Lock::default() });
        Session {
            id: row.id,
            is_active: row.command != "Sleep",
            statement: row.statement.clone(),
            lock: waits.first().map(|wait| lock(wait)).or_else(of_table),
            wait_event: row.state.clone(),
            blockers: waits.iter().map(|wait| wait.blocking).collect(),
            age_seconds: row.seconds.max(0.0),
        }
    };
    processes.iter().map(session).collect()
}

fn lock(wait: &WaitRow) -> Lock {
    let lock_type = match wait.lock_type.as_str() {
        "" | "RECORD" => "row".to_owned(),
        other => other.to_lowercase(),
    };
    // MariaDB writes `schema`.`table`.
    let table = wait.lock_table.rsplit('.').next().unwrap_or_default().trim_matches('`').to_owned();
    Lock { lock_type, table }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: i64, command: &str, statement: &str) -> ProcessRow {
        let (command, state, statement) = (command.to_owned(), "Updating".to_owned(), statement.to_owned());
        ProcessRow { id, command, state, statement, seconds: 0.25 }
    }

    #[test]
    fn a_queue_of_row_locks_names_who_holds_it() {
        let (lock_type, lock_table) = ("RECORD".to_owned(), "`shop`.`stock`".to_owned());
        let first = WaitRow { waiting: 2, blocking: 1, lock_type, lock_table };
        let waits =
            [first.clone(), WaitRow { waiting: 3, blocking: 2, ..first.clone() }, WaitRow { waiting: 3, ..first }];
        let update = "UPDATE stock SET n = 1";
        let found =
            sessions(&[process(1, "Sleep", ""), process(2, "Query", update), process(3, "Query", update)], &waits);
        assert!(!found[0].is_active && found[0].lock.is_none());
        let row = Some(Lock { lock_type: "row".to_owned(), table: "stock".to_owned() });
        assert_eq!((&found[1].lock, &found[1].blockers), (&row, &vec![1]));
        assert_eq!(found[2].blockers, [2, 1]);
    }

    #[test]
    fn a_wait_for_a_table_is_told_by_the_state() {
        let state = "Waiting for table metadata lock".to_owned();
        let found = sessions(&[ProcessRow { state, ..process(5, "Query", "ALTER TABLE a") }], &[]);
        assert_eq!(found[0].lock.as_ref().unwrap().lock_type, "table");
        assert_eq!(sessions(&[process(5, "Query", "SELECT 1")], &[])[0].lock, None);
    }
}
