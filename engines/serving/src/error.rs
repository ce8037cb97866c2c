//! Errors that keep a server from starting or going on.

/// A server that cannot be started or that ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The port is not to be had.
    #[error("cannot listen on 127.0.0.1:{port}")]
    Bind {
        /// The requested port; 0 is any.
        port: u16,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Cannot listen for the signals that end a server.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    /// The exporters of spans and metrics cannot be built from the `OTEL_…` variables.
    #[error("cannot set up the export of telemetry: {0}")]
    Telemetry(String),
}
