//! `mariadb:`: what can be written about a MariaDB server.

use std::path::{Path, PathBuf};

use crate::components::{server_settings, sql};
use crate::experiment::Url;
use crate::experiment::document::at::At;
use crate::experiment::error::Report;
use crate::experiment::grammar::key::Key;
use crate::experiment::grammar::shape::{Field, Map, Shape};

/// A MariaDB server's settings in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::components) struct Mariadb {
    /// The database that is made.
    pub(super) database: String,
    /// Files of SQL that are run in it, in order; absolute paths.
    pub(super) sql: Vec<PathBuf>,
    /// Settings of the section `[mysqld]` beside those that Narrows gives.
    pub(super) settings: Vec<(String, String)>,
}

/// Narrows's own settings of a server, so that it is private, found again and followed.
const NOT_FREE: [&str; 11] = [
    "port",
    "bind_address",
    "socket",
    "datadir",
    "pid_file",
    "tmpdir",
    "log_error",
    "user",
    "skip_networking",
    "skip_name_resolve",
    "skip_grant_tables",
];

const DATABASE: Key<String> = sql::database("test", "The database that is created and that the service's URL names.");

const SETTINGS: Field = server_settings::settings("Settings of `[mysqld]`, such as `innodb_buffer_pool_size: 64M`.");

pub(super) static SHAPE: Shape = Shape::Map(Map::new(&[DATABASE.field, sql::SQL, SETTINGS]));

pub(in crate::components) fn url(at: At<'_>) -> Url {
    let database = at.read(&DATABASE).unwrap_or_default();
    Url { before: "mysql://root@".to_owned(), after: format!("/{database}") }
}

pub(in crate::components) fn is_free(setting: &str) -> bool {
    !NOT_FREE.contains(&setting.replace('-', "_").as_str())
}

/// The settings of a server, whether it stands alone or in a cluster.
pub(in crate::components) fn server(
    at: At<'_>,
    dir: &Path,
    is_free: fn(&str) -> bool,
    report: &mut Report,
) -> Option<Mariadb> {
    let settings = server_settings::read(at, &SETTINGS, is_free, report)?;
    Some(Mariadb { database: at.read(&DATABASE)?, sql: sql::files(at, dir)?, settings })
}
