//! A plan: where the load goes, how it speaks, and what runs.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{DataSource, Scenario};

/// Everything the load engine needs for one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// Where to connect, one or more; virtual user `i` uses `targets[i % targets.len()]`.
    pub targets: Vec<SocketAddr>,
    /// The addresses to connect from; virtual user `i` uses `client_addresses[i % len]`. Empty: the kernel chooses.
    pub client_addresses: Vec<IpAddr>,
    /// Protocol.
    pub protocol: Protocol,
    /// How the connection is encrypted; `None` for plain text.
    pub tls: Option<Tls>,
    /// Scenarios, which run at the same time.
    pub scenarios: Vec<Scenario>,
    /// The named data that `{{name}}` and `{{name.column}}` in templates draw from.
    pub data: Vec<DataSource>,
    /// Whether requests carry a W3C `traceparent`.
    pub tracing: Option<Tracing>,
    /// The longest wait for a response, connecting included.
    pub timeout: Duration,
    /// How long to wait for outstanding responses after the load's end.
    pub drain: Duration,
    /// Which requests are repeated.
    pub retry: Retry,
    /// The seed of everything random in the load.
    pub seed: u64,
    /// Threads to use at most; the engine uses fewer when there are fewer users.
    pub threads: usize,
    /// `Connection: keep-alive` or one connection per request.
    pub connections: Connections,
}

/// Protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: by ALPN with TLS, by prior knowledge (h2c) without.
    Http2,
}

/// How connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// The name requested and verified: a DNS name or an address.
    pub server_name: String,
    /// Which certificates are trusted.
    pub trust: Trust,
}

/// Which certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// Those of the system's certificate authorities.
    System,
    /// Those of the authorities in these PEM bytes.
    Authorities(Vec<u8>),
    /// Any: nothing is verified.
    Anything,
}

/// Fate of a connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// It carries the user's next request.
    #[default]
    KeepAlive,
    /// It is closed.
    PerRequest,
}

/// Which requests are repeated when a kept connection breaks before any byte of the response. The server may have
/// closed the connection as idle, or may have processed the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// Requests with an idempotent method (RFC 9110, 9.2.2), and those that the server reports as not processed (RFC
    /// 9113, 8.7).
    #[default]
    Idempotent,
    /// None.
    Never,
}

/// How requests are traced.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tracing {
    /// The share of requests whose `traceparent` says "sampled", 0 to 1.
    pub sample: f64,
    /// The first four bytes of every trace id of this trial, which distinguishes its traces from others.
    pub tag: [u8; 4],
}
