//! Errors that keep a service from starting or going on.

/// A service that cannot be started or that ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot listen, serve, hear signals or export its telemetry.
    #[error(transparent)]
    Serving(#[from] narrows_serving::Error),
    /// The variable `PORT` is not a port number.
    #[error(transparent)]
    Port(#[from] narrows_system::PortError),
    /// The database's address cannot be read. It may hold a password, so it is not repeated.
    #[error("--database is not an address of PostgreSQL, expected postgres://USER@HOST:PORT/DATABASE")]
    Database(#[source] tokio_postgres::Error),
    /// A setting is outside its range.
    #[error("{name} is {value:?}, expected {expected}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// Given value.
        value: String,
        /// Accepted values.
        expected: &'static str,
    },
}

impl narrows_system::Advice for Error {}
