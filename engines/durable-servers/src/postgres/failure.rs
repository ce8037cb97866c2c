//! Failures of statements. Nothing here holds the connection text, so no password gets out.

use std::error::Error as _;

use narrows_durable::store::{Location, StoreError};
use tokio_postgres::error::SqlState;

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StatementFailure {
    /// There is no connection, or it ended before the result. It can be tried again.
    Lost(String),
    /// The server refused, and changed nothing.
    Refused { state: String, message: String },
    /// There was no result in time.
    Timeout(u128),
}

impl StatementFailure {
    /// Error of the client or the server.
    pub(super) fn from_postgres(error: &tokio_postgres::Error) -> Self {
        let Some(said) = error.as_db_error() else { return Self::Lost(innermost(error)) };
        let lost = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
        ];
        if lost.contains(said.code()) {
            return Self::Lost(said.message().to_owned());
        }
        Self::Refused { state: said.code().code().to_owned(), message: said.message().to_owned() }
    }

    /// Whether another attempt may succeed.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// The error for the caller of the store.
    pub(super) fn at(self, action: &'static str, place: Location) -> StoreError {
        let is_state = |known: &SqlState| matches!(&self, Self::Refused { state, .. } if state == known.code());
        if is_state(&SqlState::UNDEFINED_TABLE) || is_state(&SqlState::UNDEFINED_COLUMN) {
            let what = "there are no tables of a hub (a hub is created when it is first opened)".to_owned();
            return StoreError::Foreign { place, what };
        }
        let is_full = is_state(&SqlState::DISK_FULL);
        let reason = match self {
            Self::Lost(reason) => reason,
            Self::Refused { state, message } => format!("{message} (SQLSTATE {state})"),
            Self::Timeout(ms) => format!("no result within {ms} ms"),
        };
        StoreError::Io { action, place, reason, is_full }
    }
}

/// The innermost cause, which is the system's message.
fn innermost(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = source.to_string();
        next = source.source();
    }
    text
}
