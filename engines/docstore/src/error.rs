//! Errors that keep the store from starting or serving. Errors of a single request are responses, not values of this type.

use std::io;
use std::path::PathBuf;

/// Why the store could not start or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is not to be had, or signals cannot be received.
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
    /// The folder of the data cannot be used.
    #[error("cannot {action} the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Operation that failed.
        action: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error("the folder {} is in use{}", path.display(), by(*process))]
    InUse {
        /// The folder.
        path: PathBuf,
        /// The number of the process, where it is known.
        process: Option<u32>,
    },
    /// Another program has written the file.
    #[error("{} is not a file of the document store", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// Another version has written the file.
    #[error("{} has version {found}, expected version {expected}", file.display())]
    OtherVersion {
        /// The file.
        file: PathBuf,
        /// The version found.
        found: i64,
        /// The version that this one reads and writes.
        expected: i64,
    },
    /// The file says what cannot be.
    #[error("{} is damaged: {what}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Fault and its place.
        what: String,
    },
    /// The file cannot be read or written.
    #[error("cannot use {}: {why}", file.display())]
    Storage {
        /// The file.
        file: PathBuf,
        /// Error of SQLite.
        why: String,
    },
    /// The certificate or its key cannot be used.
    #[error("cannot use {}: {why}", file.display())]
    Certificate {
        /// The file.
        file: PathBuf,
        /// Fault.
        why: String,
    },
    /// The environment requests an export of metrics that is not possible.
    #[error("cannot export metrics to {endpoint:?}, expected the http:// address of an OTLP receiver")]
    Metrics {
        /// The address metrics would go to.
        endpoint: String,
        /// Error of the exporter or its HTTP client.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The listener failed while serving.
    #[error("the document store stopped serving")]
    Serve(#[source] io::Error),
}

impl Error {
    /// Advice, where there is something to do.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Serving(error) => error.hint(),
            Self::InUse { .. } => Some("end the process that has it, or name another folder"),
            Self::Foreign { .. } | Self::OtherVersion { .. } => Some("name another folder, which will be made"),
            Self::Damaged { .. } => {
                Some("take the folder from a backup; without one, `--repair` says what of it can be read")
            }
            Self::Folder { .. } | Self::Storage { .. } => Some("check the space on the disk and who may write there"),
            Self::Certificate { .. } => {
                Some("put a certificate and its key there, both as PEM, or remove both files to have them made")
            }
            _ => None,
        }
    }
}

fn by(process: Option<u32>) -> String {
    process.map_or(String::new(), |number| format!(" by process {number}"))
}
