//! Errors that keep a server from starting or going on.

/// A server that cannot be started or that ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is not to be had.
    #[error(transparent)]
    Listen(#[from] narrows_listener::CannotListen),
    /// Cannot listen for the signals that end a server.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    /// The exporters of spans and metrics cannot be built from the `OTEL_…` variables.
    #[error("cannot set up the export of telemetry: {0}")]
    Telemetry(String),
}

impl Error {
    /// Advice, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Listen(error) => error.hint(),
            Self::Signals(_) | Self::Telemetry(_) => None,
        }
    }
}
