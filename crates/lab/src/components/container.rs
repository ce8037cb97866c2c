//! A component's server as a container in a cluster: a public image, with the experiment's settings as arguments and files.

use std::path::PathBuf;

/// Where a server has to listen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endpoint<'a> {
    /// All addresses of its pod, or loopback behind a sidecar.
    pub(crate) address: &'a str,
    /// The port.
    pub(crate) port: u16,
}

/// See the module. The images understand a variable for the password, one for the database that is created, and run
/// files of SQL in `/docker-entrypoint-initdb.d` when they start with an empty folder of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    /// Image, unless the experiment names another.
    pub(crate) image: &'static str,
    /// Usual port of such a server.
    pub(crate) port: u16,
    /// Arguments of the image.
    pub(crate) args: Vec<String>,
    /// Environment variables.
    pub(crate) env: Vec<(&'static str, String)>,
    /// The environment variable that takes the password of its user.
    pub(crate) password: &'static str,
    /// A URL of the server up to its user: `postgres://postgres`.
    pub(crate) url: &'static str,
    /// Folders that it writes to; the first has its data.
    pub(crate) folders: &'static [&'static str],
    /// Number of the user that the image runs as.
    pub(crate) user: u32,
    /// Files of SQL, in order; absolute paths.
    pub(crate) sql: Vec<PathBuf>,
    /// A command in the container that succeeds once the server takes queries.
    pub(crate) ready: Vec<String>,
}
