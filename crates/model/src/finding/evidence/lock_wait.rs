//! Evidence of `lock-wait`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// A database in which statements wait for locks of other sessions, in one interval of the load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LockWait {
    /// Label of the interval.
    pub interval: String,
    /// The load in it.
    pub load: LoadLevel,
    /// Successful responses per second, from 0.
    pub rate: f64,
    /// Requests under way at any time in it, from 0.
    pub under_way: f64,
    /// Sessions that wait for a lock at any time, mean, above 0.
    pub waiting: f64,
    /// Sessions that execute a statement and wait for no lock, mean; `None` if unknown.
    pub active: Option<f64>,
    /// Sessions with an open transaction that execute nothing, mean; `None` if unknown.
    pub idle_in_transaction: Option<f64>,
    /// The statements that wait, by how many sessions do, the most first; empty if the server did not say.
    pub statements: Vec<WaitingStatement>,
    /// Services of the run that connect to the database, in order; empty if unknown.
    pub clients: Vec<String>,
    /// Busy share of the database's CPU, 0 to about 1; `None` if it was not sampled.
    pub database_cpu_share: Option<f64>,
}

/// Sessions that execute one statement and wait for one type of lock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WaitingStatement {
    /// The statement with `?` for every value.
    pub statement: String,
    /// `row`, `table` or the server's own name.
    pub lock_type: String,
    /// The table of the lock, if the server names it.
    pub table: Option<String>,
    /// Sessions, mean, above 0.
    pub sessions: f64,
    /// Sessions at the end of the chain of waits, by how many waiting sessions they hold up, the most first.
    pub holders: Vec<LockHolder>,
}

/// Sessions that hold a lock, in one state with one statement.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LockHolder {
    /// State of the holder.
    pub state: HolderState,
    /// The statement, or the last one, with `?` for every value; `None` if the server does not show it.
    pub statement: Option<String>,
    /// Waiting sessions that it holds up, mean, above 0.
    pub sessions: f64,
    /// Mean time since the holder entered this state, nanoseconds; `None` if unknown.
    pub age_ns: Option<f64>,
}

/// State of a session that holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HolderState {
    /// It executes a statement.
    Active,
    /// It has a transaction open and executes nothing.
    IdleInTransaction,
    /// It waits for a lock itself.
    Waiting,
    /// The session was not among those that the server listed.
    #[default]
    Unknown,
}

impl LockWait {
    /// Mean time that each request waits for locks, nanoseconds; `None` without requests.
    pub fn request_wait_ns(&self) -> Option<f64> {
        (self.rate > 0.0).then(|| self.waiting / self.rate * 1e9)
    }
}

impl LockHolder {
    /// Length of the holder's state, nanoseconds: a state of a fixed length is on average half over when it is met.
    pub fn state_ns(&self) -> Option<f64> {
        self.age_ns.map(|age_ns| 2.0 * age_ns)
    }
}
