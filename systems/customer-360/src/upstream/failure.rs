//! A call without a response, by kind.

use http::StatusCode;

use super::connection::RESPONSE_BYTES_MAX;
use crate::response::{Problem, Reason};

/// Why a call has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallFailure {
    /// No connection could be made, or it ended before a response.
    #[error("no connection: {0}")]
    Connection(String),
    /// The response did not come in time.
    #[error("no response in time")]
    Timeout,
    /// The response is longer than allowed.
    #[error("the response is larger than {RESPONSE_BYTES_MAX} bytes")]
    TooLarge,
    /// Response that is not HTTP.
    #[error("the response is not HTTP: {0}")]
    Malformed(String),
}

impl CallFailure {
    pub(super) fn from_hyper(error: &hyper::Error) -> Self {
        if error.is_parse() || error.is_parse_too_large() || error.is_parse_status() {
            Self::Malformed(error.to_string())
        } else {
            Self::Connection(error.to_string())
        }
    }

    /// Whether another attempt may succeed, at another replica or over a fresh connection.
    pub(super) fn is_worth_another_attempt(&self) -> bool {
        matches!(self, Self::Connection(_))
    }

    fn reason(&self) -> Reason {
        Reason(match self {
            Self::Connection(_) => "no_connection",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Malformed(_) => "malformed_response",
        })
    }

    /// `error.type` of the call's span.
    pub(super) fn kind(&self) -> &'static str {
        self.reason().0
    }

    /// The problem for the caller of the service whose call to `service` this was.
    pub(super) fn into_problem(self, service: &str) -> Problem {
        let status = if self == Self::Timeout { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::BAD_GATEWAY };
        Problem::new(status, self.reason(), format!("{service}: {self}"))
    }
}
