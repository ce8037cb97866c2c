//! Errors that keep a service from starting or going on.

use std::path::PathBuf;

/// A service that cannot be started or that ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot listen, serve, hear signals or export its telemetry.
    #[error(transparent)]
    Serving(#[from] narrows_serving::Error),
    /// The arguments say no address that it may listen on.
    #[error(transparent)]
    Listen(#[from] narrows_system::ListenError),
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
    /// A program that the services in Spring Boot need cannot be run.
    #[error("cannot run {program}")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// Maven could not build the services in Spring Boot; it said why.
    #[error("mvn package failed with {0}")]
    Maven(std::process::ExitStatus),
    /// A file of the services in Spring Boot cannot be written.
    #[error("cannot write {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no folder for the services in Spring Boot.
    #[error("there is no folder for caches: neither XDG_CACHE_HOME nor HOME is an absolute path")]
    NoCacheFolder,
}

impl narrows_system::Advice for Error {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Serving(error) => error.hint(),
            Self::Listen(error) => error.hint(),
            Self::NoProgram { .. } => Some("`apt-get install maven default-jdk-headless` brings Maven and Java"),
            Self::Maven(_) => Some("it needs Java 17 or later, and Maven Central or what it had from there earlier"),
            _ => None,
        }
    }
}
