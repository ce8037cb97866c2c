//! `postgres:`: what can be written about a PostgreSQL server.

use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::super::grammar::{default, optional};
use super::super::mistake::Report;
use super::super::read;
use super::super::shape::{Map, Shape};
use super::super::tree::At;
use super::{BoundComponent, Entry, Protocol, READY_TIMEOUT, Url, sql};

/// A PostgreSQL server's settings in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postgres {
    /// The database that is made.
    pub database: String,
    /// Files of SQL that are run in it, in order; absolute paths.
    pub sql: Vec<PathBuf>,
    /// Settings of `postgresql.conf` beside those that Narrows gives.
    pub settings: Vec<(String, String)>,
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

pub(in crate::experiment) static SHAPE: Shape = Shape::Map(Map::of(&[
    default(
        "database",
        &sql::DATABASE,
        "postgres",
        "The database that is made, and the one that the service's URL names.",
    ),
    optional(
        "sql",
        &sql::FILES,
        "Files of SQL, relative to the experiment file's folder. They are run in the database one after the other, once in a trial, when the server is ready.",
    ),
    optional("settings", &sql::SETTINGS, "Settings of `postgresql.conf`, such as `shared_buffers: 64MB`."),
]));

pub(super) static ENTRY: Entry = Entry {
    key: "postgres",
    protocol: Protocol::Tcp,
    // A fast shutdown: connections are closed, what was committed is written.
    stop_signal: Signal::INT,
    ready_timeout: READY_TIMEOUT,
    further_ports: 0,
    replicas: |_| None,
    url,
    check_files: sql::check_files,
    read: settings,
};

fn url(at: At<'_>) -> Url {
    let database = read::text(at, "database").unwrap_or_default();
    Url { before: "postgres://postgres@".to_owned(), after: format!("/{database}") }
}

fn settings(at: At<'_>, dir: &Path, report: &mut Report) -> Option<BoundComponent> {
    let settings = sql::settings(at, |name| !NOT_FREE.contains(&name), report)?;
    let database = read::text(at, "database")?;
    Some(BoundComponent::Postgres(Postgres { database, sql: sql::files(at, dir)?, settings }))
}
