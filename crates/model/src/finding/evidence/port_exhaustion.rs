//! Evidence of `port-exhaustion`.

use serde::{Deserialize, Serialize};

/// A service that cannot open connections because no local port is left for them.
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
}

impl PortExhaustion {
    /// Closed connections that still hold a port, as a share of the ports, from 0; above 1 with several peers.
    pub fn held_share(&self) -> Option<f64> {
        self.time_wait.zip(self.ports.filter(|ports| *ports > 0.0)).map(|(held, ports)| held / ports)
    }
}
