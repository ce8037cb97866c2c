//! Reports of database servers about themselves: what their sessions wait for, and what commands hold their thread.
//!
//! Nothing is judged here. Figures are means over an interval. A series by statement has points from its first appearance
//! on; before it, the value was 0, so sums are divided by the number of readings.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::lock_wait::{HolderState, LockHolder, WaitingStatement};
use narrows_model::series::servers::{
    COLLECTION, HOLDER_AGE, HOLDER_QUERY_TEXT, HOLDER_STATE, LOCK_TYPE, LOCK_WAITS, QUERY_TEXT, REDIS_CALLS,
    REDIS_COMMAND, REDIS_SLOWEST, REDIS_TIME, SESSION_STATE, SESSIONS, STATEMENT_CALLS, STATEMENT_SESSIONS,
    STATEMENT_TIMES, SessionState,
};
use narrows_model::series::{Series, names};

use crate::read::intervals::Interval;
use crate::stats::finite;

/// Readings in an interval from which on a mean says something: each is itself one over samples or of a counter.
const READINGS_MIN: usize = 2;
/// Series of servers that count waiting sessions at the instant of a reading, with the label and value of those that wait
/// for a lock.
const WAITING_NOW: [(&str, Option<(&str, &str)>); 2] = [
    ("postgresql.backends.waiting", Some(("postgresql.wait_event.type", "Lock"))),
    ("mysql.innodb_row_lock_current_waits", None),
];

/// Counters of MySQL's commands, and the label with the command.
const COMMANDS: &str = "mysql.commands";
const COMMAND_KIND: &str = "kind";

/// Sessions of a server, mean numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sessions {
    pub(crate) waiting: f64,
    /// `None` if the server was not sampled between readings. So is the next.
    pub(crate) active: Option<f64>,
    pub(crate) idle_in_transaction: Option<f64>,
}

impl Sessions {
    /// Share of the sessions with a statement that wait for a lock, 0 to 1; `None` if it is not known.
    pub(crate) fn waiting_share(&self) -> Option<f64> {
        let all = self.active? + self.waiting;
        (all > 0.0).then(|| self.waiting / all)
    }
}

/// The replicas that tell of sessions or commands, each once.
pub(crate) fn servers(trial: &TrialEvidence) -> Vec<(&str, u32)> {
    let is_told =
        |name: &str| name == SESSIONS || name == REDIS_TIME || WAITING_NOW.iter().any(|(known, _)| *known == name);
    let of_servers = trial.series.iter().filter(|series| is_told(&series.key.name));
    let mut servers: Vec<(&str, u32)> =
        of_servers.map(|series| (series.key.service.as_str(), series.key.replica)).collect();
    servers.sort_unstable();
    servers.dedup();
    servers
}

/// The sessions of a server in an interval; `None` if too few readings tell of them.
pub(crate) fn sessions(trial: &TrialEvidence, server: (&str, u32), interval: &Interval) -> Option<Sessions> {
    let in_state = |state: SessionState| {
        let mut of_state = series_of(trial, SESSIONS, server);
        mean(of_state.find(|series| label(series, SESSION_STATE) == state.as_str())?, interval)
    };
    if let Some(waiting) = in_state(SessionState::WaitingForLock) {
        let (active, idle_in_transaction) = (in_state(SessionState::Active), in_state(SessionState::IdleInTransaction));
        return Some(Sessions { waiting, active, idle_in_transaction });
    }
    let now = WAITING_NOW.iter().find_map(|(name, state)| {
        let is_meant = |series: &&Series| state.is_none_or(|(key, value)| label(series, key) == value);
        mean(series_of(trial, name, server).find(is_meant)?, interval)
    });
    now.map(|waiting| Sessions { waiting, active: None, idle_in_transaction: None })
}

/// The statements of a server that wait for locks in an interval, by how many sessions do, the most first.
pub(crate) fn waiting_statements(
    trial: &TrialEvidence,
    server: (&str, u32),
    interval: &Interval,
) -> Vec<WaitingStatement> {
    let Some(readings) = series_of(trial, SESSIONS, server).map(|series| sum(series, interval).1).max() else {
        return Vec::new();
    };
    let mut statements: BTreeMap<(&str, &str, &str), Vec<LockHolder>> = BTreeMap::new();
    for series in series_of(trial, LOCK_WAITS, server) {
        let sessions = sum(series, interval).0 / readings.max(1) as f64;
        if sessions <= 0.0 {
            continue;
        }
        let is_same = |other: &&Series| other.key.labels == series.key.labels;
        let age = series_of(trial, HOLDER_AGE, server).find(is_same).map(|series| sum(series, interval));
        let statement = label(series, HOLDER_QUERY_TEXT);
        let holder = LockHolder {
            state: state_of(label(series, HOLDER_STATE)),
            statement: (!statement.is_empty()).then(|| statement.to_owned()),
            sessions: finite(sessions),
            age_ns: age.filter(|(_, points)| *points > 0).map(|(sum, points)| finite(sum / points as f64 * 1e9)),
        };
        let key = (label(series, QUERY_TEXT), label(series, LOCK_TYPE), label(series, COLLECTION));
        statements.entry(key).or_default().push(holder);
    }
    let statement = |((statement, lock_type, table), mut holders): ((&str, &str, &str), Vec<LockHolder>)| {
        holders.sort_by(|a, b| b.sessions.total_cmp(&a.sessions));
        WaitingStatement {
            statement: statement.to_owned(),
            lock_type: lock_type.to_owned(),
            table: (!table.is_empty()).then(|| table.to_owned()),
            sessions: finite(holders.iter().map(|holder| holder.sessions).sum()),
            holders,
        }
    };
    let mut statements: Vec<WaitingStatement> = statements.into_iter().map(statement).collect();
    statements.sort_by(|a, b| b.sessions.total_cmp(&a.sessions));
    statements
}

