//! Faults of a run file, said so that a user knows which file and what to do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;

use super::SCHEMA_VERSION;

/// Why a run file could not be made, written or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error("cannot open run file {path}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: Arc<std::io::Error>,
    },
    /// A file of that name is there already.
    #[error("cannot create run file {}: it exists already", .0.display())]
    Exists(PathBuf),
    /// Some other file: not SQLite, or SQLite of another program.
    #[error("{} is not a Narrows run file", .0.display())]
    NotARunFile(PathBuf),
    /// A run file of another version.
    #[error("run file {path} has version {found}, expected {SCHEMA_VERSION}", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// A file with other tables, views, indexes or triggers than a run file has. None of them was run.
    #[error("{path} is not a run file as Narrows writes it: {difference}", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The first difference, such as `unexpected trigger more on points`.
        difference: String,
    },
    /// Reading took longer than any file of that size should.
    #[error("reading run file {} was stopped: it takes longer than a file of its size should", .0.display())]
    TooSlow(PathBuf),
    /// A run file whose content is not whole.
    #[error("run file {path} is damaged: {detail}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Actual value.
        detail: String,
    },
    /// The file has a write-ahead log that cannot be read where it lies.
    #[error(
        "cannot read run file {}: its run was cut short, so its write-ahead log must be read first, \
         and that needs a writable directory; copy it there together with its -wal file",
        .0.display()
    )]
    DirectoryReadOnly(PathBuf),
    /// Spans that a killed process left have to become rows before the file can be read.
    #[error(
        "cannot read run file {path}: its run was cut short, so {waiting} spans must be put into tables first, and that \
         needs a writable file and directory",
        path = path.display()
    )]
    Unsettled {
        /// The file.
        path: PathBuf,
        /// Spans that wait.
        waiting: u64,
    },
    /// The run has ended: nothing is left to resume.
    #[error("run file {} is complete: nothing is left to resume", .0.display())]
    Complete(PathBuf),
    /// Another process writes the file.
    #[error("run file {path} is being written by process {pid}", path = path.display())]
    InUse {
        /// The file.
        path: PathBuf,
        /// The writer.
        pid: u32,
    },
    /// A trial that was never put into the file.
    #[error("trial {0} is not in the run file")]
    UnknownTrial(i64),
    /// A value that the file cannot hold, such as a number that is not finite.
    #[error("cannot keep {0} in the run file: its cost is not finite")]
    NotFinite(String),
    /// A run cannot end in the state `running`.
    #[error("a run cannot end in the state running")]
    EndsRunning,
    /// The file was finished.
    #[error("the run file is closed")]
    Closed,
    /// The thread that writes the file panicked; what was acknowledged is kept.
    #[error("the run-file writer failed")]
    WriterFailed,
    /// The disk is full.
    #[error("cannot write run file {}: the disk is full", .0.display())]
    DiskFull(PathBuf),
    /// Anything else that SQLite reports. Its error is part of the message, not a source: its own sources repeat it.
    #[error("run file {path}: {reason}", path = path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Error of SQLite.
        reason: Arc<rusqlite::Error>,
    },
}

/// The result of working with a run file.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(super) fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io { path: path.to_owned(), source: Arc::new(source) }
    }

    pub(super) fn damaged(path: &Path, detail: impl Into<String>) -> Self {
        Error::Damaged { path: path.to_owned(), detail: detail.into() }
    }

    /// Sorts what SQLite reports by what a user can do about it.
    pub(super) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::Error as Sqlite;
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => return Error::NotARunFile(path.to_owned()),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::TooBig) => return Error::damaged(path, source.to_string()),
            Some(ErrorCode::DiskFull) => return Error::DiskFull(path.to_owned()),
            Some(ErrorCode::OperationInterrupted) => return Error::TooSlow(path.to_owned()),
            _ => {}
        }
        match source {
            Sqlite::InvalidColumnType(..)
            | Sqlite::IntegralValueOutOfRange(..)
            | Sqlite::FromSqlConversionFailure(..)
            | Sqlite::Utf8Error(..)
            | Sqlite::UserFunctionError(..)
            | Sqlite::QueryReturnedNoRows => Error::damaged(path, source.to_string()),
            source => Error::Database { path: path.to_owned(), reason: Arc::new(source) },
        }
    }
}
