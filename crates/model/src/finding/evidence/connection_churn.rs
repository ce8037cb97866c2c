//! Evidence of `connection-churn`.

use serde::{Deserialize, Serialize};

use super::load::LoadLevel;

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
    /// CPU of the service, cores; `None` if not sampled.
    pub cores: Option<f64>,
    /// CPU that handshakes take at the caller, estimated from their number, cores.
    pub handshake_cores: f64,
    /// Closed connections that still hold a port on this machine; `None` if not sampled.
    pub time_wait: Option<f64>,
    /// The interval in which this was measured, for people.
    pub interval: String,
    /// The load at that time.
    pub load: LoadLevel,
}
