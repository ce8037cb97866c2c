//! Evidence of `sequential-calls`.

use serde::{Deserialize, Serialize};

use super::sockets::SocketReading;
use crate::call_graph::Bounds;

/// Calls that the requests of a service make one after another, as its sockets show them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SequentialCalls {
    /// Peers, that which requests wait for most first; at least one.
    pub peers: Vec<PeerCalls>,
    /// Requests that wait for one of them, of all under way.
    pub reading: SocketReading,
    /// Requests of the service that wait for one of them ÷ requests that it has at work, 0 to about 1; more than 1 would
    /// mean that a request makes several calls at once.
    pub at_once: f64,
    /// Wait of a request for all of them, mean, nanoseconds.
    pub request_ns: f64,
}

/// Calls to one peer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PeerCalls {
    /// A service, or an address and port outside the trial.
    pub peer: String,
    /// Calls for each request of the service, mean.
    pub per_request: f64,
    /// Wait per call, mean, nanoseconds.
    pub call_ns: Bounds,
    /// Statement that the peer, a database, reports most often; `None` if it reports none that is executed often.
    pub statement: Option<RepeatedStatement>,
}

/// A statement as the database counts it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RepeatedStatement {
    /// Its text without values, clipped.
    pub text: String,
    /// Executions for each request of the service, mean.
    pub per_request: f64,
}

impl SequentialCalls {
    /// Calls for each request of the service, to all peers: a statement counts as often as the database executes it.
    pub fn per_request(&self) -> f64 {
        self.peers.iter().map(PeerCalls::count).sum()
    }
}

impl PeerCalls {
    /// Calls for each request; statements, where the database counts them.
    pub fn count(&self) -> f64 {
        self.statement.as_ref().map_or(self.per_request, |statement| statement.per_request)
    }
}
