//! Names of gRPC and `google.rpc`.
//!
//! OTLP over HTTP uses these messages too: it wants a `google.rpc.Status` with every error.

use std::time::Duration;

use prost::Message;

use super::export::Why;

/// A `google.rpc.Code`, which is gRPC's too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Ok = 0,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl Code {
    /// By gRPC's table of status codes, and OTLP's of which of them may be tried again.
    pub(super) fn from_why(why: Why) -> Self {
        match why {
            Why::Malformed => Code::InvalidArgument,
            Why::Unsupported => Code::Unimplemented,
            Why::Framing | Why::Broken => Code::Internal,
            Why::TooLarge => Code::ResourceExhausted,
            Why::TooSlow | Why::Late => Code::DeadlineExceeded,
            Why::Busy => Code::Unavailable,
            Why::Unauthenticated => Code::Unauthenticated,
        }
    }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Status {
    /// A `google.rpc.Code`.
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    /// For people.
    #[prost(string, tag = "2")]
    pub(super) message: String,
    /// For programs.
    #[prost(message, repeated, tag = "3")]
    pub(super) details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Any {
    #[prost(string, tag = "1")]
    pub(super) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Delay {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

impl Status {
    pub(super) fn new(code: Code, message: &str) -> Self {
        Self { code: code as i32, message: message.to_owned(), details: Vec::new() }
    }

    /// With the wait after which a sender should try again.
    pub(super) fn again_in(mut self, delay: Duration) -> Self {
        let seconds = i64::try_from(delay.as_secs()).unwrap_or(i64::MAX);
        let nanos = i32::try_from(delay.subsec_nanos()).unwrap_or(0);
        let info = RetryInfo { retry_delay: Some(Delay { seconds, nanos }) };
        let type_url = "type.googleapis.com/google.rpc.RetryInfo".to_owned();
        self.details.push(Any { type_url, value: info.encode_to_vec() });
        self
    }
}
