//! Faults of a database, before it is known which file it is.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::Error;

/// Why a database cannot be used.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is a database of something else.
    Foreign,
    /// It was written by another version.
    OtherVersion(i64),
    /// Its content contradicts itself.
    Damaged(String),
    /// SQLite could not do it.
    Sql(rusqlite::Error),
    /// The writer has ended, and why.
    Failed(Arc<str>),
}

/// The disk takes no more writes, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unavailable(pub(crate) Arc<str>);

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            // Without a code it is about a value: another type, or no row.
            None | Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            Some(_) => Self::Sql(error),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => out.write_str("it is not a file of the document store"),
            Self::OtherVersion(version) => write!(out, "it has version {version}"),
            Self::Damaged(what) => out.write_str(what),
            Self::Sql(error) => write!(out, "{error}"),
            Self::Failed(why) => out.write_str(why),
        }
    }
}

impl Fault {
    /// The error that says so of `file`.
    pub(super) fn of(self, file: &Path) -> Error {
        let file = file.to_owned();
        match self {
            Self::Foreign => Error::Foreign { file },
            Self::OtherVersion(found) => Error::OtherVersion { file, found, expected: super::schema::VERSION },
            Self::Damaged(what) => Error::Damaged { file, what },
            Self::Sql(error) => Error::Storage { file, why: error.to_string() },
            Self::Failed(why) => Error::Storage { file, why: why.to_string() },
        }
    }
}
