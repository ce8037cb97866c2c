//! A small proxy that stands beside a service and carries the requests it receives and the requests it sends.
//!
//! It exists so that the cost of a sidecar can be measured with and without one, on one machine, with nothing to
//! install. A sidecar is a single-threaded process with a list of *hops*: each has a listener and one
//! upstream. Beyond loopback it listens with `accept_tls` only, unless it is told to be insecure. Inbound hops lead to the service beside it, outbound ones to other services; a hop may request a
//! certificate from its callers (`accept_tls`) and may show its own to its upstream (`upstream_tls`).
//!
//! # What a hop does
//!
//! - `http`: HTTP/1.1 and 1.0 in, HTTP/1.1 out, over a bounded pool of connections that are kept. Bodies stream both
//!   ways. Headers that belong to one connection are taken out (RFC 9110, section 7.6.1); `Host` stays as it is, and
//!   neither `Via` nor `Forwarded` is added. A request to become a websocket, and `CONNECT`, are refused with
//!   501; any other `Upgrade` is ignored, as the RFC allows.
//! - `tcp`: bytes both ways, one upstream connection for each caller. What a connection carries is not looked at.
//!
//! The proxy's own responses carry JSON, `{"error": …, "hop": …, "upstream": …, "detail": …}`:
//!
//! | status | `error` | when |
//! |---|---|---|
//! | 400 | `caller-malformed` | no `Host`, two, or one that is invalid or has user information; a body chunked twice |
//! | 501 | `not-carried` | a websocket, `CONNECT`, or a transfer coding besides chunked |
//! | 502 | `upstream-unreachable`, `upstream-tls`, `upstream-broken` | no listener; no trust; closed before its response, or responded with a 101 or a transfer coding that the hop did not ask for |
//! | 503 | `upstream-pool-full` | all connections were in use for longer than a request waits |
//! | 504 | `connect-timeout`, `response-timeout` | it was too slow |
//!
//! A `content-length` beside a chunked body is not forwarded (RFC 9112, section 6.3). A caller may close its sending
//! side after its request and still gets the response; one that closes both sides is noticed when the response is
//! written.
//!
//! A request that was not sent, because the kept connection had closed, is sent on another one. A request that may be
//! repeated (RFC 9110, section 9.2.2) and has no body is also sent once more if a kept connection closed before any
//! response.
//!
//! # Mutual TLS
//!
//! TLS 1.2 and 1.3. Callers of a hop with `accept_tls` need a certificate that the authority of the configuration has
//! signed; an upstream behind TLS needs one of that authority with the name that the hop expects (`upstream_name`).
//!
//! # Telemetry
//!
//! A request whose `traceparent` is sampled gets a span at each HTTP hop (`SERVER` inbound, `CLIENT` outbound), and the
//! next hop learns of it. Requests without one, or with one that is not sampled, pass unchanged: a hop joins traces and
//! begins none. With `OTEL_EXPORTER_OTLP_ENDPOINT` set, spans and these metrics are exported over OTLP (http/protobuf);
//! each metric carries the attribute `sidecar.hop`:
//!
//! | name | instrument | unit | value |
//! |---|---|---|---|
//! | `sidecar.requests` | counter, u64 | `{request}` | requests, or TCP connections, that have ended |
//! | `sidecar.errors` | counter, u64 | `{request}` | those that went wrong here, by `error.type` |
//! | `sidecar.active` | gauge, i64 | `{request}` | those under way |
//! | `sidecar.connections` | gauge, i64 | `{connection}` | callers' connections that are open |
//! | `sidecar.bytes.received`, `sidecar.bytes.sent` | counter, u64 | `By` | bodies, or bytes of TCP, from and to callers |
//! | `http.server.request.duration`, `http.client.request.duration` | histogram | `s` | from the request's head to the end of its response |
//! | `sidecar.access_log.lost` | counter, u64 | `{line}` | lines of the access log that could not be written; no hop |
//!
//! Deliberately absent: HTTP/2, load balancing (a hop has one upstream), retries after a response, caches, and
//! bearer tokens.

mod access_log;
mod body;
mod config;
mod error;
mod exchange;
mod fault;
mod headers;
mod hop;
mod host_port;
mod http_hop;
mod listen;
mod metrics;
mod pool;
mod serve;
mod stop;
mod tcp_hop;
mod telemetry;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tls;
mod trace;
mod upstream;
mod wire;

pub use config::{Config, Direction, Exposure, HopConfig, Limits, Protocol, TlsFiles};
pub use error::Error;
pub use host_port::HostPort;
pub use narrows_serving::stop_signal;
pub use serve::Sidecar;
