//! Names of the series that Narrows writes about a database server, by asking it under load.
//!
//! Sessions are sampled several times a second, and a point is the mean over the samples since the point before. Series
//! with the text of a statement are written from their first appearance on, for a bounded number of texts; where a point
//! is missing, the value was 0. Texts have `?` for every value.

/// Sessions of clients by [`SESSION_STATE`], in `{session}`. Written with each reading.
pub const SESSIONS: &str = "db.server.session.count";
/// Sessions that execute a statement, by [`QUERY_TEXT`] and [`WAIT_EVENT`], in `{session}`.
pub const STATEMENT_SESSIONS: &str = "db.server.statement.sessions";
/// Sessions that wait for a lock of another session, by [`QUERY_TEXT`], [`LOCK_TYPE`], [`COLLECTION`],
/// [`HOLDER_STATE`] and [`HOLDER_QUERY_TEXT`], in `{session}`. The holder is the session that waits for no other.
pub const LOCK_WAITS: &str = "db.server.lock.waits";
/// Time since these holders entered [`HOLDER_STATE`], in seconds, with the same labels: the mean over samples with a wait.
pub const HOLDER_AGE: &str = "db.server.lock.holder.age";

/// Executions of a statement, by [`QUERY_TEXT`]: counters of PostgreSQL and of MySQL, for the statements that cost most.
pub const STATEMENT_CALLS: [&str; 2] = ["postgresql.statement.calls", "mysql.statement.calls"];

/// Time of these executions in seconds, by [`QUERY_TEXT`]: counters in the order of [`STATEMENT_CALLS`].
pub const STATEMENT_TIMES: [&str; 2] = ["postgresql.statement.time", "mysql.statement.time"];

/// Calls of a command of Redis since it started: a counter by [`REDIS_COMMAND`].
pub const REDIS_CALLS: &str = "redis.cmd.calls";
/// Time that the server's thread spent in these calls since it started, in microseconds: a counter by [`REDIS_COMMAND`].
pub const REDIS_TIME: &str = "redis.cmd.usec";
/// Longest call of a command that Redis's slow log got since the point before, in seconds, by [`REDIS_COMMAND`].
pub const REDIS_SLOWEST: &str = "redis.slowlog.longest";

/// The label with the state of sessions: a [`SessionState`] as text.
pub const SESSION_STATE: &str = "db.session.state";
/// The label with the text of a statement.
pub const QUERY_TEXT: &str = "db.query.text";
/// The label with the server's own name of what a session waits for; empty if it waits for nothing.
pub const WAIT_EVENT: &str = "db.session.wait_event";
/// The label with the type of lock: `row`, or the server's own name.
pub const LOCK_TYPE: &str = "db.lock.type";
/// The label with the table of the lock, if the server names it.
pub const COLLECTION: &str = "db.collection.name";
/// The label with the state of the holder: a [`SessionState`] as text.
pub const HOLDER_STATE: &str = "db.lock.holder.state";
/// The label with the holder's statement, or its last one; empty if the server does not show it.
pub const HOLDER_QUERY_TEXT: &str = "db.lock.holder.query.text";
/// The label with the name of a command, in capitals.
pub const REDIS_COMMAND: &str = "cmd";

/// State of a session at the instant of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionState {
    /// It executes a statement.
    Active,
    /// It waits for a lock of another session.
    WaitingForLock,
    /// It has a transaction open and executes nothing.
    IdleInTransaction,
}

impl SessionState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Active, Self::WaitingForLock, Self::IdleInTransaction];

    /// The word used in series.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::WaitingForLock => "waiting for a lock",
            Self::IdleInTransaction => "idle in transaction",
        }
    }
}
