//! Figures of a PostgreSQL server: who is connected and what they wait for, what was committed, and which
//! statements its time goes to.
//!
//! Sessions are sampled between readings (`sessions.rs`); a wait for a lock is followed to its holder by
//! `pg_blocking_pids`. Names are those of OpenTelemetry's `postgresqlreceiver` where it has one. They say what the server sees: they are not
//! `db.client.…`, which is what a program says about its own pool. Counters count up from the server's start. Values are
//! from the server's own views (PostgreSQL documentation, *The Cumulative Statistics System*, and `pg_stat_statements`).

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_postgres::{Client, Error, NoTls, Row, Statement};

use crate::components::gauges::{Gauge, Gauges, TIMEOUT};
use crate::components::sessions::{
    Lock, SESSIONS_MAX, STATEMENT_CHARS_MAX, Session, SessionSamples, WAITS_EXPLAINED_MAX,
};
use crate::experiment::ServerUrl;

/// Samples of the sessions between two readings.
const SAMPLES: u32 = 10;
/// Statements that are reported apart, and so series, at most.
const STATEMENTS_MAX: usize = 20;
/// Characters of a statement's text that are kept.
const TEXT_CHARS_MAX: i32 = 200;

const STATE: &str = "postgresql.backend.state";
const WAIT: &str = "postgresql.wait_event.type";
const TEXT: &str = "db.query.text";

/// Limits of the session, whatever its role may do.
const BOUNDS: &str = "SET default_transaction_read_only = on; SET statement_timeout = '2s'; SET lock_timeout = '1s'";

/// Whether the role sees what the sessions of other roles do.
const SEES_ALL: &str = "SELECT pg_has_role('pg_read_all_stats', 'USAGE')";

const CONNECTIONS: &str = "\
SELECT count(*) FILTER (WHERE state = 'active')::float8,
       count(*) FILTER (WHERE state = 'idle')::float8,
       count(*) FILTER (WHERE state LIKE 'idle in transaction%')::float8,
       count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'Lock')::float8,
       count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'LWLock')::float8,
       count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'IO')::float8,
       current_setting('max_connections')::float8
  FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";

/// The sessions that wait for a lock come first, those that have waited longest before the others.
const ACTIVITY: &str = "\
SELECT pid::int8, state = 'active', left(query, $1),
       CASE WHEN state = 'active' THEN wait_event_type END, wait_event,
       CASE WHEN place <= $2 AND wait_event_type = 'Lock' THEN pg_blocking_pids(pid)::int8[] END,
       coalesce(extract(epoch FROM clock_timestamp() - state_change), 0)::float8
  FROM (SELECT *, row_number() OVER (ORDER BY (wait_event_type = 'Lock') DESC NULLS LAST, state_change) AS place
          FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
           AND (state = 'active' OR state LIKE 'idle in transaction%')) AS session
 WHERE place <= $3
 ORDER BY place";

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
pub(in crate::components) struct Asker {
    url: ServerUrl,
    runtime: Option<Runtime>,
    connection: Option<Connection>,
    /// The statements told so far.
    told: BTreeSet<String>,
    samples: SessionSamples,
}

struct Connection {
    client: Client,
    activity: Statement,
    has_statements: bool,
    /// Calls and seconds at the last reading.
    before: Option<(f64, f64)>,
}

impl Asker {
    /// To a server, about the URL's database and the sessions of all.
    pub(in crate::components) fn new(url: ServerUrl) -> Self {
        let samples = SessionSamples::default();
        Self { url, runtime: None, connection: None, told: BTreeSet::new(), samples }
    }

