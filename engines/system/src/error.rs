//! Errors that keep a service from starting or going on.

use crate::{Advice, ListenError};

/// A service that cannot be started or that ended.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// It cannot listen, serve, hear signals or export its telemetry.
    #[error(transparent)]
    Serving(#[from] narrows_serving::Error),
    /// The arguments say no address that it may listen on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A setting is outside its range.
    #[error("{name} is {value:?}, expected {expected}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// Given value, without what could be a password.
        value: String,
        /// Accepted values.
        expected: &'static str,
    },
}

impl Advice for ServiceError {
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Serving(error) => error.hint(),
            Self::Listen(error) => error.hint(),
            Self::Setting { .. } => None,
        }
    }
}
