//! Faults that keep a sidecar from starting. Errors of a single request are responses, not values of this type.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the sidecar could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot hear signals or export its telemetry.
    #[error(transparent)]
    Serving(#[from] narrows_serving::Error),
    /// A file is not to be had.
    #[error("cannot read {}", path.display())]
    Read {
        /// The configuration, or a PEM file it names.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The configuration is no JSON, or not of the right shape.
    #[error("{} is no configuration of a sidecar", path.display())]
    Json {
        /// The configuration.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The configuration cannot work.
    #[error("{what} {reason}")]
    Config {
        /// The part that is wrong.
        what: String,
        /// Why, and the expected value.
        reason: String,
    },
    /// A hop without TLS would listen where other machines reach it.
    #[error("hop {hop:?}: {exposed}")]
    Exposed {
        /// The hop's name.
        hop: String,
        /// Its address.
        exposed: narrows_listener::Exposed,
    },
    /// A certificate or key is none.
    #[error("{}: {reason}", path.display())]
    Pem {
        /// The PEM file.
        path: PathBuf,
        /// Expectation or fault.
        reason: String,
    },
    /// Certificates and key do not go together.
    #[error("the certificates cannot be used")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A hop's address is not to be had.
    #[error("hop {hop:?} cannot listen on {address}")]
    Bind {
        /// The hop's name.
        hop: String,
        /// The requested address.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The access log cannot be written.
    #[error("cannot write the access log {}", path.display())]
    AccessLog {
        /// Where it was to be.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl Error {
    /// Advice, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Serving(error) => error.hint(),
            Self::Bind { source, .. } => narrows_listener::advice(source),
            Self::Exposed { .. } => {
                Some("have its callers show certificates with `\"accept_tls\": true`, or let anyone in with --insecure")
            }
            _ => None,
        }
    }
}
