//! Names of what services say of their requests over time, whichever metrics say it: means of the time since the point
//! before.
//!
//! With the label [`PEER`] a series is about the requests that the service sends to this callee, else about those that it
//! responds to.

/// Requests that ended, per second, failed ones included.
pub const REQUESTS: &str = "service.requests";
/// Requests that failed, per second.
pub const ERRORS: &str = "service.errors";
/// Seconds that requests took, per second: [`LATENCY`] × [`REQUESTS`].
pub const DURATION: &str = "service.duration";
/// Mean time to a response, seconds.
pub const LATENCY: &str = "service.latency";
/// A call graph's statement that the service calls [`PEER`]: one point, whose value says nothing.
pub const CALLS: &str = "service.calls";
/// The label that names a callee.
pub const PEER: &str = "peer.service";
