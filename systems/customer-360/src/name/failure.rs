//! Failures of queries, by kind, and their reports to the client.

use http::StatusCode;
use tokio_postgres::error::SqlState;

use crate::response::{Problem, Reason};

/// Why a query has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueryFailure {
    /// All places were taken for as long as a query may wait for one.
    #[error("no place came free within {waited_ms} ms, all {places} are taken")]
    PoolFull { waited_ms: u128, places: usize },
    /// There is no connection to the database now; why the last one failed or ended.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// The connection ended before the result.
    #[error("the connection to the database was lost: {0}")]
    Lost(String),
    /// The database took too long.
    #[error("no result within {0} ms")]
    Timeout(u128),
    /// The database refused the statement.
    #[error("the database refused it: {message} (SQLSTATE {state})")]
    Refused { state: String, message: String },
    /// The rows do not match the table's definition.
    #[error("the rows cannot be read: {0}")]
    Unreadable(String),
}

impl QueryFailure {
    pub(super) fn from_postgres(error: &tokio_postgres::Error, timeout_ms: u128) -> Self {
        let Some(reported) = error.as_db_error() else {
            return Self::Lost(innermost(error));
        };
        let state = reported.code();
        if *state == SqlState::QUERY_CANCELED {
            Self::Timeout(timeout_ms)
        } else if [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(state) {
            Self::Lost(reported.message().to_owned())
        } else {
            Self::Refused { state: state.code().to_owned(), message: reported.message().to_owned() }
        }
    }

    fn status_and_reason(&self) -> (StatusCode, &'static str) {
        match self {
            Self::PoolFull { .. } => (StatusCode::SERVICE_UNAVAILABLE, "pool_full"),
            Self::Unreachable(_) => (StatusCode::SERVICE_UNAVAILABLE, "database_unreachable"),
            Self::Lost(_) => (StatusCode::SERVICE_UNAVAILABLE, "database_connection_lost"),
            Self::Timeout(_) => (StatusCode::GATEWAY_TIMEOUT, "query_timeout"),
            Self::Refused { state, .. } if *state == *SqlState::UNIQUE_VIOLATION.code() => {
                (StatusCode::CONFLICT, "already_there")
            }
            // Class 22 is data that does not fit, such as a text that is too long.
            Self::Refused { state, .. } if state.starts_with("22") => (StatusCode::BAD_REQUEST, "bad_request"),
            Self::Refused { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "query_refused"),
            Self::Unreadable(_) => (StatusCode::INTERNAL_SERVER_ERROR, "unreadable_rows"),
        }
    }

    /// `error.type` of the query's span.
    pub(super) fn kind(&self) -> &'static str {
        self.status_and_reason().1
    }

    /// The database's own code, where it responded.
    pub(super) fn state(&self) -> Option<&str> {
        match self {
            Self::Refused { state, .. } => Some(state),
            _ => None,
        }
    }
}

/// The first cause in a chain of errors: the message of the system or the database.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

impl From<QueryFailure> for Problem {
    fn from(failure: QueryFailure) -> Self {
        let (status, reason) = failure.status_and_reason();
        Self::new(status, Reason(reason), failure.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_status_and_reason() {
        let refused = |state: &str| QueryFailure::Refused { state: state.to_owned(), message: "m".to_owned() };
        for (failure, status, reason) in [
            (QueryFailure::PoolFull { waited_ms: 100, places: 2 }, 503, "pool_full"),
            (QueryFailure::Unreachable("x".into()), 503, "database_unreachable"),
            (QueryFailure::Lost("x".into()), 503, "database_connection_lost"),
            (QueryFailure::Timeout(1), 504, "query_timeout"),
            (refused("23505"), 409, "already_there"),
            (refused("22001"), 400, "bad_request"),
            (refused("42P01"), 500, "query_refused"),
            (QueryFailure::Unreadable("x".into()), 500, "unreadable_rows"),
        ] {
            let problem = Problem::from(failure);
            assert_eq!((problem.status.as_u16(), problem.reason.as_str()), (status, reason));
        }
    }
}
