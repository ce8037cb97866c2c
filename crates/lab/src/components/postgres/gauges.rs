//! Figures of a PostgreSQL server: who is connected and what they wait for, what was committed, and which
//! statements its time goes to.
//!
//! Names are those of OpenTelemetry's `postgresqlreceiver` where it has one. They say what the server sees: they are not
//! `db.client.…`, which is what a program says about its own pool. Counters count up from the server's start. Values are
//! from the server's own views (PostgreSQL documentation, *The Cumulative Statistics System*, and `pg_stat_statements`).

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, Row};

use crate::components::gauges::{Gauge, Gauges, TIMEOUT};
use crate::components::postgres::OWNER;

/// Statements that are reported apart, and so series, at most.
const STATEMENTS_MAX: usize = 20;
/// Characters of a statement's text that are kept.
const TEXT_CHARS_MAX: i32 = 200;

const STATE: &str = "postgresql.backend.state";
const WAIT: &str = "postgresql.wait_event.type";
const TEXT: &str = "db.query.text";

const CONNECTIONS: &str = "\
SELECT count(*) FILTER (WHERE state = 'active')::float8,
       count(*) FILTER (WHERE state = 'idle')::float8,
       count(*) FILTER (WHERE state LIKE 'idle in transaction%')::float8,
       count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'Lock')::float8,
       count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'LWLock')::float8,
       count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'IO')::float8,
       current_setting('max_connections')::float8
  FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";

const DATABASE: &str = "\
SELECT xact_commit::float8, xact_rollback::float8, deadlocks::float8, blks_hit::float8, blks_read::float8
  FROM pg_stat_database WHERE datname = current_database()";

const HAS_STATEMENTS: &str = "\
SELECT 1 FROM pg_extension WHERE extname = 'pg_stat_statements' AND current_setting('server_version_num')::int >= 130000";

const TOTALS: &str = "\
SELECT coalesce(sum(calls), 0)::float8, coalesce(sum(total_exec_time), 0)::float8 / 1000
  FROM pg_stat_statements(false) WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())";

const STATEMENTS: &str = "\
SELECT left(query, $1), sum(calls)::float8, sum(total_exec_time)::float8 / 1000
  FROM pg_stat_statements
 WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg_stat_%'
 GROUP BY 1 ORDER BY 3 DESC LIMIT 5";

/// Asks one server over a connection of its own.
pub(super) struct Asker {
    port: u16,
    database: String,
    runtime: Option<Runtime>,
    session: Option<Session>,
    /// The statements told so far.
    told: BTreeSet<String>,
}

struct Session {
    client: Client,
    has_statements: bool,
    /// Calls and seconds at the last reading.
    before: Option<(f64, f64)>,
}

impl Asker {
    /// To the server at a port, about a database.
    pub(super) fn new(port: u16, database: &str) -> Self {
        Self { port, database: database.to_owned(), runtime: None, session: None, told: BTreeSet::new() }
    }

    fn runtime(&mut self) -> Result<Runtime, String> {
        let new = || tokio::runtime::Builder::new_current_thread().enable_all().build();
        self.runtime.take().map_or_else(|| new().map_err(|error| error.to_string()), Ok)
    }
}

impl Gauges for Asker {
    fn read(&mut self) -> Result<Vec<Gauge>, String> {
        let runtime = self.runtime()?;
        let session = self.session.take();
        let read = runtime.block_on(async {
            let ask = async {
                let mut session = match session {
                    Some(session) => session,
                    None => connect(self.port, &self.database).await?,
                };
                let gauges = session.ask(&mut self.told).await?;
                Ok::<_, tokio_postgres::Error>((session, gauges))
            };
            tokio::time::timeout(TIMEOUT, ask).await
        });
        self.runtime = Some(runtime);
        let (session, gauges) =
            read.map_err(|_| format!("no response within {} s", TIMEOUT.as_secs()))?.map_err(|error| reason(&error))?;
        self.session = Some(session);
        Ok(gauges)
    }
}

/// The server's own words where it has said something.
fn reason(error: &tokio_postgres::Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    let said = error.as_db_error().map(|said| said.message().to_owned());
    said.or(source).unwrap_or_else(|| error.to_string())
}

async fn connect(port: u16, database: &str) -> Result<Session, tokio_postgres::Error> {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port).user(OWNER).dbname(database).application_name("narrows");
    config.connect_timeout(TIMEOUT).tcp_user_timeout(TIMEOUT + Duration::from_secs(1));
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(async move { drop(connection.await) });
    let has_statements = !client.query(HAS_STATEMENTS, &[]).await?.is_empty();
    Ok(Session { client, has_statements, before: None })
}

impl Session {
    async fn ask(&mut self, told: &mut BTreeSet<String>) -> Result<Vec<Gauge>, tokio_postgres::Error> {
        let mut gauges = connections(&self.client.query_one(CONNECTIONS, &[]).await?);
        if let Some(row) = self.client.query_opt(DATABASE, &[]).await? {
            gauges.extend(database(&row));
        }
        if self.has_statements {
            let row = self.client.query_one(TOTALS, &[]).await?;
            gauges.extend(self.totals(row.get(0), row.get(1)));
            let rows = self.client.query(STATEMENTS, &[&TEXT_CHARS_MAX]).await?;
            gauges.extend(statements(&rows, told));
        }
        Ok(gauges)
    }

    /// Calls and their time so far, and the mean time of those since the reading before.
    fn totals(&mut self, calls: f64, seconds: f64) -> Vec<Gauge> {
        let before = self.before.replace((calls, seconds));
        let mut gauges = vec![
            Gauge::new("postgresql.statements.calls", "{call}", calls),
            Gauge::new("postgresql.statements.time", "s", seconds),
        ];
        if let Some((calls_before, seconds_before)) = before
            && calls > calls_before
        {
            let mean = (seconds - seconds_before) / (calls - calls_before);
            gauges.push(Gauge::new("postgresql.statements.mean_time", "s", mean));
        }
        gauges
    }
}

fn connections(row: &Row) -> Vec<Gauge> {
    let backends = |at, state| Gauge::new("postgresql.backends", "{backend}", row.get(at)).with(STATE, state);
    let waiting = |at, wait| Gauge::new("postgresql.backends.waiting", "{backend}", row.get(at)).with(WAIT, wait);
    vec![
        backends(0, "active"),
        backends(1, "idle"),
        backends(2, "idle in transaction"),
        waiting(3, "Lock"),
        waiting(4, "LWLock"),
        waiting(5, "IO"),
        Gauge::new("postgresql.connection.max", "{connection}", row.get(6)),
    ]
}

fn database(row: &Row) -> Vec<Gauge> {
    let names = [
        ("postgresql.commits", "{transaction}"),
        ("postgresql.rollbacks", "{transaction}"),
        ("postgresql.deadlocks", "{deadlock}"),
        ("postgresql.blks_hit", "{block}"),
        ("postgresql.blks_read", "{block}"),
    ];
    names.iter().enumerate().map(|(at, (name, unit))| Gauge::new(name, unit, row.get(at))).collect()
}

/// The statements that cost most so far. Once so many were told, only those are reported on.
fn statements(rows: &[Row], told: &mut BTreeSet<String>) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    for row in rows {
        let text: String = row.get(0);
        if !told.contains(&text) && told.len() >= STATEMENTS_MAX {
            continue;
        }
        gauges.push(Gauge::new("postgresql.statement.calls", "{call}", row.get(1)).with(TEXT, &text));
        gauges.push(Gauge::new("postgresql.statement.time", "s", row.get(2)).with(TEXT, &text));
        told.insert(text);
    }
    gauges
}
