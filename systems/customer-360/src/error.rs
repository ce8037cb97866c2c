//! Why a service cannot be started, or cannot go on.

/// A service that cannot be started or that ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port is not to be had.
    #[error("cannot listen on 127.0.0.1:{port}")]
    Bind {
        /// The port that was asked for; 0 is any.
        port: u16,
        /// What the system said.
        source: std::io::Error,
    },
    /// The signals that ask a service to end cannot be listened for.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    /// The exporters cannot be built from the `OTEL_…` variables.
    #[error("cannot set up the export of telemetry: {0}")]
    Telemetry(String),
    /// The database's address cannot be read. It may hold a password, so it is not repeated.
    #[error("--database is not an address of PostgreSQL, expected postgres://USER@HOST:PORT/DATABASE")]
    Database(#[source] tokio_postgres::Error),
    /// A setting is outside its range.
    #[error("{name} is {value:?}, expected {expected}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// What was given.
        value: String,
        /// What would do.
        expected: &'static str,
    },
}
