//! Evidence of `few-clients`.

use serde::{Deserialize, Serialize};

/// A service whose replicas are called unevenly, because the load has few clients.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FewClients {
    /// The clients.
    pub clients: Clients,
    /// The replicas, by name.
    pub replicas: Vec<ReplicaShare>,
    /// The replica with most requests.
    pub hot: String,
    /// Its share of the requests in the traces, 0 to 1.
    pub hot_share: f64,
    /// Its requests, as a multiple of the mean.
    pub hot_ratio: f64,
    /// Share that a hash of that many clients gives the fullest replica, as a multiple of the mean.
    pub expected_ratio: f64,
    /// Requests in the traces.
    pub requests: usize,
}

impl FewClients {
    /// Replicas without a request.
    pub fn idle_replicas(&self) -> usize {
        self.replicas.iter().filter(|one| one.share == 0.0).count()
    }
}

/// Who the clients are, and how many, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clients {
    /// Addresses that the replicas saw, each at one replica only.
    SeenAddresses(usize),
    /// Addresses that the load is set to use.
    GivenAddresses(usize),
    /// Users of the load.
    Users(usize),
}

impl Clients {
    /// How many.
    pub fn count(self) -> usize {
        match self {
            Clients::SeenAddresses(count) | Clients::GivenAddresses(count) | Clients::Users(count) => count,
        }
    }
}

impl Default for Clients {
    fn default() -> Self {
        Clients::Users(1)
    }
}

/// The part of a service's requests that one replica served.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReplicaShare {
    /// The replica.
    pub replica: String,
    /// Its share of all requests, estimated from the traces, 0 to 1.
    pub share: f64,
}
