//! Faults of a request at a hop: the word telemetry has for it and the status its caller gets.

use std::fmt;

use http::StatusCode;

/// A kind of failure that the hop reports, not the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A websocket, `CONNECT`, or a transfer coding besides chunked.
    NotCarried,
    /// Nobody listens at the upstream, or the system refuses the connection.
    UpstreamUnreachable,
    /// The TLS handshake with the upstream failed.
    UpstreamTls,
    /// The upstream closed the connection before the end of its response, or its response did not fit the request.
    UpstreamBroken,
    /// All connections to the upstream were in use for too long.
    PoolFull,
    /// Connecting took too long.
    ConnectTimeout,
    /// The upstream was silent for too long.
    ResponseTimeout,
    /// The caller broke off before the end of the response.
    CallerLeft,
    /// The caller's TLS handshake failed.
    CallerTls,
    /// The caller's request could not be read, or is ambiguous about its host or its end.
    CallerMalformed,
}

impl Fault {
    /// All of them, in the order of [`Self::index`].
    pub(crate) const ALL: [Self; 10] = [
        Self::NotCarried,
        Self::UpstreamUnreachable,
        Self::UpstreamTls,
        Self::UpstreamBroken,
        Self::PoolFull,
        Self::ConnectTimeout,
        Self::ResponseTimeout,
        Self::CallerLeft,
        Self::CallerTls,
        Self::CallerMalformed,
    ];

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The word in telemetry, the access log and responses.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::NotCarried => "not-carried",
            Self::UpstreamUnreachable => "upstream-unreachable",
            Self::UpstreamTls => "upstream-tls",
            Self::UpstreamBroken => "upstream-broken",
            Self::PoolFull => "upstream-pool-full",
            Self::ConnectTimeout => "connect-timeout",
            Self::ResponseTimeout => "response-timeout",
            Self::CallerLeft => "caller-left",
            Self::CallerTls => "caller-tls",
            Self::CallerMalformed => "caller-malformed",
        }
    }

    /// The status of the response; a caller that left gets none, whatever this says.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::NotCarried => StatusCode::NOT_IMPLEMENTED,
            Self::UpstreamUnreachable | Self::UpstreamTls | Self::UpstreamBroken => StatusCode::BAD_GATEWAY,
            Self::PoolFull => StatusCode::SERVICE_UNAVAILABLE,
            Self::ConnectTimeout | Self::ResponseTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::CallerLeft | Self::CallerTls | Self::CallerMalformed => StatusCode::BAD_REQUEST,
        }
    }
}

/// A fault and its details.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    /// A sentence without a full stop, with the system's own words where there are any.
    pub(crate) detail: String,
}

impl Failure {
    pub(crate) fn new(fault: Fault, detail: impl fmt::Display) -> Self {
        Self { fault, detail: detail.to_string() }
    }

    /// With the whole chain of an error's causes.
    pub(crate) fn caused(fault: Fault, error: &dyn std::error::Error) -> Self {
        let mut detail = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            detail = format!("{detail}: {error}");
            cause = error.source();
        }
        Self { fault, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_place_and_a_word_of_its_own() {
        let words: std::collections::BTreeSet<&str> = Fault::ALL.iter().map(|fault| fault.word()).collect();
        assert_eq!(words.len(), Fault::ALL.len());
        assert!(Fault::ALL.iter().enumerate().all(|(at, fault)| fault.index() == at));
    }
}
