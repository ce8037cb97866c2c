//! Failures of statements, in the words of a response and of a span.

use mysql_async::Error as DriverError;

/// `ER_LOCK_DEADLOCK`: two transactions waited for each other, or a node of a cluster certified another one first.
const DEADLOCK: u16 = 1213;
/// `ER_LOCK_WAIT_TIMEOUT`.
const LOCK_TIMEOUT: u16 = 1205;
/// `ER_UNKNOWN_COM_ERROR`, which a node returns that has lost its cluster.
const NOT_READY: u16 = 1047;
/// `ER_CON_COUNT_ERROR`.
const TOO_MANY_CONNECTIONS: u16 = 1040;
/// `ER_SERVER_SHUTDOWN`.
const SHUTTING_DOWN: u16 = 1053;

/// A statement without a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("deadlock: {0}")]
    Deadlock(String),
    /// Only a cluster returns this: the transaction was fine here, and another node's came first.
    #[error("conflict with another node: {0}")]
    Conflict(String),
    #[error("a lock was waited for too long: {0}")]
    LockTimeout(String),
    #[error("the database does not take requests: {message}")]
    Unavailable { code: Option<u16>, message: String },
    #[error("the database refused the statement with {code}: {message}")]
    Refused { code: u16, message: String },
    #[error("the database did not respond in time")]
    Timeout,
    #[error("no connection was free in time")]
    PoolTimeout,
}

impl Failure {
    /// The failure of a statement other than a commit.
    pub(crate) fn of_statement(error: DriverError) -> Self {
        match error {
            DriverError::Server(server) => match server.code {
                DEADLOCK => Self::Deadlock(server.message),
                LOCK_TIMEOUT => Self::LockTimeout(server.message),
                code @ (NOT_READY | TOO_MANY_CONNECTIONS | SHUTTING_DOWN) => {
                    Self::Unavailable { code: Some(code), message: server.message }
                }
                code => Self::Refused { code, message: server.message },
            },
            other => Self::Unavailable { code: None, message: other.to_string() },
        }
    }

    /// The same for a commit: a single node finds a deadlock at a lock, never there.
    pub(crate) fn of_commit(error: DriverError) -> Self {
        match Self::of_statement(error) {
            Self::Deadlock(message) => Self::Conflict(message),
            other => other,
        }
    }

    /// The reason as a response names it.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Deadlock(_) => "deadlock",
            Self::Conflict(_) => "conflict",
            Self::LockTimeout(_) => "lock-timeout",
            Self::Unavailable { .. } => "unavailable",
            Self::Refused { .. } => "refused",
            Self::Timeout => "timeout",
            Self::PoolTimeout => "pool-timeout",
        }
    }

    /// The number that the database returned.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Deadlock(_) | Self::Conflict(_) => Some(DEADLOCK),
            Self::LockTimeout(_) => Some(LOCK_TIMEOUT),
            Self::Unavailable { code, .. } => *code,
            Self::Refused { code, .. } => Some(*code),
            Self::Timeout | Self::PoolTimeout => None,
        }
    }

    /// `error.type` of a span and of a metric.
    pub(crate) fn error_type(&self) -> String {
        self.code().map_or_else(|| self.reason().to_owned(), |code| code.to_string())
    }

    /// Whether the database has undone the transaction, or will on request, because of another one: the same again may
    /// succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Deadlock(_) | Self::Conflict(_) | Self::LockTimeout(_))
    }

    /// Whether the connection can be used on.
    pub(crate) fn spares_the_connection(&self) -> bool {
        self.is_transient() || matches!(self, Self::Refused { .. })
    }
}

#[cfg(test)]
mod tests {
    use mysql_async::ServerError;

    use super::*;

    fn server(code: u16) -> DriverError {
        DriverError::Server(ServerError { code, message: "m".to_owned(), state: "HY000".to_owned() })
    }

    #[test]
    fn each_number_has_its_reason_and_only_locks_are_tried_again() {
        for (code, reason, is_transient, spares) in [
            (1213, "deadlock", true, true),
            (1205, "lock-timeout", true, true),
            (1047, "unavailable", false, false),
            (1040, "unavailable", false, false),
            (1146, "refused", false, true),
        ] {
            let failure = Failure::of_statement(server(code));
            assert_eq!((failure.reason(), failure.is_transient()), (reason, is_transient), "{code}");
            assert_eq!((failure.error_type(), failure.spares_the_connection()), (code.to_string(), spares));
        }
    }

    #[test]
    fn a_deadlock_at_the_commit_is_a_conflict_between_nodes() {
        let failure = Failure::of_commit(server(1213));
        assert_eq!((failure.reason(), failure.code(), failure.is_transient()), ("conflict", Some(1213), true));
        assert_eq!(Failure::of_commit(server(1205)).reason(), "lock-timeout");
    }

    #[test]
    fn what_no_number_stands_for_has_its_reason_as_type() {
        for (failure, kind) in [(Failure::Timeout, "timeout"), (Failure::PoolTimeout, "pool-timeout")] {
            assert_eq!((failure.error_type().as_str(), failure.spares_the_connection()), (kind, false));
        }
    }
}
