//! `postgres:`: what can be written about a PostgreSQL server.

use std::path::{Path, PathBuf};

use crate::components::{server_settings, sql};
use crate::experiment::Url;
use crate::experiment::document::at::At;
use crate::experiment::error::Report;
use crate::experiment::grammar::key::Key;
use crate::experiment::grammar::shape::{Field, Map, Shape};

/// A PostgreSQL server's settings in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Postgres {
    /// The database that is made.
    pub(super) database: String,
    /// Files of SQL that are run in it, in order; absolute paths.
    pub(super) sql: Vec<PathBuf>,
    /// Settings of `postgresql.conf` beside those that Narrows gives.
    pub(super) settings: Vec<(String, String)>,
}

/// Narrows's own settings of a server, so that it is private, found again and followed.
const NOT_FREE: [&str; 12] = [
    "port",
    "listen_addresses",
    "unix_socket_directories",
    "data_directory",
    "config_file",
    "hba_file",
    "ident_file",
    "external_pid_file",
    "log_destination",
    "logging_collector",
    "lc_messages",
    "ssl",
];

const DATABASE: Key<String> =
    sql::database("postgres", "The database that is created and that the service's URL names.");

const SETTINGS: Field = server_settings::settings("Settings of `postgresql.conf`, such as `shared_buffers: 64MB`.");

pub(super) static SHAPE: Shape = Shape::Map(Map::new(&[DATABASE.field, sql::SQL, SETTINGS]));

pub(super) fn url(at: At<'_>) -> Url {
    let database = at.read(&DATABASE).unwrap_or_default();
    Url { before: "postgres://postgres@".to_owned(), after: format!("/{database}") }
}

pub(super) fn from_file(at: At<'_>, dir: &Path, report: &mut Report) -> Option<Postgres> {
    let settings = server_settings::read(at, &SETTINGS, |name| !NOT_FREE.contains(&name), report)?;
    let database = at.read(&DATABASE)?;
    Some(Postgres { database, sql: sql::files(at, dir)?, settings })
}