fn state_of(word: &str) -> HolderState {
    match SessionState::ALL.into_iter().find(|state| state.as_str() == word) {
        Some(SessionState::Active) => HolderState::Active,
        Some(SessionState::IdleInTransaction) => HolderState::IdleInTransaction,
        Some(SessionState::WaitingForLock) => HolderState::Waiting,
        None => HolderState::Unknown,
    }
}

/// A command of a server with one thread, in an interval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Command<'a> {
    pub(crate) name: &'a str,
    /// Per second.
    pub(crate) calls: f64,
    /// Seconds per second that its calls hold the thread.
    pub(crate) thread_share: f64,
    /// The longest call of the server's log of slow calls, nanoseconds.
    pub(crate) longest_ns: Option<f64>,
}

impl Command<'_> {
    /// Mean time of a call on the thread, nanoseconds; 0 without calls.
    pub(crate) fn call_ns(&self) -> f64 {
        if self.calls > 0.0 { self.thread_share / self.calls * 1e9 } else { 0.0 }
    }
}

/// The commands that a server executed in an interval.
pub(crate) fn commands<'a>(trial: &'a TrialEvidence, server: (&'a str, u32), interval: &Interval) -> Vec<Command<'a>> {
    let of_command = |times: &'a Series| {
        let is_same = |other: &&Series| other.key.labels == times.key.labels;
        let calls = series_of(trial, REDIS_CALLS, server).find(is_same)?;
        let slowest = series_of(trial, REDIS_SLOWEST, server).find(is_same);
        let longest = slowest.and_then(|series| {
            let here = series.points.iter().filter(|point| interval.contains(point.time_ns));
            here.map(|point| point.value).max_by(f64::total_cmp)
        });
        Some(Command {
            name: label(times, REDIS_COMMAND),
            calls: rate(calls, interval)?,
            thread_share: rate(times, interval)? / 1e6,
            longest_ns: longest.map(|seconds| finite(seconds * 1e9)),
        })
    };
    series_of(trial, REDIS_TIME, server).filter_map(of_command).filter(|command| command.calls > 0.0).collect()
}

/// The statement that a database executes most often in an interval, without those of transactions and settings, and its
/// rate per second; `None` if it counts none.
pub(crate) fn repeated_statement<'a>(
    trial: &'a TrialEvidence,
    server: &str,
    interval: &Interval,
) -> Option<(&'a str, f64)> {
    let counted = trial.series.iter().filter(|series| STATEMENT_CALLS.contains(&series.key.name.as_str()));
    let of_server = counted.filter(|series| series.key.service == server && !is_control(label(series, QUERY_TEXT)));
    let rates = of_server.filter_map(|series| Some((label(series, QUERY_TEXT), rate(series, interval)?)));
    rates.max_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// A statement of a database in an interval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatementUse<'a> {
    pub(crate) text: &'a str,
    /// Sessions that execute it at any moment, mean.
    pub(crate) sessions: f64,
    /// Executions per second; `None` if its sessions were sampled and not its executions counted.
    pub(crate) calls: Option<f64>,
}

/// The statements that a database executed in an interval: as it counts them, else as its sessions were sampled.
pub(crate) fn statements<'a>(trial: &'a TrialEvidence, server: &str, interval: &Interval) -> Vec<StatementUse<'a>> {
    let counted = counted_statements(trial, server, interval);
    if counted.is_empty() { sampled_statements(trial, server, interval) } else { counted }
}

