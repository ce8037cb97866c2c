//! Reasons why a page cannot be shown, or none at all.

use std::io;
use std::path::PathBuf;

use narrows_listener::CannotListen;
use narrows_telemetry::run_file::{self, QueryError};

/// Reason why runs cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be had.
    #[error(transparent)]
    Listen(#[from] CannotListen),
    /// There is no thread to be had.
    #[error("cannot start threads")]
    Threads(#[source] io::Error),
    /// The other side does not speak the Model Context Protocol.
    #[error("the other side ended or does not speak MCP: {0}")]
    Protocol(String),
    /// The folder cannot be read.
    #[error("cannot read the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// Reason why a page cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Lab(#[from] narrows_lab::Error),
    #[error(transparent)]
    RunFile(#[from] run_file::Error),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error("cannot {what}")]
    Io { what: String, source: io::Error },
    #[error("the page could not be made: {0}")]
    Ended(#[from] tokio::task::JoinError),
}
