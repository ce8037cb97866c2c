//! Evidence of `connection-churn`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

/// CPU of a service at one end of connections.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConnectionEnd {
    /// The service.
    pub service: String,
    /// CPU that it uses, cores.
    pub cores: f64,
    /// Of this, what connections take by assumption, cores.
    pub connection_cores: f64,
}

/// A service that opens a connection for nearly every call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ConnectionChurn {
    /// Where the connections go.
    pub peer: String,
    /// Connections opened per second.
    pub opened: f64,
    /// Connections opened per request of the load.
    pub per_request: f64,
    /// Requests and responses exchanged over each connection, handshakes included, mean.
    pub exchanges: f64,
    /// True if exchanges show that one of them is a handshake of TLS, or that connections carry several calls.
    pub is_tls_likely: bool,
    /// CPU assumed for opening and closing one connection at one end, milliseconds.
    pub assumed_cpu_ms: f64,
    /// CPU of both ends, the caller's first; those that were sampled.
    pub ends: Vec<ConnectionEnd>,
    /// Closed connections that still hold a port on this machine; `None` if not sampled.
    pub time_wait: Option<f64>,
    /// The interval in which this was measured, for people.
    pub interval: String,
    /// The load at that time.
    pub load: LoadLevel,
}
