//! Everything that can stop a load before it starts, or end it before its time.
//!
//! Failures of single requests are no errors here: the outcome counts them.

use std::io;
use std::path::PathBuf;

/// Why a load could not be run, or a data file not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The plan contradicts itself or requires something impossible.
    #[error("load plan: {place}: {problem}")]
    Plan {
        /// Where in the plan, such as `scenario browse: request path`.
        place: String,
        /// Fault and expectation.
        problem: String,
    },
    /// The process may not open as many connections as there are virtual users.
    #[error("{users} virtual users need {needed} open files, but this process may open {limit}")]
    OpenFiles {
        /// Virtual users of all scenarios together.
        users: u64,
        /// Open files they need.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// The kernel refused something the engine cannot do without.
    #[error("cannot {action}")]
    System {
        /// Attempt.
        action: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A data file could not be opened or read.
    #[error("cannot read data file {path}")]
    DataFile {
        /// The file.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A data file does not hold what a data source needs.
    #[error("data file {path}, line {line}: {problem}")]
    DataRow {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Fault and expectation.
        problem: String,
    },
}

impl Error {
    pub(crate) fn plan(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Error::Plan { place: place.into(), problem: problem.into() }
    }

    pub(crate) fn system(action: &'static str, source: impl Into<io::Error>) -> Self {
        Error::System { action, source: source.into() }
    }
}
