//! What can keep the store from starting or serving. Errors of a single request are responses, not values of this type.

use std::io;

/// Why the store could not start or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot hear signals.
    #[error(transparent)]
    Serving(#[from] narrows_serving::Error),
    /// A setting is outside its range.
    #[error("{setting} is {value}, expected {expected}")]
    Setting {
        /// The field of [`Config`](crate::Config).
        setting: &'static str,
        /// The value found.
        value: String,
        /// The values that would do.
        expected: String,
    },
    /// The port on the loopback interface is not to be had.
    #[error("cannot listen on 127.0.0.1:{port}")]
    Bind {
        /// The requested port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The environment requests an export of metrics that is not possible.
    #[error("cannot export metrics to {endpoint:?}, expected the http:// address of an OTLP receiver")]
    Metrics {
        /// The address metrics would go to.
        endpoint: String,
        /// What the exporter or its HTTP client said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The listener failed while serving.
    #[error("the document store stopped serving")]
    Serve(#[source] io::Error),
}
