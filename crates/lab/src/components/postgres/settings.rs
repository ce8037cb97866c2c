//! `postgres:`: what can be written about a PostgreSQL server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::components::entry::Url;
use crate::components::{Component, server_settings, sql};
use crate::experiment::grammar::{default, optional};
use crate::experiment::mistake::Report;
use crate::experiment::read;
use crate::experiment::shape::{Map, Shape};
use crate::experiment::tree::At;

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

/// What Narrows itself says of a server, so that it is private, found again and followed.
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

pub(super) static SHAPE: Shape = Shape::Map(Map::of(&[
    default("database", &sql::DATABASE, "postgres", "The database that is created and that the service's URL names."),
    optional(
        "sql",
        &sql::FILES,
        "Files of SQL, relative to the experiment file's folder. They are run in the database one after the other, once in a trial, when the server is ready.",
    ),
    optional("settings", &server_settings::SHAPE, "Settings of `postgresql.conf`, such as `shared_buffers: 64MB`."),
]));

pub(super) fn url(at: At<'_>) -> Url {
    let database = read::text(at, "database").unwrap_or_default();
    Url { before: "postgres://postgres@".to_owned(), after: format!("/{database}") }
}

pub(super) fn from_file(at: At<'_>, dir: &Path, report: &mut Report) -> Option<Arc<dyn Component>> {
    let settings = server_settings::read(at, |name| !NOT_FREE.contains(&name), report)?;
    let database = read::text(at, "database")?;
    Some(Arc::new(Postgres { database, sql: sql::files(at, dir)?, settings }))
}
