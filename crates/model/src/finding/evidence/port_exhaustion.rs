//! Evidence of `port-exhaustion`.

use serde::{Deserialize, Serialize};

/// A service that cannot open connections because no local port is left for them, or that searches long for each.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PortExhaustion {
    /// Name in its errors, such as `cannot assign requested address`.
    pub name: String,
    /// The text of one of them; `None` if none was recorded.
    pub text: Option<String>,
    /// Share of the requests that meet one, 0 to 1.
    pub share: f64,
    /// Traces that show one.
    pub traces: usize,
    /// Where the connections were to go, as the failed calls say; `None` if they do not.
    pub peer: Option<String>,
    /// Connections in the state TIME_WAIT, the most in any reading under load; `None` if they were not sampled.
    pub time_wait: Option<f64>,
    /// Local ports that there are for connections to one peer; `None` if that is not known.
    pub ports: Option<f64>,
    /// Cost of the search for free ports, if no error was reported.
    #[serde(default)]
    pub search: Option<PortSearch>,
}

/// A service before and after closed connections held so many of its ports that each new connection searches long for one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortSearch {
    /// Addresses that it opens connections to; it has all ports for each.
    pub peers: usize,
    /// Successful requests of the load per second, before and after.
    pub rates: (f64, f64),
    /// CPU of the service for a request, milliseconds, before and after.
    pub cpu_ms: (f64, f64),
}

impl PortExhaustion {
    /// Closed connections that still hold a port, as a share of the ports to one peer, from 0; above 1 with several peers.
    pub fn held_share(&self) -> Option<f64> {
        self.time_wait.zip(self.ports.filter(|ports| *ports > 0.0)).map(|(held, ports)| held / ports)
    }
}