    /// Asks over the connection, which is made anew after an error, within the timeout.
    fn ask<T>(&mut self, ask: impl AsyncFnOnce(&mut Connection) -> Result<T, Error>) -> Result<T, String> {
        let new = || tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => new().map_err(|error| error.to_string())?,
        };
        let (kept, url) = (self.connection.take(), &self.url);
        let asked = runtime.block_on(async {
            let ask = async {
                let mut connection = match kept {
                    Some(connection) => connection,
                    None => Connection::open(url).await?,
                };
                let response = ask(&mut connection).await.map_err(|error| reason(&error))?;
                Ok::<_, String>((connection, response))
            };
            tokio::time::timeout(TIMEOUT, ask).await
        });
        self.runtime = Some(runtime);
        let (connection, response) = asked.map_err(|_| format!("no response within {} s", TIMEOUT.as_secs()))??;
        self.connection = Some(connection);
        Ok(response)
    }
}

impl Gauges for Asker {
    fn samples(&self) -> u32 {
        SAMPLES
    }

    fn sample(&mut self) -> Result<(), String> {
        let sessions = self.ask(async |connection| connection.sessions().await)?;
        self.samples.add(&sessions);
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<Gauge>, String> {
        let mut told = std::mem::take(&mut self.told);
        let read = self.ask(async |connection| connection.read(&mut told).await);
        self.told = told;
        let mut gauges = read?;
        gauges.extend(self.samples.gauges());
        Ok(gauges)
    }
}

/// The server's own words where it has said something.
fn reason(error: &Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    let said = error.as_db_error().map(|said| said.message().to_owned());
    said.or(source).unwrap_or_else(|| error.to_string())
}

impl Connection {
    async fn open(url: &ServerUrl) -> Result<Self, String> {
        let mut config = tokio_postgres::Config::new();
        config.host(&url.host).port(url.port).application_name("narrows");
        config.connect_timeout(TIMEOUT).tcp_user_timeout(TIMEOUT + Duration::from_secs(1));
        if let Some(user) = &url.user {
            config.user(user);
        }
        if let Some(database) = &url.database {
            config.dbname(database);
        }
        if let Some(password) = url.password() {
            config.password(password);
        }
        let (client, connection) = config.connect(NoTls).await.map_err(|error| reason(&error))?;
        tokio::spawn(async move { drop(connection.await) });
        let prepared = async {
            client.batch_execute(BOUNDS).await?;
            let sees_all: bool = client.query_one(SEES_ALL, &[]).await?.get(0);
            let has_statements = !client.query(HAS_STATEMENTS, &[]).await?.is_empty();
            Ok::<_, Error>((sees_all, has_statements, client.prepare(ACTIVITY).await?))
        };
        let (sees_all, has_statements, activity) = prepared.await.map_err(|error| reason(&error))?;
        if !sees_all {
            return Err("the role does not see what other sessions do: `GRANT pg_monitor` to it".to_owned());
        }
        Ok(Self { client, activity, has_statements, before: None })
    }

    async fn sessions(&self) -> Result<Vec<Session>, Error> {
        let bounds: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&STATEMENT_CHARS_MAX, &WAITS_EXPLAINED_MAX, &SESSIONS_MAX];
        Ok(self.client.query(&self.activity, &bounds).await?.iter().map(session).collect())
    }

    async fn read(&mut self, told: &mut BTreeSet<String>) -> Result<Vec<Gauge>, Error> {
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

/// A row of [`ACTIVITY`].
fn session(row: &Row) -> Session {
    let text = |at: usize| row.get::<_, Option<String>>(at).unwrap_or_default();
    let (wait_type, wait) = (text(3), text(4));
    let lock_type = match wait.as_str() {
        "transactionid" | "tuple" => "row",
        other => other,
    };
    let lock = (wait_type == "Lock").then(|| Lock { lock_type: lock_type.to_owned(), table: String::new() });
    let blockers = row.get::<_, Option<Vec<i64>>>(5).unwrap_or_default();
    Session {
        id: row.get(0),
        is_active: row.get(1),
        statement: text(2),
        wait_event: if wait_type.is_empty() { String::new() } else { format!("{wait_type}:{wait}") },
        lock,
        blockers,
        age_seconds: row.get(6),
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