fn counted_statements<'a>(trial: &'a TrialEvidence, server: &str, interval: &Interval) -> Vec<StatementUse<'a>> {
    let of_times = |times: &'a Series| {
        let counts = STATEMENT_CALLS[STATEMENT_TIMES.iter().position(|name| *name == times.key.name)?];
        let is_same = |other: &&Series| {
            (&*other.key.name, other.key.replica) == (counts, times.key.replica)
                && (&other.key.service, &other.key.labels) == (&times.key.service, &times.key.labels)
        };
        let calls = rate(trial.series.iter().find(is_same)?, interval).filter(|calls| *calls > 0.0)?;
        Some(StatementUse { text: label(times, QUERY_TEXT), sessions: rate(times, interval)?, calls: Some(calls) })
    };
    trial.series.iter().filter(|series| series.key.service == server).filter_map(of_times).collect()
}

fn sampled_statements<'a>(trial: &'a TrialEvidence, server: &str, interval: &Interval) -> Vec<StatementUse<'a>> {
    let of_server = |name: &'static str| {
        trial.series.iter().filter(move |series| series.key.service == server && series.key.name == name)
    };
    let readings = of_server(SESSIONS).map(|series| sum(series, interval).1).max().unwrap_or(0);
    if readings < READINGS_MIN {
        return Vec::new();
    }
    let mut sessions: BTreeMap<&str, f64> = BTreeMap::new();
    for series in of_server(STATEMENT_SESSIONS) {
        *sessions.entry(label(series, QUERY_TEXT)).or_default() += sum(series, interval).0 / readings as f64;
    }
    sessions.into_iter().map(|(text, sessions)| StatementUse { text, sessions, calls: None }).collect()
}

/// Transactions that a MySQL server ended by a statement, per second; 0 if it does not count them.
pub(crate) fn transactions(trial: &TrialEvidence, server: &str, interval: &Interval) -> f64 {
    let is_end = |series: &&Series| {
        let kind = label(series, COMMAND_KIND);
        series.key.name == COMMANDS && series.key.service == server && ["commit", "rollback"].contains(&kind)
    };
    trial.series.iter().filter(is_end).filter_map(|series| rate(series, interval)).sum()
}

/// True of a statement that controls a transaction or a session.
fn is_control(statement: &str) -> bool {
    const WORDS: [&str; 7] = ["BEGIN", "COMMIT", "DEALLOCATE", "DISCARD", "ROLLBACK", "SET", "START"];
    let first = statement.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    WORDS.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// Services of the run that connect to a server, by the sockets of their processes and by what their threads wait for.
pub(crate) fn clients<'a>(trial: &'a TrialEvidence, server: &str) -> Vec<&'a str> {
    let connects = connections(trial).into_iter().filter(|(_, to)| *to == server).map(|(from, _)| from);
    let mut clients: Vec<&str> = connects.filter(|from| *from != server && *from != names::GENERATOR).collect();
    clients.sort_unstable();
    clients.dedup();
    clients
}

/// Pairs of services of which the first has a connection to the second.
pub(crate) fn connections(trial: &TrialEvidence) -> Vec<(&str, &str)> {
    let to_peers = trial
        .series
        .iter()
        .filter(|series| series.key.name == names::CONNECTIONS || series.key.name == names::THREAD_STATES);
    let of_trial = |service: &str| trial.service_names().into_iter().find(|name| *name == service);
    let pair = |series: &Series| {
        let label = series.key.labels.get(names::NETWORK_PEER)?;
        let named = names::labelled_replica(label).and_then(|(service, _)| of_trial(service));
        let to = match named {
            Some(service) => service,
            None => trial.reached_at(label.rsplit_once(':')?.1.parse().ok())?.service.as_str(),
        };
        let from =
            if series.key.service == names::GENERATOR { names::GENERATOR } else { of_trial(&series.key.service)? };
        Some((from, to))
    };
    to_peers.filter_map(pair).collect()
}

fn series_of<'a>(trial: &'a TrialEvidence, name: &'a str, server: (&'a str, u32)) -> impl Iterator<Item = &'a Series> {
    trial
        .series
        .iter()
        .filter(move |series| series.key.name == name && (series.key.service.as_str(), series.key.replica) == server)
}

fn label<'a>(series: &'a Series, name: &str) -> &'a str {
    series.key.labels.get(name).map(String::as_str).unwrap_or_default()
}

/// The sum of the points in an interval, and how many there are.
fn sum(series: &Series, interval: &Interval) -> (f64, usize) {
    let here = series.points.iter().filter(|point| interval.contains(point.time_ns));
    here.fold((0.0, 0), |(sum, points), point| (sum + point.value, points + 1))
}

fn mean(series: &Series, interval: &Interval) -> Option<f64> {
    let (sum, points) = sum(series, interval);
    (points >= READINGS_MIN).then(|| sum / points as f64)
}

/// Mean rate of a counter in an interval.
fn rate(series: &Series, interval: &Interval) -> Option<f64> {
    let rates: Vec<f64> =
        series.rates().iter().filter(|point| interval.contains(point.time_ns)).map(|point| point.value).collect();
    (rates.len() >= READINGS_MIN).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}
